//! Replies that no session writes.

use vere_screen::{Decision, Reason};

/// The last words to a client whose session cannot go on.
pub(crate) const LAST_WORDS: &[u8] = b"421 4.3.0 local error, closing connection\r\n";

/// The words to a client for whom no worker has room.
pub(crate) const BUSY: &[u8] = b"421 4.3.2 too many connections, try again later\r\n";

/// The line for a client that is not let in.
pub(crate) fn turned_away(hostname: &str, reason: Reason) -> String {
    let status = Decision::Close(reason).status();
    let (code, status) = status.map_or((421, "4.3.2".to_owned()), |(code, status)| {
        (code, status.to_string())
    });
    let text = match reason {
        Reason::ConnectionsInAll
        | Reason::ConnectionsOfAddress
        | Reason::ConnectionsOfNetwork
        | Reason::ArrivalsOfAddress
        | Reason::ArrivalsOfNetwork => "too many connections, try again later",
        Reason::Refusals => "too many refused recipients, try again later",
        Reason::Access | Reason::Listed | Reason::EarlyTalk => "client refused",
        _ => "closing connection",
    };
    format!("{code} {status} {hostname} {text}\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_let_in_hears_why() {
        for (reason, line) in [
            (
                Reason::ConnectionsOfAddress,
                "421 4.7.0 mx.example.org too many connections, try again later\r\n",
            ),
            (
                Reason::ConnectionsInAll,
                "421 4.3.2 mx.example.org too many connections, try again later\r\n",
            ),
            (
                Reason::Refusals,
                "421 4.7.0 mx.example.org too many refused recipients, try again later\r\n",
            ),
            (
                Reason::Access,
                "554 5.7.1 mx.example.org client refused\r\n",
            ),
        ] {
            assert_eq!(turned_away("mx.example.org", reason), line);
        }
    }
}
