//! Why a node gave no answer to a reader.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use vere_net::tls::TlsError;
use vere_spoolwire::{CloseReason, WireError};

/// Why a node gave no answer. The display is a text for people.
#[derive(Debug)]
pub enum NoAnswer {
    /// The node said why, and closed.
    Closed(CloseReason),
    /// The node refuses an account.
    Refused {
        /// The account.
        account: String,
        /// What the node said.
        reason: CloseReason,
    },
    /// Nobody listens at the address.
    Connect(io::Error),
    /// The connection broke, or the node took longer than it may.
    Silent(io::Error),
    /// Octets could not be sent.
    Send(io::Error),
    /// No TLS connection can be begun.
    Tls(TlsError),
    /// A frame is damaged.
    Wire(WireError),
    /// The node closed the connection.
    Hangup,
    /// The node's proof is wrong.
    Unproven,
    /// The group that was to be made whole holds records.
    InUse,
    /// The queue does not exist any more.
    NoQueue,
    /// The node gave something that was not asked for.
    Unexpected(&'static str),
    /// No address of the node gives an answer. The address is named where the node has several.
    Addresses(Vec<(Option<SocketAddr>, Self)>),
}

impl NoAnswer {
    /// The answer has the number of the request, and is of another kind.
    pub(crate) const OTHER: Self = Self::Unexpected("an answer to something else");
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(reason) => write!(f, "node says: {reason}"),
            Self::Refused { account, reason } => {
                write!(f, "account {account:?}: node says: {reason}")
            }
            Self::Connect(error) => write!(f, "cannot connect: {error}"),
            Self::Silent(error) => write!(f, "it does not answer: {error}"),
            Self::Send(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Wire(error) => error.fmt(f),
            Self::Hangup => f.write_str("it closed the connection"),
            Self::Unproven => f.write_str("it did not prove that it is the node"),
            Self::InUse => f.write_str("it holds something of the group meanwhile"),
            Self::NoQueue => f.write_str("the queue is gone"),
            Self::Unexpected(what) => write!(f, "it gave {what}"),
            Self::Addresses(all) => {
                for (at, (address, error)) in all.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { "; " })?;
                    match address {
                        Some(address) => write!(f, "{address}: {error}")?,
                        None => error.fmt(f)?,
                    }
                }
                Ok(())
            }
        }
    }
}

impl Error for NoAnswer {}

impl From<WireError> for NoAnswer {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_says_why() {
        let address = SocketAddr::from(([127, 0, 0, 1], 7));
        let refused = NoAnswer::Refused {
            account: "a".to_owned(),
            reason: CloseReason::NoGroup,
        };
        let text = format!("account \"a\": node says: {}", CloseReason::NoGroup);
        let alone = NoAnswer::Addresses(vec![(None, refused)]);
        assert_eq!(alone.to_string(), text);
        let both = NoAnswer::Addresses(vec![
            (Some(address), NoAnswer::OTHER),
            (Some(address), NoAnswer::Hangup),
        ]);
        assert_eq!(
            both.to_string(),
            "127.0.0.1:7: it gave an answer to something else; 127.0.0.1:7: it closed the connection"
        );
    }
}
