//! Asks lists in the DNS (RFC 5782) about a client: all lists at once, by one deadline, with answers that are kept and merged
//! ([`vere_dnsbl::cache`]). The broker asks for the front, and `vere dnsbl query` for a person.
//!
//! A list with maps is asked for the 128 neighbours of the client by one query; the client's own bit alone counts. Where the
//! settings name answers, a bit that is set is followed by a query for the client's codes. A list without maps is asked for the
//! codes at once.
//!
//! Everything runs on one thread, in a [`tokio::task::LocalSet`]: a query goes on when the question is over, and the
//! answer serves the next question.
//!
//! Not covered: what a listing leads to, which is the affair of the screen.

mod findings;
mod query;
mod site;
mod terms;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

use futures_util::future::join_all;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};
use vere_dnsbl::MapName;
use vere_dnsbl::cache::{Cache, Question, Reply, Subject};
use vere_dnsbl::policy::{self, Trust};
use vere_handoff::question::{Kept, ListFigures};
use vere_net::resolver::{Resolver, ResolverError};
use vere_settings::{BlockLists, ListMaps, Settings};
use vere_units::Timestamp;

pub use self::findings::{Entry, Findings, Origin, Outcome};
use self::site::Site;
use self::terms::{List, Terms};

/// Clients that are asked about at once; lists are left out for a further one.
const ASKING_MAX: usize = 8_192;

/// Lists of clients. Clones are the same lists.
#[derive(Debug, Clone)]
pub struct Lists(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    terms: RefCell<Rc<Terms>>,
    resolver: RefCell<Resolver>,
    cache: RefCell<Cache>,
    /// By the number of the zone. Zones of earlier settings keep their numbers, and their entries in the cache end by time.
    sites: RefCell<Vec<Site>>,
    /// The answers to questions under way.
    waiting: RefCell<HashMap<Question, watch::Receiver<Option<Reply>>>>,
    asking: Semaphore,
    begin: Instant,
}

impl Lists {
    /// Takes the lists of settings; asks nobody yet.
    ///
    /// # Errors
    /// The zone file or the system's list of name servers cannot be used.
    pub fn new(settings: &Settings, lists: &BlockLists) -> Result<Self, ResolverError> {
        let resolver = terms::resolver(settings, lists)?;
        Ok(Self::with_resolver(lists, resolver))
    }

    fn with_resolver(lists: &BlockLists, resolver: Resolver) -> Self {
        let mut sites = Vec::new();
        let terms = Terms::new(lists, &mut sites);
        Self(Rc::new(Inner {
            cache: RefCell::new(Cache::new(terms.limits)),
            terms: RefCell::new(Rc::new(terms)),
            resolver: RefCell::new(resolver),
            sites: RefCell::new(sites),
            waiting: RefCell::default(),
            asking: Semaphore::new(ASKING_MAX),
            begin: Instant::now(),
        }))
    }

    /// Applies other settings from the next question on; answers of zones that stay are kept.
    ///
    /// # Errors
    /// As [`new`](Self::new); then the settings before stay.
    pub fn set_settings(
        &self,
        settings: &Settings,
        lists: &BlockLists,
    ) -> Result<(), ResolverError> {
        let resolver = terms::resolver(settings, lists)?;
        let terms = Terms::new(lists, &mut self.0.sites.borrow_mut());
        self.0.cache.borrow_mut().set_limits(terms.limits);
        self.0.resolver.replace(resolver);
        self.0.terms.replace(Rc::new(terms));
        Ok(())
    }

    /// Checks the lists that are due: whether their entries count, and which of them serve maps. Questions do so as well, beside their
    /// queries.
    pub async fn probe(&self) {
        let terms = self.terms();
        join_all(terms.zones.iter().map(|zone| self.check(*zone))).await;
    }

    /// Returns what the lists say about a client, by the deadline at the latest.
    pub async fn ask(&self, client: IpAddr) -> Findings {
        let client = client.to_canonical();
        let terms = self.terms();
        if !terms.asks_private && !policy::is_public(client) {
            return Findings::nobody_asked(true);
        }
        let Ok(_place) = self.0.asking.try_acquire() else {
            return Findings::nobody_asked(terms.lists.is_empty());
        };
        let by = Instant::now() + terms.timeout;
        let asked = terms.lists.iter().map(|list| self.entry(list, client, by));
        let entries = join_all(asked).await;
        let mut findings = Findings::new(entries, terms.threshold);
        if let Some(worst) = findings
            .worst
            .filter(|_| findings.is_listed && terms.adds_text)
            && let Some(list) = terms.lists.get(worst)
        {
            findings.text = self.text(list.zone, client, by).await;
        }
        findings
    }

    /// Whether a list of the settings does not have 127.0.0.2, the entry of every list (RFC 5782 section 5), as far as is known.
    #[must_use]
    pub fn lacks_test_entry(&self, zone: &str) -> bool {
        let terms = self.terms();
        let list = terms.lists.iter().find(|list| *list.domain == *zone);
        list.is_some_and(|list| self.with_site(list.zone, |site| site.probe.lacks_test_entry()))
    }

    /// Returns the text of a list of the settings about a client; empty if there is none in time.
    pub async fn text_about(&self, zone: &str, client: IpAddr) -> String {
        let terms = self.terms();
        let Some(list) = terms.lists.iter().find(|list| *list.domain == *zone) else {
            return String::new();
        };
        let by = Instant::now() + terms.timeout;
        self.text(list.zone, client.to_canonical(), by).await
    }

    /// Returns the counts of a list by number among the zones of the settings.
    #[must_use]
    pub fn figures(&self, number: u8) -> Option<ListFigures> {
        let zone = *self.terms().zones.get(usize::from(number))?;
        let counts = self.0.cache.borrow().counts();
        let sites = self.0.sites.borrow();
        let site = sites.get(zone as usize)?;
        Some(ListFigures {
            cache_hits: counts.hits,
            cache_misses: counts.misses,
            cache_evicted: counts.evicted,
            cache_entries: counts.entries,
            cache_octets: counts.octets,
            ..site.figures()
        })
    }

    /// Returns what is kept about a client, and asks nobody.
    #[must_use]
    pub fn kept(&self, zone: &str, client: IpAddr) -> Kept {
        let sites = self.0.sites.borrow();
        let terms = self.terms();
        let number = terms.zones.iter().find(|number| {
            let site = sites.get(**number as usize);
            site.is_some_and(|site| site.zone.eq_ignore_ascii_case(zone))
        });
        let Some(zone) = number.copied() else {
            return Kept::NoSuchList;
        };
        let client = client.to_canonical();
        let (name, _) = MapName::of(client);
        let cache = self.0.cache.borrow();
        let of = |subject| {
            let question = Question { zone, subject };
            cache.peek(self.now(), &question).map(|(reply, _)| reply)
        };
        let trust = sites.get(zone as usize).map(|site| site.probe.trust());
        if trust == Some(Trust::ListsEverybody) {
            return Kept::ListsEverybody;
        }
        match (of(Subject::Map(name)), of(Subject::Codes(client))) {
            (Some(Reply::Map(_)), _) => Kept::Map,
            (_, Some(Reply::Codes(_))) => Kept::Codes,
            (None, None) => Kept::Nothing,
            _ => Kept::Failure,
        }
    }

    fn terms(&self) -> Rc<Terms> {
        Rc::clone(&self.0.terms.borrow())
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0) + self.0.begin.elapsed()
    }

    /// Asks a list, by the deadline.
    async fn entry(&self, list: &List, client: IpAddr, by: Instant) -> Entry {
        let begin = Instant::now();
        let asked = timeout_at(by, self.outcome(list, client)).await;
        let (outcome, origin) = asked.unwrap_or((Outcome::Late, Origin::Asked));
        self.with_site(list.zone, |site| site.note(&outcome));
        Entry {
            name: list.name.clone(),
            zone: list.domain.clone(),
            weight: list.weight,
            outcome,
            origin,
            took: begin.elapsed(),
        }
    }

    /// What a list says. An entry counts only if the list has passed a check; the first check begins with the first question, and only
    /// a question with an entry waits for it.
    async fn outcome(&self, list: &List, client: IpAddr) -> (Outcome, Origin) {
        self.begin_check(list.zone);
        let (trust, _) = self.with_site(list.zone, |site| site.trust());
        if trust == Trust::ListsEverybody {
            return (Outcome::ListsEverybody, Origin::NotAsked);
        }
        let (outcome, origin) = self.said(list, client).await;
        if !outcome.is_listed() {
            return (outcome, origin);
        }
        let outcome = match self.trust(list.zone).await {
            Trust::Good => outcome,
            Trust::ListsEverybody => Outcome::ListsEverybody,
            Trust::Unchecked => Outcome::Unchecked,
        };
        (outcome, origin)
    }

    async fn said(&self, list: &List, client: IpAddr) -> (Outcome, Origin) {
        if self.has_maps(list, client) {
            let (name, neighbour) = MapName::of(client);
            let (reply, origin) = self.query(list.zone, Subject::Map(name)).await;
            match reply {
                Reply::Map(map) if !map.contains(neighbour) => {
                    return (Outcome::Unlisted { by_map: true }, origin);
                }
                Reply::Map(_) if list.answers.is_empty() => {
                    let codes = Vec::new();
                    return (
                        Outcome::Listed {
                            codes,
                            by_map: true,
                        },
                        origin,
                    );
                }
                // The codes of this client decide.
                Reply::Map(_) => {}
                _ => return (Outcome::of_failure(origin), origin),
            }
        }
        let (reply, origin) = self.query(list.zone, Subject::Codes(client)).await;
        match reply {
            Reply::Codes(codes) => (self.judge(list, &codes), origin),
            _ => (Outcome::of_failure(origin), origin),
        }
    }

    /// What the codes mean by the settings of the list.
    fn judge(&self, list: &List, codes: &[std::net::Ipv4Addr]) -> Outcome {
        if list.answers.is_empty()
            && let Some(code) = codes.iter().copied().find(|code| policy::is_refusal(*code))
        {
            self.with_site(list.zone, |site| site.refused(code));
            return Outcome::Refused(code);
        }
        let codes = codes.iter().copied().filter(|code| list.counts(*code));
        let codes: Vec<_> = codes.collect();
        match codes.is_empty() {
            true => Outcome::Unlisted { by_map: false },
            false => Outcome::Listed {
                codes,
                by_map: false,
            },
        }
    }

    /// Whether the list is asked for a map.
    fn has_maps(&self, list: &List, client: IpAddr) -> bool {
        match list.maps {
            ListMaps::Yes => true,
            ListMaps::No => false,
            // The test entries are those of IPv4, and say nothing about maps of IPv6.
            ListMaps::Auto if client.is_ipv6() => false,
            ListMaps::Auto => self.with_site(list.zone, |site| site.probe.serves()),
        }
    }

    /// The text of a list about a client, if there is one in time.
    async fn text(&self, zone: u32, client: IpAddr, by: Instant) -> String {
        let asked = timeout_at(by, self.query(zone, Subject::Text(client))).await;
        match asked {
            Ok((Reply::Text(text), _)) => text.into(),
            _ => String::new(),
        }
    }

    fn with_site<T: Default>(&self, zone: u32, act: impl FnOnce(&mut Site) -> T) -> T {
        let mut sites = self.0.sites.borrow_mut();
        sites.get_mut(zone as usize).map(act).unwrap_or_default()
    }
}
