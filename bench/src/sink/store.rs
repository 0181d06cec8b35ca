//! Where received messages go.
//!
//! [`SaveMode::Folder`] is for people: an `.eml` file per message, either complete under its name or absent.
//! [`SaveMode::Log`] is for tests with many messages: all messages in sequence in the file `messages`, and a line per
//! message in the file `index`:
//!
//! ```text
//! offset SP length SP bench-id SP message-id LF      "-" for an id that is missing
//! ```
//!
//! The messages are as sent (CRLF lines, doubled dots undone), with the envelope in front as the fields `Return-Path`
//! and `X-Envelope-To`. An index line is written after its message and before the answer, so that acknowledged
//! messages outlive a kill of the sink; nothing is synced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;

use super::SinkError;
use crate::ids::{MessageId, header_value};
use crate::wire::{Receiver, unstuff};

/// The format of kept messages in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SaveMode {
    /// A file per message, `TIME-NUMBER.eml`.
    Folder,
    /// The files `messages` and `index`.
    Log,
}

#[derive(Debug)]
pub(super) enum Store {
    Nothing,
    Folder {
        path: PathBuf,
        next: u64,
        scratch: Vec<u8>,
    },
    Log {
        messages: File,
        index: File,
        offset: u64,
        scratch: Vec<u8>,
    },
}

impl Store {
    pub(super) fn open(save: Option<&Path>, mode: SaveMode) -> Result<Self, SinkError> {
        let Some(path) = save else {
            return Ok(Self::Nothing);
        };
        let failed = |source| SinkError::Save {
            path: path.to_owned(),
            source,
        };
        fs::create_dir_all(path).map_err(failed)?;
        match mode {
            SaveMode::Folder => Ok(Self::Folder {
                path: path.to_owned(),
                next: 0,
                scratch: Vec::new(),
            }),
            SaveMode::Log => {
                let open = |name| {
                    OpenOptions::new()
                        .create(true)
                        .append(true)
                        .open(path.join(name))
                };
                let messages = open("messages").map_err(failed)?;
                let index = open("index").map_err(failed)?;
                let offset = messages.metadata().map_err(failed)?.len();
                Ok(Self::Log {
                    messages,
                    index,
                    offset,
                    scratch: Vec::new(),
                })
            }
        }
    }

    /// Keeps the message `receiver` holds.
    pub(super) fn keep(&mut self, receiver: &Receiver) -> io::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Folder {
                path,
                next,
                scratch,
            } => {
                fill(scratch, receiver);
                *next += 1;
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                let name = format!("{}-{next}.eml", now.as_millis());
                let part = path.join(format!(".{name}.part"));
                fs::write(&part, &*scratch)?;
                fs::rename(&part, path.join(name))
            }
            Self::Log {
                messages,
                index,
                offset,
                scratch,
            } => {
                fill(scratch, receiver);
                messages.write_all(scratch)?;
                let id = MessageId::of_message(scratch);
                let id = id.map_or_else(|| "-".to_owned(), |id| id.to_string());
                let name = header_value(scratch, "Message-ID")
                    .or_else(|| header_value(scratch, "Message-Id"))
                    .map_or_else(|| "-".into(), String::from_utf8_lossy);
                let name = name.replace([' ', '\t'], "_");
                index.write_all(format!("{offset} {} {id} {name}\n", scratch.len()).as_bytes())?;
                *offset += scratch.len() as u64;
                Ok(())
            }
        }
    }
}

fn fill(scratch: &mut Vec<u8>, receiver: &Receiver) {
    scratch.clear();
    let envelope = receiver.envelope();
    scratch.extend_from_slice(format!("Return-Path: <{}>\r\n", envelope.sender).as_bytes());
    for recipient in &envelope.recipients {
        scratch.extend_from_slice(format!("X-Envelope-To: <{recipient}>\r\n").as_bytes());
    }
    if receiver.is_stuffed() {
        unstuff(receiver.message(), scratch);
    } else {
        scratch.extend_from_slice(receiver.message());
    }
}

/// A line of an index written by [`SaveMode::Log`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// Where the message begins in the file `messages`.
    pub offset: u64,
    /// The length of the message in octets.
    pub length: u64,
    /// The `X-Bench-Id` of the message.
    pub id: Option<MessageId>,
    /// The `Message-ID` of the message, with spaces replaced.
    pub message_id: Option<String>,
}

/// Reads the index in the directory `save`. A last line without a line feed is left out: the message was never
/// acknowledged.
///
/// # Errors
///
/// The file cannot be read, or a whole line differs from the format of [`SaveMode::Log`] (`InvalidData`).
pub fn read_index(save: &Path) -> io::Result<Vec<IndexEntry>> {
    let text = fs::read_to_string(save.join("index"))?;
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    whole
        .lines()
        .map(|line| {
            entry(line).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, format!("index line {line:?}"))
            })
        })
        .collect()
}

fn entry(line: &str) -> Option<IndexEntry> {
    let mut words = line.split(' ');
    let offset = words.next()?.parse().ok()?;
    let length = words.next()?.parse().ok()?;
    let id = match words.next()? {
        "-" => None,
        id => Some(id.parse().ok()?),
    };
    let message_id = Some(words.next()?)
        .filter(|name| *name != "-")
        .map(str::to_owned);
    Some(IndexEntry {
        offset,
        length,
        id,
        message_id,
    })
}
