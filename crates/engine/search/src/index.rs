//! A directory of segments.
//!
//! A segment is first written under a temporary name, and synced if it replaces other segments. Checksums reveal an
//! incomplete segment, which is removed: no segment knows its messages then. The name contains the mailbox and the
//! UIDs, so that listing a directory of any size suffices to know all segments. After a crash, a joined segment and
//! its sources may both exist; the smaller segments are removed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use vere_units::{LogId, MailboxId};

use vere_ports::storage::{Storage, StorageFile};

use crate::memory::Memory;
use crate::segment::Segment;
use crate::{DOCUMENTS_MAX, JOINED, JOINED_OCTETS_MAX, OPEN_MAX, SearchError};

/// First and last UID of a segment.
type Range = (u32, u32);
/// Segments of a mailbox, in the order of their UIDs.
type Opened<F> = Vec<Arc<Segment<F>>>;

/// The segments of all mailboxes of a store.
#[derive(Debug)]
pub struct Index<S: Storage> {
    storage: S,
    log: LogId,
    names: BTreeMap<MailboxId, BTreeSet<Range>>,
    open: HashMap<MailboxId, Opened<S::File>>,
    memory: Memory,
}

/// The files of an index.
#[derive(Debug, Clone)]
pub struct Files<S>(S);

/// A segment that is written, and not in place yet.
#[derive(Debug)]
pub struct Written<F> {
    mailbox: MailboxId,
    range: Range,
    file: F,
    synced: bool,
}

/// Files of replaced segments.
#[derive(Debug)]
#[must_use]
pub struct Replaced(Vec<String>);

impl<S: Storage> Files<S> {
    /// Writes a segment of a mailbox under a temporary name. `range` is the first and the last UID that the segment
    /// covers, whether these messages still exist or not. A segment that joins others should be synced here, where no
    /// search waits.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn write(
        &self,
        mailbox: MailboxId,
        range: (u32, u32),
        octets: &[u8],
        synced: bool,
    ) -> io::Result<Written<S::File>> {
        let temporary = temporary(&name(mailbox, range));
        match self.0.remove(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.0.create(&temporary)?;
        file.write_at([octets, &[]], 0)?;
        if synced {
            file.sync()?;
        }
        Ok(Written {
            mailbox,
            range,
            file,
            synced,
        })
    }

    /// Removes replaced files, once the name of the new segment is synced.
    ///
    /// # Errors
    ///
    /// The error of the system; the next opening removes the remaining files.
    pub fn remove(&self, replaced: Replaced) -> io::Result<()> {
        if replaced.0.is_empty() {
            return Ok(());
        }
        self.0.sync()?;
        replaced.0.iter().try_for_each(|name| self.0.remove(name))
    }
}

/// The next job for a mailbox's segments.
#[derive(Debug)]
pub enum Task<F> {
    /// Join neighbours by [`crate::merge`], and hand the result to [`Index::put`].
    Join(Opened<F>),
    /// No job is due.
    Nothing,
}

fn name(mailbox: MailboxId, (first, last): Range) -> String {
    format!("{:016x}-{first:08x}-{last:08x}.idx", mailbox.0)
}

fn temporary(name: &str) -> String {
    format!("{name}.new")
}

fn parse(name: &str) -> Option<(MailboxId, Range)> {
    let mut numbers = name.strip_suffix(".idx")?.split('-');
    let mut number = |digits: usize| {
        let text = numbers.next().filter(|text| text.len() == digits)?;
        u64::from_str_radix(text, 16).ok()
    };
    let (mailbox, first, last) = (MailboxId(number(16)?), number(8)?, number(8)?);
    let range = (u32::try_from(first).ok()?, u32::try_from(last).ok()?);
    (self::name(mailbox, range) == name).then_some((mailbox, range))
}

impl<S: Storage> Index<S> {
    /// Opens the index of the store with a log; an empty directory is an empty index.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn open(storage: S, log: LogId) -> io::Result<Self> {
        let mut names: BTreeMap<MailboxId, BTreeSet<Range>> = BTreeMap::new();
        for name in storage.list()? {
            if name.ends_with(".new") {
                storage.remove(&name)?;
            } else if let Some((mailbox, range)) = parse(&name) {
                names.entry(mailbox).or_default().insert(range);
            }
        }
        Ok(Self {
            storage,
            log,
            names,
            open: HashMap::new(),
            memory: Memory::default(),
        })
    }

    /// Number of the log with the store's messages.
    #[must_use]
    pub fn log(&self) -> LogId {
        self.log
    }

    /// Mailboxes with segments.
    #[must_use]
    pub fn mailboxes(&self) -> Vec<MailboxId> {
        self.names.keys().copied().collect()
    }

    /// Returns the readable segments of a mailbox, in the order of their UIDs. Damaged segments are removed: no
    /// segment knows their messages then.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn segments(&mut self, mailbox: MailboxId) -> io::Result<Opened<S::File>> {
        if let Some(open) = self.open.get(&mailbox) {
            return Ok(open.clone());
        }
        let mut opened: Vec<(Range, Arc<Segment<S::File>>)> = Vec::new();
        for range in self.names.get(&mailbox).cloned().unwrap_or_default() {
            match self.open_one(mailbox, range) {
                Ok(segment) => opened.push((range, Arc::new(segment))),
                Err(SearchError::Damaged) => self.remove(mailbox, range)?,
                Err(SearchError::Io(error)) => return Err(error),
            }
        }
        self.drop_contained(mailbox, &mut opened)?;
        if self.open.len() >= OPEN_MAX {
            self.open.clear();
        }
        let opened: Opened<S::File> = opened.into_iter().map(|(_, segment)| segment).collect();
        self.open.insert(mailbox, opened.clone());
        Ok(opened)
    }

    /// Returns the segments of a mailbox, if they are open already.
    #[must_use]
    pub fn open_segments(&self, mailbox: MailboxId) -> Option<Vec<Arc<Segment<S::File>>>> {
        self.open.get(&mailbox).cloned()
    }

    fn open_one(&self, mailbox: MailboxId, range: Range) -> Result<Segment<S::File>, SearchError> {
        let file = self.storage.open(&name(mailbox, range))?;
        let segment = Segment::open_with(file, self.memory.clone())?;
        let owner = segment.owner();
        let uids = segment.documents();
        let uids = uids.first().zip(uids.last());
        let named = uids.is_some_and(|(first, last)| range.0 <= first.uid && last.uid <= range.1);
        if (owner.log, owner.mailbox) == (self.log, mailbox) && named {
            Ok(segment)
        } else {
            Err(SearchError::Damaged)
        }
    }

    /// Removes segments that lie within another segment or overlap an earlier segment.
    fn drop_contained(
        &mut self,
        mailbox: MailboxId,
        opened: &mut Vec<(Range, Arc<Segment<S::File>>)>,
    ) -> io::Result<()> {
        // Among segments with the same first UID, the longest comes first.
        opened.sort_by_key(|((first, last), _)| (*first, std::cmp::Reverse(*last)));
        let mut end = None;
        let mut gone = Vec::new();
        opened.retain(|((first, last), _)| {
            let keep = end.is_none_or(|end| *first > end);
            match keep {
                true => end = Some(*last),
                false => gone.push((*first, *last)),
            }
            keep
        });
        gone.into_iter()
            .try_for_each(|range| self.remove(mailbox, range))
    }

    fn remove(&mut self, mailbox: MailboxId, range: Range) -> io::Result<()> {
        match self.storage.remove(&name(mailbox, range)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.forget(mailbox, range);
        Ok(())
    }

    fn forget(&mut self, mailbox: MailboxId, range: Range) {
        if let Some(ranges) = self.names.get_mut(&mailbox) {
            ranges.remove(&range);
            if ranges.is_empty() {
                self.names.remove(&mailbox);
            }
        }
    }

    /// Closes the segments of a mailbox after a segment failed to answer. Each segment is then read whole, and
    /// removed if damaged.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn doubt(&mut self, mailbox: MailboxId) -> io::Result<()> {
        self.open.remove(&mailbox);
        for range in self.names.get(&mailbox).cloned().unwrap_or_default() {
            let whole = self
                .open_one(mailbox, range)
                .and_then(|segment| crate::merge(&[&segment], |_| true));
            match whole {
                Ok(_) => {}
                Err(SearchError::Damaged) => self.remove(mailbox, range)?,
                Err(SearchError::Io(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the files, to write segments while the index goes on answering.
    #[must_use]
    pub fn files(&self) -> Files<S> {
        Files(self.storage.clone())
    }

    /// Puts a written segment in place of the segments whose UIDs lie within its range; [`Files::remove`] must remove
    /// their files. A segment that replaces others is synced first, if the writer has not synced it. A crash may
    /// damage any other segment, which is noticed, and built again.
    ///
    /// # Errors
    ///
    /// The error of the system. The earlier segments remain then.
    pub fn place(&mut self, written: Written<S::File>) -> io::Result<Replaced> {
        let Written {
            mailbox,
            range,
            file,
            synced,
        } = written;
        let ranges = self.names.get(&mailbox).into_iter().flatten().copied();
        let within = |other: &Range| *other != range && range.0 <= other.0 && other.1 <= range.1;
        let within: Vec<Range> = ranges.filter(within).collect();
        if !within.is_empty() && !synced {
            file.sync()?;
        }
        let own = name(mailbox, range);
        self.storage.rename(&temporary(&own), &own)?;
        self.open.remove(&mailbox);
        self.names.entry(mailbox).or_default().insert(range);
        for other in &within {
            self.forget(mailbox, *other);
        }
        Ok(Replaced(
            within
                .into_iter()
                .map(|other| name(mailbox, other))
                .collect(),
        ))
    }

    /// Adds a segment in one step: writes and places the segment, and removes replaced files.
    ///
    /// # Errors
    ///
    /// As [`Files::write`], [`Index::place`] and [`Files::remove`].
    pub fn put(&mut self, mailbox: MailboxId, range: (u32, u32), octets: &[u8]) -> io::Result<()> {
        let files = self.files();
        let written = files.write(mailbox, range, octets, false)?;
        let replaced = self.place(written)?;
        files.remove(replaced)
    }

    /// Removes the segments of a mailbox within a range of UIDs, when all their messages or the mailbox are gone.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn drop_within(&mut self, mailbox: MailboxId, range: (u32, u32)) -> io::Result<()> {
        self.open.remove(&mailbox);
        let ranges = self.names.get(&mailbox).cloned().unwrap_or_default();
        ranges
            .into_iter()
            .filter(|other| range.0 <= other.0 && other.1 <= range.1)
            .try_for_each(|other| self.remove(mailbox, other))
    }

    /// Returns the next job for a mailbox's segments. Neighbours of similar size are joined, so that segments are
    /// few, and no segment is rewritten often.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn task(&mut self, mailbox: MailboxId) -> io::Result<Task<S::File>> {
        let segments = self.segments(mailbox)?;
        for window in segments.windows(JOINED) {
            let documents: usize = window.iter().map(|one| one.documents().len()).sum();
            let octets: u64 = window.iter().map(|one| one.octets()).sum();
            let sizes = || window.iter().map(|one| one.octets());
            let largest = sizes().max().unwrap_or_default();
            let alike = largest / 4 <= (octets - largest) / (JOINED as u64 - 1);
            if documents <= DOCUMENTS_MAX && octets <= JOINED_OCTETS_MAX && alike {
                return Ok(Task::Join(window.to_vec()));
            }
        }
        Ok(Task::Nothing)
    }

    /// Returns the first and last UID that neighbouring segments cover.
    #[must_use]
    pub fn range_of(
        &self,
        mailbox: MailboxId,
        segments: &[Arc<Segment<S::File>>],
    ) -> Option<(u32, u32)> {
        let first = segments.first()?.documents().first()?.uid;
        let last = segments.last()?.documents().last()?.uid;
        let ranges = self.names.get(&mailbox)?;
        let from = ranges.iter().rfind(|range| range.0 <= first)?.0;
        let to = ranges.iter().rfind(|range| range.0 <= last)?.1;
        Some((from, to))
    }

    /// Returns the octets of a mailbox's segments.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn octets(&mut self, mailbox: MailboxId) -> io::Result<u64> {
        Ok(self.segments(mailbox)?.iter().map(|one| one.octets()).sum())
    }
}
