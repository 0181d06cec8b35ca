//! Delivery into Maildir (<https://cr.yp.to/proto/maildir.html>): written to `tmp`, synced, renamed
//! into `new`, the directory synced. A reader never sees half a message.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A message to file.
#[derive(Debug, Clone, Copy)]
pub struct MaildirMessage<'a> {
    /// The file's base name: letters, digits, `.`, `_` and `-`. A second delivery under the same name
    /// replaces a message not yet taken by a reader, so that a repeated delivery makes no duplicate.
    pub name: &'a str,
    /// Header lines to put in front of the message, each with LF.
    pub prefix: &'a [u8],
    /// The message with CRLF lines; stored with LF lines, as Maildir readers expect.
    pub body: &'a [u8],
}

/// The directory of a mailbox below `root` by a template with `{domain}` and `{local}`; octets other
/// than letters, digits and `._+=-` are written as `%XX`, so that no address can leave the root.
#[must_use]
pub fn maildir_path(template: &str, local_part: &str, domain: &str) -> PathBuf {
    let text = template
        .replace("{domain}", &escape(&domain.to_ascii_lowercase()))
        .replace("{local}", &escape(&local_part.to_lowercase()));
    PathBuf::from(text)
}

fn escape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (index, octet) in name.bytes().enumerate() {
        let plain = octet.is_ascii_alphanumeric()
            || matches!(octet, b'_' | b'+' | b'=' | b'-')
            || (octet == b'.' && index > 0);
        if plain {
            out.push(char::from(octet));
        } else {
            out.push_str(&format!("%{octet:02X}"));
        }
    }
    out
}

/// Files a message into the Maildir `directory`, creating a missing directory; on return the message
/// survives a power failure.
///
/// # Errors
/// The error of the file system; there is then no file in `new`, and at most a stale file in `tmp`.
pub fn deliver(directory: &Path, message: &MaildirMessage<'_>) -> io::Result<()> {
    let made = ["tmp", "new", "cur"].iter().try_fold(false, |made, part| {
        let path = directory.join(part);
        let missing = !path.is_dir();
        if missing {
            fs::create_dir_all(&path)?;
        }
        io::Result::Ok(made || missing)
    })?;
    let temporary = directory.join("tmp").join(message.name);
    let written = write_synced(&temporary, message);
    let new = directory.join("new");
    let filed = written.and_then(|()| fs::rename(&temporary, new.join(message.name)));
    if let Err(error) = filed {
        // The first error is returned; a stale file in `tmp` is harmless.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    File::open(&new)?.sync_all()?;
    if made {
        sync_ancestors(directory)?;
    }
    Ok(())
}

/// A new mailbox must survive too: its directories' entries are synced upwards.
fn sync_ancestors(directory: &Path) -> io::Result<()> {
    for ancestor in directory.ancestors().take(4).filter(|path| path.is_dir()) {
        File::open(ancestor)?.sync_all()?;
    }
    Ok(())
}

fn write_synced(path: &Path, message: &MaildirMessage<'_>) -> io::Result<()> {
    let mut text = Vec::with_capacity(message.prefix.len() + message.body.len());
    text.extend_from_slice(message.prefix);
    let mut rest = message.body;
    while let Some(at) = memchr::memmem::find(rest, b"\r\n") {
        text.extend_from_slice(&rest[..at]);
        text.push(b'\n');
        rest = &rest[at + 2..];
    }
    text.extend_from_slice(rest);
    let mut file = File::create(path)?;
    file.write_all(&text)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<'a>(name: &'a str, body: &'a [u8]) -> MaildirMessage<'a> {
        MaildirMessage {
            name,
            prefix: b"Return-Path: <>\n",
            body,
        }
    }

    #[test]
    fn a_message_lands_in_new_with_unix_lines() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let mailbox = root.path().join("example.org/alice");
        deliver(&mailbox, &message("1.a", b"A: b\r\n\r\nline\rstays\r\n")).expect("delivered");
        let text = fs::read(mailbox.join("new/1.a")).expect("the file");
        assert_eq!(text, b"Return-Path: <>\nA: b\n\nline\rstays\n");
        assert_eq!(fs::read_dir(mailbox.join("tmp")).expect("tmp").count(), 0);
    }

    #[test]
    fn the_same_name_again_does_not_double_the_message() {
        let root = tempfile::tempdir().expect("a temporary directory");
        deliver(root.path(), &message("1.a", b"x\r\n")).expect("delivered");
        deliver(root.path(), &message("1.a", b"x\r\n")).expect("delivered");
        assert_eq!(
            fs::read_dir(root.path().join("new")).expect("new").count(),
            1
        );
    }

    #[test]
    fn no_address_leaves_the_root() {
        let path = |local, domain| maildir_path("/m/{domain}/{local}", local, domain);
        assert_eq!(path("..", "Example.ORG"), Path::new("/m/example.org/%2E."));
        assert_eq!(path("a/../../b", "x"), Path::new("/m/x/a%2F..%2F..%2Fb"));
        assert_eq!(path("a.b+c", "x"), Path::new("/m/x/a.b+c"));
        assert_eq!(path("\0", ".."), Path::new("/m/%2E./%00"));
    }

    #[test]
    fn a_full_or_missing_place_is_an_error_and_leaves_nothing() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let file = root.path().join("file");
        fs::write(&file, b"").expect("a file");
        assert!(deliver(&file.join("box"), &message("1.a", b"x\r\n")).is_err());
    }
}
