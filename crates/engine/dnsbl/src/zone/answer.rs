//! The records of one name.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::net::Ipv4Addr;

use vere_dns::{Data, Labels, NAME_MAX, Name, Owner, Rcode, Response, Section, Type};

use super::subject::Subject;
use super::{LISTED, LISTINGS_MAX, Listing, Zone};
use crate::data::{RecordData, ZoneData};
use crate::limit::AnswerKind;

/// The text of the test entries.
const TEST_TEXT: &str = "Test entry (RFC 5782)";
/// The TTL of the answer to a question for all types (RFC 8482 section 4.2): a day.
const ANY_TTL: u32 = 86_400;

impl Zone {
    /// Answers a question about a name below the apex, in wire form without apex and root.
    pub(super) fn answer(
        &self,
        kind: Type,
        below: &[u8],
        response: &mut Response<'_, '_>,
    ) -> AnswerKind {
        let mut lower = [0; NAME_MAX];
        let Some(lower) = lower.get_mut(..below.len()) else {
            return AnswerKind::Error;
        };
        lower.copy_from_slice(below);
        lower.make_ascii_lowercase();
        let place = Place::of(self, lower);
        if kind == Type::ANY && place.exists() {
            response.record(Section::Answer, Owner::Question, ANY_TTL, &Data::Hinfo);
            return AnswerKind::Positive;
        }
        place.records(kind, response);
        if response.answers() > 0 || response.is_truncated() {
            return AnswerKind::Positive;
        }
        if !place.exists() {
            response.set_rcode(Rcode::NxDomain);
        }
        let (owner, ttl) = (Owner::Name(&self.apex), self.start.negative_ttl());
        response.record(Section::Authority, owner, ttl, &self.soa());
        AnswerKind::Negative
    }

    fn soa(&self) -> Data<'_> {
        Data::Soa {
            server: &self.start.server,
            mailbox: &self.start.mailbox,
            numbers: self.start.numbers,
        }
    }
}

/// A name below a zone, with the data that answer for the name.
struct Place<'z> {
    zone: &'z Zone,
    data: &'z ZoneData,
    /// The name below the data's zone, in lower case.
    name: &'z [u8],
    is_apex: bool,
    /// Whether a part of the zone with data of its own lies below.
    has_part: bool,
    subject: Subject,
}

impl<'z> Place<'z> {
    fn of(zone: &'z Zone, name: &'z [u8]) -> Self {
        let mut place = Place {
            zone,
            data: &zone.data,
            name,
            is_apex: name.is_empty(),
            has_part: false,
            subject: Subject::default(),
        };
        for (part, data) in zone.data.subzones() {
            place.has_part |= above(part, name).is_some();
            if let Some(inner) = above(name, part)
                && inner.len() < place.name.len()
            {
                (place.data, place.name) = (data, inner);
            }
        }
        place.subject = Subject::of(place.name);
        place
    }

    /// Adds the records of a type.
    fn records(&self, kind: Type, response: &mut Response<'_, '_>) {
        let section = Section::Answer;
        match kind {
            Type::A | Type::TXT => self.listings(kind, response),
            Type::AAAA => self.map(response),
            Type::SOA if self.is_apex => {
                let ttl = self.zone.start.ttl;
                response.record(section, Owner::Question, ttl, &self.zone.soa());
            }
            Type::NS if self.is_apex => {
                for server in &self.zone.servers {
                    let ttl = self.zone.servers_ttl;
                    response.record(section, Owner::Question, ttl, &Data::Ns(server));
                }
            }
            _ => {}
        }
        for record in self.data.records(self.name) {
            let mail;
            let data = match &record.data {
                RecordData::A(address) => Data::A(*address),
                RecordData::Aaaa(address) => Data::Aaaa(*address),
                RecordData::Txt(text) => Data::Txt(text),
                RecordData::Mx(preference, host) => match Name::of_wire(host) {
                    Some(host) => {
                        mail = host;
                        Data::Mx(*preference, &mail)
                    }
                    None => continue,
                },
            };
            if data.kind() == kind {
                let ttl = record.ttl.unwrap_or(self.zone.ttl);
                response.record(section, Owner::Question, ttl, &data);
            }
        }
    }

    /// Adds the A or TXT records of a listed address or name.
    fn listings(&self, kind: Type, response: &mut Response<'_, '_>) {
        match self.subject.address() {
            Some(address) => self.each(self.zone.listings(self.data, address), kind, response),
            None => self.each(
                self.zone.name_listings(self.data, self.name),
                kind,
                response,
            ),
        }
    }

    /// Adds the records of listings: a set of records has each once (RFC 2181 section 5).
    fn each(
        &self,
        listings: impl Iterator<Item = Listing<'z>>,
        kind: Type,
        response: &mut Response<'_, '_>,
    ) {
        let listings = listings.take(LISTINGS_MAX);
        let mut add = |listing: Listing<'_>, data: &Data<'_>| {
            let ttl = listing.ttl().unwrap_or(self.zone.ttl);
            response.record(Section::Answer, Owner::Question, ttl, data);
        };
        if kind == Type::A {
            let mut seen = [None; LISTINGS_MAX];
            for listing in listings {
                if let Some(address) = keep(&mut seen, listing.address()) {
                    add(listing, &Data::A(*address));
                }
            }
            return;
        }
        let mut seen = [const { None }; LISTINGS_MAX];
        for listing in listings {
            if let Some(text) = listing.text(self)
                && let Some(text) = keep(&mut seen, text)
            {
                add(listing, &Data::Txt(text.as_bytes()));
            }
        }
    }

    /// Adds the map of 128 neighbours; a map without any does not exist.
    fn map(&self, response: &mut Response<'_, '_>) {
        let Some(name) = self.subject.map else { return };
        let map = self.zone.map(self.data, name);
        if !map.is_empty() {
            let data = Data::Aaaa(map.into());
            response.record(Section::Answer, Owner::Question, self.zone.ttl, &data);
        }
    }

    /// Whether the name has a record of any type, or is above a name that has.
    fn exists(&self) -> bool {
        let (zone, data) = (self.zone, self.data);
        let is_listed = match self.subject.address() {
            Some(address) => zone.listings(data, address).next().is_some(),
            None => zone.name_listings(data, self.name).next().is_some(),
        };
        let has_map = || {
            let map = self.subject.map;
            map.is_some_and(|name| !zone.map(data, name).is_empty())
        };
        let has_network = || {
            let mut networks = self.subject.networks();
            networks.any(|(network, prefix)| zone.has_within(data, network, prefix))
        };
        self.name.is_empty()
            || self.has_part
            || is_listed
            || has_map()
            || has_network()
            || !data.records(self.name).is_empty()
            || data.has_name_below(self.name)
    }

    /// The name of an entry, or the address, as a text, for the texts of listings.
    fn text(&self, entry: Option<&[u8]>) -> String {
        let mut text = String::new();
        match entry {
            Some(entry) => {
                for label in Labels::of(entry) {
                    let dot = if text.is_empty() { "" } else { "." };
                    let _infallible = write!(text, "{dot}{}", label.escape_ascii());
                }
            }
            None => {
                if let Some(address) = self.subject.address() {
                    let _infallible = write!(text, "{}", address.to_canonical());
                }
            }
        }
        text
    }
}

impl<'d> Listing<'d> {
    fn address(self) -> Ipv4Addr {
        match self {
            Self::Value(value, _) => value.address,
            Self::Test => LISTED,
        }
    }

    fn ttl(self) -> Option<u32> {
        match self {
            Self::Value(value, _) => value.ttl(),
            Self::Test => None,
        }
    }

    fn text(self, place: &Place<'_>) -> Option<Cow<'d, str>> {
        match self {
            Self::Value(value, entry) => {
                let subject = match value.has_variables() {
                    true => place.text(entry),
                    false => String::new(),
                };
                value.text_for(&subject)
            }
            Self::Test => Some(Cow::Borrowed(TEST_TEXT)),
        }
    }
}

/// Keeps an item unless an equal item is there; the first free place is behind all items.
fn keep<T: PartialEq>(seen: &mut [Option<T>], item: T) -> Option<&T> {
    let equal_or_free = |known: &Option<T>| known.as_ref().is_none_or(|known| *known == item);
    let place = seen.iter_mut().find(|known| equal_or_free(known))?;
    match place {
        Some(_) => None,
        None => Some(place.insert(item)),
    }
}

/// The octets of `name` in front of `end`, if `name` is `end` or below; both without roots, in lower case.
fn above<'n>(name: &'n [u8], end: &[u8]) -> Option<&'n [u8]> {
    let mut labels = Labels::of(name);
    while labels.rest().len() > end.len() {
        labels.next()?;
    }
    (labels.rest() == end).then(|| name.strip_suffix(end))?
}
