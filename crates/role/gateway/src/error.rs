//! Why a gateway cannot begin, take other settings, or go on.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use vere_net::listen::ListenError;
use vere_net::resolver::ResolverError;
use vere_ports::directory::StoreError;
use vere_telemetry::trace::OpenError;

use super::event_lines::EventTargetError;
use vere_filters::FiltersError;
use vere_groups::OwnError;
use vere_link::SetupError;
use vere_outbound::OutboundError;
use vere_process::secret::SecretError;
use vere_process::tls::ServerTlsError;

/// Why a gateway cannot begin, take other settings, or go on.
#[derive(Debug)]
pub enum GatewayError {
    /// A port cannot be listened on.
    Listen(ListenError),
    /// A socket or a signal of the process cannot be used.
    System(io::Error),
    /// The control socket cannot be opened.
    Control {
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The group of queues cannot be reached.
    Setup(SetupError),
    /// The directory of accounts cannot be opened.
    Directory(StoreError),
    /// Names cannot be looked up.
    Resolver(ResolverError),
    /// Content filters cannot be made ready.
    Filters(FiltersError),
    /// Connections to next hops cannot be made ready.
    Outbound(OutboundError),
    /// The events of messages cannot be kept.
    Trace(OpenError),
    /// Event lines cannot be sent to other systems.
    EventTarget(EventTargetError),
    /// Certificates cannot be shown.
    Tls(ServerTlsError),
    /// The secret behind the keys of unknown users cannot be used.
    Secret(SecretError),
    /// Another gateway of this name is alive.
    Namesake {
        /// The name.
        group: String,
    },
    /// Another gateway has the queues now.
    Fenced,
}

impl GatewayError {
    /// The error of another part that the gateway passes on unchanged.
    fn passed_on(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            Self::Listen(error) => error,
            Self::System(error) => error,
            Self::Setup(error) => error,
            Self::Directory(error) => error,
            Self::Resolver(error) => error,
            Self::Filters(error) => error,
            Self::Outbound(error) => error,
            Self::Trace(error) => error,
            Self::EventTarget(error) => error,
            Self::Tls(error) => error,
            Self::Secret(error) => error,
            Self::Control { .. } | Self::Namesake { .. } | Self::Fenced => return None,
        })
    }
}

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = self.passed_on() {
            return fmt::Display::fmt(error, f);
        }
        match self {
            Self::Control { path, source } => write!(f, "cannot open {}: {source}", path.display()),
            Self::Namesake { group } => write!(
                f,
                "another gateway named {group} lives and has the queues: each needs its own gateway.name"
            ),
            _ => f.write_str(
                "another gateway has taken the queues over; nothing acknowledged is lost",
            ),
        }
    }
}

impl Error for GatewayError {
    /// The display holds the text of the direct cause already; the deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Control { source, .. } => source.source(),
            error => error.passed_on().and_then(Error::source),
        }
    }
}

macro_rules! passes_on {
    ($($variant:ident($error:ty)),* $(,)?) => {$(
        impl From<$error> for GatewayError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

passes_on! {
    Listen(ListenError),
    System(io::Error),
    Setup(SetupError),
    Directory(StoreError),
    Resolver(ResolverError),
    Filters(FiltersError),
    Outbound(OutboundError),
    Trace(OpenError),
    EventTarget(EventTargetError),
    Tls(ServerTlsError),
    Secret(SecretError),
}

impl From<OwnError> for GatewayError {
    fn from(error: OwnError) -> Self {
        match error {
            OwnError::Setup(error) => Self::Setup(error),
            OwnError::Namesake { group } => Self::Namesake { group },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vere_process::failure::Failure;

    /// The supervisor shows the text to the operator: an error that is passed on reads as it did where it came from.
    #[test]
    fn an_error_passed_on_keeps_its_text() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let path = PathBuf::from("/run/vere/control");
        let error = GatewayError::Control {
            path,
            source: denied(),
        };
        let text = Failure::from(error).to_string();
        assert_eq!(text, format!("cannot open /run/vere/control: {}", denied()));
        let text = Failure::from(GatewayError::from(denied())).to_string();
        assert_eq!(text, Failure::from(denied()).to_string());
    }
}
