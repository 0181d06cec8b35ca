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

/// Questions that wait for the DNS or for their turn; further ones are answered "unavailable" at once. A question has some
/// KiB: 4,096 stay below 32 MiB.
pub(super) const PENDING_MAX: usize = 4_096;
/// Questions of a kind, SPF or records, that wait for the clients of one /24 (IPv4) or /64 (IPv6). A message needs some 20 records at a time,
/// and 64 at most; a large sender has hundreds of sessions from one network.
pub(super) const SHARE_MAX: u32 = 512;
/// Questions of a kind for which the DNS is asked at once for the clients of one network; further questions wait for a turn. Strangers choose the
/// names, and thereby name servers that never answer.
const TURNS_MAX: usize = 32;
/// Questions for which the DNS is asked at once: each has some sockets, beside 1,024 connections of clients.
pub(super) const RUNNING_MAX: usize = 256;
/// Those of them that only sites with few questions under way use. Strangers with many networks and silent name servers could hold all others, and
/// honest mail would be judged without the DNS.
pub(super) const SPARED: usize = 64;
/// Questions of a site that may use the spared places at once.
pub(super) const FEW: usize = 4;
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
    /// Gives the place back when the question is answered or given up.
    _place: OwnedSemaphorePermit,
    _share: Share,
    /// The turns of the client's network.
    turns: Arc<Semaphore>,
}

/// What the networks have of the questions of a kind.
#[derive(Debug)]
struct Networks {
    shares: Shares,
    turns: Turns,
}

impl Default for Networks {
    fn default() -> Self {
        Self {
            shares: Shares::default(),
            turns: Turns::new(TURNS_MAX),
        }
    }
}

/// What lookups share.
#[derive(Debug)]
pub(super) struct Lookups {
    resolver: RefCell<Resolver>,
    places: Arc<Semaphore>,
    running: Semaphore,
    spared: Semaphore,
    /// The turns of sites at the spared places.
    few: Turns,
    /// SPF and records apart: silent name servers of the one kind do not hold up the other.
    spf: Networks,
    records: Networks,
    /// The number of resolvers so far: results of an older one are not kept.
    resolvers: Cell<u64>,
    results: RefCell<Recent<Lookup, (Instant, SpfResults)>>,
}

impl Lookups {
    pub(super) fn new(resolver: Resolver) -> Self {
        Self {
            resolver: RefCell::new(resolver),
            places: Arc::new(Semaphore::new(PENDING_MAX)),
            running: Semaphore::new(RUNNING_MAX - SPARED),
            spared: Semaphore::new(SPARED),
            few: Turns::new(FEW),
            spf: Networks::default(),
            records: Networks::default(),
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
        let (networks, patience) = match &lookup {
            Lookup::Spf { .. } => (&self.spf, PATIENCE),
            Lookup::Records { .. } => (&self.records, RECORDS_PATIENCE),
        };
        let client = lookup.client();
        let share = Share::take(&networks.shares, client, SHARE_MAX);
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        let (Some(share), Some(place)) = (share, place) else {
            return Ok(lookup.unavailable());
        };
        Err(Box::new(Pending {
            id,
            lookup,
            by: now + patience,
            _place: place,
            _share: share,
            turns: networks.turns.of(client),
        }))
    }

    /// Waits for a place among the questions for which the DNS is asked.
    async fn place(&self, client: IpAddr) -> impl Sized {
        let few = self.few.of_site(client);
        let spared = async {
            let turn = few.acquire_owned().await;
            (turn.ok(), self.spared.acquire().await.ok())
        };
        tokio::select! {
            biased;
            place = self.running.acquire() => (None, place.ok()),
            place = spared => place,
        }
    }

    /// Questions for which the DNS is asked now.
    #[cfg(test)]
    pub(super) fn asking(&self) -> usize {
        RUNNING_MAX - self.running.available_permits() - self.spared.available_permits()
    }

    /// Answers a question: in its turn, and in time.
    pub(super) async fn answer(self: Rc<Self>, pending: Pending) -> (u64, Answer) {
        let turn = async {
            let of_network = pending.turns.acquire().await;
            (of_network, self.place(pending.lookup.client()).await)
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
            Answer::Records(Records::new(records.into_iter().map(record)))
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

fn record(record: Found) -> Record {
    match record {
        Found::A(address) => Record::A(address),
        Found::Aaaa(address) => Record::Aaaa(address),
        Found::Mx(preference, host) => Record::Mx(preference, host),
        Found::Ptr(name) => Record::Ptr(name),
        Found::Txt(text) => Record::Txt(text),
    }
}
