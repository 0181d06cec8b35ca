//! Messages whose copy may differ from the server's original.

use vere_imap::client::Status;

use vere_accounts::Remote;

/// State of repeated reads, and the outcome of failed ones.
#[derive(Default)]
pub(super) struct Exact {
    /// Where the account is, to come back to it.
    pub(super) remote: Option<Remote>,
    /// How often the connection ended.
    pub(super) ends: u32,
    pub(super) doubts: Vec<Doubt>,
    /// Messages that the server says are damaged, and its words.
    pub(super) damaged: Vec<(u64, String)>,
}

impl Exact {
    /// The reply of a server that refuses a message; for a damaged message (RFC 5530) the reply is kept, since further
    /// messages may be whole.
    pub(super) fn refusal(&mut self, uid: u64, status: Status) -> Option<String> {
        if status.is_ok() {
            return None;
        }
        if status.code.is_some_and(|code| code.is("CORRUPTION")) {
            self.damaged.push((uid, status.text));
            return None;
        }
        Some(status.text)
    }
}

/// A message copied although the server may have replaced NUL by other octets, or although the source holds a damaged
/// copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Doubt {
    pub(super) key: String,
    pub(super) reason: String,
}
