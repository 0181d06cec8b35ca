//! Answers that need the DNS: SPF, and records as they are.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use vere_handoff::question::{
    Answer, LOOKUP_SECONDS_MAX, Name, NoRecords, RECORDS_SECONDS_MAX, Record, RecordType, Records,
    Sender, Spf, SpfResults,
};
use vere_judging::{Names, told};
use vere_net::resolver::{Record as Found, RecordKind, RecordsAnswer, Resolver};
use vere_spf::Session;

use super::recent::Recent;
use super::share::{Share, Shares, Turns};

/// Questions of a kind, SPF or records, that wait for the DNS or for their turn; further ones are answered "unavailable" at once. A question has
/// some KiB: all of both kinds stay below 32 MiB.
pub(super) const PENDING_MAX: usize = 2_048;
/// Those of them that are left to sites with few waiting questions, and the number of a site's. Strangers choose the names, and thereby name
/// servers that never answer: a few sites could hold all other places, and honest mail would be judged without the DNS.
const PENDING_SPARED: usize = 512;
const PENDING_FEW: u32 = 64;
/// Waiting questions of a kind of the clients of one /24 (IPv4) or /64 (IPv6). A message needs some 20 records at a time, and 40 at most; a large
/// sender has hundreds of sessions from one network.
pub(super) const SHARE_MAX: u32 = 512;
/// Questions of a kind for which the DNS is asked at once for the clients of one network; further questions wait for a turn.
const TURNS_MAX: usize = 32;
/// Questions of a kind for which the DNS is asked at once: each has some sockets, beside 1,024 connections of clients.
pub(super) const RUNNING_MAX: usize = 128;
/// Those of them that are left to sites with few questions under way, and the number of a site's.
const SPARED: usize = 32;
const FEW: usize = 4;
/// Results of SPF in each of the two halves that are kept; one has 1.5 KiB at most.
const RESULTS_MAX: usize = 4_096;
/// How long a result of SPF is kept: a client sends several messages or tries again within it. The records behind a result
/// are kept by the resolver for their time to live.
const RESULT_LIFE: Duration = Duration::from_secs(60);
/// How long a question for SPF waits for the DNS.
const PATIENCE: Duration = Duration::from_secs(LOOKUP_SECONDS_MAX);
/// How long a question for records waits: nobody waits for the answer any longer.
const RECORDS_PATIENCE: Duration = Duration::from_secs(RECORDS_SECONDS_MAX);
/// How long the result of the sender waits for that of the HELO name, whose name servers may be slow: the HELO name without a result
/// decides nothing.
const HELO_GRACE: Duration = Duration::from_secs(2);

/// A question that needs the DNS.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Lookup {
    Spf {
        client: IpAddr,
        helo: Box<str>,
        reverse_path: Box<str>,
    },
    Records {
        /// The client that the question is about.
        client: IpAddr,
        name: Box<str>,
        kind: RecordType,
    },
}

impl From<Sender<'_>> for Lookup {
    fn from(sender: Sender<'_>) -> Self {
        Self::Spf {
            client: sender.client(),
            helo: sender.helo().into(),
            reverse_path: sender.reverse_path().into(),
        }
    }
}

impl From<(IpAddr, Name<'_>, RecordType)> for Lookup {
    fn from((client, name, kind): (IpAddr, Name<'_>, RecordType)) -> Self {
        Self::Records {
            client,
            name: name.as_str().into(),
            kind,
        }
    }
}

impl Lookup {
    const fn client(&self) -> IpAddr {
        match self {
            Self::Spf { client, .. } | Self::Records { client, .. } => *client,
        }
    }

    fn unavailable(&self) -> Answer {
        match self {
            Self::Spf { .. } => Answer::Spf(Spf::TempError.into()),
            Self::Records { .. } => Answer::Nothing(NoRecords::Unavailable),
        }
    }

    async fn answer(&self, resolver: Resolver, by: Instant) -> Answer {
        match self {
            Self::Spf {
                client,
                helo,
                reverse_path,
            } => {
                let session = |reverse_path| Session {
                    client: *client,
                    helo,
                    reverse_path,
                };
                Answer::Spf(results(&Names::new(resolver), session, reverse_path, by).await)
            }
            Self::Records { name, kind, .. } => {
                let found = timeout_at(by, resolver.records(name, kind_of(*kind))).await;
                found.map_or_else(|_| self.unavailable(), |found| records(name, found))
            }
        }
    }
}

/// A question that was taken and has no answer yet.
#[derive(Debug)]
pub(super) struct Pending {
    id: u64,
    lookup: Lookup,
    by: Instant,
    /// The place among the waiting questions, given back when the question is answered or given up.
    _place: Place,
    /// The turns of the client's network.
    turns: Arc<Semaphore>,
}

/// A place among the waiting questions of a kind.
#[derive(Debug)]
struct Place {
    _place: OwnedSemaphorePermit,
    _share: Share,
    /// The share of the site at the spared places.
    _few: Option<Share>,
}

/// The places of the questions of a kind. SPF and records are apart: silent name servers of the one kind do not hold up the other.
#[derive(Debug)]
struct Places {
    waiting: Arc<Semaphore>,
    waiting_spared: Arc<Semaphore>,
    shares: Shares,
    few_waiting: Shares,
    turns: Turns,
    running: Semaphore,
    running_spared: Semaphore,
    few_running: Turns,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            waiting: Arc::new(Semaphore::new(PENDING_MAX - PENDING_SPARED)),
            waiting_spared: Arc::new(Semaphore::new(PENDING_SPARED)),
            shares: Shares::default(),
            few_waiting: Shares::default(),
            turns: Turns::new(TURNS_MAX),
            running: Semaphore::new(RUNNING_MAX - SPARED),
            running_spared: Semaphore::new(SPARED),
            few_running: Turns::new(FEW),
        }
    }
}

impl Places {
    /// A place among the waiting questions, if there is one for the client.
    fn wait(&self, client: IpAddr) -> Option<Place> {
        let share = Share::take(&self.shares, client, SHARE_MAX)?;
        let (place, few) = match Arc::clone(&self.waiting).try_acquire_owned() {
            Ok(place) => (place, None),
            Err(_) => {
                let few = Share::of_site(&self.few_waiting, client, PENDING_FEW)?;
                let spared = Arc::clone(&self.waiting_spared);
                (spared.try_acquire_owned().ok()?, Some(few))
            }
        };
        Some(Place {
            _place: place,
            _share: share,
            _few: few,
        })
    }

    /// Waits for a place among the questions for which the DNS is asked.
    async fn run(&self, client: IpAddr) -> impl Sized {
        let few = self.few_running.of_site(client);
        let spared = async {
            let turn = few.acquire_owned().await;
            (turn.ok(), self.running_spared.acquire().await.ok())
        };
        tokio::select! {
            biased;
            place = self.running.acquire() => (None, place.ok()),
            place = spared => place,
        }
    }
}

/// What lookups share.
#[derive(Debug)]
pub(super) struct Lookups {
    resolver: RefCell<Resolver>,
    spf: Places,
    records: Places,
    /// The number of resolvers so far: results of an older one are not kept.
    resolvers: Cell<u64>,
    results: RefCell<Recent<Lookup, (Instant, SpfResults)>>,
}

impl Lookups {
    pub(super) fn new(resolver: Resolver) -> Self {
        Self {
            resolver: RefCell::new(resolver),
            spf: Places::default(),
            records: Places::default(),
            resolvers: Cell::new(0),
            results: RefCell::new(Recent::new(RESULTS_MAX)),
        }
    }

    /// Asks by another resolver from the next question on.
    pub(super) fn set_resolver(&self, resolver: Resolver) {
        self.resolver.replace(resolver);
        self.resolvers.set(self.resolvers.get().wrapping_add(1));
        self.results.borrow_mut().forget();
    }

    /// Takes a question: an answer that is known, or the question that waits.
    pub(super) fn ask(&self, id: u64, lookup: Lookup) -> Result<Answer, Box<Pending>> {
        let now = Instant::now();
        if let Some((until, result)) = self.results.borrow_mut().find(&lookup)
            && now < until
        {
            return Ok(Answer::Spf(result));
        }
        let client = lookup.client();
        let (places, patience) = self.places(&lookup);
        let Some(place) = places.wait(client) else {
            return Ok(lookup.unavailable());
        };
        Err(Box::new(Pending {
            id,
            lookup,
            by: now + patience,
            _place: place,
            turns: places.turns.of(client),
        }))
    }

    /// The places of questions of a kind, and how long such a question waits.
    const fn places(&self, lookup: &Lookup) -> (&Places, Duration) {
        match lookup {
            Lookup::Spf { .. } => (&self.spf, PATIENCE),
            Lookup::Records { .. } => (&self.records, RECORDS_PATIENCE),
        }
    }

    /// Questions for records for which the DNS is asked now.
    #[cfg(test)]
    pub(super) fn asking(&self) -> usize {
        let Places {
            running,
            running_spared,
            ..
        } = &self.records;
        RUNNING_MAX - running.available_permits() - running_spared.available_permits()
    }

    /// Answers a question: in its turn, and in time.
    pub(super) async fn answer(self: Rc<Self>, pending: Pending) -> (u64, Answer) {
        let turn = async {
            let of_network = pending.turns.acquire().await;
            let (places, _) = self.places(&pending.lookup);
            (of_network, places.run(pending.lookup.client()).await)
        };
        let Ok(_turn) = timeout_at(pending.by, turn).await else {
            return (pending.id, pending.lookup.unavailable());
        };
        let resolver = self.resolver.borrow().clone();
        let number = self.resolvers.get();
        let answer = pending.lookup.answer(resolver, pending.by).await;
        if let Answer::Spf(results) = answer
            // A HELO name without a result for now decides nothing, and is not worth a second wait.
            && results.sender != Spf::TempError
            && number == self.resolvers.get()
        {
            let until = Instant::now() + RESULT_LIFE;
            let mut kept = self.results.borrow_mut();
            kept.keep(pending.lookup, (until, results));
        }
        (pending.id, answer)
    }
}

/// Checks both identities at the same time (RFC 7208 sections 2.3 and 2.4): the name servers of the one do not shorten the time of
/// the other. A "fail" of the HELO name is the end of the check, since no result of the sender changes the decision.
async fn results<'a>(
    dns: &Names,
    session: impl Fn(&'a str) -> Session<'a>,
    reverse_path: &'a str,
    by: Instant,
) -> SpfResults {
    let check = async |reverse_path| {
        let checked = timeout_at(by, vere_spf::check(dns, session(reverse_path))).await;
        checked.map_or(Spf::TempError, told)
    };
    // The null reverse-path has the HELO name as its identity.
    if reverse_path.is_empty() {
        return check("").await.into();
    }
    both(check(""), check(reverse_path)).await
}

/// Waits for the results of both identities.
pub(super) async fn both(
    of_helo: impl Future<Output = Spf>,
    of_sender: impl Future<Output = Spf>,
) -> SpfResults {
    let (mut of_helo, mut of_sender) = (pin!(of_helo), pin!(of_sender));
    let (helo, sender) = tokio::select! {
        biased;
        helo = &mut of_helo => match helo {
            Spf::Fail => (helo, Spf::None),
            helo => (helo, of_sender.await),
        },
        sender = &mut of_sender => {
            let helo = timeout(HELO_GRACE, of_helo).await;
            (helo.unwrap_or(Spf::TempError), sender)
        }
    };
    SpfResults {
        sender,
        helo: Some(helo),
    }
}

fn records(name: &str, found: RecordsAnswer) -> Answer {
    match found {
        RecordsAnswer::Found(records) => {
            Answer::Records(Records::new(records.into_iter().filter_map(record)))
        }
        RecordsAnswer::None => Answer::Nothing(NoRecords::NoData),
        RecordsAnswer::NoSuchName => Answer::Nothing(NoRecords::NoSuchName),
        RecordsAnswer::TempFail(failure) => {
            tracing::debug!(name, %failure, "lookup failed");
            Answer::Nothing(NoRecords::Unavailable)
        }
    }
}

const fn kind_of(kind: RecordType) -> RecordKind {
    match kind {
        RecordType::A => RecordKind::A,
        RecordType::Aaaa => RecordKind::Aaaa,
        RecordType::Mx => RecordKind::Mx,
        RecordType::Ptr => RecordKind::Ptr,
        RecordType::Txt => RecordKind::Txt,
    }
}

/// A record of a kind for workers; [`kind_of`] asks for no other kind.
fn record(record: Found) -> Option<Record> {
    Some(match record {
        Found::A(address) => Record::A(address),
        Found::Aaaa(address) => Record::Aaaa(address),
        Found::Mx(preference, host) => Record::Mx(preference, host),
        Found::Ptr(name) => Record::Ptr(name),
        Found::Txt(text) => Record::Txt(text),
        Found::Caa(..) | Found::Srv(..) => return None,
    })
}
