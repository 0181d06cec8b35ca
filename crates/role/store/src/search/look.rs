//! Finds the matching messages of a mailbox as sets. The cheapest key comes first, so that expensive keys examine few
//! messages.

mod into;

use std::time::Duration;

use vere_disk::log::Directory as LogDirectory;
use vere_imap::command::SearchKey;
use vere_imap::server::Found;
use vere_imap::set::UidSet;
use vere_mime::Zone;
use vere_mime::wire::Question;
use vere_search::{Bits, Needle};
use vere_store::{BodyReader, Message, Snapshot, StoreError};
use vere_units::Timestamp;

use self::into::{Asked, Contents, Looked};
use super::own_fields::OwnFields;
use super::texts::Zones;
use crate::convert::{has_flag, time};
use crate::index::{BEHIND_MAX, MISSED_MAX, Segments, Stop, Verdicts, beside};
use vere_parsing::Decoders;

/// Octets of the index to scan when no file may be read: some tenths of a millisecond.
const AT_HAND_OCTETS_MAX: usize = 256 * 1024;

/// A search of one mailbox.
pub(crate) struct Look<'a> {
    contents: Contents<'a>,
    segments: Segments,
    /// Per segment, the positions of its messages in the mailbox, if the messages still exist.
    places: Vec<Vec<Option<u32>>>,
    /// Messages unknown to every segment.
    unknown: Bits,
    recent: UidSet,
    now: Timestamp,
    doubt: bool,
    /// Octets in memory that may still be scanned, if no file may be read; and whether the search needs to read
    /// files.
    at_hand: Option<usize>,
    is_far: bool,
    leaves: Vec<Leaf>,
}

/// Statistics of one key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Leaf {
    /// The key.
    pub(crate) key: String,
    /// Messages that the key examined.
    pub(crate) asked: usize,
    /// Messages that match for certain by the index.
    pub(crate) certain: usize,
    /// Messages that were examined themselves, because the index has them as candidates or not at all, and no verdict
    /// on them was remembered.
    pub(crate) candidates: usize,
    /// Number of examined messages unknown to every segment.
    pub(crate) unknown: usize,
    /// Octets of messages read for the key.
    pub(crate) octets: usize,
    /// Messages without an answer, because they cannot be decoded or read.
    pub(crate) unclear: usize,
    /// Messages that match.
    pub(crate) found: usize,
}

/// Treatment of messages without an answer to a key: such messages match neither the key nor its opposite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// Messages without an answer do not match.
    Certain,
    /// Messages without an answer match, because the result is subtracted from other messages.
    Possible,
}

/// Texts to be searched.
enum Within<'k> {
    Zones(Zones),
    Field(&'k str),
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
            contents: Contents {
                snapshot,
                reader,
                own,
                decoders,
                verdicts,
                stop: Stop::default(),
            },
            segments,
            places,
            unknown,
            recent,
            now,
            doubt: false,
            at_hand: None,
            is_far: false,
            leaves: Vec::new(),
        }
    }

    /// Makes the search end with an error once `stop` is set.
    pub(super) fn until(mut self, stop: Stop) -> Self {
        self.contents.stop = stop;
        self
    }

    /// Whether a segment could not be read.
    pub(crate) fn has_doubt(&self) -> bool {
        self.doubt
    }

    /// Whether the index lacks more messages than a search should have to read.
    pub(crate) fn has_missed(&self) -> bool {
        let missed = |leaf: &Leaf| leaf.unknown >= MISSED_MAX;
        self.unknown.count() >= BEHIND_MAX || self.leaves.iter().any(missed)
    }

    /// Messages examined, and octets of messages read.
    pub(crate) fn read(&self) -> (u64, u64) {
        let leaves = self.leaves.iter();
        leaves.fold((0, 0), |(messages, octets), leaf| {
            (
                messages + leaf.candidates as u64,
                octets + leaf.octets as u64,
            )
        })
    }

    /// Statistics of the keys.
    pub(crate) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Number of messages, and number of messages unknown to every segment.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.contents.snapshot.len(), self.unknown.count())
    }

    /// Returns the messages that match.
    ///
    /// # Errors
    /// When no process to search messages is available, or the search is to end.
    pub(crate) fn all(&mut self, key: &SearchKey) -> Result<Found, StoreError> {
        let domain = Bits::all(self.contents.snapshot.len());
        let fit = self.fit(key, &domain, Bound::Certain)?;
        let mut found = Found::default();
        for message in fit.iter().filter_map(|at| self.contents.snapshot.get(at)) {
            found.push(message.uid.get(), message.mod_seq.0);
        }
        Ok(found)
    }

    /// Returns the messages that match, if neither messages nor index files have to be read, and little memory has to
    /// be scanned.
    pub(crate) fn all_at_hand(&mut self, key: &SearchKey) -> Option<Found> {
        self.at_hand = Some(AT_HAND_OCTETS_MAX);
        let found = self.all(key).ok()?;
        (!self.is_far).then_some(found)
    }

    /// Whether the search needs to read messages although reads are forbidden.
    fn goes_far(&mut self, candidates: &Bits) -> bool {
        self.is_far |= self.at_hand.is_some() && !candidates.has_none();
        self.is_far
    }

    /// Returns the messages of `domain` that match.
    fn fit(&mut self, key: &SearchKey, domain: &Bits, bound: Bound) -> Result<Bits, StoreError> {
        self.contents.stop.go_on()?;
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
                let mut fit = Bits::none(self.contents.snapshot.len());
                for (at, message) in self.contents.snapshot.iter_from(0).enumerate() {
                    if domain.has(at) && self.row(row, message) {
                        fit.set(at);
                    }
                }
                Ok(fit)
            }
        }
    }

    /// Whether a message matches by the mailbox's own data.
    fn row(&self, key: &SearchKey, message: &Message) -> bool {
        let received = time(message.internal_date);
        let age = received.moment().age(self.now);
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        match key {
            SearchKey::Flag(flag) => has_flag(&self.contents.snapshot, message, flag),
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
            // The machine has replaced numbers by messages; the remaining keys do not concern rows.
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
        let mut fit = Bits::none(self.contents.snapshot.len());
        let mut unknown = self.unknown.clone();
        for (segment, places) in self.segments.iter().zip(&self.places) {
            for (document, place) in segment.documents().iter().zip(places) {
                match place {
                    Some(place) if fits(document.sent) => fit.set(*place as usize),
                    // Older segments have no day if the parser did not understand the date.
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
        let looked = self.contents.look_at_days(&unknown, fits)?;
        let candidates = unknown.count();
        Ok(self.take((key, domain), (fit, certain, candidates), looked, bound))
    }

    /// Adds the verdicts on examined messages to the matches of the index, and records the statistics.
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
            return Ok(Bits::none(self.contents.snapshot.len()));
        }
        let (fit, zones) = match within {
            // Every message has a body and a header, even if empty.
            Within::Zones(_) if needle.is_empty() => return Ok(domain.clone()),
            Within::Zones(zones) => self.ask_index(zones, &needle, domain),
            Within::Field(name) => self.ask_names(name, &needle, domain),
        };
        let certain = fit.count();
        let mut candidates = Bits::none(self.contents.snapshot.len());
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
        let looked = self.contents.look_into(&candidates, &asked)?;
        let read = candidates.count() - looked.remembered;
        Ok(self.take((key, domain), (fit, certain, read), looked, bound))
    }

    /// Asks the index: returns messages that hold a needle, and by zone the candidates to examine.
    fn ask_index(
        &mut self,
        zones: &Zones,
        needle: &Needle,
        domain: &Bits,
    ) -> (Bits, Vec<(Zone, Bits)>) {
        let none = || Bits::none(self.contents.snapshot.len());
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

    /// Finds candidates by field name and text. The index stores both in the zone of all header fields.
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
        // The message's own header suffices to decide.
        (
            Bits::none(self.contents.snapshot.len()),
            vec![(Zone::From, all)],
        )
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

/// Estimated cost of a key: rows in memory, days in the index, fields, texts.
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
