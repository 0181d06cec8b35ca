//! The job that writes a segment again without needless records, or joins consecutive segments into one. The job runs
//! in small steps, so that the caller can pause between two steps.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use vere_ports::mail_meta::Partition;
use vere_ports::storage::{Storage, StorageFile};

use super::format::{RECORD_HEAD, RecordHead, RecordKind, SEGMENT_HEAD, SegmentHead};
use super::rewrite::{Made, Rewriting, new_name, read_index};
use super::windowed::Windowed;
use super::{Segments, locate};
use crate::batch::{self, PEEK};
use crate::error::StoreError;

/// Approximate octets that a step reads or writes.
const STEP: u64 = 1024 * 1024;
/// Octets of a record copied at once.
const PIECE: u64 = 256 * 1024;

/// By partition, the position of the snapshot record with all rows; earlier batches of the partition are needless.
pub(crate) type Snapshots = HashMap<Partition, u64>;

/// The records that a job has to keep.
#[derive(Debug)]
pub(crate) struct Needed {
    /// The reclaiming pass of the job; the store drops outcomes of jobs from another pass.
    pub(crate) pass: u64,
    /// Referenced bodies.
    pub(crate) live: BTreeSet<u64>,
    pub(crate) snapshots: Arc<Snapshots>,
    /// The least share of needless octets, in percent, from which a segment is written again.
    pub(crate) dead_percent_min: u64,
}

/// Writes segments again, without access to the store.
#[derive(Debug)]
#[must_use = "nothing is reclaimed until it ran and its outcome was handed in"]
pub struct ReclaimJob<S: Storage> {
    storage: S,
    /// All segments, and the position before which records are in files: snapshots lie in other segments.
    segments: Segments<S::File>,
    written: u64,
    /// The segments to write again: the file of each segment, and the position after the segment.
    sources: Vec<(S::File, u64)>,
    head: SegmentHead,
    run: Vec<u64>,
    needed: Needed,
    /// Octets of the files.
    len: u64,
    records: Vec<Found>,
    /// Snapshots that make records of this segment needless, and whether each was read back intact.
    covers: Vec<Cover>,
    numbers: HashMap<Partition, usize>,
    batches: HashMap<Partition, u64>,
    /// Whether a new file may exist.
    begun: bool,
    stage: Stage<S::File>,
}

/// A record and its fate.
#[derive(Debug)]
struct Found {
    head: RecordHead,
    source: usize,
    offset: u64,
    fate: Fate,
}

#[derive(Debug, Clone, Copy)]
enum Fate {
    Stays,
    Goes,
    /// Goes if the snapshot of this number in `covers` is intact.
    Covered(usize),
}

#[derive(Debug)]
struct Cover {
    partition: Partition,
    position: u64,
    whole: bool,
}

#[derive(Debug)]
enum Stage<F> {
    Looking {
        source: usize,
        offset: u64,
        position: u64,
    },
    ReadingBack(usize),
    Writing {
        out: Rewriting<F>,
        next: usize,
    },
    Ended(io::Result<Option<Made<F>>>),
}

/// The outcome of a [`ReclaimJob`].
#[derive(Debug)]
#[must_use = "hand it to the store"]
pub struct ReclaimOutcome<S: Storage> {
    pub(crate) pass: u64,
    /// The consecutive segments of the job; `end` is the position after the last segment.
    pub(crate) run: Vec<u64>,
    pub(crate) end: u64,
    pub(crate) live: BTreeSet<u64>,
    /// Octets of needless records.
    pub(crate) dead: u64,
    /// Octets of the remaining batches.
    pub(crate) batches: HashMap<Partition, u64>,
    /// The new file, its index, and octets saved; absent if too few octets would be saved.
    pub(crate) made: io::Result<Option<Made<S::File>>>,
}

impl<S: Storage> ReclaimJob<S> {
    pub(super) fn new(
        storage: S,
        segments: Segments<S::File>,
        written: u64,
        head: SegmentHead,
        run: Vec<u64>,
        needed: Needed,
    ) -> Option<Self> {
        let ends = run.iter().skip(1).copied().chain([head.end]);
        let source = |(first, end)| Some((segments.get(first)?.file.clone(), end));
        let sources: Option<Vec<_>> = run.iter().zip(ends).map(source).collect();
        Some(Self {
            storage,
            sources: sources?,
            segments,
            written,
            head,
            run,
            needed,
            len: 0,
            records: Vec::new(),
            covers: Vec::new(),
            numbers: HashMap::new(),
            batches: HashMap::new(),
            begun: false,
            stage: Stage::Looking {
                source: 0,
                offset: SEGMENT_HEAD as u64,
                position: head.first,
            },
        })
    }

    /// Runs one step. Returns false once the job has ended.
    pub fn step(&mut self) -> bool {
        if let Err(error) = self.try_step() {
            self.end(Err(error));
        }
        !matches!(self.stage, Stage::Ended(_))
    }

    /// Abandons the job: the segments stay unchanged.
    pub fn give_up(&mut self) {
        self.end(Ok(None));
    }

    /// Ends the job and returns its outcome. An unfinished job is abandoned.
    pub fn finish(mut self) -> ReclaimOutcome<S> {
        self.give_up_unless_ended();
        let dead = self.dead();
        ReclaimOutcome {
            pass: self.needed.pass,
            run: self.run,
            end: self.head.end,
            live: self.needed.live,
            dead,
            batches: self.batches,
            made: match self.stage {
                Stage::Ended(made) => made,
                _ => Ok(None),
            },
        }
    }

    /// Runs all steps; blocks on the disk.
    pub fn run(mut self) -> ReclaimOutcome<S> {
        while self.step() {}
        self.finish()
    }

    fn give_up_unless_ended(&mut self) {
        if !matches!(self.stage, Stage::Ended(_)) {
            self.give_up();
        }
    }

    fn end(&mut self, result: io::Result<Option<Made<S::File>>>) {
        if self.begun && !matches!(result, Ok(Some(_))) {
            // The new file takes disk space. If removing the file fails, the next opening removes it.
            let _ = self.storage.remove(&new_name(self.head.first));
        }
        self.stage = Stage::Ended(result);
    }

    fn try_step(&mut self) -> io::Result<()> {
        match self.stage {
            Stage::Looking {
                source,
                offset,
                position,
            } => self.look(source, offset, position),
            Stage::ReadingBack(number) => self.read_back(number),
            Stage::Writing { .. } => self.write(),
            Stage::Ended(_) => Ok(()),
        }
    }

    /// Finds the next records.
    fn look(&mut self, source: usize, mut offset: u64, mut position: u64) -> io::Result<()> {
        let Some((file, end)) = self.sources.get(source).cloned() else {
            self.stage = Stage::ReadingBack(0);
            return Ok(());
        };
        let len = file.len()?;
        let mut reader = Windowed::new(&file, len);
        let until = offset + STEP;
        while position < end && offset < until {
            let head = reader.get(offset, RECORD_HEAD)?;
            let head =
                head.and_then(|octets| RecordHead::decode(octets.first_chunk()?, self.head.log));
            let fits = |head: &RecordHead| head.position >= position && head.end() <= end;
            let Some(head) = head.filter(fits) else {
                // In a segment written again, the last records may have been left out: then the index begins here.
                // Otherwise the record at this offset is damaged.
                let ends_here = read_index(&file)?.is_some_and(|(_, at)| at == offset);
                if !ends_here {
                    let reason = format!("no record at offset {offset}, before position {end}");
                    return Err(io::Error::other(reason));
                }
                position = end;
                break;
            };
            let fate = match head.kind {
                RecordKind::Body if self.needed.live.contains(&head.position) => Fate::Stays,
                RecordKind::Body => Fate::Goes,
                // The effect of unknown records is unknown, so they stay.
                RecordKind::Other(_) => Fate::Stays,
                RecordKind::Batch => {
                    let peek = (head.length as usize).min(PEEK);
                    let octets = reader.get(offset + RECORD_HEAD as u64, peek)?;
                    let partition = octets
                        .and_then(batch::partition)
                        .map(|(partition, _)| partition);
                    partition.map_or(Fate::Stays, |partition| self.judge(&head, partition))
                }
            };
            self.records.push(Found {
                head,
                source,
                offset,
                fate,
            });
            offset += head.end() - head.position;
            position = head.end();
        }
        self.stage = if position < end {
            Stage::Looking {
                source,
                offset,
                position,
            }
        } else {
            self.len += len;
            Stage::Looking {
                source: source + 1,
                offset: SEGMENT_HEAD as u64,
                position: end,
            }
        };
        Ok(())
    }

    /// Decides the fate of a batch.
    fn judge(&mut self, head: &RecordHead, partition: Partition) -> Fate {
        let snapshot = self.needed.snapshots.get(&partition).copied();
        let Some(snapshot) = snapshot.filter(|snapshot| head.position < *snapshot) else {
            *self.batches.entry(partition).or_default() += head.end() - head.position;
            return Fate::Stays;
        };
        if let Some(known) = self.numbers.get(&partition) {
            return Fate::Covered(*known);
        }
        let number = self.covers.len();
        self.numbers.insert(partition.clone(), number);
        self.covers.push(Cover {
            partition,
            position: snapshot,
            whole: true,
        });
        Fate::Covered(number)
    }

    fn goes(&self, found: &Found) -> bool {
        match found.fate {
            Fate::Stays => false,
            Fate::Goes => true,
            Fate::Covered(cover) => self.covers.get(cover).is_some_and(|cover| cover.whole),
        }
    }

    /// Octets of needless records.
    fn dead(&self) -> u64 {
        let dead = self.records.iter().filter(|found| self.goes(found));
        dead.map(|found| found.head.end() - found.head.position)
            .sum()
    }

    fn is_worth_it(&self) -> bool {
        let dead = self.dead();
        // Several segments are joined in any case.
        self.run.len() > 1 || (dead > 0 && dead * 100 >= self.len * self.needed.dead_percent_min)
    }

    /// Reads back the next snapshot: no batch goes before the snapshot that replaces the batch was read from the
    /// disk.
    fn read_back(&mut self, number: usize) -> io::Result<()> {
        if !self.is_worth_it() {
            self.end(Ok(None));
            return Ok(());
        }
        let Some(cover) = self.covers.get_mut(number) else {
            self.begun = true;
            let out = Rewriting::new(&self.storage, &self.head)?;
            self.stage = Stage::Writing { out, next: 0 };
            return Ok(());
        };
        let place = (&self.segments, self.head.log, self.written);
        cover.whole = is_whole_state(place, cover.position, &cover.partition)?;
        self.stage = Stage::ReadingBack(number + 1);
        Ok(())
    }

    /// Copies some records.
    fn write(&mut self) -> io::Result<()> {
        let before = std::mem::replace(&mut self.stage, Stage::Ended(Ok(None)));
        let Stage::Writing { mut out, mut next } = before else {
            self.stage = before;
            return Ok(());
        };
        let mut left = STEP;
        while left > 0
            && let Some(found) = self.records.get(next)
        {
            next += 1;
            if !self.goes(found)
                && let Some((file, _)) = self.sources.get(found.source)
            {
                copy(file, found, &mut out)?;
                left = left.saturating_sub(found.head.end() - found.head.position);
            }
        }
        if next < self.records.len() {
            self.stage = Stage::Writing { out, next };
            return Ok(());
        }
        let made = out.finish()?;
        self.stage = Stage::Ended(Ok(Some(Made {
            saved: self.len.saturating_sub(made.len),
            ..made
        })));
        Ok(())
    }
}

/// Copies a record octet by octet, and fails if the checksum of the payload does not match.
fn copy<F: StorageFile>(file: &F, found: &Found, out: &mut Rewriting<F>) -> io::Result<()> {
    let octets = found.head.end() - found.head.position;
    out.begin(found.head.position);
    let mut crc = vere_checksum::Crc32::default();
    let (mut piece, mut done) = (Vec::new(), 0);
    while done < octets {
        let count = (octets - done).min(PIECE) as usize;
        piece.resize(count, 0);
        file.read_at(&mut piece, found.offset + done)?;
        crc.update(
            piece
                .get(if done == 0 { RECORD_HEAD } else { 0 }..)
                .unwrap_or_default(),
        );
        out.put(&piece)?;
        done += count as u64;
    }
    if crc.finish() == found.head.payload_crc {
        return Ok(());
    }
    let at = found.head.position;
    Err(io::Error::other(format!("the record at {at} is damaged")))
}

/// Whether the record at a position is an intact batch with all rows of a partition. Reads every octet.
fn is_whole_state<F: StorageFile>(
    (segments, log, written): (&Segments<F>, u64, u64),
    position: u64,
    partition: &Partition,
) -> io::Result<bool> {
    let place = locate(segments, log, position, written)
        .map_err(|error: StoreError| io::Error::other(error))?;
    let Some(place) = place.filter(|place| place.available >= RECORD_HEAD as u64) else {
        return Ok(false);
    };
    let mut octets = [0; RECORD_HEAD];
    place.file.read_at(&mut octets, place.offset)?;
    let head = RecordHead::decode(&octets, log);
    let whole = |head: &RecordHead| {
        let fits = head.end() - head.position <= place.available;
        head.position == position && head.kind == RecordKind::Batch && fits
    };
    let Some(head) = head.filter(whole) else {
        return Ok(false);
    };
    let mut crc = vere_checksum::Crc32::default();
    let (mut piece, mut done, length) = (Vec::new(), 0, u64::from(head.length));
    let mut is_state = false;
    while done < length {
        let count = (length - done).min(PIECE) as usize;
        piece.resize(count, 0);
        place
            .file
            .read_at(&mut piece, place.offset + RECORD_HEAD as u64 + done)?;
        if done == 0 {
            let peek = batch::partition(piece.get(..PEEK).unwrap_or(&piece));
            is_state = peek.is_some_and(|(found, all)| all && found == *partition);
        }
        crc.update(&piece);
        done += count as u64;
    }
    Ok(is_state && crc.finish() == head.payload_crc)
}
