//! Searches a segment.

mod walk;

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem::Finder;
use vere_mime::Zone;
use vere_ports::storage::StorageFile;

use self::walk::Walk;
use crate::codec::{each_posting, postings_len, take, u32_at, unzigzag};
use crate::crossings;
use crate::document::Document;
use crate::edges::{self, Edge};
use crate::file::Checked;
use crate::format::{CROSSED, GROUP, GROUPS, Head, LONG, MARK, Origin, PLACES, POSTINGS, RUNS};
use crate::found::{Bits, Found};
use crate::kept::Kept;
use crate::long::{is_anything, may_hold};
use crate::memory::Memory;
use crate::runs::{Needle, Place, in_word};
use crate::summary::Summaries;
use crate::{DOCUMENTS_MAX, RUN_OCTETS_MAX, SearchError};

/// Indexed texts of some messages of a mailbox.
#[derive(Debug)]
pub struct Segment<F> {
    file: Checked<F>,
    head: Head,
    documents: Vec<Document>,
    memory: Memory,
    /// The segment's number in `memory`.
    number: u64,
}

impl<F> Drop for Segment<F> {
    fn drop(&mut self) {
        self.memory.forget(self.number);
    }
}

/// A position in the list of runs, with the rest of the list.
pub(crate) struct RunsWalk<'a> {
    run: Option<&'a [u8]>,
    /// Messages of the current run: the number at the front of the list, and the rest of the list.
    head: u64,
    list: &'a [u8],
    runs: &'a [u8],
    postings: &'a [u8],
}

impl<'a> RunsWalk<'a> {
    /// Returns the current run.
    pub(crate) fn run(&self) -> Option<&'a [u8]> {
        self.run
    }

    /// Passes the messages of the current run to `each`.
    pub(crate) fn each(&self, each: impl FnMut(u32)) -> Result<(), SearchError> {
        each_posting(self.head, self.list, each).ok_or(SearchError::Damaged)
    }

    /// Moves to the next run, if there is one.
    pub(crate) fn step(&mut self) -> Result<(), SearchError> {
        let next = memchr::memchr(MARK, self.runs);
        self.run = next.and_then(|end| self.runs.get(..end));
        let Some(end) = next else { return Ok(()) };
        self.runs = self.runs.get(end + 1..).unwrap_or_default();
        self.head = take(&mut self.postings).ok_or(SearchError::Damaged)?;
        let list = self.postings.split_at_checked(postings_len(self.head));
        (self.list, self.postings) = list.ok_or(SearchError::Damaged)?;
        Ok(())
    }
}

/// The runs of a zone, with their groups and postings.
pub(crate) struct Runs {
    pub(crate) runs: Vec<u8>,
    groups: Vec<u8>,
    postings: Vec<u8>,
}

impl<F: StorageFile> Segment<F> {
    /// Opens a segment, and reads the list of its messages.
    ///
    /// # Errors
    ///
    /// [`SearchError`].
    pub fn open(file: F) -> Result<Self, SearchError> {
        Self::open_with(file, Memory::default())
    }

    /// Opens a segment that shares a cache with other segments.
    pub(crate) fn open_with(file: F, memory: Memory) -> Result<Self, SearchError> {
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
            documents,
            number: memory.number(),
            memory,
        })
    }

    /// Messages of the segment, in the order of their UIDs.
    #[must_use]
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Returns messages that may contain any text, because their texts were unknown or too many.
    ///
    /// # Errors
    ///
    /// [`SearchError`].
    pub fn unknown(&self) -> Result<Bits, SearchError> {
        let mut unknown = Bits::none(self.documents.len());
        let kept = self.kept(Zone::Body)?;
        not_known(&signatures(kept.long())?, &mut unknown);
        Ok(unknown)
    }

    /// Octets of the segment's file.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.file.octets()
    }

    /// Returns the summaries of the messages' headers.
    ///
    /// # Errors
    ///
    /// [`SearchError`]: messages must be read instead.
    pub fn summaries(&self) -> Result<Summaries<'_, F>, SearchError> {
        Summaries::new(&self.file, &self.head)
    }

    pub(crate) fn owner(&self) -> Origin {
        self.head.owner
    }

    /// Finds the messages that hold a needle in a zone.
    ///
    /// # Errors
    ///
    /// [`SearchError`]: all messages of the segment must be read instead.
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
        let kept = self.kept(zone)?;
        if let Some(run) = needle.within_run() {
            return self.find_run(&kept, run);
        }
        let long = signatures(kept.long())?;
        let edges = match edges::are_kept(zone) {
            true => needle.edges(),
            false => Vec::new(),
        };
        if edges::are_kept(zone) && needle.octets().len() <= edges::GRAM {
            // The needle is an edge, or a part of some edges.
            self.within_edges(&kept, (needle, &edges), &mut found.hits)?;
            not_known(&long, &mut found.candidates);
            found.candidates.without(&found.hits);
            return Ok(found);
        }
        let mut all = Bits::all(of);
        for edge in &edges {
            let mut with = Bits::none(of);
            self.runs_with(&kept, (edge, Place::Whole), &mut with)?;
            not_known(&long, &mut with);
            all.keep(&with);
        }
        for piece in needle.pieces() {
            if all.has_none() {
                break;
            }
            if !edges.is_empty() && is_in_edge(piece) {
                continue;
            }
            let mut with = Bits::none(of);
            if piece.0.len() <= RUN_OCTETS_MAX {
                self.runs_with(&kept, piece, &mut with)?;
            }
            may(&long, piece.0, &mut with);
            all.keep(&with);
        }
        found.candidates = self.beside_each_other(zone, all, needle)?;
        Ok(found)
    }

    /// Finds the messages as [`Segment::find`] does, but from memory alone; absent where memory does not suffice. The
    /// needle must lie within one run, and the cache must have the zone. The octets of the zone are deducted from
    /// `left`, which must suffice.
    #[must_use]
    pub fn find_at_hand(
        &self,
        zone: Zone,
        needle: &Needle,
        left: &mut usize,
    ) -> Option<Result<Found, SearchError>> {
        let run = needle.within_run().filter(|_| !needle.is_nowhere())?;
        let kept = self.memory.get(self.number, zone)?;
        kept.postings()?;
        *left = left.checked_sub(kept.memory())?;
        Some(self.find_run(&kept, run))
    }

    /// Finds the messages that hold a needle within one run.
    fn find_run(&self, kept: &Kept, run: &[u8]) -> Result<Found, SearchError> {
        let of = self.documents.len();
        let (mut hits, mut candidates) = (Bits::none(of), Bits::none(of));
        if run.len() <= RUN_OCTETS_MAX {
            self.runs_with(kept, (run, Place::Anywhere), &mut hits)?;
        }
        may(&signatures(kept.long())?, run, &mut candidates);
        candidates.without(&hits);
        Ok(Found { hits, candidates })
    }

    /// Returns the runs of a zone with their data, from the cache or the file.
    fn kept(&self, zone: Zone) -> Result<Arc<Kept>, SearchError> {
        if let Some(kept) = self.memory.get(self.number, zone) {
            return Ok(kept);
        }
        let kept = Arc::new(Kept::read(&self.file, &self.head, zone)?);
        self.memory.put(self.number, zone, &kept);
        Ok(kept)
    }

    /// Adds the messages with an edge that equals or contains a needle of at most three octets.
    fn within_edges(
        &self,
        kept: &Kept,
        (needle, edges): (&Needle, &[Edge]),
        with: &mut Bits,
    ) -> Result<(), SearchError> {
        match edges {
            [edge] => self.runs_with(kept, (edge, Place::Whole), with),
            _ => self.runs_within(kept, needle.octets(), kept.edges(), Place::Anywhere, with),
        }
    }

    /// Returns the messages that may have the words of a needle beside each other, and few other messages.
    fn beside_each_other(
        &self,
        zone: Zone,
        mut among: Bits,
        needle: &Needle,
    ) -> Result<Bits, SearchError> {
        let wanted = needle.crossings();
        if wanted.is_empty() || among.has_none() || !crossings::are_kept(zone) {
            return Ok(among);
        }
        let places = self.file.read(&self.head.of_zone(zone, PLACES))?;
        let section = self.head.of_zone(zone, CROSSED);
        let end = |ordinal: usize| match places.is_empty() {
            true => Some(0),
            false => u32_at(&places, ordinal * 4).map(u64::from),
        };
        let mut part = (0, Vec::new());
        let mut without = Bits::none(among.len());
        for ordinal in among.iter() {
            let start = ordinal.checked_sub(1).map_or(Some(0), end);
            let (start, end) = start.zip(end(ordinal)).ok_or(SearchError::Damaged)?;
            let range = section.start + start..section.start + end;
            if range.start > range.end || range.end > section.end {
                return Err(SearchError::Damaged);
            }
            let signature = self.file.within(&mut part, &range)?;
            if !crossings::may_have(signature, &wanted) {
                without.set(ordinal);
            }
        }
        among.without(&without);
        Ok(among)
    }

    /// Returns the signatures of a zone's long runs.
    pub(crate) fn long(&self, zone: Zone) -> Result<Vec<(u32, Vec<u8>)>, SearchError> {
        let octets = self.file.read(&self.head.of_zone(zone, LONG))?;
        let list = signatures(&octets)?.into_iter();
        Ok(list.map(|(ordinal, own)| (ordinal, own.to_vec())).collect())
    }

    /// Returns the signatures of a zone's crossings of all messages, and the end of each signature; empty if all
    /// signatures are empty.
    pub(crate) fn crossed(&self, zone: Zone) -> Result<(Vec<u8>, Vec<usize>), SearchError> {
        let places = self.file.read(&self.head.of_zone(zone, PLACES))?;
        let crossed = self.file.read(&self.head.of_zone(zone, CROSSED))?;
        let count = if crossed.is_empty() {
            0
        } else {
            self.documents.len()
        };
        let ends: Vec<usize> = (0..count)
            .map_while(|number| u32_at(&places, number * 4).map(|end| end as usize))
            .collect();
        let last = ends.last().copied().unwrap_or_default();
        let rise = ends.is_sorted() && last == crossed.len();
        if places.len() == count * 4 && ends.len() == count && rise {
            Ok((crossed, ends))
        } else {
            Err(SearchError::Damaged)
        }
    }

    /// Reads all runs of a zone.
    pub(crate) fn runs(&self, zone: Zone) -> Result<Runs, SearchError> {
        Ok(Runs {
            runs: self.file.read(&self.head.of_zone(zone, RUNS))?,
            groups: self.file.read(&self.head.of_zone(zone, GROUPS))?,
            postings: self.file.read(&self.head.of_zone(zone, POSTINGS))?,
        })
    }

    /// Adds the messages with runs that contain `what` at a place.
    fn runs_with(
        &self,
        kept: &Kept,
        (what, place): (&[u8], Place),
        with: &mut Bits,
    ) -> Result<(), SearchError> {
        let region = match place {
            Place::Whole | Place::Beginning => kept.region(what),
            Place::Anywhere | Place::End => kept.words(),
        };
        self.runs_within(kept, what, region, place, with)
    }

    /// Adds the messages with such runs in a region.
    fn runs_within(
        &self,
        kept: &Kept,
        what: &[u8],
        region: Range<usize>,
        place: Place,
        with: &mut Bits,
    ) -> Result<(), SearchError> {
        let marked: Vec<u8> = match place {
            Place::Anywhere => what.to_vec(),
            Place::End => [what, &[MARK]].concat(),
            Place::Whole => [&[MARK], what, &[MARK]].concat(),
            Place::Beginning => [&[MARK], what].concat(),
        };
        let from_beginning = matches!(place, Place::Whole | Place::Beginning);
        let finder = Finder::new(&marked);
        let runs = kept.runs().get(..region.end).unwrap_or_default();
        let mut walk: Option<Walk<'_, F>> = None;
        let mut from = region.start;
        while let Some(at) = runs.get(from..).and_then(|rest| finder.find(rest)) {
            let at = from + at + usize::from(from_beginning);
            let end = memchr::memchr(MARK, &kept.runs()[at..]).ok_or(SearchError::Damaged)? + at;
            let walk = match &mut walk {
                Some(walk) => walk,
                None => walk.insert(Walk::new(&self.file, kept)?),
            };
            walk.take(at, with)?;
            // This mark also precedes the next run.
            from = end;
        }
        Ok(())
    }
}

impl Runs {
    /// Returns a walk over the runs in order, which begins before the first run.
    pub(crate) fn walk(&self) -> RunsWalk<'_> {
        RunsWalk {
            run: None,
            head: 0,
            list: &[],
            runs: self.runs.get(1..).unwrap_or_default(),
            postings: &self.postings,
        }
    }

    /// Whether the section of groups matches the runs.
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

/// Decodes the signatures of long runs, with the numbers of their messages.
fn signatures(octets: &[u8]) -> Result<Vec<(u32, &[u8])>, SearchError> {
    let mut rest = octets;
    let (mut list, mut next) = (Vec::new(), 0_u64);
    while !rest.is_empty() {
        let mut entry = || {
            let ordinal = next.checked_add(take(&mut rest)?)?;
            let len = usize::try_from(take(&mut rest)?).ok()?;
            let (signature, behind) = rest.split_at_checked(len)?;
            rest = behind;
            next = ordinal + 1;
            let ordinal = u32::try_from(ordinal).ok()?;
            (len > 0).then_some((ordinal, signature))
        };
        list.push(entry().ok_or(SearchError::Damaged)?);
    }
    Ok(list)
}

/// Adds the messages with unknown runs or edges.
fn not_known(long: &[(u32, &[u8])], with: &mut Bits) {
    for (ordinal, signature) in long {
        if is_anything(signature) {
            with.set(*ordinal as usize);
        }
    }
}

/// Whether the edges already cover a piece: the end or the beginning of a word, of two octets, or the octets between
/// words.
fn is_in_edge((run, place): (&[u8], Place)) -> bool {
    run.len() < edges::GRAM && (place != Place::Whole || !in_word(run[0]))
}

fn may(long: &[(u32, &[u8])], run: &[u8], with: &mut Bits) {
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
