//! Which messages of a mailbox fit: sets of messages, the cheapest key first, so that what is dear is
//! asked of few.

mod into;

use std::time::Duration;

use vere_disk::log::{Directory as LogDirectory, DirectoryFile as LogFile};
use vere_imap::command::SearchKey;
use vere_imap::server::Found;
use vere_imap::set::UidSet;
use vere_mime::Zone;
use vere_mime::wire::Question;
use vere_search::{Bits, Document, Needle, Segment};
use vere_store::{BodyReader, Message, Snapshot, StoreError, Uid};
use vere_units::Timestamp;

use self::into::{Asked, Looked};
use super::texts::Zones;
use super::turns::Stop;
use super::verdicts::Verdicts;
use super::{OwnFields, Segments};
use crate::store::convert::{has_flag, time};
use crate::store::parser::Decoders;

/// Messages that no segment knows, from which on one is worth while.
pub(super) const BEHIND_MAX: usize = 64;
/// Messages that had to be read because no segment knows them, from which on one is.
pub(crate) const MISSED_MAX: usize = 8;

/// Octets of the index that are looked through where nothing may be read: some tenths of a millisecond.
const AT_HAND_OCTETS_MAX: usize = 256 * 1024;

/// A search of one mailbox.
pub(crate) struct Look<'a> {
    snapshot: Snapshot,
    reader: BodyReader<LogDirectory>,
    segments: Segments,
    /// For each segment the place of its messages in the mailbox, if they are still there.
    places: Vec<Vec<Option<u32>>>,
    /// Messages that no segment knows.
    unknown: Bits,
    own: &'a dyn OwnFields,
    decoders: &'a Decoders,
    verdicts: &'a Verdicts,
    recent: UidSet,
    now: Timestamp,
    doubt: bool,
    /// How much of what is in memory may still be looked through, where nothing may be read; and whether that
    /// does not do.
    at_hand: Option<usize>,
    is_far: bool,
    leaves: Vec<Leaf>,
    stop: Stop,
}

/// What was done for one key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Leaf {
    /// The key.
    pub(crate) key: String,
    /// Messages it was asked of.
    pub(crate) asked: usize,
    /// Messages that the index says fit, with certainty.
    pub(crate) certain: usize,
    /// Messages that were looked into, because the index has them as candidates or not at all, and it was not
    /// remembered what came of it last.
    pub(crate) candidates: usize,
    /// How many of these no segment knows.
    pub(crate) unknown: usize,
    /// Octets of messages that were read for it.
    pub(crate) octets: usize,
    /// Messages of which it is not known whether they fit: they cannot be decoded, or not be read.
    pub(crate) unclear: usize,
    /// Messages that fit.
    pub(crate) found: usize,
}

/// What becomes of messages of which it is not known whether they fit a key: they fit neither it nor its
/// opposite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// They are no part of the answer.
    Certain,
    /// They are: the answer is taken away from others.
    Possible,
}

/// Texts that something is looked for in.
enum Within<'k> {
    Zones(Zones),
    Field(&'k str),
}

/// What a segment knows, and where the message of the same UID is in the mailbox, if there is one.
pub(super) fn beside<'a>(
    segment: &'a Segment<LogFile>,
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = (&'a Document, Option<(usize, &'a Message)>)> {
    let first = segment.documents().first();
    let first = first.and_then(|document| Uid::new(document.uid));
    let start = first.map_or(0, |uid| snapshot.below(uid));
    let mut messages = (start..).zip(snapshot.iter_from(start)).peekable();
    segment.documents().iter().map(move |document| {
        // Both rise.
        let before = |(_, message): &(usize, &Message)| message.uid.get() < document.uid;
        while messages.next_if(before).is_some() {}
        let same = |(_, message): &(usize, &Message)| message.uid.get() == document.uid;
        (document, messages.peek().copied().filter(same))
    })
}

impl<'a> Look<'a> {
    pub(crate) fn new(
        snapshot: Snapshot,
        reader: BodyReader<LogDirectory>,
        segments: Segments,
        (own, decoders, verdicts): (&'a dyn OwnFields, &'a Decoders, &'a Verdicts),
        recent: UidSet,
        now: Timestamp,
    ) -> Self {
        let mut unknown = Bits::all(snapshot.len());
        let mut known = Bits::none(snapshot.len());
        let mut places = Vec::with_capacity(segments.len());
        for segment in &segments {
            let place = beside(segment, &snapshot).map(|(document, found)| {
                let (at, _) = found.filter(|(_, message)| message.blob.0 == document.body)?;
                known.set(at);
                Some(at as u32)
            });
            places.push(place.collect());
        }
        unknown.without(&known);
        Self {
            snapshot,
            reader,
            segments,
            places,
            unknown,
            own,
            decoders,
            verdicts,
            recent,
            now,
            doubt: false,
            at_hand: None,
            is_far: false,
            leaves: Vec::new(),
            stop: Stop::default(),
        }
    }

    /// Ends with an error when that says so.
    pub(super) fn until(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Whether a segment did not answer.
    pub(crate) fn has_doubt(&self) -> bool {
        self.doubt
    }

    /// Whether more messages were read that no segment knows than should be for each question.
    pub(crate) fn has_missed(&self) -> bool {
        let missed = |leaf: &Leaf| leaf.unknown >= MISSED_MAX;
        self.unknown.count() >= BEHIND_MAX || self.leaves.iter().any(missed)
    }

    /// What was done.
    pub(crate) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// How many messages there are, and how many no segment knows.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.snapshot.len(), self.unknown.count())
    }

    /// The messages that fit.
    ///
    /// # Errors
    /// When there is no process that looks into messages, and when it is to end.
    pub(crate) fn all(&mut self, key: &SearchKey) -> Result<Found, StoreError> {
        let domain = Bits::all(self.snapshot.len());
        let fit = self.fit(key, &domain, Bound::Certain)?;
        let mut found = Found::default();
        for message in fit.iter().filter_map(|at| self.snapshot.get(at)) {
            found.push(message.uid.get(), message.mod_seq.0);
        }
        Ok(found)
    }

    /// The messages that fit, when nothing has to be read to know them, neither messages nor the index, and
    /// little to be looked through.
    pub(crate) fn all_at_hand(&mut self, key: &SearchKey) -> Option<Found> {
        self.at_hand = Some(AT_HAND_OCTETS_MAX);
        let found = self.all(key).ok()?;
        (!self.is_far).then_some(found)
    }

    /// Whether messages would have to be read where nothing may be.
    fn goes_far(&mut self, candidates: &Bits) -> bool {
        self.is_far |= self.at_hand.is_some() && !candidates.has_none();
        self.is_far
    }

    /// Those of `domain` that fit.
    fn fit(&mut self, key: &SearchKey, domain: &Bits, bound: Bound) -> Result<Bits, StoreError> {
        self.stop.go_on()?;
        match key {
            SearchKey::All => Ok(domain.clone()),
            SearchKey::And(keys) => {
                let mut keys: Vec<&SearchKey> = keys.iter().collect();
                keys.sort_by_key(|key| cost(key));
                let mut left = domain.clone();
                for key in keys {
                    if left.has_none() {
                        break;
                    }
                    left = self.fit(key, &left, bound)?;
                }
                Ok(left)
            }
            SearchKey::Or(keys) => {
                let (first, second) = match cost(&keys.0) <= cost(&keys.1) {
                    true => (&keys.0, &keys.1),
                    false => (&keys.1, &keys.0),
                };
                let mut fit = self.fit(first, domain, bound)?;
                let mut rest = domain.clone();
                rest.without(&fit);
                fit.add(&self.fit(second, &rest, bound)?);
                Ok(fit)
            }
            SearchKey::Not(key) => {
                let other = match bound {
                    Bound::Certain => Bound::Possible,
                    Bound::Possible => Bound::Certain,
                };
                let mut rest = domain.clone();
                rest.without(&self.fit(key, domain, other)?);
                Ok(rest)
            }
            SearchKey::SentBefore(_) | SearchKey::SentOn(_) | SearchKey::SentSince(_) => {
                self.sent(key, domain, bound)
            }
            SearchKey::Body(text) => self.text(key, &Within::Zones(BODY), text, (domain, bound)),
            SearchKey::Text(text) => self.text(key, &Within::Zones(TEXT), text, (domain, bound)),
            SearchKey::Header { name, text } => {
                let within = match Zone::of_field(name.as_bytes()) {
                    Some(zone) if !text.is_empty() => Within::Zones(only(&[zone])),
                    _ => Within::Field(name),
                };
                self.text(key, &within, text, (domain, bound))
            }
            row => {
                let mut fit = Bits::none(self.snapshot.len());
                for (at, message) in self.snapshot.iter_from(0).enumerate() {
                    if domain.has(at) && self.row(row, message) {
                        fit.set(at);
                    }
                }
                Ok(fit)
            }
        }
    }

    /// Whether a message fits by what the mailbox knows of it.
    fn row(&self, key: &SearchKey, message: &Message) -> bool {
        let received = time(message.internal_date);
        let age = received.moment().age(self.now);
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        match key {
            SearchKey::Flag(flag) => has_flag(&self.snapshot, message, flag),
            SearchKey::Recent => self.recent.contains(message.uid.get()),
            SearchKey::Messages(uids) => uids.contains(message.uid.get()),
            SearchKey::Before(day) => received.day() < *day,
            SearchKey::On(day) => received.day() == *day,
            SearchKey::Since(day) => received.day() >= *day,
            SearchKey::Younger(span) => age <= seconds(*span),
            SearchKey::Older(span) => age >= seconds(*span),
            SearchKey::Larger(octets) => u64::from(message.size) > *octets,
            SearchKey::Smaller(octets) => u64::from(message.size) < *octets,
            SearchKey::ModSeq(mod_seq) => message.mod_seq.0 >= *mod_seq,
            // The machine has put messages in the place of numbers, and the others are not for rows.
            _ => false,
        }
    }

    fn sent(&mut self, key: &SearchKey, domain: &Bits, bound: Bound) -> Result<Bits, StoreError> {
        let fits = |sent: Option<i64>| match (key, sent) {
            (SearchKey::SentBefore(day), Some(sent)) => sent < i64::from(day.0),
            (SearchKey::SentOn(day), Some(sent)) => sent == i64::from(day.0),
            (SearchKey::SentSince(day), Some(sent)) => sent >= i64::from(day.0),
            _ => false,
        };
        let mut fit = Bits::none(self.snapshot.len());
        let mut unknown = self.unknown.clone();
        for (segment, places) in self.segments.iter().zip(&self.places) {
            for (document, place) in segment.documents().iter().zip(places) {
                match place {
                    Some(place) if fits(document.sent) => fit.set(*place as usize),
                    // Segments of before have no day where the parser did not understand the date.
                    Some(place) if document.sent.is_none() => unknown.set(*place as usize),
                    _ => {}
                }
            }
        }
        fit.keep(domain);
        let certain = fit.count();
        unknown.keep(domain);
        if self.goes_far(&unknown) {
            return Ok(fit);
        }
        let looked = self.look_at_days(&unknown, fits)?;
        let candidates = unknown.count();
        Ok(self.take((key, domain), (fit, certain, candidates), looked, bound))
    }

    /// What was looked into comes to what the index says, and is noted.
    fn take(
        &mut self,
        (key, domain): (&SearchKey, &Bits),
        (mut fit, certain, candidates): (Bits, usize, usize),
        looked: Looked,
        bound: Bound,
    ) -> Bits {
        fit.add(&looked.fit);
        let mut unknown = self.unknown.clone();
        unknown.keep(domain);
        self.leaves.push(Leaf {
            key: format!("{key:?}"),
            asked: domain.count(),
            certain,
            candidates,
            unknown: unknown.count(),
            octets: looked.octets,
            unclear: looked.unclear.count(),
            found: fit.count(),
        });
        if bound == Bound::Possible {
            fit.add(&looked.unclear);
        }
        fit
    }

    fn text(
        &mut self,
        key: &SearchKey,
        within: &Within<'_>,
        text: &str,
        (domain, bound): (&Bits, Bound),
    ) -> Result<Bits, StoreError> {
        let needle = Needle::new(text);
        if needle.is_nowhere() {
            return Ok(Bits::none(self.snapshot.len()));
        }
        let (fit, zones) = match within {
            // Every message has a body and a header, be they empty.
            Within::Zones(_) if needle.is_empty() => return Ok(domain.clone()),
            Within::Zones(zones) => self.ask_index(zones, &needle, domain),
            Within::Field(name) => self.ask_names(name, &needle, domain),
        };
        let certain = fit.count();
        let mut candidates = Bits::none(self.snapshot.len());
        zones.iter().for_each(|(_, bits)| candidates.add(bits));
        if self.goes_far(&candidates) {
            return Ok(fit);
        }
        let wanted = |at: usize| {
            let mut wanted = Zones::default();
            for (zone, bits) in &zones {
                wanted[*zone as usize] |= bits.has(at);
            }
            wanted
        };
        let what = needle.octets();
        let (own, question) = match within {
            Within::Zones(zones) => (zones[Zone::Header as usize], Question::Zones(what)),
            Within::Field(name) => (true, Question::Field { name, what }),
        };
        let asked = Asked {
            own,
            wanted: &wanted,
            question,
        };
        let looked = self.look_into(&candidates, &asked)?;
        let read = candidates.count() - looked.remembered;
        Ok(self.take((key, domain), (fit, certain, read), looked, bound))
    }

    /// What the index says: messages that hold a needle, and those to be looked into, by zone.
    fn ask_index(
        &mut self,
        zones: &Zones,
        needle: &Needle,
        domain: &Bits,
    ) -> (Bits, Vec<(Zone, Bits)>) {
        let none = || Bits::none(self.snapshot.len());
        let mut hits = none();
        let mut candidates: Vec<(Zone, Bits)> = Vec::new();
        for zone in Zone::ALL.into_iter().filter(|zone| zones[*zone as usize]) {
            let mut bits = self.unknown.clone();
            for (segment, places) in self.segments.iter().zip(&self.places) {
                let found = match &mut self.at_hand {
                    Some(left) => segment.find_at_hand(zone, needle, left),
                    None => Some(segment.find(zone, needle)),
                };
                let Some(found) = found else {
                    self.is_far = true;
                    return (hits, candidates);
                };
                match found {
                    Ok(found) => {
                        set_places(&mut hits, &found.hits, places);
                        set_places(&mut bits, &found.candidates, places);
                    }
                    Err(error) => {
                        tracing::error!(%error, "messages are read instead");
                        self.doubt = true;
                        set_places(&mut bits, &Bits::all(places.len()), places);
                    }
                }
            }
            candidates.push((zone, bits));
        }
        hits.keep(domain);
        for (_, bits) in &mut candidates {
            bits.keep(domain);
            bits.without(&hits);
        }
        (hits, candidates)
    }

    /// Candidates by the name of a field and its text, which the index has together with all fields.
    fn ask_names(
        &mut self,
        name: &str,
        needle: &Needle,
        domain: &Bits,
    ) -> (Bits, Vec<(Zone, Bits)>) {
        let header = only(&[Zone::Header]);
        let mut all = domain.clone();
        let name = Needle::new(&format!("{name}: "));
        for needle in [&name, needle]
            .into_iter()
            .filter(|needle| !needle.is_empty())
        {
            let (mut with, candidates) = self.ask_index(&header, needle, &all);
            candidates.iter().for_each(|(_, bits)| with.add(bits));
            all = with;
        }
        // The message's own header is enough to see.
        (Bits::none(self.snapshot.len()), vec![(Zone::From, all)])
    }
}

const fn only(zones: &[Zone]) -> Zones {
    let mut wanted = [false; Zone::ALL.len()];
    let mut at = 0;
    while at < zones.len() {
        wanted[zones[at] as usize] = true;
        at += 1;
    }
    wanted
}

const BODY: Zones = only(&[Zone::Body]);
const TEXT: Zones = only(&[Zone::Body, Zone::Header]);

fn set_places(into: &mut Bits, bits: &Bits, places: &[Option<u32>]) {
    for at in bits.iter() {
        if let Some(Some(place)) = places.get(at) {
            into.set(*place as usize);
        }
    }
}

/// How much work a key is, roughly: rows in memory, days in the index, fields, texts.
fn cost(key: &SearchKey) -> u32 {
    match key {
        SearchKey::And(keys) => keys.iter().map(cost).max().unwrap_or(0),
        SearchKey::Or(keys) => cost(&keys.0).max(cost(&keys.1)),
        SearchKey::Not(key) => cost(key),
        SearchKey::SentBefore(_) | SearchKey::SentOn(_) | SearchKey::SentSince(_) => 1,
        SearchKey::Header { name, text } => match Zone::of_field(name.as_bytes()) {
            Some(_) if !text.is_empty() => 2,
            _ => 4,
        },
        SearchKey::Body(_) => 3,
        SearchKey::Text(_) => 5,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
