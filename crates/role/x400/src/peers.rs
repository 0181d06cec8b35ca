//! Associations opened by the MTA: a pool for each peer, made for the first message to leave.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::timeout;
use vere_associations::{Lent, Names, Pool, PoolSettings};
use vere_net::resolver::{AddressAnswer, Resolver};
use vere_osi::rtse::Broken;
use vere_settings::{X400, X400Password, X400Peer};
use vere_switch::Reach;
use vere_units::TraceId;

/// Waiting associations of a peer.
const WAITING_MAX: usize = 4;
/// Transfers that broke off and are not settled yet.
const BROKEN_MAX: usize = 1_024;
/// How long the releases of all associations may take at the end.
const CLOSE: Duration = Duration::from_secs(5);
/// How long the addresses of a host count.
const ADDRESSES_FRESH: Duration = Duration::from_secs(60);

/// An association of this MTA, lent for a transfer of the peer.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) peer: String,
    pub(crate) lent: Lent,
}

/// A peer's pool, for the addresses that its hosts had.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) pool: Rc<Pool>,
    since: Instant,
    addresses: Vec<SocketAddr>,
}

#[derive(Debug)]
struct State {
    reach: BTreeMap<String, Reach>,
    settings: Vec<X400Peer>,
    /// Counts changes of the settings.
    generation: u64,
    lines: HashMap<String, Line>,
}

/// All peers.
#[derive(Debug)]
pub(crate) struct Peers {
    resolver: Resolver,
    names: Arc<Names>,
    state: RefCell<State>,
    /// Associations with transfers of peers.
    incoming: mpsc::Sender<Incoming>,
    /// Transfers that another association has to settle, by message and peer.
    broken: RefCell<BTreeMap<(TraceId, String), Broken>>,
}

fn has_file(peer: &X400Peer) -> bool {
    let passwords = [&peer.password, &peer.own_password];
    passwords
        .iter()
        .any(|password| matches!(password, X400Password::File(_)))
}

/// Why a peer cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreached {
    /// The settings have no such peer.
    #[error("expected a peer of the settings; found {0}")]
    Unknown(String),
    /// The settings have no address.
    #[error("the settings name no address of {0}, which calls by itself")]
    NoAddress(String),
    /// No host has an address.
    #[error("no host of {0} has an address")]
    Unresolved(String),
}

impl Peers {
    /// The peers of the settings. Associations of the MTA with transfers from the peers go to `incoming`.
    pub(crate) fn new(
        resolver: Resolver,
        x400: &X400,
        reach: BTreeMap<String, Reach>,
        incoming: mpsc::Sender<Incoming>,
    ) -> Self {
        Self {
            incoming,
            resolver,
            names: Arc::new(Names::new(&x400.mta_name)),
            state: RefCell::new(State {
                reach,
                settings: x400.peers.clone(),
                generation: 0,
                lines: HashMap::new(),
            }),
            broken: RefCell::default(),
        }
    }

    /// Applies changed settings: later associations have the new terms. Peers with unchanged terms keep the associations.
    pub(crate) fn set(&self, x400: &X400, reach: BTreeMap<String, Reach>) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.reach = reach;
        state.generation += 1;
        let before = std::mem::replace(&mut state.settings, x400.peers.clone());
        let is_kept = |name: &String| {
            let old = before.iter().find(|peer| peer.name == *name);
            let new = x400.peers.iter().find(|peer| peer.name == *name);
            // Files with passwords and certificates may have changed.
            old == new && new.is_some_and(|peer| !peer.tls && !has_file(peer))
        };
        // A pool ends with its last worker.
        state.lines.retain(|name, _| is_kept(name));
    }

    /// The peers that want associations without messages.
    pub(crate) fn permanent(&self) -> Vec<String> {
        let state = self.state.borrow();
        let wanted = state.reach.iter().filter(|(_, reach)| reach.permanent > 0);
        wanted.map(|(name, _)| name.clone()).collect()
    }

    /// Associations of this MTA with a peer that are open now.
    pub(crate) fn open(&self, peer: &str) -> usize {
        self.state
            .borrow()
            .lines
            .get(peer)
            .map_or(0, |line| line.pool.open())
    }

    /// All associations of this MTA that are open now.
    pub(crate) fn open_all(&self) -> usize {
        self.state
            .borrow()
            .lines
            .values()
            .map(|line| line.pool.open())
            .sum()
    }

    /// The pool of a peer.
    ///
    /// # Errors
    /// [`Unreached`].
    pub(crate) async fn line(&self, peer: &str) -> Result<Line, Unreached> {
        let (reach, generation) = {
            let state = self.state.borrow();
            (state.reach.get(peer).cloned(), state.generation)
        };
        let reach = reach.ok_or_else(|| Unreached::Unknown(peer.to_owned()))?;
        let known = self.state.borrow().lines.get(peer).cloned();
        if let Some(line) = known
            .as_ref()
            .filter(|line| line.since.elapsed() < ADDRESSES_FRESH)
        {
            return Ok(line.clone());
        }
        let (host, addresses) = match (self.resolve(peer, &reach).await, &known) {
            (Ok(found), _) => found,
            // A name server that is away does not end associations.
            (Err(error), Some(line)) => {
                tracing::warn!(peer, %error, "the addresses of before are used");
                return Ok(line.clone());
            }
            (Err(error), None) => return Err(error),
        };
        let line = match known {
            Some(line) if is_same(&line.addresses, &addresses) => Line {
                since: Instant::now(),
                ..line
            },
            _ => self.new_line(peer, &reach, (&host, addresses)),
        };
        let mut state = self.state.borrow_mut();
        // During the look-up the settings may have changed: the line serves this attempt alone.
        if state.generation == generation {
            state.lines.insert(peer.to_owned(), line.clone());
        }
        Ok(line)
    }

    fn new_line(
        &self,
        peer: &str,
        reach: &Reach,
        (host, addresses): (&str, Vec<SocketAddr>),
    ) -> Line {
        let (incoming, lent) = mpsc::channel(WAITING_MAX);
        spawn_local(pass_on(peer.to_owned(), lent, self.incoming.clone()));
        let settings = PoolSettings {
            permanent: reach.permanent,
            most: reach.associations_max,
            ..PoolSettings::new(reach.peer(host, addresses.clone()))
        };
        Line {
            pool: Rc::new(Pool::start(
                settings,
                Arc::clone(&self.names),
                Some(incoming),
            )),
            since: Instant::now(),
            addresses,
        }
    }

    /// The addresses of all hosts in their order, and the name of the first host.
    async fn resolve(
        &self,
        peer: &str,
        reach: &Reach,
    ) -> Result<(String, Vec<SocketAddr>), Unreached> {
        let Some((first, _)) = reach.hosts.first() else {
            return Err(Unreached::NoAddress(peer.to_owned()));
        };
        let mut addresses = Vec::new();
        for (host, port) in &reach.hosts {
            match host.parse::<IpAddr>() {
                Ok(address) => addresses.push(SocketAddr::new(address, *port)),
                Err(_) => match self.resolver.addresses(host).await {
                    AddressAnswer::Found(found) => {
                        addresses.extend(found.into_iter().map(|one| SocketAddr::new(one, *port)));
                    }
                    other => tracing::warn!(peer, host, answer = ?other, "host without address"),
                },
            }
        }
        if addresses.is_empty() {
            return Err(Unreached::Unresolved(peer.to_owned()));
        }
        Ok((first.clone(), addresses))
    }

    /// Takes the rest of a transfer that broke off.
    pub(crate) fn take_broken(&self, trace: TraceId, peer: &str) -> Option<Broken> {
        self.broken.borrow_mut().remove(&(trace, peer.to_owned()))
    }

    /// Keeps the rest of a transfer. Beyond the bound a message is sent anew, and may arrive twice.
    pub(crate) fn keep_broken(&self, trace: TraceId, peer: &str, broken: Broken) {
        let mut all = self.broken.borrow_mut();
        all.insert((trace, peer.to_owned()), broken);
        // Ids grow with time: the oldest message goes first, which may have expired long ago.
        while all.len() > BROKEN_MAX {
            all.pop_first();
        }
    }

    /// Releases all associations, within [`CLOSE`].
    pub(crate) async fn close(&self) {
        let lines = std::mem::take(&mut self.state.borrow_mut().lines);
        let pools = lines
            .into_values()
            .filter_map(|line| Rc::into_inner(line.pool));
        let all = join_all(pools.map(Pool::close));
        // Whoever does not answer loses its connection.
        let _closed = timeout(CLOSE, all).await;
    }
}

/// Whether these are the same addresses, in whatever order.
fn is_same(some: &[SocketAddr], others: &[SocketAddr]) -> bool {
    some.len() == others.len() && some.iter().all(|one| others.contains(one))
}

/// Has the associations made that are to stay open without messages, until the MTA stops.
pub(crate) async fn keep_open(peers: Rc<Peers>) {
    loop {
        for peer in peers.permanent() {
            if let Err(error) = peers.line(&peer).await {
                tracing::warn!(peer, %error, "no permanent association");
            }
        }
        tokio::time::sleep(ADDRESSES_FRESH).await;
    }
}

/// Names the peer of each association.
async fn pass_on(peer: String, mut all: mpsc::Receiver<Lent>, to: mpsc::Sender<Incoming>) {
    while let Some(lent) = all.recv().await {
        let peer = peer.clone();
        if to.send(Incoming { peer, lent }).await.is_err() {
            return;
        }
    }
}
