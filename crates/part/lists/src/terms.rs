//! The settings of lists, as they are asked.

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use vere_dnsbl::cache::Limits;
use vere_dnsbl::policy::Scope;
use vere_net::resolver::{Resolver, ResolverError, ResolverOptions};
use vere_settings::{AnswerPattern, BlockLists, ListMaps, Settings};

use super::site::Site;

/// Questions under way, of all lists.
const PENDING_MAX: usize = 4_096;
/// How long the failure of one question is kept, as RFC 9520 section 3.2 begins.
const FAILURE_LIFE: Duration = Duration::from_secs(5);

/// The lists, and how their answers are added.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) lists: Vec<List>,
    /// The numbers of the zones, each once.
    pub(crate) zones: Vec<u32>,
    pub(crate) threshold: i32,
    pub(crate) timeout: Duration,
    pub(crate) adds_text: bool,
    pub(crate) asks_private: bool,
    pub(crate) limits: Limits,
}

/// A list.
#[derive(Debug)]
pub(crate) struct List {
    /// The number of the zone.
    pub(crate) zone: u32,
    pub(crate) domain: Rc<str>,
    pub(crate) name: Rc<str>,
    pub(crate) weight: i16,
    pub(crate) answers: Vec<AnswerPattern>,
    pub(crate) maps: ListMaps,
}

impl List {
    /// Whether a code counts as an entry.
    pub(crate) fn counts(&self, code: Ipv4Addr) -> bool {
        let answers = &self.answers;
        answers.is_empty() || answers.iter().any(|answer| answer.matches(code))
    }
}

impl Terms {
    /// Takes the settings; zones without a number get the next ones.
    pub(crate) fn new(settings: &BlockLists, sites: &mut Vec<Site>) -> Self {
        let mut zones = Vec::new();
        let mut lists = Vec::new();
        for list in &settings.lists {
            let place = sites.iter().position(|site| *site.zone == *list.zone);
            let scope = scope(settings, &list.zone);
            let place = place.unwrap_or_else(|| {
                sites.push(Site::new(&list.zone, &list.name, scope));
                sites.len() - 1
            });
            let zone = u32::try_from(place).unwrap_or(u32::MAX);
            if !zones.contains(&zone) {
                zones.push(zone);
                sites[place].name = list.name.as_str().into();
                sites[place].set_scope(scope);
            }
            lists.push(List {
                zone,
                domain: list.zone.as_str().into(),
                name: list.name.as_str().into(),
                weight: list.weight,
                answers: list.answers.clone(),
                maps: list.maps,
            });
        }
        let octets = usize::try_from(settings.cache.as_u64());
        Self {
            lists,
            zones,
            threshold: settings.threshold,
            timeout: settings.timeout.duration(),
            adds_text: settings.adds_text,
            asks_private: settings.asks_private,
            limits: Limits {
                octets_max: octets.unwrap_or(usize::MAX),
                pending_max: PENDING_MAX,
                ttl_min: settings.ttl_min.duration(),
                ttl_max: settings.ttl_max.duration(),
                failure_life: FAILURE_LIFE,
            },
        }
    }
}

/// The use of a zone by all lists of the settings that have it.
fn scope(settings: &BlockLists, zone: &str) -> Scope {
    let of_zone = || settings.lists.iter().filter(|list| *list.zone == *zone);
    Scope {
        addresses: of_zone().any(|list| list.maps != ListMaps::Yes),
        maps: of_zone().any(|list| list.maps != ListMaps::No),
    }
}

/// A resolver for lists alone: answers of lists have a cache and times apart, and no validation by DNSSEC, since
/// queries for signatures would outnumber the queries for clients. A validating name server validates all the same.
///
/// # Errors
/// The zone file or the system's list of name servers cannot be used.
pub(crate) fn resolver(settings: &Settings, lists: &BlockLists) -> Result<Resolver, ResolverError> {
    let timeout = lists.timeout.duration();
    Resolver::new(&ResolverOptions {
        servers: settings.resolver.servers.clone(),
        zone: settings.resolver.zone.clone(),
        query_timeout: query_timeout(timeout),
        timeout,
        cache_octets_max: 0,
        negative_ttl_max: lists.ttl_max.duration(),
        ..ResolverOptions::default()
    })
}

/// The longest wait for a name server: three fit into the deadline, so that one lost packet loses no list.
const fn query_timeout(timeout: Duration) -> Duration {
    Duration::from_millis(timeout.as_millis() as u64 / 3)
}
