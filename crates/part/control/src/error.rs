//! Why a request over a control socket has no usable answer.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The process behind a control socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The gateway.
    Gateway,
    /// The mail store.
    Store,
    /// The supervisor.
    Supervisor,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gateway => "gateway",
            Self::Store => "mail store",
            Self::Supervisor => "supervisor",
        })
    }
}

/// Why a request over a control socket has no usable answer.
#[derive(Debug)]
pub enum AskError {
    /// No gateway listens at the socket: nothing was done.
    NoGateway {
        /// The path of the socket.
        socket: PathBuf,
    },
    /// The answer did not come in time. The request may have been carried out.
    NoAnswer {
        /// The process that was asked.
        peer: Peer,
        /// The path of the socket.
        socket: PathBuf,
    },
    /// The process refused, with its reason.
    Refused(String),
    /// The connection failed.
    Connection {
        /// The process that was asked.
        peer: Peer,
        /// The path of the socket.
        socket: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The answer has another form, such as the form of another version.
    Form(serde_json::Error),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGateway { socket } => write!(
                f,
                "no gateway is running (nobody listens on {}): start the system, or name its settings with -c",
                socket.display()
            ),
            Self::NoAnswer { peer, socket } => write!(
                f,
                "the {peer} on {} gave no answer; what was asked may be done all the same: look again",
                socket.display()
            ),
            Self::Refused(reason) => f.write_str(reason),
            Self::Connection {
                peer,
                socket,
                source,
            } => write!(
                f,
                "cannot talk to the {peer} on {}: {source}",
                socket.display()
            ),
            Self::Form(error) => write!(
                f,
                "the answer cannot be read: {error}; a restart is needed after an upgrade"
            ),
        }
    }
}

impl Error for AskError {
    /// The display holds the text of the direct cause already; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Connection { source, .. } => source.source(),
            Self::Form(error) => error.source(),
            Self::NoGateway { .. } | Self::NoAnswer { .. } | Self::Refused(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scripts and the tests of whole systems quote these texts.
    #[test]
    fn each_error_says_what_the_operator_can_rely_on() {
        let socket = || PathBuf::from("/run/vere/control");
        let absent = AskError::NoGateway { socket: socket() };
        assert_eq!(
            absent.to_string(),
            "no gateway is running (nobody listens on /run/vere/control): start the system, or name its settings with -c"
        );
        let silent = AskError::NoAnswer {
            peer: Peer::Store,
            socket: socket(),
        };
        let text = silent.to_string();
        assert!(text.starts_with("the mail store on /run/vere/control gave no answer"));
        assert!(text.contains("may be done all the same"));
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let failed = AskError::Connection {
            peer: Peer::Gateway,
            socket: socket(),
            source: denied(),
        };
        let expected = format!(
            "cannot talk to the gateway on /run/vere/control: {}",
            denied()
        );
        assert_eq!(failed.to_string(), expected);
        assert_eq!(AskError::Refused("no".to_owned()).to_string(), "no");
    }
}
