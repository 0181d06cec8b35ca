//! The services for incoming mail.

use std::net::SocketAddr;

use vere_settings::Settings;

/// A service of the gateway, by the settings section that configures it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Service {
    Smtp,
    Submission,
    Submissions,
    /// Programs of this machine, over a socket in the file system.
    Sendmail,
}

impl Service {
    pub(super) const ALL: [Self; 4] = [
        Self::Smtp,
        Self::Submission,
        Self::Submissions,
        Self::Sendmail,
    ];

    /// Returns the name of the section, which is also the name of inherited listeners.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Smtp => "smtp",
            Self::Submission => "submission",
            Self::Submissions => "submissions",
            Self::Sendmail => "sendmail",
        }
    }

    /// Returns the TCP addresses that the service listens on.
    pub(super) fn addresses(self, settings: &Settings) -> &[SocketAddr] {
        match self {
            // Port 25 is the front's where there is one.
            Self::Smtp if settings.front.is_some() => &[],
            Self::Smtp => &settings.smtp.listen,
            Self::Submission => &settings.submission.listen,
            Self::Submissions => &settings.submissions.listen,
            Self::Sendmail => &[],
        }
    }
}
