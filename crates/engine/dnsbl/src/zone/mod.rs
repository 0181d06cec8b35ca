//! Zones: which records answer a query.
//!
//! A name with a record of any type exists, and so do the names above. The A record of `0.z.y.x` is about one address and
//! the AAAA record about 128: a name with a map alone exists without an A record, because a denial of the name would hide
//! the map from resolvers (RFC 8020). Resolvers that minimise names (RFC 9156) ask for the labels above a listing one by
//! one, and each of the labels exists.

mod answer;
mod subject;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use vere_dns::{Name, Query, Rcode, Response};

use crate::data::{Soa, Value, ZoneData};
use crate::limit::AnswerKind;
use crate::{Map, MapName};

/// The address that every list has, and the address that no list has (RFC 5782 section 5).
const LISTED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const NEVER_LISTED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
/// The names for lists of names (RFC 5782 section 5), as labels in wire form.
const LISTED_NAME: &[u8] = b"\x04test";
const NEVER_LISTED_NAME: &[u8] = b"\x07invalid";
/// The network of IPv4 addresses among IPv6 addresses (RFC 4291 section 2.5.5.2), and its length.
const MAPPED: u128 = 0xffff << 32;
const MAPPED_PREFIX: u8 = 96;

/// What a zone has where its files say nothing.
#[derive(Debug, Clone)]
pub struct Defaults {
    /// The TTL of records in seconds.
    pub ttl: u32,
    /// The TTL of negative answers in seconds (RFC 2308 section 4).
    pub negative_ttl: u32,
    /// The name servers; the first is the primary.
    pub servers: Vec<Name>,
    /// The mailbox of the person responsible.
    pub mailbox: Name,
    /// Whether zones without test entries get them, and never list the counterparts (RFC 5782 section 5).
    pub test_entries: bool,
}

/// A zone that answers queries.
#[derive(Debug)]
pub struct Zone {
    apex: Name,
    data: ZoneData,
    start: Start,
    servers: Vec<Name>,
    servers_ttl: u32,
    ttl: u32,
    /// Whether test entries are added, and the counterparts never listed.
    has_tests: bool,
}

/// The SOA record of a zone.
#[derive(Debug)]
struct Start {
    ttl: u32,
    server: Name,
    mailbox: Name,
    /// SERIAL, REFRESH, RETRY, EXPIRE, MINIMUM.
    numbers: [u32; 5],
}

/// Times in seconds of SOA records without any of their own: RFC 1912 section 2.2, for data that change by the minute.
const REFRESH: u32 = 3_600;
const RETRY: u32 = 600;
const EXPIRE: u32 = 86_400;

impl Zone {
    /// Makes a zone of its data. `serial` is for an SOA record without one: the time of the newest file in seconds since
    /// 1970.
    #[must_use]
    pub fn new(apex: Name, data: ZoneData, defaults: &Defaults, serial: u32) -> Self {
        let head = data.head();
        let ttl = head.ttl.unwrap_or(defaults.ttl);
        let start = start(head.soa.as_ref(), &apex, defaults, ttl, serial);
        let (servers, servers_ttl) = match &head.name_servers {
            Some(line) => {
                let names = line.names.iter();
                let names: Vec<Name> = names.filter_map(|name| Name::of_wire(name)).collect();
                (names, or(line.ttl, ttl))
            }
            None => (defaults.servers.clone(), ttl),
        };
        Self {
            apex,
            data,
            start,
            servers,
            servers_ttl,
            ttl,
            has_tests: defaults.test_entries,
        }
    }

    /// The name of the zone.
    #[must_use]
    pub const fn apex(&self) -> &Name {
        &self.apex
    }

    /// The data.
    #[must_use]
    pub const fn data(&self) -> &ZoneData {
        &self.data
    }

    /// Whether the files forbid the use of their data from a time on (`$TIMESTAMP`); `now` is in seconds since 1970.
    #[must_use]
    pub fn is_expired(&self, now: u64) -> bool {
        let expires = self.data.head().expires;
        expires.is_some_and(|expires| expires <= now)
    }

    /// What the zone says of an address: the values of the data, or the test entry.
    fn listings<'d>(
        &self,
        data: &'d ZoneData,
        address: IpAddr,
    ) -> impl Iterator<Item = Listing<'d>> + use<'d> {
        let is = |test: Ipv4Addr| address.to_canonical() == IpAddr::V4(test);
        let denied = self.has_tests && is(NEVER_LISTED);
        let added = self.has_tests && is(LISTED) && data.values(address).next().is_none();
        let values = data.values(address).take_while(move |_| !denied);
        values
            .map(|value| Listing::Value(value, None))
            .chain(added.then_some(Listing::Test))
    }

    /// What the zone says of a name, which is in lower case and wire form without the root.
    fn name_listings<'d>(
        &self,
        data: &'d ZoneData,
        name: &'d [u8],
    ) -> impl Iterator<Item = Listing<'d>> {
        let denied = self.has_tests && name == NEVER_LISTED_NAME;
        let is_test = self.has_tests && name == LISTED_NAME && data.has_names();
        let added = is_test && data.name_values(name).next().is_none();
        let values: Vec<_> = match denied {
            true => Vec::new(),
            false => data.name_entries(name).take(LISTINGS_MAX).collect(),
        };
        let values = values.into_iter();
        let values = values.map(|(entry, value)| Listing::Value(value, Some(entry)));
        values.chain(added.then_some(Listing::Test))
    }

    /// The map of 128 neighbours; the test entries are in it as they are in [`Zone::listings`].
    fn map(&self, data: &ZoneData, name: MapName) -> Map {
        let mut map = data.map(name);
        // The test entries are neighbours.
        if self.has_tests && name == MapName::of(LISTED.into()).0 {
            map.remove(NEVER_LISTED.octets()[3]);
            map.insert(LISTED.octets()[3]);
        }
        map
    }

    /// Whether a network has a listed address.
    fn has_within(&self, data: &ZoneData, network: IpAddr, prefix: u8) -> bool {
        match network {
            IpAddr::V4(network) => self.has_within_v4(data, network, prefix),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                let hosts = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
                let has_mapped = || {
                    if prefix >= MAPPED_PREFIX && bits >> 32 == MAPPED >> 32 {
                        let inner = Ipv4Addr::from_bits(bits as u32);
                        return self.has_within_v4(data, inner, prefix - MAPPED_PREFIX);
                    }
                    let holds_all = prefix < MAPPED_PREFIX && (bits ^ MAPPED) & !hosts == 0;
                    holds_all && self.has_within_v4(data, Ipv4Addr::UNSPECIFIED, 0)
                };
                data.has_within(network, prefix) || has_mapped()
            }
        }
    }

    fn has_within_v4(&self, data: &ZoneData, network: Ipv4Addr, prefix: u8) -> bool {
        let hosts = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
        let has_test = (LISTED.to_bits() ^ network.to_bits()) & !hosts == 0;
        self.has_tests && has_test || data.has_within(network.into(), prefix)
    }
}

/// Values of one name at most; files with more have the first.
const LISTINGS_MAX: usize = 32;

/// An entry about an address or a name.
#[derive(Debug, Clone, Copy)]
enum Listing<'d> {
    /// Of a file. An entry of a list of names has its name, which is that of an upper name for `*.example.com`.
    Value(&'d Value, Option<&'d [u8]>),
    /// The test entry.
    Test,
}

fn or(ttl: u32, default: u32) -> u32 {
    match ttl {
        0 => default,
        ttl => ttl,
    }
}

fn start(given: Option<&Soa>, apex: &Name, defaults: &Defaults, ttl: u32, serial: u32) -> Start {
    let primary = defaults.servers.first().unwrap_or(apex);
    let named = |name: &[u8], default: &Name| Name::of_wire(name).unwrap_or(default.clone());
    match given {
        Some(soa) => Start {
            ttl: or(soa.ttl, ttl),
            server: named(&soa.origin, primary),
            mailbox: named(&soa.person, &defaults.mailbox),
            numbers: [
                or(soa.serial, serial),
                soa.refresh,
                soa.retry,
                soa.expire,
                soa.minimum,
            ],
        },
        None => Start {
            ttl,
            server: primary.clone(),
            mailbox: defaults.mailbox.clone(),
            numbers: [serial, REFRESH, RETRY, EXPIRE, defaults.negative_ttl],
        },
    }
}

impl Start {
    /// The TTL of the SOA record of a negative answer, and so of the answer (RFC 2308 sections 3 and 5).
    fn negative_ttl(&self) -> u32 {
        let [.., minimum] = self.numbers;
        self.ttl.min(minimum)
    }
}

/// All zones of a server.
#[derive(Debug, Default)]
pub struct Zones {
    /// The zones with the places of the caller; longer names are first, so that the first zone above a name is the
    /// closest.
    zones: Vec<(usize, Arc<Zone>)>,
}

/// What was answered, for limits and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// The place of the zone among the zones as they were given; `None` outside all zones.
    pub zone: Option<usize>,
    /// The kind.
    pub kind: AnswerKind,
}

impl Zones {
    /// Takes the zones; of two with one name the first counts.
    #[must_use]
    pub fn new(zones: Vec<Arc<Zone>>) -> Self {
        let mut zones: Vec<_> = zones.into_iter().enumerate().collect();
        zones.sort_by_key(|(_, zone)| std::cmp::Reverse(zone.apex.octets().len()));
        Self { zones }
    }

    /// The zones, and their places as they were given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (usize, &Zone)> {
        self.zones.iter().map(|(place, zone)| (*place, &**zone))
    }

    /// Answers a query in `memory`, with at most `limit` octets. `now` is in seconds since 1970.
    ///
    /// The caller ends the response, so that it can still be truncated.
    #[must_use]
    pub fn answer<'q, 'b>(
        &self,
        query: &'q Query<'q>,
        memory: &'b mut [u8],
        limit: usize,
        now: u64,
    ) -> (Response<'q, 'b>, Answered) {
        let mut response = Response::new(query, memory, limit);
        let found = self.iter().find_map(|(place, zone)| {
            let below = zone.apex.prefix_of(query.name())?;
            Some((zone, place, below))
        });
        let Some((zone, place, below)) = found else {
            response.not_authoritative();
            response.set_rcode(Rcode::Refused);
            let kind = AnswerKind::Error;
            return (response, Answered { zone: None, kind });
        };
        let kind = match zone.is_expired(now) {
            true => {
                response.not_authoritative();
                response.set_rcode(Rcode::ServFail);
                AnswerKind::Error
            }
            false => zone.answer(query.kind(), below, &mut response),
        };
        let zone = Some(place);
        (response, Answered { zone, kind })
    }
}
