//! Finds the events of messages in the trace files, newest first.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use memchr::memmem::Finder;
use memchr::memrchr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vere_units::{Timestamp, TraceId};

use super::encode::{ADDRESS_OCTETS_MAX, LINE_OCTETS_MAX, cut, escape};
use super::{EventKind, files};

/// Read from the end of a file in pieces of this size.
const PIECE_OCTETS: u64 = 1024 * 1024;
/// The most events kept for a message; a message retried for days stays below.
const EVENTS_PER_TRACE_MAX: usize = 10_000;

/// The search key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The id a client was told, and all logs show.
    TraceId(TraceId),
    /// The `Message-ID` field's value; angle brackets may be left out.
    MessageId(String),
    /// A recipient's address, without regard to ASCII case; angle brackets may be left out.
    Recipient(String),
}

/// The events of a message in time order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// The message.
    #[serde(serialize_with = "write_id")]
    pub id: TraceId,
    /// The events, oldest first.
    pub events: Vec<Record>,
}

/// An event read from a file; the fields are the fields of [`super::Event`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When it happened.
    #[serde(
        rename = "t",
        deserialize_with = "read_time",
        serialize_with = "write_time"
    )]
    pub at: Timestamp,
    /// The message.
    #[serde(deserialize_with = "read_id", serialize_with = "write_id")]
    pub id: TraceId,
    /// What happened.
    #[serde(rename = "ev")]
    pub kind: EventKind,
    /// The queue's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The recipient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcpt: Option<String>,
    /// The reverse-path; empty for the null reverse-path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_path: Option<String>,
    /// The `Message-ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Octets of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Recipients of the transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipients: Option<u32>,
    /// The client's address and port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The authenticated account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// TLS version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<String>,
    /// Result of SPF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spf: Option<String>,
    /// Result of SPF for the HELO name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spf_helo: Option<String>,
    /// The verdict about the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The score of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<String>,
    /// The rules that match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
    /// The facts that were judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<String>,
    /// Reply code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// Reply text or reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// The next hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// How long the step took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Which attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// When the next attempt is due, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The id of the related message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related: Option<String>,
}

fn read_time<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    u64::deserialize(from).map(Timestamp::from_millis)
}

fn write_time<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(at.as_millis())
}

fn read_id<'de, D: Deserializer<'de>>(from: D) -> Result<TraceId, D::Error> {
    let text = String::deserialize(from)?;
    TraceId::from_str(&text).map_err(|_| serde::de::Error::custom("not a trace id"))
}

fn write_id<S: Serializer>(id: &TraceId, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(id)
}

/// A trace file could not be read: a local resource failed.
#[derive(Debug)]
pub struct FindError {
    /// The folder or file.
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot read the trace {}: {}",
            self.path.display(),
            self.source
        )
    }
}

impl std::error::Error for FindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The traces of the newest `limit` messages that match, the newest message first.
///
/// May run while the log is being written: a torn last line is skipped, as is a file deleted by
/// retention in the meantime. A missing directory has no events.
///
/// # Errors
/// The directory or a file cannot be read.
pub fn find(dir: &Path, query: &Query, limit: usize) -> Result<Vec<Trace>, FindError> {
    let paths: Vec<PathBuf> = match files::list(dir) {
        Ok(files) => files.into_iter().rev().map(|(_, path)| path).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(FindError {
                path: dir.to_owned(),
                source,
            });
        }
    };
    let ids = match query {
        Query::TraceId(id) => vec![*id],
        Query::MessageId(text) => newest_ids(&paths, &field_matcher("message_id", text), limit)?,
        Query::Recipient(text) => newest_ids(&paths, &field_matcher("rcpt", text), limit)?,
    };
    collect(&paths, &ids, limit)
}

/// Finds `"name":"value"` in a line.
struct Matcher {
    key: Finder<'static>,
    /// The escaped value with and without angle brackets, each with a closing quote.
    values: [Vec<u8>; 2],
}

fn field_matcher(name: &str, value: &str) -> Matcher {
    let bare = value
        .strip_prefix('<')
        .and_then(|v| v.strip_suffix('>'))
        .unwrap_or(value);
    let quoted = |value: &str| {
        let mut out = Vec::new();
        escape(&mut out, cut(value, ADDRESS_OCTETS_MAX));
        out.push(b'"');
        out
    };
    Matcher {
        key: Finder::new(format!(",\"{name}\":\"").as_bytes()).into_owned(),
        values: [quoted(bare), quoted(&format!("<{bare}>"))],
    }
}

impl Matcher {
    fn matches(&self, line: &[u8]) -> bool {
        // Text cannot hold a quote that is not escaped, so the key is found as a key only.
        let Some(start) = self.key.find(line).map(|at| at + self.key.needle().len()) else {
            return false;
        };
        let rest = line.get(start..).unwrap_or_default();
        self.values.iter().any(|value| {
            rest.get(..value.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(value))
        })
    }
}

fn newest_ids(
    paths: &[PathBuf],
    matcher: &Matcher,
    limit: usize,
) -> Result<Vec<TraceId>, FindError> {
    let mut ids = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        if ids.len() >= limit {
            break;
        }
        lines_backward(path, |line| {
            if matcher.matches(line)
                && let Some(record) = parse(line)
                && seen.insert(record.id)
            {
                ids.push(record.id);
            }
            if ids.len() >= limit {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
    }
    Ok(ids)
}

/// All events of `ids`; a file is not opened once each id has its first event.
fn collect(paths: &[PathBuf], ids: &[TraceId], limit: usize) -> Result<Vec<Trace>, FindError> {
    let ids = ids.get(..limit.min(ids.len())).unwrap_or_default();
    let mut found: HashMap<TraceId, Vec<Record>> = HashMap::new();
    let wanted: HashSet<TraceId> = ids.iter().copied().collect();
    let mut begun = HashSet::new();
    for path in paths {
        if begun.len() == wanted.len() {
            break;
        }
        lines_backward(path, |line| {
            if line_id(line).is_some_and(|id| wanted.contains(&id))
                && let Some(record) = parse(line)
            {
                if record.kind == EventKind::Received {
                    begun.insert(record.id);
                }
                let events = found.entry(record.id).or_default();
                if events.len() < EVENTS_PER_TRACE_MAX {
                    events.push(record);
                }
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(ids
        .iter()
        .filter_map(|id| found.remove(id).map(|events| ordered(*id, events)))
        .collect())
}

fn ordered(id: TraceId, mut events: Vec<Record>) -> Trace {
    // Read backwards; the stable sort keeps the order of the file within one millisecond.
    events.reverse();
    events.sort_by_key(|record| record.at);
    Trace { id, events }
}

/// The id without parsing the line: it stands at a fixed place after the time.
fn line_id(line: &[u8]) -> Option<TraceId> {
    const KEY: &[u8] = b",\"id\":\"";
    let comma = memchr::memchr(b',', line)?;
    let rest = line.get(comma..)?.strip_prefix(KEY)?;
    let end = memchr::memchr(b'"', rest)?;
    std::str::from_utf8(rest.get(..end)?).ok()?.parse().ok()
}

/// `None` for the header, a `lost` line, a torn line, or any other line that is no event.
fn parse(line: &[u8]) -> Option<Record> {
    serde_json::from_slice(line).ok()
}

/// Calls `each` with every whole line of the file from the last to the first, until it breaks.
fn lines_backward(
    path: &Path,
    mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), FindError> {
    let failed = |source| FindError {
        path: path.to_owned(),
        source,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(failed(source)),
    };
    let mut start = file.metadata().map_err(failed)?.len();
    // The octets before `start + buffer.len()` not yet given to `each`.
    let mut buffer = Vec::new();
    while start > 0 {
        let piece = PIECE_OCTETS.min(start);
        start -= piece;
        let mut next = vec![0; usize::try_from(piece).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut next, start).map_err(failed)?;
        if buffer.len() <= LINE_OCTETS_MAX {
            next.append(&mut buffer);
        }
        buffer = next;
        while let Some(end) = memrchr(b'\n', &buffer) {
            if each(buffer.get(end + 1..).unwrap_or_default()).is_break() {
                return Ok(());
            }
            buffer.truncate(end);
        }
    }
    let _ = each(&buffer);
    Ok(())
}
