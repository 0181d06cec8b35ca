//! The record of finished steps, so that an interrupted run continues where it stopped.
//!
//! A text file with one appended line of JSON per event:
//!
//! ```text
//! {"version":1}
//! {"in":"Lists","at":{"validity":7,"next":12}}    the target's mailbox before the first message
//! {"in":"Lists","sends":["KEY",...]}              written and synced before they are sent
//! {"in":"Lists","has":"KEY","hash":"...","uid":12}  the target said that it has it
//! {"in":"Lists","length":4711}                    of an mbox that is written
//! ```
//!
//! A message that was sent without a confirmation is in doubt. The next run searches the target for its octets, among
//! the messages with UIDs from `next` on. So the transfer neither loses nor duplicates a message.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use vere_imap::Uid;

use super::account::Begin;
use super::message::Hash;
use super::shelved;
use vere_process::failure::Failure;

const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Version {
        version: u32,
    },
    At {
        #[serde(rename = "in")]
        folder: String,
        at: Numbers,
    },
    Sends {
        #[serde(rename = "in")]
        folder: String,
        sends: Vec<String>,
    },
    Has {
        #[serde(rename = "in")]
        folder: String,
        has: String,
        hash: String,
        uid: Option<Uid>,
    },
    Length {
        #[serde(rename = "in")]
        folder: String,
        length: u64,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Numbers {
    validity: u32,
    next: Uid,
}

/// The state of a mailbox.
#[derive(Debug, Default)]
pub(super) struct FolderState {
    /// The target's mailbox before the first message.
    pub(super) begin: Option<Begin>,
    /// Keys of messages at the target.
    pub(super) has: HashSet<String>,
    /// UIDs of these messages, where the target reported UIDs.
    pub(super) uids: HashSet<Uid>,
    /// Number of messages without a UID, by content hash.
    pub(super) without_uid: HashMap<Hash, u32>,
    /// Keys of messages that were sent and may have arrived.
    pub(super) sent: HashSet<String>,
    /// Length of the mbox, in octets.
    pub(super) length: u64,
}

impl FolderState {
    /// The messages at the target as a later backup of the target names them.
    pub(super) fn restored(&self) -> HashSet<String> {
        let validity = self.begin.map(|begin| begin.uid_validity);
        let uids = validity.into_iter().flat_map(|validity| {
            let uids = self.uids.iter();
            uids.map(move |uid| shelved::key(validity, *uid))
        });
        uids.collect()
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Version { .. } => {}
            Line::At { at, .. } => {
                // Another mailbox of this name has nothing yet.
                let earlier = self.begin.map(|begin| begin.uid_validity);
                if earlier.is_some_and(|earlier| earlier != at.validity) {
                    *self = Self::default();
                }
                self.begin = Some(Begin {
                    uid_validity: at.validity,
                    uid_next: at.next,
                });
            }
            Line::Sends { sends, .. } => self.sent.extend(sends),
            Line::Has { has, hash, uid, .. } => {
                self.sent.remove(&has);
                if self.has.insert(has) {
                    match (uid, Hash::from_hex(&hash)) {
                        (Some(uid), _) => drop(self.uids.insert(uid)),
                        (None, Ok(hash)) => *self.without_uid.entry(hash).or_default() += 1,
                        (None, Err(_)) => {}
                    }
                }
            }
            Line::Length { length, .. } => self.length = length,
        }
    }
}

/// The file.
#[derive(Debug)]
pub(super) struct State {
    /// `None` in a dry run, which writes no state.
    file: Option<File>,
    folders: HashMap<String, FolderState>,
}

impl State {
    /// Opens or creates the file; cuts off an incomplete last line, left by a crash.
    ///
    /// # Errors
    /// When the file cannot be read, is no state file, or is in use by another run.
    pub(super) fn open(path: &Path, dry: bool) -> Result<Self, Failure> {
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::new(format!("state file {}: {error}", path.display()))
        };
        let mut state = Self {
            file: None,
            folders: HashMap::new(),
        };
        let opened = match dry {
            true => File::open(path),
            false => {
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent).map_err(|error| wrong(&error))?;
                }
                OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(path)
            }
        };
        let mut file = match opened {
            Err(error) if dry && error.kind() == io::ErrorKind::NotFound => return Ok(state),
            opened => opened.map_err(|error| wrong(&error))?,
        };
        if !dry && file.try_lock().is_err() {
            return Err(wrong(&"another run uses it"));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| wrong(&error))?;
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
        for line in text[..whole].split(|octet| *octet == b'\n') {
            if !line.is_empty() {
                let line = serde_json::from_slice(line).map_err(|error| wrong(&error))?;
                state.take(line).map_err(|text| wrong(&text))?;
            }
        }
        if !dry {
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
            state.file = Some(file);
            if whole == 0 {
                state.write(&[Line::Version { version: VERSION }])?;
            }
        }
        Ok(state)
    }

    fn take(&mut self, line: Line) -> Result<(), String> {
        let folder = match &line {
            Line::Version { version } if *version == VERSION => return Ok(()),
            Line::Version { version } => return Err(format!("version {version} is not known")),
            Line::At { folder, .. }
            | Line::Sends { folder, .. }
            | Line::Has { folder, .. }
            | Line::Length { folder, .. } => folder.clone(),
        };
        self.folders.entry(folder).or_default().take(line);
        Ok(())
    }

    /// The state of a mailbox.
    pub(super) fn folder(&mut self, name: &str) -> &FolderState {
        self.folders.entry(name.to_owned()).or_default()
    }

    /// Notes the numbers of the target's mailbox, the first time.
    pub(super) fn begin(&mut self, folder: &str, begin: Begin) -> Result<(), Failure> {
        if self.folder(folder).begin.is_some() {
            return Ok(());
        }
        self.renew(folder, begin)
    }

    /// Notes the numbers of a mailbox that took the place of the one noted before, and has none of the messages.
    pub(super) fn renew(&mut self, folder: &str, begin: Begin) -> Result<(), Failure> {
        self.note(vec![Line::At {
            folder: folder.to_owned(),
            at: Numbers {
                validity: begin.uid_validity,
                next: begin.uid_next,
            },
        }])
    }

    /// Records the keys of messages before they are sent; synced on return.
    pub(super) fn sends(&mut self, folder: &str, sends: Vec<String>) -> Result<(), Failure> {
        self.note(vec![Line::Sends {
            folder: folder.to_owned(),
            sends,
        }])?;
        if let Some(file) = &self.file {
            file.sync_data()?;
        }
        Ok(())
    }

    /// Records the stored messages, and the present length of the mbox.
    pub(super) fn has(
        &mut self,
        folder: &str,
        has: Vec<(String, Hash, Option<Uid>)>,
        length: Option<u64>,
    ) -> Result<(), Failure> {
        let line = |(has, hash, uid): (String, Hash, Option<Uid>)| Line::Has {
            folder: folder.to_owned(),
            has,
            hash: hash.to_hex().to_string(),
            uid,
        };
        let length = length.map(|length| Line::Length {
            folder: folder.to_owned(),
            length,
        });
        self.note(has.into_iter().map(line).chain(length).collect())
    }

    fn note(&mut self, lines: Vec<Line>) -> Result<(), Failure> {
        self.write(&lines)?;
        for line in lines {
            self.take(line).map_err(Failure::new)?;
        }
        Ok(())
    }

    /// Writes lines at once: a kill leaves all or none of them, a power cut perhaps a part.
    fn write(&mut self, lines: &[Line]) -> Result<(), Failure> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        file.write_all(&text)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_known_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("below/state");
        let hash = blake3::hash(b"x");
        let mut state = State::open(&path, false).expect("a file");
        assert!(State::open(&path, false).is_err(), "it is in use");
        let begin = Begin {
            uid_validity: 7,
            uid_next: 12,
        };
        state.begin("A", begin).expect("room");
        let keys = ["1", "2", "3"].map(str::to_owned);
        state.sends("A", keys.to_vec()).expect("room");
        let has = vec![
            ("1".to_owned(), hash, Some(12)),
            ("2".to_owned(), hash, None),
        ];
        state.has("A", has, Some(99)).expect("room");
        drop(state);
        let mut torn = OpenOptions::new().append(true).open(&path).expect("it");
        torn.write_all(b"{\"in\":\"A\",\"has\":\"3\",")
            .expect("room");
        drop(torn);
        for dry in [true, false, false] {
            let mut state = State::open(&path, dry).expect("the file");
            let known = state.folder("A");
            assert_eq!(known.begin, Some(begin));
            assert_eq!(known.has.len(), 2);
            assert_eq!(known.uids, HashSet::from([12]));
            assert_eq!(known.without_uid, HashMap::from([(hash, 1)]));
            assert_eq!(known.sent, HashSet::from(["3".to_owned()]));
            assert_eq!(known.length, 99);
            // The first numbers stay.
            let later = Begin {
                uid_validity: 7,
                uid_next: 20,
            };
            state.begin("A", later).expect("room");
            assert_eq!(state.folder("A").begin, Some(begin));
        }
        fs::write(&path, "{\"version\":2}\n").expect("room");
        assert!(State::open(&path, false).is_err());
    }
}
