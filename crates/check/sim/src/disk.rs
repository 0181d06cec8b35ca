//! A node's disk. Logs keep synced entries, and a crash decides which unsynced entries survive.

mod rot;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use vere_ports::spool_log::{
    LogError, LogPosition, LogRead, LogReader, LogRoom, LogStretch, OutlinedEntry, SpoolLog,
    SpoolLogStore,
};

use crate::random::Random;
use rot::Rot;
pub(crate) use rot::Unopened;

#[derive(Debug, Default)]
struct Segment {
    /// The segment's start position.
    position: u64,
    head: Vec<u8>,
    /// Entries with their end positions.
    entries: Vec<(u64, Vec<u8>)>,
}

#[derive(Debug, Default)]
struct Log {
    segments: BTreeMap<u64, Segment>,
    position: u64,
    synced: u64,
    /// Whether a sync was requested since the last sync began.
    wanted: bool,
    /// End position of the sync that is under way.
    running: Option<u64>,
    /// Removals that wait for a sync: (segment, position).
    removals: Vec<(u64, u64)>,
    /// Stretches of the log that the process has requested.
    reads: VecDeque<(LogStretch, Vec<u8>)>,
    /// The damaged octets, if there are any.
    rot: Option<Rot>,
    /// Whether a process has noticed the damage.
    noticed: bool,
    /// Whether the damage has failed the log.
    failed: bool,
}

impl Segment {
    /// Hands the entries to a reader: as outlines, if that is possible and the index was not lost.
    /// Outlines reveal no damage; only reading an entry does.
    fn give(
        &self,
        number: u64,
        indexed: bool,
        rot: Option<Rot>,
        reader: &mut dyn LogReader,
    ) -> Result<(), Unopened> {
        let rot = rot.filter(|rot| rot.segment == number);
        let damaged = |what: &str| Unopened::Damaged(format!("{what} of segment {number}"));
        if rot.is_some_and(|rot| rot.entry.is_none()) {
            return Err(damaged("the head"));
        }
        reader.head(number, &self.head)?;
        let outliner = reader.outliner().filter(|_| indexed);
        for (index, (end, entry)) in self.entries.iter().enumerate() {
            let Some(outliner) = outliner else {
                if rot.is_some_and(|rot| rot.entry == Some(index)) {
                    return Err(damaged("an entry"));
                }
                reader.entry(number, entry)?;
                continue;
            };
            let mut outline = Vec::new();
            (outliner.outline)(entry, &mut outline)?;
            let len = entry.len() as u32;
            if !(outliner.check)(&outline, len) {
                let reason = "an outline does not pass its check".to_owned();
                return Err(Unopened::Unreadable(reason));
            }
            let outlined = OutlinedEntry {
                segment: number,
                offset: index as u64,
                position: end - u64::from(len),
                len,
            };
            reader.outline(outlined, &outline)?;
        }
        Ok(())
    }
}

impl Log {
    fn read_again(&mut self, stretch: LogStretch, into: &mut [u8]) -> Result<(), String> {
        let bad = self.rot().filter(|rot| rot.segment == stretch.segment);
        let bad = bad.and_then(|rot| rot.entry);
        let result = self.read_sound(stretch, bad, into);
        self.noticed |= bad.is_some() && result.is_err();
        result
    }

    fn read_sound(
        &self,
        stretch: LogStretch,
        bad: Option<usize>,
        into: &mut [u8],
    ) -> Result<(), String> {
        let gone = || "the segment is gone".to_owned();
        let segment = self.segments.get(&stretch.segment).ok_or_else(gone)?;
        let (mut rest, mut at) = (&mut into[..stretch.octets as usize], stretch.position);
        let entries = segment.entries.iter().enumerate();
        for (index, (end, entry)) in entries.skip(stretch.offset as usize) {
            if rest.is_empty() {
                break;
            }
            if bad == Some(index) {
                return Err("an entry is damaged".to_owned());
            }
            if end - entry.len() as u64 != at || entry.len() > rest.len() {
                return Err("another entry is there".to_owned());
            }
            let (here, after) = rest.split_at_mut(entry.len());
            here.copy_from_slice(entry);
            (rest, at) = (after, *end);
        }
        if rest.is_empty() { Ok(()) } else { Err(gone()) }
    }

    fn octets(&self) -> u64 {
        let entries = self.segments.values().flat_map(|segment| &segment.entries);
        entries.map(|(_, entry)| entry.len() as u64).sum()
    }

    fn sync_done(&mut self) {
        if let Some(position) = self.running.take() {
            self.synced = self.synced.max(position);
        }
        let synced = self.synced;
        let due: Vec<u64> = self
            .removals
            .extract_if(.., |(_, at)| *at <= synced)
            .map(|(segment, _)| segment)
            .collect();
        if let Some(segment) = due.into_iter().max() {
            self.segments = self.segments.split_off(&segment);
        }
    }

    /// Keeps synced entries and `more` further entries.
    fn crash(&mut self, synced: u64, more: usize) {
        let mut left = more;
        let mut end = synced;
        for segment in self.segments.values_mut() {
            segment.entries.retain(|(at, _)| {
                let stays = *at <= synced || left > 0;
                if *at > synced {
                    left = left.saturating_sub(1);
                }
                if stays {
                    end = end.max(*at);
                }
                stays
            });
        }
        // Segments that began after the lost entries are lost too.
        self.segments.retain(|_, segment| segment.position <= end);
        (self.position, self.synced) = (end, end);
        self.forget_requests();
    }

    fn forget_requests(&mut self) {
        self.failed = false;
        (self.wanted, self.running) = (false, None);
        self.removals.clear();
        self.reads.clear();
    }
}

/// A fault of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Trouble {
    #[default]
    None,
    /// Only the reserve is left.
    Reserve,
    /// The disk is full.
    Full,
    /// A sync failed.
    Failed,
}

#[derive(Debug, Default)]
struct State {
    groups: BTreeMap<String, Rc<RefCell<Log>>>,
    trouble: Trouble,
    segment_len: u64,
    /// Damaged logs that were set aside, until an intact log replaces them.
    aside: BTreeSet<String>,
}

/// The disk of one node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Rc<RefCell<State>>);

impl Disk {
    pub(crate) fn new(segment_len: u64) -> Self {
        let disk = Self::default();
        disk.0.borrow_mut().segment_len = segment_len;
        disk
    }

    pub(crate) fn set_trouble(&self, trouble: Trouble) {
        self.0.borrow_mut().trouble = trouble;
    }

    pub(crate) fn trouble(&self) -> Trouble {
        self.0.borrow().trouble
    }

    /// Replaces the disk by an empty one.
    pub(crate) fn wipe(&self) {
        let mut state = self.0.borrow_mut();
        state.groups.clear();
        state.aside.clear();
        state.trouble = Trouble::None;
    }

    /// Begins the requested syncs. Returns true if a sync began.
    pub(crate) fn begin_syncs(&self) -> bool {
        let state = self.0.borrow();
        let mut began = false;
        for log in state.groups.values() {
            let mut log = log.borrow_mut();
            if log.running.is_none() && std::mem::take(&mut log.wanted) {
                log.running = Some(log.position);
                began = true;
            }
        }
        began
    }

    /// Completes the syncs that are under way.
    pub(crate) fn syncs_done(&self) {
        let state = self.0.borrow();
        for log in state.groups.values() {
            if state.trouble == Trouble::Failed {
                log.borrow_mut().running = None;
            } else {
                log.borrow_mut().sync_done();
            }
        }
    }

    /// Handles the end of the process. All writes of the process still reach the disk.
    pub(crate) fn process_died(&self) {
        let mut state = self.0.borrow_mut();
        state.trouble = Trouble::None;
        for log in state.groups.values() {
            let mut log = log.borrow_mut();
            log.forget_requests();
            log.synced = log.position;
        }
    }

    /// Handles a power cut: unsynced entries survive up to a random entry. `lies`: the disk had
    /// reported syncs that it did not perform.
    pub(crate) fn power_failed(&self, random: &mut Random, lies: bool) {
        let mut state = self.0.borrow_mut();
        state.trouble = Trouble::None;
        for log in state.groups.values() {
            let mut log = log.borrow_mut();
            let synced = if lies {
                random.range(0..log.synced + 1)
            } else {
                log.synced
            };
            let more = random.below(8);
            log.crash(synced, more);
        }
    }

    /// Whether a read is under way that the process has not received.
    pub(crate) fn is_reading(&self) -> bool {
        let state = self.0.borrow();
        state
            .groups
            .values()
            .any(|log| !log.borrow().reads.is_empty())
    }

    pub(crate) fn groups(&self) -> Vec<String> {
        self.0.borrow().groups.keys().cloned().collect()
    }

    /// Reads a group's log and returns the log for appending.
    pub(crate) fn open(&self, group: &str, reader: &mut dyn LogReader) -> Result<SimLog, Unopened> {
        let state = self.0.borrow();
        let log = state.groups.get(group).cloned().unwrap_or_default();
        let (rot, noticed) = (log.borrow().rot(), log.borrow().noticed);
        let last = log.borrow().segments.keys().next_back().copied();
        for (number, segment) in &log.borrow().segments {
            // Of the older segments, one in four has no index (lost, or not written yet).
            let indexed = Some(*number) != last && number % 4 != 3 && !noticed;
            segment.give(*number, indexed, rot, reader)?;
        }
        Ok(SimLog {
            log,
            disk: self.clone(),
        })
    }
}

/// The log of one group.
#[derive(Debug, Clone)]
pub(crate) struct SimLog {
    log: Rc<RefCell<Log>>,
    disk: Disk,
}

impl SimLog {
    fn check(&self) -> Result<(), LogError> {
        if self.log.borrow().failed {
            return Err(LogError::Damaged("simulated".to_owned()));
        }
        match self.disk.trouble() {
            Trouble::Failed => Err(LogError::Failed("simulated".to_owned())),
            _ => Ok(()),
        }
    }

    fn check_room(&self) -> Result<(), LogError> {
        self.check()?;
        match self.disk.trouble() {
            Trouble::Full => Err(LogError::Full),
            _ => Ok(()),
        }
    }
}

impl SpoolLog for SimLog {
    fn append(&mut self, entry: &[u8]) -> Result<LogPosition, LogError> {
        self.check_room()?;
        let mut log = self.log.borrow_mut();
        log.position += entry.len() as u64;
        let position = log.position;
        if let Some(mut last) = log.segments.last_entry() {
            last.get_mut().entries.push((position, entry.to_vec()));
        }
        Ok(LogPosition(position))
    }

    fn start_sync(&mut self) {
        self.log.borrow_mut().wanted = true;
    }

    /// Completes one sync in three before returning, if no sync is under way.
    fn sync_alone(&mut self) {
        let mut log = self.log.borrow_mut();
        let at_once = log.position.is_multiple_of(3) && log.running.is_none();
        if at_once && self.disk.trouble() != Trouble::Failed {
            log.running = Some(log.position);
            log.sync_done();
        } else {
            log.wanted = true;
        }
    }

    fn synced(&self) -> Result<LogPosition, LogError> {
        self.check()?;
        Ok(LogPosition(self.log.borrow().synced))
    }

    fn newest(&self) -> u64 {
        let log = self.log.borrow();
        log.segments
            .last_key_value()
            .map_or(0, |(number, _)| *number)
    }

    fn wants_roll(&self) -> bool {
        let log = self.log.borrow();
        let begun = log
            .segments
            .last_key_value()
            .map_or(0, |(_, segment)| segment.position);
        log.position - begun >= self.disk.0.borrow().segment_len
    }

    fn roll(&mut self, head: &[u8]) -> Result<(), LogError> {
        self.check_room()?;
        let number = self.newest() + 1;
        let mut log = self.log.borrow_mut();
        let segment = Segment {
            position: log.position,
            head: head.to_vec(),
            entries: Vec::new(),
        };
        log.segments.insert(number, segment);
        Ok(())
    }

    fn remove_before(&mut self, segment: u64) -> Result<(), LogError> {
        self.check()?;
        let mut log = self.log.borrow_mut();
        let position = log.position;
        if log
            .segments
            .keys()
            .next()
            .is_some_and(|first| *first < segment)
        {
            log.removals.push((segment, position));
            log.wanted = true;
        }
        Ok(())
    }

    fn keep_house(&mut self) {}

    fn octets(&self) -> u64 {
        self.log.borrow().octets()
    }

    fn room(&self) -> LogRoom {
        match self.disk.trouble() {
            Trouble::Reserve | Trouble::Full => LogRoom::Reserve,
            _ => LogRoom::Plenty,
        }
    }

    fn read_back(&mut self, stretch: LogStretch, into: Vec<u8>) {
        self.log.borrow_mut().reads.push_back((stretch, into));
    }

    fn poll_read(&mut self) -> Option<LogRead> {
        let mut log = self.log.borrow_mut();
        let (stretch, mut octets) = log.reads.pop_front()?;
        let result = log.read_again(stretch, &mut octets);
        Some(LogRead {
            stretch,
            octets,
            result,
        })
    }
}

impl SpoolLogStore for Disk {
    type Log = SimLog;

    fn create(&mut self, group: &str, head: &[u8]) -> Result<SimLog, LogError> {
        let segment = Segment {
            head: head.to_vec(),
            ..Segment::default()
        };
        let log = Log {
            segments: BTreeMap::from([(1, segment)]),
            ..Log::default()
        };
        let log = Rc::new(RefCell::new(log));
        let made = SimLog {
            log: Rc::clone(&log),
            disk: self.clone(),
        };
        made.check_room()?;
        self.0.borrow_mut().groups.insert(group.to_owned(), log);
        Ok(made)
    }

    fn replace(&mut self, group: &str, head: &[u8]) -> Result<SimLog, LogError> {
        let mut state = self.0.borrow_mut();
        if state.groups.remove(group).is_some() {
            state.aside.insert(group.to_owned());
        }
        drop(state);
        self.create(group, head)
    }

    fn remove(&mut self, group: &str) -> Result<(), LogError> {
        let mut state = self.0.borrow_mut();
        state.groups.remove(group);
        state.aside.remove(group);
        Ok(())
    }

    fn is_aside(&self, group: &str) -> bool {
        self.0.borrow().aside.contains(group)
    }

    fn discard(&mut self, group: &str) {
        self.0.borrow_mut().aside.remove(group);
    }
}
