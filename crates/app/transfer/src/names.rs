//! Names of mailboxes between systems with different notations: here a name is a list of levels.

use vere_imap::client::Namespace;
use vere_imap::utf7;

/// A mailbox of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    /// The levels of the name; `INBOX` alone for the inbox.
    pub(super) path: Vec<String>,
    /// The special use, such as `\Sent` (RFC 6154).
    pub(super) special_use: Option<String>,
    /// Whether the mailbox is subscribed, where the place reports subscriptions.
    pub(super) subscribed: Option<bool>,
    /// The number of the mailbox at its place.
    pub(super) number: usize,
}

impl Folder {
    /// The name in the notation for people.
    pub(super) fn name(&self) -> String {
        self.path.join("/")
    }
}

/// The path of the inbox.
pub(super) fn inbox() -> Vec<String> {
    vec!["INBOX".to_owned()]
}

/// Splits a mailbox name of a server into levels. `own` is the namespace of the account's own mailboxes; its prefix
/// carries no information and is removed, unless only INBOX would remain.
pub(super) fn from_wire(name: &[u8], delimiter: Option<char>, own: &Namespace) -> Vec<String> {
    let rest = name
        .split_at_checked(own.prefix.len())
        .filter(|(prefix, _)| prefix.eq_ignore_ascii_case(&own.prefix))
        .map(|(_, rest)| rest)
        .filter(|rest| !rest.is_empty() && !rest.eq_ignore_ascii_case(b"INBOX"));
    let name = String::from_utf8_lossy(rest.unwrap_or(name));
    let level = |text: &str| utf7::decode(text).unwrap_or_else(|| text.to_owned());
    let mut path: Vec<String> = match delimiter {
        Some(delimiter) => name.split(delimiter).map(level).collect(),
        None => vec![level(&name)],
    };
    if let Some(first) = path.first_mut()
        && first.eq_ignore_ascii_case("INBOX")
    {
        "INBOX".clone_into(first);
    }
    path
}

/// The name in the notation of a server with a given namespace. A level cannot contain the delimiter: `_` takes its
/// place.
pub(super) fn to_wire(path: &[String], own: &Namespace) -> Vec<u8> {
    let separator = own.delimiter.unwrap_or('_');
    let level = |text: &String| utf7::encode(&text.replace(separator, "_"));
    let levels: Vec<String> = path.iter().map(level).collect();
    let name = levels.join(&separator.to_string()).into_bytes();
    if path == inbox() {
        return name;
    }
    [own.prefix.as_slice(), &name].concat()
}

/// The folder of a mailbox in a Maildir: `.A.B` (Maildir++), in modified UTF-7. A full stop in a level,
/// which would separate, is written in base64 as well; so is a slash.
pub(super) fn to_maildir(path: &[String]) -> String {
    let level = |text: &String| {
        let encoded = utf7::encode(text);
        encoded.replace('.', "&AC4-").replace('/', "&AC8-")
    };
    path.iter()
        .map(|text| format!(".{}", level(text)))
        .collect()
}

/// The levels of a Maildir's directory name.
pub(super) fn from_maildir(name: &str) -> Vec<String> {
    let level = |text: &str| {
        // Split first, so that the rest has its canonical form.
        let parts = text.split("&AC4-").map(|part| {
            let parts = part.split("&AC8-");
            let parts = parts.map(|part| utf7::decode(part).unwrap_or_else(|| part.to_owned()));
            parts.collect::<Vec<_>>().join("/")
        });
        parts.collect::<Vec<_>>().join(".")
    };
    name.split('.')
        .filter(|text| !text.is_empty())
        .map(level)
        .collect()
}

/// The file of a mailbox below a folder of mbox files.
pub(super) fn to_file(path: &[String]) -> String {
    let level = |text: &String| {
        let text = text.replace('/', "_");
        match text.starts_with('.') {
            true => format!("_{text}"),
            false => text,
        }
    };
    path.iter().map(level).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(levels: &[&str]) -> Vec<String> {
        levels.iter().map(|&level| level.to_owned()).collect()
    }

    #[test]
    fn names_come_back_from_a_maildir() {
        for (levels, name) in [
            (path(&["Sent"]), ".Sent"),
            (path(&["Entwürfe", "a&b"]), ".Entw&APw-rfe.a&-b"),
            (
                path(&["v1.2", "a/b", "..x"]),
                ".v1&AC4-2.a&AC8-b.&AC4-&AC4-x",
            ),
        ] {
            assert_eq!(to_maildir(&levels), name);
            assert_eq!(from_maildir(name), levels);
        }
        // Name in UTF-8, written by another program.
        assert_eq!(from_maildir(".Entwürfe"), path(&["Entwürfe"]));
    }

    fn own(prefix: &str, delimiter: Option<char>) -> Namespace {
        Namespace {
            prefix: prefix.as_bytes().to_vec(),
            delimiter,
        }
    }

    #[test]
    fn names_travel() {
        for (levels, prefix, delimiter, name) in [
            (path(&["INBOX"]), "", Some('/'), "INBOX"),
            (path(&["Entwürfe", "x"]), "", Some('.'), "Entw&APw-rfe.x"),
            (path(&["台北"]), "", None, "&U,BTFw-"),
            (path(&["INBOX"]), "INBOX.", Some('.'), "INBOX"),
            (path(&["Sent", "x"]), "INBOX.", Some('.'), "INBOX.Sent.x"),
            (path(&["INBOX", "x"]), "INBOX.", Some('.'), "INBOX.INBOX.x"),
        ] {
            let own = own(prefix, delimiter);
            assert_eq!(to_wire(&levels, &own), name.as_bytes());
            assert_eq!(from_wire(name.as_bytes(), delimiter, &own), levels);
        }
        let plain = own("", Some('.'));
        assert_eq!(to_wire(&path(&["v1.2", "x"]), &plain), b"v1_2.x");
        assert_eq!(
            from_wire(b"inbox/x", Some('/'), &own("", Some('/'))),
            path(&["INBOX", "x"])
        );
        assert_eq!(to_file(&path(&["a/b", ".x"])), "a_b/_.x");
        // A mailbox outside the namespace keeps its whole name; so does a name that would collide with another.
        let courier = own("INBOX.", Some('.'));
        for (name, levels) in [
            ("Inbox.Sent", path(&["Sent"])),
            ("shared.x", path(&["shared", "x"])),
            ("INBOX.INBOX", path(&["INBOX", "INBOX"])),
            ("INBOX.", path(&["INBOX", ""])),
        ] {
            assert_eq!(from_wire(name.as_bytes(), Some('.'), &courier), levels);
        }
    }
}
