//! The mailboxes used last, for the next start: clients reconnect at once, and find the messages of their mailboxes
//! in memory. A small file, `used.json`, lists the mailboxes. Without the file, messages are read on request.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use vere_store::{MailboxId, StoreError};

use super::mail_store::MailStore;

/// Mailboxes in the file, and the messages of all these mailboxes together.
const MAILBOXES_MAX: usize = 1_000;
const MESSAGES_MAX: usize = 500_000;
/// How long a start reads mailboxes ahead before it serves clients. The remaining mailboxes are read while the store
/// is idle.
const BEGIN_TIME: Duration = Duration::from_millis(100);
/// The name and version of the file.
const FILE: &str = "used.json";
const VERSION: u32 = 1;

/// Content of the file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Noted {
    version: u32,
    /// Mailboxes, the most recently used first.
    mailboxes: Vec<u64>,
}

/// Mailboxes that wait to be read ahead, and the mailboxes last written to the file.
#[derive(Debug)]
pub(super) struct Used {
    folder: PathBuf,
    waiting: VecDeque<MailboxId>,
    written: Vec<u64>,
}

impl Used {
    /// Reads the list of a store's folder; an unreadable list counts as empty.
    pub(super) fn read(folder: &Path) -> Self {
        let text = fs::read(folder.join(FILE)).unwrap_or_default();
        let noted: Noted = serde_json::from_slice(&text).unwrap_or_default();
        let mut written = noted.mailboxes;
        written.truncate(if noted.version == VERSION {
            MAILBOXES_MAX
        } else {
            0
        });
        Self {
            folder: folder.to_owned(),
            waiting: written.iter().copied().map(MailboxId).collect(),
            written,
        }
    }

    /// Reads the most recently used mailboxes, before any client can ask for messages.
    pub(super) fn begin(&mut self, store: &mut MailStore) {
        let began = Instant::now();
        while self.is_waiting() && began.elapsed() < BEGIN_TIME {
            self.step(store);
        }
    }

    /// Moves a mailbox to the front of the queue.
    pub(super) fn soon(&mut self, id: MailboxId) {
        self.waiting.retain(|other| *other != id);
        self.waiting.push_front(id);
        self.waiting.truncate(MAILBOXES_MAX);
    }

    /// Whether mailboxes wait to be read.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Reads the next mailbox, while the store is idle.
    pub(super) fn step(&mut self, store: &mut MailStore) {
        let Some(id) = self.waiting.pop_front() else {
            return;
        };
        match store.read_ahead(id) {
            // The mailbox may be deleted by now.
            Ok(()) | Err(StoreError::NoMailbox) => {}
            // A client that opens the mailbox gets the error.
            Err(error) => tracing::error!(%error, mailbox = id.0, "mailbox cannot be read"),
        }
    }

    /// Writes the list of mailboxes in memory.
    pub(super) fn note(&mut self, store: &MailStore) {
        let mut messages = 0_usize;
        let few = store.resident().into_iter().take(MAILBOXES_MAX);
        let few = few.filter(|(_, count)| {
            let with_it = messages.saturating_add(*count);
            let fits = with_it <= MESSAGES_MAX;
            messages = if fits { with_it } else { messages };
            fits
        });
        // Mailboxes not read yet keep their place behind the mailboxes in memory.
        let mut mailboxes: Vec<u64> = few.map(|(id, _)| id.0).collect();
        let unread = self.waiting.iter().map(|id| id.0);
        mailboxes.extend(unread.take(MAILBOXES_MAX - mailboxes.len()));
        if mailboxes == self.written {
            return;
        }
        let noted = Noted {
            version: VERSION,
            mailboxes,
        };
        let text = serde_json::to_vec(&noted).unwrap_or_default();
        let new = self.folder.join(format!("{FILE}.new"));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, self.folder.join(FILE)));
        match written {
            Ok(()) => self.written = noted.mailboxes,
            Err(error) => tracing::warn!(%error, "the mailboxes used last cannot be noted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use crate::filled::{folder, inbox_of, lock};

    fn open(folder: &Path) -> (Files, MailStore) {
        let files = lock(folder);
        let store = files.open().unwrap();
        (files, store)
    }

    #[test]
    fn what_was_used_last_is_read_after_a_start() {
        let folder = folder();
        let (files, mut store) = open(folder.path());
        let ids = ["ann@a.test", "bob@a.test", "eve@a.test"].map(|own| inbox_of(&mut store, own));
        let mut used = Used::read(folder.path());
        assert!(!used.is_waiting());
        for id in [ids[2], ids[0]] {
            let _ = store.snapshot(id).unwrap();
        }
        used.note(&store);
        drop((files, store));

        let (_files, mut store) = open(folder.path());
        let mut used = Used::read(folder.path());
        assert_eq!(used.waiting, [ids[0], ids[2]]);
        used.step(&mut store);
        assert_eq!(store.resident(), [(ids[0], 0)]);
        // What was not read yet is not forgotten.
        let _ = store.snapshot(ids[1]).unwrap();
        used.note(&store);
        let noted = Used::read(folder.path());
        assert_eq!(noted.waiting, [ids[1], ids[0], ids[2]]);
        used.step(&mut store);
        assert!(!used.is_waiting());
        assert_eq!(store.resident().len(), 3);
    }

    #[test]
    fn what_was_used_last_stays_longest_after_a_start() {
        let folder = folder();
        let (_files, mut store) = open(folder.path());
        let ids = ["ann@a.test", "bob@a.test", "eve@a.test"].map(|own| inbox_of(&mut store, own));
        let mailboxes = ids.map(|id| id.0).to_vec();
        let noted = Noted {
            version: VERSION,
            mailboxes,
        };
        std::fs::write(
            folder.path().join(FILE),
            serde_json::to_vec(&noted).unwrap(),
        )
        .unwrap();
        drop((_files, store));
        let (_files, mut store) = open(folder.path());
        let mut used = Used::read(folder.path());
        used.begin(&mut store);
        let order = |store: &MailStore| store.resident().into_iter().map(|(id, _)| id);
        assert!(!used.is_waiting());
        assert!(order(&store).eq(ids));
        // A mailbox in use counts as used last, and reading another mailbox ahead keeps the order.
        let _ = store.snapshot(ids[2]).unwrap();
        used.soon(ids[1]);
        used.step(&mut store);
        assert!(order(&store).eq([ids[2], ids[0], ids[1]]));
        used.note(&store);
        let noted = Used::read(folder.path());
        assert_eq!(noted.waiting, [ids[2], ids[0], ids[1]]);
    }

    #[test]
    fn what_is_not_there_is_passed_over_and_what_is_damaged_is_nothing() {
        let folder = folder();
        let (_files, mut store) = open(folder.path());
        let write = |text: &str| std::fs::write(folder.path().join(FILE), text).unwrap();
        write(r#"{"version":1,"mailboxes":[7]}"#);
        let mut used = Used::read(folder.path());
        assert!(used.is_waiting());
        used.step(&mut store);
        assert!(!used.is_waiting() && store.resident().is_empty());
        for text in [r#"{"version":2,"mailboxes":[7]}"#, "{", ""] {
            write(text);
            assert!(!Used::read(folder.path()).is_waiting());
        }
    }
}
