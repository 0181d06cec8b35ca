//! Looking into a segment.

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem::Finder;
use vere_mime::Zone;
use vere_ports::storage::StorageFile;

use crate::codec::{each_posting, postings_len, take, u32_at, unzigzag};
use crate::file::{Checked, Head};
use crate::found::{Bits, Found};
use crate::long::may_hold;
use crate::runs::{Needle, Place};
use crate::summary::Summaries;
use crate::write::{GROUP, MARK, Owner, SUMMARIES, ZONE_SECTIONS};
use crate::{DOCUMENTS_MAX, Document, RUN_OCTETS_MAX, SearchError};

/// The texts of some messages of a mailbox.
#[derive(Debug)]
pub struct Segment<F> {
    file: Checked<F>,
    head: Head,
    documents: Arc<Vec<Document>>,
}

/// The runs of a zone, and where they are.
pub(crate) struct Runs {
    pub(crate) runs: Vec<u8>,
    groups: Vec<u8>,
    postings: Vec<u8>,
}

/// A run, and what is said of it.
#[derive(Debug, Clone, Copy)]
struct At {
    /// Its number.
    number: usize,
    /// Where it begins.
    start: usize,
    /// Where its postings begin.
    postings: usize,
}

impl<F: StorageFile> Segment<F> {
    /// Reads what messages a file has.
    ///
    /// # Errors
    ///
    /// [`SearchError`].
    pub fn open(file: F) -> Result<Self, SearchError> {
        let (file, head) = Checked::open(file)?;
        let octets = file.read(&head.section(0))?;
        let documents = documents(&octets, head.documents).ok_or(SearchError::Damaged)?;
        let ends = documents.first().zip(documents.last());
        if ends.map(|(first, last)| (first.uid, last.uid)) != Some(head.uids) {
            return Err(SearchError::Damaged);
        }
        Ok(Self {
            file,
            head,
            documents: Arc::new(documents),
        })
    }

    /// Its messages, UIDs rising.
    #[must_use]
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Octets of its file.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.file.octets()
    }

    /// What it has of its messages' headers.
    ///
    /// # Errors
    ///
    /// [`SearchError`]: then messages are to be looked into.
    pub fn summaries(&self) -> Result<Summaries<'_, F>, SearchError> {
        Summaries::new(self)
    }

    /// Where the blocks of summaries are, and what says where each is.
    pub(crate) fn summaries_at(&self, number: usize) -> Range<u64> {
        self.head.section(SUMMARIES + number)
    }

    pub(crate) fn read_section(&self, range: Range<u64>) -> Result<Vec<u8>, SearchError> {
        self.file.read(&range)
    }

    pub(crate) fn owner(&self) -> Owner {
        self.head.owner
    }

    fn section(&self, zone: Zone, number: usize) -> Range<u64> {
        self.head
            .section(1 + zone as usize * ZONE_SECTIONS + number)
    }

    /// Which messages hold a needle in a zone.
    ///
    /// # Errors
    ///
    /// [`SearchError`]: then all of its messages are to be looked into.
    pub fn find(&self, zone: Zone, needle: &Needle) -> Result<Found, SearchError> {
        let of = self.documents.len();
        let mut found = Found {
            hits: Bits::none(of),
            candidates: Bits::none(of),
        };
        if needle.is_empty() {
            found.candidates = Bits::all(of);
            return Ok(found);
        }
        if needle.is_nowhere() {
            return Ok(found);
        }
        let long = self.long(zone)?;
        let kept = Kept {
            runs: self.file.read(&self.section(zone, 0))?,
            groups: self.file.read(&self.section(zone, 1))?,
            postings: self.section(zone, 2),
        };
        if let Some(run) = needle.within_run() {
            let whole = (run, Place::Anywhere);
            if run.len() <= RUN_OCTETS_MAX {
                self.runs_with(&kept, whole, &mut found.hits)?;
            }
            may(&long, run, &mut found.candidates);
            found.candidates.without(&found.hits);
            return Ok(found);
        }
        let mut all = Bits::all(of);
        for piece in needle.pieces() {
            let mut with = Bits::none(of);
            if piece.0.len() <= RUN_OCTETS_MAX {
                self.runs_with(&kept, piece, &mut with)?;
            }
            may(&long, piece.0, &mut with);
            all.keep(&with);
            if all.has_none() {
                break;
            }
        }
        found.candidates = all;
        Ok(found)
    }

    /// The signatures of a zone's long runs.
    pub(crate) fn long(&self, zone: Zone) -> Result<Vec<(u32, Vec<u8>)>, SearchError> {
        let octets = self.file.read(&self.section(zone, 3))?;
        let mut rest = octets.as_slice();
        let (mut list, mut next) = (Vec::new(), 0_u64);
        while !rest.is_empty() {
            let mut entry = || {
                let ordinal = next.checked_add(take(&mut rest)?)?;
                let len = usize::try_from(take(&mut rest)?).ok()?;
                let (signature, behind) = rest.split_at_checked(len)?;
                rest = behind;
                next = ordinal + 1;
                let ordinal = u32::try_from(ordinal).ok()?;
                (len > 0).then(|| (ordinal, signature.to_vec()))
            };
            list.push(entry().ok_or(SearchError::Damaged)?);
        }
        Ok(list)
    }

    /// Reads the runs of a zone whole.
    pub(crate) fn runs(&self, zone: Zone) -> Result<Runs, SearchError> {
        Ok(Runs {
            runs: self.file.read(&self.section(zone, 0))?,
            groups: self.file.read(&self.section(zone, 1))?,
            postings: self.file.read(&self.section(zone, 2))?,
        })
    }

    /// Takes in the messages with runs that hold something in a place.
    fn runs_with(
        &self,
        kept: &Kept,
        (what, place): (&[u8], Place),
        with: &mut Bits,
    ) -> Result<(), SearchError> {
        let marked: Vec<u8> = match place {
            Place::Anywhere => what.to_vec(),
            Place::End => [what, &[MARK]].concat(),
            Place::Whole => [&[MARK], what, &[MARK]].concat(),
            Place::Beginning => [&[MARK], what].concat(),
        };
        let from_beginning = matches!(place, Place::Whole | Place::Beginning);
        let region = match from_beginning {
            true => kept.region(what),
            false => 0..kept.runs.len(),
        };
        let finder = Finder::new(&marked);
        let runs = kept.runs.get(..region.end).unwrap_or_default();
        let mut walk: Option<Walk<'_, F>> = None;
        let mut from = region.start;
        while let Some(at) = runs.get(from..).and_then(|rest| finder.find(rest)) {
            let at = from + at + usize::from(from_beginning);
            let end = memchr::memchr(MARK, &kept.runs[at..]).ok_or(SearchError::Damaged)? + at;
            let walk = match &mut walk {
                Some(walk) => walk,
                None => walk.insert(Walk::new(self, kept)?),
            };
            walk.take(at, with)?;
            // The mark is the one before the next run.
            from = end;
        }
        Ok(())
    }
}

/// The runs of a zone, sorted, and where their postings are.
struct Kept {
    runs: Vec<u8>,
    groups: Vec<u8>,
    postings: Range<u64>,
}

impl Kept {
    fn start(&self, group: usize) -> Option<usize> {
        Some(u32_at(&self.groups, group * 8)? as usize)
    }

    /// The first run of a group.
    fn first(&self, group: usize) -> &[u8] {
        let start = self.start(group).unwrap_or(self.runs.len());
        let rest = self.runs.get(start..).unwrap_or_default();
        let end = memchr::memchr(MARK, rest).unwrap_or(rest.len());
        &rest[..end]
    }

    /// The first group for which something does not hold any more.
    fn partition(&self, holds: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.groups.len() / 8);
        while low < high {
            let middle = usize::midpoint(low, high);
            match holds(self.first(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Where the runs that begin with something lie, marks included.
    fn region(&self, what: &[u8]) -> Range<usize> {
        let from = self.partition(|run| run < what).saturating_sub(1);
        let to = self.partition(|run| run <= what || run.starts_with(what));
        let start = self.start(from).unwrap_or(1).saturating_sub(1);
        start..self.start(to).unwrap_or(self.runs.len())
    }
}

/// Walks from run to run and takes their postings.
struct Walk<'a, F> {
    segment: &'a Segment<F>,
    kept: &'a Kept,
    at: At,
    /// A part of the postings, and where it begins in the file.
    part: (u64, Vec<u8>),
}

impl<'a, F: StorageFile> Walk<'a, F> {
    fn new(segment: &'a Segment<F>, kept: &'a Kept) -> Result<Self, SearchError> {
        let mut walk = Self {
            segment,
            kept,
            at: At {
                number: 0,
                start: 0,
                postings: 0,
            },
            part: (0, Vec::new()),
        };
        walk.at = walk.group(0).ok_or(SearchError::Damaged)?;
        Ok(walk)
    }

    fn group(&self, group: usize) -> Option<At> {
        Some(At {
            number: group * GROUP,
            start: self.kept.start(group)?,
            postings: u32_at(&self.kept.groups, group * 8 + 4)? as usize,
        })
    }

    /// Takes in the messages of the run that an octet lies in; the octets rise.
    fn take(&mut self, octet: usize, with: &mut Bits) -> Result<(), SearchError> {
        self.leap(octet).ok_or(SearchError::Damaged)?;
        loop {
            let end = memchr::memchr(MARK, &self.kept.runs[self.at.start..]);
            let end = end.ok_or(SearchError::Damaged)? + self.at.start;
            let (head, list) = self.postings()?;
            if octet <= end {
                let octets = self.part.1.get(list).ok_or(SearchError::Damaged)?;
                return each_posting(head, octets, |ordinal| with.set(ordinal as usize))
                    .ok_or(SearchError::Damaged);
            }
            let next = self.part.0 + list.end as u64 - self.kept.postings.start;
            self.at = At {
                number: self.at.number + 1,
                start: end + 1,
                postings: next as usize,
            };
        }
    }

    /// Goes to the group that an octet lies in, when it is a later one.
    fn leap(&mut self, octet: usize) -> Option<()> {
        let next = self.at.number / GROUP + 1;
        match self.group(next) {
            Some(group) if group.start <= octet => {}
            _ => return Some(()),
        }
        let (mut low, mut high) = (next, self.kept.groups.len() / 8);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            match self.group(middle)?.start <= octet {
                true => low = middle,
                false => high = middle,
            }
        }
        self.at = self.group(low)?;
        Some(())
    }

    /// The number at the front of the current run's postings, and where in the part the rest is.
    fn postings(&mut self) -> Result<(u64, Range<usize>), SearchError> {
        let kept = self.kept;
        let section = &kept.postings;
        let start = section.start + self.at.postings as u64;
        let mut want = start..start.saturating_add(NUMBER_MAX).min(section.end);
        loop {
            let part = self.part.0..self.part.0 + self.part.1.len() as u64;
            if want.start < part.start || want.end > part.end {
                self.part = self.segment.file.blocks(&want)?;
            }
            let from = (want.start - self.part.0) as usize;
            let mut rest = self.part.1.get(from..).unwrap_or_default();
            let before = rest.len();
            let head = take(&mut rest).ok_or(SearchError::Damaged)?;
            let from = from + before - rest.len();
            let end = from
                .checked_add(postings_len(head))
                .ok_or(SearchError::Damaged)?;
            if end <= self.part.1.len() {
                return Ok((head, from..end));
            }
            if self.part.0 + end as u64 > section.end {
                return Err(SearchError::Damaged);
            }
            want.end = self.part.0 + end as u64;
        }
    }
}

/// The most octets of a number.
const NUMBER_MAX: u64 = 10;

impl Runs {
    /// The runs in their order, with the messages they are in.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Result<Vec<u32>, SearchError>)> {
        let mut runs = self.runs.get(1..).unwrap_or_default();
        let mut postings = self.postings.as_slice();
        std::iter::from_fn(move || {
            let (run, behind) = runs.split_at_checked(memchr::memchr(MARK, runs)?)?;
            runs = behind.get(1..)?;
            let mut list = Vec::new();
            let mut read = || {
                let head = take(&mut postings)?;
                let (octets, behind) = postings.split_at_checked(postings_len(head))?;
                postings = behind;
                each_posting(head, octets, |ordinal| list.push(ordinal))
            };
            let read = read().ok_or(SearchError::Damaged);
            Some((run, read.map(|()| list)))
        })
    }

    /// Whether the places of groups are those of the runs.
    pub(crate) fn groups_fit(&self) -> bool {
        let mut starts = memchr::memchr_iter(MARK, &self.runs)
            .map(|mark| mark + 1)
            .filter(|start| *start < self.runs.len())
            .step_by(GROUP);
        let given = self.groups.chunks(8).map(|group| u32_at(group, 0));
        given
            .into_iter()
            .all(|given| given.map(|at| at as usize) == starts.next())
            && starts.next().is_none()
    }
}

fn may(long: &[(u32, Vec<u8>)], run: &[u8], with: &mut Bits) {
    for (ordinal, signature) in long {
        if may_hold(signature, run) {
            with.set(*ordinal as usize);
        }
    }
}

fn documents(mut octets: &[u8], count: usize) -> Option<Vec<Document>> {
    if count > DOCUMENTS_MAX || count > octets.len() {
        return None;
    }
    let mut documents = Vec::with_capacity(count);
    let (mut uid, mut body) = (0_u32, 0_u64);
    for _ in 0..count {
        let gap = u32::try_from(take(&mut octets)?)
            .ok()
            .filter(|gap| *gap > 0)?;
        uid = uid.checked_add(gap)?;
        body = body.wrapping_add(unzigzag(take(&mut octets)?) as u64);
        let sent = take(&mut octets)?.checked_sub(1).map(unzigzag);
        documents.push(Document { uid, body, sent });
    }
    octets.is_empty().then_some(documents)
}
