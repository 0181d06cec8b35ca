//! Messages read in turn, without a target: for commands that look into mail.

use std::path::Path;

use vere_ports::directory::AccountName;

use super::account::Account;
use super::message::{Message, batches};
use super::sessions;
use super::source::Source;
use super::{Variant, maildir, mbox};
use vere_process::failure::Failure;

/// Where messages are read.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'a> {
    /// An mbox file.
    Mbox(&'a Path),
    /// A Maildir with its directories.
    Maildir(&'a Path),
    /// An account of the running mail store, by the store's socket.
    Account(&'a Path, &'a AccountName),
}

/// A message that was read.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Its mailbox, with levels separated by `/`.
    pub mailbox: &'a str,
    /// Its number in the mailbox, from 1.
    pub number: usize,
    /// Its octets; `None` for a message beyond the bound.
    pub octets: Option<Vec<u8>>,
}

/// Reads the messages of all mailboxes, or of one, and changes nothing.
///
/// # Errors
/// When the place cannot be read, or has no such mailbox.
pub fn each_message(
    origin: Origin<'_>,
    mailbox: Option<&str>,
    octets_max: usize,
    take: &mut dyn FnMut(Seen<'_>),
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut source = match origin {
            Origin::Mbox(path) => Source::Mbox(mbox::Source::new(path.to_owned(), Variant::Auto)),
            Origin::Maildir(path) => Source::Maildir(maildir::Source::new(path.to_owned())),
            Origin::Account(socket, account) => {
                let link = sessions::local(socket, &account.to_string()).await?;
                Source::Account(Box::new(Account::own(link).await?))
            }
        };
        let mut found = false;
        for folder in source.folders()? {
            let name = folder.name();
            if mailbox.is_some_and(|wanted| wanted != name) {
                continue;
            }
            found = true;
            let mut items = source.list(&folder).await?;
            let mut number = 0;
            let fits = |size: u64| size <= octets_max as u64;
            // A message beyond the bound is not read at all.
            let beyond = items.iter().filter(|item| !fits(item.size)).count();
            items.retain(|item| fits(item.size));
            for batch in batches(&items) {
                for message in source.read(batch).await? {
                    number += 1;
                    let octets = message
                        .map(|message| whole(message, octets_max))
                        .transpose()?;
                    let mailbox = name.as_str();
                    if let Some(octets) = octets {
                        take(Seen {
                            mailbox,
                            number,
                            octets,
                        });
                    }
                }
            }
            for at in 1..=beyond {
                take(Seen {
                    mailbox: &name,
                    number: number + at,
                    octets: None,
                });
            }
        }
        source.close().await;
        match mailbox {
            Some(name) if !found => Err(Failure::new(format!("no mailbox {name}"))),
            _ => Ok(()),
        }
    })
}

fn whole(mut message: Message, octets_max: usize) -> Result<Option<Vec<u8>>, Failure> {
    if message.size > octets_max as u64 {
        return Ok(None);
    }
    let mut octets = Vec::new();
    message.pieces(|piece| {
        octets.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(Some(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        origin: Origin<'_>,
        mailbox: Option<&str>,
        octets_max: usize,
    ) -> Vec<(String, Option<Vec<u8>>)> {
        let mut all = Vec::new();
        let mut take =
            |seen: Seen<'_>| all.push((format!("{} {}", seen.mailbox, seen.number), seen.octets));
        each_message(origin, mailbox, octets_max, &mut take).expect("mail");
        all
    }

    #[test]
    fn mbox_and_maildir_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mbox");
        let text = "From a@b Mon May  4 03:02:01 2026\nSubject: 1\n\n>From x\n\nFrom a@b Mon May  4 03:02:01 2026\nSubject: 2\n\nlong\n";
        std::fs::write(&file, text).expect("room");
        let all = read(Origin::Mbox(&file), None, 100);
        assert_eq!(
            all[0],
            (
                "INBOX 1".to_owned(),
                Some(b"Subject: 1\r\n\r\nFrom x\r\n".to_vec())
            )
        );
        assert_eq!(all.len(), 2);
        assert_eq!(
            read(Origin::Mbox(&file), None, 10),
            [("INBOX 1".to_owned(), None), ("INBOX 2".to_owned(), None)]
        );

        let maildir = folder.path().join("Maildir");
        for place in ["new", "cur", ".A.B/cur"] {
            std::fs::create_dir_all(maildir.join(place)).expect("room");
        }
        std::fs::write(maildir.join("new/1.x"), "Subject: 3\n\n").expect("room");
        std::fs::write(maildir.join(".A.B/cur/2.x:2,S"), "Subject: 4\n\n").expect("room");
        assert_eq!(read(Origin::Maildir(&maildir), None, 100).len(), 2);
        let one = read(Origin::Maildir(&maildir), Some("A/B"), 100);
        assert_eq!(
            one,
            [("A/B 1".to_owned(), Some(b"Subject: 4\r\n\r\n".to_vec()))]
        );
        let none = each_message(Origin::Maildir(&maildir), Some("C"), 100, &mut |_| ());
        assert!(none.is_err());
    }
}
