//! The storage options of the mail store.

use vere_units::{ByteSize, Span};

use crate::name::name;

/// The special uses of mailboxes (RFC 6154 section 2) that receive mail.
const USES: [&str; 5] = ["Archive", "Drafts", "Junk", "Sent", "Trash"];

/// The accounts among which bodies with the same content are stored once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodySharing {
    /// Within an account.
    Account,
    /// Among all accounts.
    All,
}

/// The storage options of the mail store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailStore {
    /// Disk space reserved for removing messages.
    pub reserve: ByteSize,
    /// Percentage of unneeded log from which space is reclaimed.
    pub reclaim_from: u32,
    /// Percentage of time spent on reclaiming.
    pub reclaim_share: u32,
    /// Longest time for which a backup keeps the log from being reclaimed.
    pub backup_hold_max: Span,
    /// How long expunged messages are kept; 0 keeps none.
    pub keep_expunged: Span,
    /// Octets of expunged messages that an account keeps.
    pub keep_expunged_size: ByteSize,
    /// The sharing of bodies that arrive separately.
    pub sharing: BodySharing,
    /// Whether messages that the judgement marks are filed in the mailbox with the special use `Junk`.
    pub files_into_junk: bool,
    /// The mailboxes of a new account beside `INBOX`.
    pub mailboxes: Vec<NewMailbox>,
}

/// A mailbox of a new account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMailbox {
    /// The name: 1 to 255 octets in each level.
    pub name: String,
    /// The special use, such as `Sent` (RFC 6154 section 2).
    pub special_use: Option<&'static str>,
}

impl NewMailbox {
    /// Parses `NAME` or `NAME=USE`. A name equal to a special use gets the special use.
    ///
    /// # Errors
    /// The name is invalid for a mailbox, or the special use is unknown.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (path, wanted) = match text.rsplit_once('=') {
            Some((path, wanted)) => (path, Some(wanted)),
            None => (text, None),
        };
        path.split('/')
            .try_for_each(|level| name(level).map(drop))?;
        if path.eq_ignore_ascii_case("INBOX") {
            return Err("must not be INBOX, which every account has".to_owned());
        }
        let special_use = USES
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(wanted.unwrap_or(path)));
        if wanted.is_some() && special_use.is_none() {
            return Err(format!("must have a use of {} behind =", USES.join(", ")));
        }
        Ok(Self {
            name: path.to_owned(),
            special_use,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailboxes_have_the_use_that_is_said_or_that_of_their_name() {
        for (text, name, special_use) in [
            ("Sent", "Sent", Some("Sent")),
            ("junk", "junk", Some("Junk")),
            ("Entwürfe=Drafts", "Entwürfe", Some("Drafts")),
            ("a=b=trash", "a=b", Some("Trash")),
            ("Lists/2026", "Lists/2026", None),
        ] {
            let read = NewMailbox::parse(text).unwrap();
            assert_eq!((&*read.name, read.special_use), (name, special_use));
        }
        for wrong in [
            "",
            "=Sent",
            "Sent=Gone",
            "a=",
            "inbox",
            "a//b",
            "/a",
            "a/..",
            "a\r",
        ] {
            assert!(NewMailbox::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
