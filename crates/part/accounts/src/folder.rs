//! Names of a volume's mailboxes within an account.

use vere_imap::client::Namespace;
use vere_imap::utf7;

/// The folder of a volume in an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    /// The octets before the name of a mailbox, as sent on the wire, delimiter included.
    before: Vec<u8>,
}

impl Folder {
    /// The folder with the levels, below the account's own namespace.
    pub(crate) fn new(levels: &[String], own: &Namespace) -> Self {
        // A server without levels keeps all names side by side; any octet parts them.
        let delimiter = own.delimiter.unwrap_or('.');
        let mut before = own.prefix.clone();
        for level in levels {
            before.extend_from_slice(utf7::encode(level).as_bytes());
            before.extend_from_slice(delimiter.to_string().as_bytes());
        }
        Self { before }
    }

    /// The name of a mailbox as sent on the wire.
    pub(crate) fn wire(&self, mailbox: &str) -> Vec<u8> {
        let mut name = self.before.clone();
        name.extend_from_slice(utf7::encode(mailbox).as_bytes());
        name
    }

    /// The pattern of LIST for all mailboxes of the volume.
    pub(crate) fn pattern(&self) -> Vec<u8> {
        let mut pattern = self.before.clone();
        pattern.push(b'*');
        pattern
    }

    /// The mailbox with the name on the wire, if the name is in the folder.
    pub(crate) fn mailbox(&self, name: &[u8]) -> Option<String> {
        let rest = name.strip_prefix(self.before.as_slice())?;
        let text = std::str::from_utf8(rest).ok()?;
        let text = utf7::decode(text).unwrap_or_else(|| text.to_owned());
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_delimiter_and_prefix_of_the_account() {
        let own = Namespace {
            prefix: b"INBOX.".to_vec(),
            delimiter: Some('.'),
        };
        let levels = ["VereFS".to_owned(), "3f9c0a11".to_owned()];
        let folder = Folder::new(&levels, &own);
        assert_eq!(folder.wire("log"), b"INBOX.VereFS.3f9c0a11.log");
        assert_eq!(folder.pattern(), b"INBOX.VereFS.3f9c0a11.*");
        assert_eq!(
            folder
                .mailbox(b"INBOX.VereFS.3f9c0a11.data-0001")
                .as_deref(),
            Some("data-0001")
        );
        assert_eq!(folder.mailbox(b"INBOX.VereFS.other.log"), None);
        assert_eq!(folder.mailbox(b"INBOX.VereFS.3f9c0a11."), None);
        let folder = Folder::new(&levels, &Namespace::default());
        assert_eq!(folder.wire("log"), b"VereFS.3f9c0a11.log");
    }
}
