//! The findings of a salvage: packs, frames by inodes, pages, and hints of surviving commits about inodes.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::frames::{Content, Frame};
use super::mark::begun;
use super::pages::{At, Pages};
use super::past::Past;
use crate::format::commit::Record;
use crate::format::{Kind, MailCopy, MailId, PackNumber, Subject};
use crate::rows::{InodeRow, Key, PackRow, decode_entry, writers_prefix};

/// Frames in memory: about 256 MB. The content of further frames is counted and stays where it is.
const FRAMES_MAX: usize = 4_000_000;
/// Inodes about which commits are remembered.
const HINTS_MAX: usize = 1_000_000;
/// Commits named as merged, and roots named by commits.
const NAMES_MAX: usize = 1_000_000;
/// Mails with damage that are named.
const NAMED_MAX: usize = 1_000;

/// A report of a salvage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SalvageReport {
    /// Data packs read.
    pub packs: usize,
    /// Commits read.
    pub commits: usize,
    /// Sound pages.
    pub pages: usize,
    /// Pages and rows beyond the bounds of this run.
    pub pages_left_out: usize,
    /// Frames that open.
    pub frames: usize,
    /// Frames that no copy has undamaged.
    pub frames_damaged: usize,
    /// Frames beyond the bound of this run.
    pub left_out: usize,
    /// Mails that cannot be used, with the reason; at most 1,000.
    pub unusable: Vec<String>,
    /// Further mails that cannot be used.
    pub unusable_more: usize,
}

/// The newest row of an inode.
#[derive(Debug)]
pub struct KnownRow {
    generation: u64,
    /// The sequence of the commit.
    pub sequence: u64,
    /// Absent where the row was removed.
    pub row: Option<InodeRow>,
}

/// What commits say about an inode.
#[derive(Debug, Default)]
pub struct Hint {
    /// The newest row.
    pub row: Option<KnownRow>,
    /// The newest name, with the generation of its commit.
    pub name: Option<(u64, Vec<u8>)>,
}

/// A chunk of a file.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    /// The pack.
    pub pack: PackNumber,
    /// The frame.
    pub frame: Frame,
}

/// The content of a volume without its metadata.
#[derive(Debug, Default)]
pub struct Salvaged {
    /// Packs by number.
    pub packs: BTreeMap<u64, PackRow>,
    /// Every chunk.
    pub chunks: Vec<Chunk>,
    /// UIDVALIDITY of accounts and their mailboxes.
    pub validities: BTreeMap<(u16, u16), u32>,
    /// What commits say about inodes.
    pub hints: HashMap<u64, Hint>,
    /// The highest generation of an authentic commit.
    pub(super) generation: u64,
    /// The highest writer of an authentic mail.
    pub(super) writer: u16,
    /// Whether every mail is read.
    pub is_whole: bool,
    /// Names and extents by surviving pages.
    pub past: Option<Past>,
    pub(super) pages: Pages,
    /// Roots named by commits.
    pub(super) roots: HashSet<At>,
    /// Commits with all changes in merges.
    pub(super) merged: HashSet<MailId>,
    /// The newest word about an earlier salvage: the telling generation, and [`begun`].
    pub(super) mark: Option<(u64, Option<u64>)>,
    pub(super) report: SalvageReport,
}

impl Salvaged {
    /// The report.
    #[must_use]
    pub const fn report(&self) -> &SalvageReport {
        &self.report
    }

    /// The highest number of a writer in any authentic mail. Numbers of a lost state must not come again.
    #[must_use]
    pub const fn last_writer(&self) -> u16 {
        self.writer
    }

    /// The generation of the lost state behind which an earlier salvage has begun and not ended.
    #[must_use]
    pub fn begun(&self) -> Option<u64> {
        self.mark.and_then(|(_, begun)| begun)
    }

    fn note_mark(&mut self, told_at: u64, mark: Option<u64>) {
        let is_newer = self.mark.is_none_or(|(known, _)| known < told_at);
        // At an equal generation the end of a salvage counts.
        if is_newer
            || self
                .mark
                .is_some_and(|(known, _)| known == told_at && mark.is_none())
        {
            self.mark = Some((told_at, mark));
        }
    }

    /// The highest generation of an authentic commit.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn unusable(&mut self, what: String) {
        if self.report.unusable.len() < NAMED_MAX {
            self.report.unusable.push(what);
        } else {
            self.report.unusable_more = self.report.unusable_more.saturating_add(1);
        }
    }

    /// Takes the best copy of a mail.
    pub(super) fn take(&mut self, subject: &Subject, copies: Vec<MailCopy>, content: Content) {
        self.writer = self.writer.max(subject.pack.writer());
        match &content.record {
            Some(record) => {
                self.report.commits = self.report.commits.saturating_add(1);
                self.generation = self.generation.max(record.generation);
                self.hear(record, subject.pack.sequence());
                self.note(record);
            }
            None if subject.kind == Kind::Pages => {}
            None => self.report.packs = self.report.packs.saturating_add(1),
        }
        for page in &content.pages {
            self.writer = self.writer.max(page.writer);
            // The new log begins above the lost state.
            self.generation = self.generation.max(page.covers);
            if let Some(mark) = page.mark {
                self.note_mark(page.covers, mark);
            }
        }
        let pages = self.pages.take(content.pages);
        self.report.pages = self.report.pages.saturating_add(pages);
        self.report.frames_damaged = self.report.frames_damaged.saturating_add(content.damaged);
        if content.frames.is_empty() {
            return;
        }
        let row = PackRow {
            mail: subject.mail,
            kind: subject.kind as u8,
            group: subject.group,
            octets: content.octets,
            copies,
        };
        let number = subject.pack;
        if let Some(other) = self
            .packs
            .get(&number.0)
            .filter(|other| other.mail != row.mail)
        {
            let text = format!(
                "mail {}: expected a number of its own; found the number of mail {}",
                row.mail, other.mail
            );
            self.unusable(text);
            return;
        }
        self.packs.insert(number.0, row);
        for frame in content.frames {
            if self.chunks.len() >= FRAMES_MAX {
                self.report.left_out = self.report.left_out.saturating_add(1);
                continue;
            }
            self.report.frames = self.report.frames.saturating_add(1);
            self.chunks.push(Chunk {
                pack: number,
                frame,
            });
        }
    }

    /// Remembers the words of a commit about pages and merges.
    fn note(&mut self, record: &Record) {
        if let Some(checkpoint) = &record.checkpoint
            && self.roots.len() < NAMES_MAX
        {
            let root = &checkpoint.root;
            self.roots.insert((root.mail, root.at));
        }
        let writers = record.rows.iter();
        let writers = writers.filter(|row| row.key.starts_with(&writers_prefix()));
        let mut marks = writers.filter_map(|row| begun(row.value.as_deref()?));
        if let Some(mark) = marks.next_back() {
            self.note_mark(record.generation, mark);
        }
        let room = NAMES_MAX.saturating_sub(self.merged.len());
        self.merged.extend(record.merged.iter().take(room));
    }

    /// Remembers names and facts of inodes.
    fn hear(&mut self, record: &Record, sequence: u64) {
        let generation = record.generation;
        for change in &record.rows {
            match (Key::decode(&change.key), &change.value) {
                (Ok(Key::Inode(inode)), value) => {
                    let row = value.as_ref().map(|value| InodeRow::decode(value));
                    let row = match row {
                        Some(Ok(row)) => Some(row),
                        None => None,
                        Some(Err(_)) => continue,
                    };
                    if let Some(hint) = self.hint(inode.0)
                        && hint
                            .row
                            .as_ref()
                            .is_none_or(|known| known.generation <= generation)
                    {
                        hint.row = Some(KnownRow {
                            generation,
                            sequence,
                            row,
                        });
                    }
                }
                (Ok(Key::Entry { name, .. }), Some(value)) => {
                    let name = name.to_vec();
                    if let Ok(entry) = decode_entry(value)
                        && let Some(hint) = self.hint(entry.inode.0)
                        && hint.name.as_ref().is_none_or(|(of, _)| *of <= generation)
                    {
                        hint.name = Some((generation, name));
                    }
                }
                _ => {}
            }
        }
    }

    fn hint(&mut self, inode: u64) -> Option<&mut Hint> {
        if self.hints.len() >= HINTS_MAX && !self.hints.contains_key(&inode) {
            return None;
        }
        Some(self.hints.entry(inode).or_default())
    }
}

/// Whether a mail of this kind may have content or names.
pub(super) const fn is_of_use(kind: Kind) -> bool {
    matches!(kind, Kind::Commit | Kind::Data | Kind::Pages)
}
