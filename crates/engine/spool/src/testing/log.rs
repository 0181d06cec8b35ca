//! A log in memory that crashes, runs full and fails, and answers reads with a delay.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use vere_ports::spool_log::{
    LogError, LogPosition, LogRead, LogReader, LogRoom, LogStretch, OutlinedEntry, SpoolLog,
    SpoolLogStore, UnreadableEntry,
};

#[derive(Debug, Clone, Default)]
pub(crate) struct MemorySegment {
    /// First position.
    position: u64,
    pub(crate) head: Vec<u8>,
    entries: Vec<(u64, Vec<u8>)>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct LogState {
    pub(crate) segments: BTreeMap<u64, MemorySegment>,
    pub(crate) position: u64,
    pub(crate) synced: u64,
    pub(crate) segment_len: u64,
    /// Capacity in octets.
    pub(crate) capacity: u64,
    pub(crate) reserve: bool,
    pub(crate) failed: bool,
    /// A reader found the log damaged.
    pub(crate) damaged: bool,
    /// The log that was set aside.
    pub(crate) aside: Option<Box<Self>>,
    pub(crate) removed: u64,
    /// Number of requested syncs.
    pub(crate) asked: u64,
    /// Whether [`SpoolLog::sync_alone`] finishes at once, and the number of such syncs.
    pub(crate) brisk: bool,
    pub(crate) alone: u64,
    /// Removals that wait for a sync: (segment, position).
    removals: Vec<(u64, u64)>,
    /// Outstanding reads.
    reads: VecDeque<(LogStretch, Vec<u8>)>,
    /// Looks until one of these is done.
    patience: u32,
    /// Finished reads.
    pub(crate) read_back: u64,
    /// Reads return octets that differ from the written ones.
    pub(crate) rotten: bool,
}

impl LogState {
    fn check(&self) -> Result<(), LogError> {
        match (self.failed, self.damaged) {
            (true, _) => Err(LogError::Failed("test".to_owned())),
            (_, true) => Err(LogError::Damaged("test".to_owned())),
            _ => Ok(()),
        }
    }

    fn read_again(&self, stretch: LogStretch, into: &mut [u8]) -> Result<(), String> {
        let segment = self.segments.get(&stretch.segment);
        let segment = segment.ok_or_else(|| "it is gone".to_owned())?;
        let skip = stretch.offset as usize;
        let mut fill = 0;
        for (end, entry) in segment.entries.iter().skip(skip) {
            if fill == stretch.octets as usize {
                break;
            }
            let at = stretch.position + fill as u64;
            assert_eq!(end - entry.len() as u64, at, "the entry that was there");
            into[fill..fill + entry.len()].copy_from_slice(entry);
            fill += entry.len();
        }
        assert_eq!(fill, stretch.octets as usize);
        if self.rotten {
            return Err("it is damaged".to_owned());
        }
        Ok(())
    }

    /// Whether reads are outstanding.
    pub(crate) fn is_reading(&self) -> bool {
        !self.reads.is_empty()
    }

    pub(crate) fn octets(&self) -> u64 {
        let entries = |segment: &MemorySegment| {
            segment
                .entries
                .iter()
                .map(|(_, entry)| entry.len() as u64)
                .sum::<u64>()
        };
        self.segments.values().map(entries).sum()
    }

    /// Syncs all appended entries.
    pub(crate) fn sync(&mut self) {
        self.synced = self.position;
        let (due, rest) = self.removals.iter().partition(|(_, at)| *at <= self.synced);
        self.removals = rest;
        let due: Vec<(u64, u64)> = due;
        for (segment, _) in due {
            let kept = self.segments.split_off(&segment);
            self.removed += self.segments.len() as u64;
            self.segments = kept;
        }
    }

    /// Simulates a crash: keeps all synced entries, and `more` later ones.
    pub(crate) fn crash(&mut self, more: usize) {
        let synced = self.synced;
        let mut left = more;
        for segment in self.segments.values_mut() {
            segment.entries.retain(|(end, _)| {
                let stays = *end <= synced || left > 0;
                left -= usize::from(*end > synced && left > 0);
                stays
            });
        }
        let last = |segment: &MemorySegment| segment.entries.last().map(|(end, _)| *end);
        self.position = self
            .segments
            .values()
            .filter_map(last)
            .max()
            .unwrap_or(0)
            .max(synced);
        self.synced = self.position;
        self.removals.clear();
        // The loss of an entry includes all later segments.
        let end = self.position;
        self.segments.retain(|_, segment| segment.position <= end);
    }
}

/// A log in memory.
#[derive(Debug, Clone)]
pub(crate) struct MemoryLog(pub(crate) Rc<RefCell<LogState>>);

impl MemoryLog {
    pub(crate) fn new(segment_len: u64) -> Self {
        let state = LogState {
            segment_len,
            capacity: u64::MAX,
            ..LogState::default()
        };
        Self(Rc::new(RefCell::new(state)))
    }

    pub(crate) fn read(&self, reader: &mut dyn LogReader) -> Result<Self, UnreadableEntry> {
        self.0.borrow_mut().reads.clear();
        let state = self.0.borrow();
        let last = state.segments.keys().next_back();
        for (number, segment) in &state.segments {
            reader.head(*number, &segment.head)?;
            let outliner = reader.outliner().filter(|_| Some(number) != last);
            for (index, (end, entry)) in segment.entries.iter().enumerate() {
                let Some(outliner) = outliner else {
                    reader.entry(*number, entry)?;
                    continue;
                };
                let mut outline = Vec::new();
                (outliner.outline)(entry, &mut outline)?;
                let len = entry.len() as u32;
                assert!((outliner.check)(&outline, len));
                let entry = OutlinedEntry {
                    segment: *number,
                    offset: index as u64,
                    position: end - u64::from(len),
                    len,
                };
                reader.outline(entry, &outline)?;
            }
        }
        Ok(self.clone())
    }
}

impl SpoolLog for MemoryLog {
    fn append(&mut self, entry: &[u8]) -> Result<LogPosition, LogError> {
        let mut state = self.0.borrow_mut();
        state.check()?;
        if state.octets() + entry.len() as u64 > state.capacity {
            return Err(LogError::Full);
        }
        state.position += entry.len() as u64;
        let position = state.position;
        if let Some(mut last) = state.segments.last_entry() {
            last.get_mut().entries.push((position, entry.to_vec()));
        }
        Ok(LogPosition(position))
    }

    fn start_sync(&mut self) {
        self.0.borrow_mut().asked += 1;
    }

    fn sync_alone(&mut self) {
        let mut state = self.0.borrow_mut();
        state.asked += 1;
        if state.brisk && !state.failed {
            state.alone += 1;
            state.sync();
        }
    }

    fn synced(&self) -> Result<LogPosition, LogError> {
        let state = self.0.borrow();
        state.check()?;
        Ok(LogPosition(state.synced))
    }

    fn newest(&self) -> u64 {
        self.0
            .borrow()
            .segments
            .last_key_value()
            .map_or(0, |(number, _)| *number)
    }

    fn wants_roll(&self) -> bool {
        let state = self.0.borrow();
        let last = state.segments.last_key_value();
        last.is_some_and(|(_, segment)| {
            let octets: usize = segment.entries.iter().map(|(_, entry)| entry.len()).sum();
            octets as u64 >= state.segment_len
        })
    }

    fn roll(&mut self, head: &[u8]) -> Result<(), LogError> {
        let number = self.newest() + 1;
        let mut state = self.0.borrow_mut();
        let (position, head) = (state.position, head.to_vec());
        let segment = MemorySegment {
            position,
            head,
            entries: Vec::new(),
        };
        state.segments.insert(number, segment);
        Ok(())
    }

    fn remove_before(&mut self, segment: u64) -> Result<(), LogError> {
        let mut state = self.0.borrow_mut();
        let position = state.position;
        if state
            .segments
            .keys()
            .next()
            .is_some_and(|first| *first < segment)
        {
            state.removals.push((segment, position));
        }
        Ok(())
    }

    fn keep_house(&mut self) {}

    fn octets(&self) -> u64 {
        self.0.borrow().octets()
    }

    fn room(&self) -> LogRoom {
        if self.0.borrow().reserve {
            LogRoom::Reserve
        } else {
            LogRoom::Plenty
        }
    }

    fn read_back(&mut self, stretch: LogStretch, into: Vec<u8>) {
        let mut state = self.0.borrow_mut();
        let twice = state.reads.iter().any(|(other, _)| *other == stretch);
        assert!(!twice, "one job at a time");
        state.reads.push_back((stretch, into));
    }

    fn poll_read(&mut self) -> Option<LogRead> {
        let mut state = self.0.borrow_mut();
        state.patience = (state.patience + 1) % 3;
        if state.patience != 0 {
            return None;
        }
        let (stretch, mut octets) = state.reads.pop_front()?;
        octets.fill(0xAA);
        let result = state.read_again(stretch, &mut octets);
        state.read_back += u64::from(result.is_ok());
        Some(LogRead {
            stretch,
            octets,
            result,
        })
    }
}

impl SpoolLogStore for MemoryLog {
    type Log = Self;

    fn create(&mut self, _: &str, head: &[u8]) -> Result<Self, LogError> {
        let segment = MemorySegment {
            position: 0,
            head: head.to_vec(),
            entries: Vec::new(),
        };
        self.0.borrow_mut().segments.insert(1, segment);
        Ok(self.clone())
    }

    fn replace(&mut self, group: &str, head: &[u8]) -> Result<Self, LogError> {
        let mut state = self.0.borrow_mut();
        if state.capacity == 0 {
            return Err(LogError::Full);
        }
        let fresh = LogState {
            segment_len: state.segment_len,
            capacity: state.capacity,
            reads: std::mem::take(&mut state.reads),
            ..LogState::default()
        };
        let mut old = std::mem::replace(&mut *state, fresh);
        let before = old.aside.take();
        state.aside = Some(before.unwrap_or_else(|| Box::new(old)));
        drop(state);
        self.create(group, head)
    }

    fn remove(&mut self, _: &str) -> Result<(), LogError> {
        let mut state = self.0.borrow_mut();
        if state.failed {
            return Err(LogError::Failed("as the test says".to_owned()));
        }
        state.segments.clear();
        (state.position, state.synced) = (0, 0);
        state.aside = None;
        Ok(())
    }

    fn is_aside(&self, _: &str) -> bool {
        self.0.borrow().aside.is_some()
    }

    fn discard(&mut self, _: &str) {
        self.0.borrow_mut().aside = None;
    }
}
