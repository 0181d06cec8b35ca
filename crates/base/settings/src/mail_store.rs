//! How the mail store keeps its files.

use vere_units::ByteSize;

use crate::name::name;

/// What mailboxes are for (RFC 6154 section 2), as far as mail is put into them.
const USES: [&str; 5] = ["Archive", "Drafts", "Junk", "Sent", "Trash"];

/// Among whom a body with the same content is stored once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodySharing {
    /// Within an account.
    Account,
    /// Among all accounts.
    All,
}

/// How the mail store keeps its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailStore {
    /// Room of the disk that is kept for removing messages.
    pub reserve: ByteSize,
    /// Percent of the log that nothing needs from which room is reclaimed.
    pub reclaim_from: u32,
    /// Percent of the time that reclaiming works.
    pub reclaim_share: u32,
    /// Who shares what arrives separately.
    pub sharing: BodySharing,
    /// What a new account gets beside its `INBOX`.
    pub mailboxes: Vec<NewMailbox>,
}

/// A mailbox that a new account gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMailbox {
    /// Its name: 1 to 255 octets in each level.
    pub name: String,
    /// Its use, such as `Sent` (RFC 6154 section 2).
    pub special_use: Option<&'static str>,
}

impl NewMailbox {
    /// Reads `NAME` or `NAME=USE`. A name that is that of a use has it.
    ///
    /// # Errors
    /// When the name can be none of a mailbox, or there is no such use.
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
