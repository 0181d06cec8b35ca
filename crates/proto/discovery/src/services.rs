//! The services that a mail program uses.

/// How a connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// TLS from the first octet (RFC 8314).
    Tls,
    /// TLS after STARTTLS.
    StartTls,
}

impl Security {
    /// The words for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tls => "SSL/TLS",
            Self::StartTls => "STARTTLS",
        }
    }
}

/// A port of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The port.
    pub port: u16,
    /// The encryption.
    pub security: Security,
}

/// The services of a host for mail programs, the better port first. A user logs in with the whole address and a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Services {
    /// The host name.
    pub host: String,
    /// Ports for reading mail by IMAP.
    pub imap: Vec<Access>,
    /// Ports for sending mail by SMTP.
    pub smtp: Vec<Access>,
}

impl Services {
    /// Whether there is anything to configure.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.imap.is_empty() && self.smtp.is_empty()
    }
}
