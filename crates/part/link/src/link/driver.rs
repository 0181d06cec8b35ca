//! The driver: connects, moves octets, asks the register, and wakes whoever waits.

use std::cell::RefMut;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use vere_cluster::{RegisterError, Swap};
use vere_net::tls::TlsError;
use vere_owner::{
    Link, OwnerError, OwnerEvent, RegisterFailed, RegisterRequest, RegisterSwap, ReplicaChange,
};

use super::shared::{Inner, Read, Shared};
use super::state::LinkState;
use super::wire::Wire;
use vere_spoolwire::SpoolError;

/// Octets read at once.
const READ_MAX: usize = 256 << 10;
/// How often deadlines are looked at when nothing else happens.
const TICK: Duration = Duration::from_millis(250);
/// How often at most.
const TICK_MIN: Duration = Duration::from_millis(20);

/// How long a system that does not answer is waited for before it is asked anew: by itself TCP asks less
/// and less often, and a machine that is back would wait for that. Longer than a node may be silent.
const CONNECT_TRY: Duration = Duration::from_millis(1_500);

/// After so many answers in a row for which this thread was woken in vain, a connection is not watched until
/// something is waited for that comes over it.
const VAIN_MAX: u32 = 4;

/// Why a connection came to its end.
enum Broken {
    /// The link was closed, or the connection is not wanted any more.
    Over,
    Io(io::Error),
    Owner(OwnerError),
    HandshakeTimeout,
    /// The node accepted the connection and did not answer in the clear.
    NoPlainAnswer,
    Tls(TlsError),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Runs until the link is closed, or the group is taken over and its lease given back.
pub(super) async fn drive(shared: Rc<Shared>) {
    tokio::join!(drive_owner(&shared), super::lease::keep(&shared));
}

async fn drive_owner(shared: &Rc<Shared>) {
    let links: Vec<Link> = shared.inner.borrow().owner.links().collect();
    let mut tasks = JoinSet::new();
    for (number, link) in links.into_iter().enumerate() {
        tasks.spawn_local(keep_connected(Rc::clone(shared), number, link));
    }
    keep_house(shared).await;
    tasks.abort_all();
    let mut inner = shared.inner.borrow_mut();
    inner.closed = true;
    inner.pending.fail(SpoolError::Closed);
    inner.reads.clear();
}

/// Looks after deadlines and the register.
async fn keep_house(shared: &Shared) {
    loop {
        {
            let mut inner = shared.inner.borrow_mut();
            if inner.closed {
                return;
            }
            let now = shared.clock.now();
            inner.owner.timed_out(now);
            after(shared, inner);
        }
        if *shared.state.borrow() == LinkState::Fenced {
            return;
        }
        let request = shared.inner.borrow_mut().owner.poll_register();
        if let Some(request) = request {
            ask(shared, request).await;
            continue;
        }
        let deadline = shared.inner.borrow().owner.deadline();
        let left = deadline
            .saturating_since(shared.clock.now())
            .clamp(TICK_MIN, TICK);
        let commits = expire(shared).unwrap_or_else(|| Instant::now() + TICK);
        tokio::select! {
            () = shared.keeper.notified() => {}
            () = tokio::time::sleep_until(commits.min(Instant::now() + left)) => {}
        }
    }
}

/// Asks the register what the owner wants to know or have changed. Deadlines go on meanwhile.
async fn ask(shared: &Shared, request: RegisterRequest) {
    let key = format!("group/{}", shared.options.group);
    let register = &shared.options.register;
    match request {
        RegisterRequest::Read => {
            let result = meanwhile(shared, register.read(&key)).await;
            let read = result.map_err(|error| {
                tracing::error!(%error, "cannot read the membership register");
                RegisterFailed
            });
            let value = read.map(|found| found.map(|found| (found.version, found.value)));
            let mut inner = shared.inner.borrow_mut();
            inner.owner.register_read(value, shared.clock.now());
            after(shared, inner);
        }
        RegisterRequest::Swap { expected, value } => {
            let result = meanwhile(shared, register.swap(&key, expected, &value)).await;
            let swap = swapped(result);
            let mut inner = shared.inner.borrow_mut();
            inner.owner.register_swapped(&swap, shared.clock.now());
            after(shared, inner);
        }
    }
}

fn swapped(result: Result<Swap, RegisterError>) -> RegisterSwap {
    match result {
        Ok(Swap::Done(version)) => RegisterSwap::Done(version),
        Ok(Swap::Conflict(_)) => RegisterSwap::Conflict,
        Err(error) => {
            tracing::error!(%error, "cannot change the membership register");
            RegisterSwap::Unknown
        }
    }
}

/// Waits for something while time passes for the owner.
async fn meanwhile<T>(shared: &Shared, what: impl Future<Output = T>) -> T {
    let mut what = pin!(what);
    loop {
        tokio::select! {
            result = &mut what => return result,
            () = tokio::time::sleep(TICK) => {
                expire(shared);
                let mut inner = shared.inner.borrow_mut();
                inner.owner.timed_out(shared.clock.now());
                after(shared, inner);
            }
        }
    }
}

/// Keeps one link connected for as long as the owner wants it.
async fn keep_connected(shared: Rc<Shared>, number: usize, link: Link) {
    let options = &shared.options;
    let mut backoff = options.backoff_min;
    loop {
        while !shared.inner.borrow().owner.wants(link) {
            shared.wakers[number].notified().await;
        }
        let begun = Instant::now();
        if let Err(broken) = attempt(&shared, number, link).await {
            tell_broken(&shared, link, &broken);
        }
        if begun.elapsed() > options.backoff_max {
            backoff = options.backoff_min;
        }
        // What the attempt took counts: who came back meanwhile need not wait any longer.
        tokio::time::sleep_until(begun + backoff).await;
        backoff = (backoff * 2).min(options.backoff_max);
    }
}

fn tell_broken(shared: &Shared, link: Link, broken: &Broken) {
    let node = shared.options.nodes[link.node].name.as_str();
    let text = match broken {
        Broken::Over | Broken::Owner(OwnerError::NotWanted) => return,
        // The error text describes the TLS failure.
        Broken::Io(error) if error.kind() == io::ErrorKind::InvalidData => error.to_string(),
        Broken::Io(error) => format!("connection broke: {error}"),
        Broken::HandshakeTimeout => "does not answer".to_owned(),
        Broken::NoPlainAnswer => "does not answer, or only with TLS".to_owned(),
        Broken::Tls(error) => error.to_string(),
        Broken::Owner(OwnerError::Closed(reason)) if reason.is_denial() => {
            let (account, group) = (&shared.options.credentials.account, &shared.options.group);
            format!("account {account:?}, group {group:?}: {reason}")
        }
        Broken::Owner(error) => error.to_string(),
    };
    let mut inner = shared.inner.borrow_mut();
    let before = inner.troubles.insert(node.to_owned(), text.clone());
    // Once is enough, however often it is tried.
    if before.as_ref() != Some(&text) {
        tracing::warn!(node, trouble = text, "no connection to a spool node");
    }
}

/// Runs one connection from connect to close.
async fn attempt(shared: &Shared, number: usize, link: Link) -> Result<(), Broken> {
    let node = &shared.options.nodes[link.node];
    let address = node.addresses[link.address];
    let tls = node.encryption.as_ref();
    let tls = tls.and_then(|wanted| wanted.covers(address));
    let patience = shared.options.connect_timeout.min(CONNECT_TRY);
    let connect = tokio::time::timeout(patience, TcpStream::connect(address));
    let stream = connect.await.map_err(|_| Broken::HandshakeTimeout)??;
    // Without it small frames wait for acknowledgements; a socket that refuses is only slower.
    let _ = stream.set_nodelay(true);
    let line = tls.map(|tls| tls.connect(&node.name, address.ip()));
    let wire = Wire::new(stream, line.transpose().map_err(Broken::Tls)?)?;
    let nonce = vere_process::secret::random();
    shared
        .inner
        .borrow_mut()
        .owner
        .connected(link, nonce, shared.clock.now());
    // Also runs when the task is aborted.
    let _end = End {
        shared,
        number,
        link,
    };
    serve(shared, number, link, wire).await
}

/// The end of a connection is told however it comes.
struct End<'a> {
    shared: &'a Shared,
    number: usize,
    link: Link,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.shared.unwatched[self.number].set(false);
        let mut inner = self.shared.inner.borrow_mut();
        inner.drops.retain(|(link, _)| *link != self.link);
        inner.owner.disconnected(self.link, self.shared.clock.now());
        after(self.shared, inner);
    }
}

async fn serve(shared: &Shared, number: usize, link: Link, mut wire: Wire) -> Result<(), Broken> {
    let handshake_until = Instant::now() + shared.options.connect_timeout;
    let mut buffer = vec![0; READ_MAX];
    let mut shown = None;
    let mut vain = 0;
    loop {
        if shown.is_none() {
            shown = wire.peer_certificate_end();
            shown.inspect(|end| shared.note_certificate(link, *end));
        }
        let wants_write = go_on(shared, number, link, &mut wire, handshake_until)?;
        let mut awaits = is_awaited(shared, link);
        if awaits && !wire.is_watched() {
            // Nearly always it is there already.
            read(shared, link, &mut wire, &mut buffer)?;
            awaits = is_awaited(shared, link);
        }
        if awaits || wants_write {
            vain = 0;
            wire.watch(true)?;
        } else if vain >= VAIN_MAX && !wire.is_encrypted() {
            wire.watch(false)?;
        }
        shared.unwatched[number].set(!wire.is_watched());
        tokio::select! {
            ready = wire.ready(wants_write) => {
                if ready? {
                    vain += u32::from(!is_awaited(shared, link));
                    read(shared, link, &mut wire, &mut buffer)?;
                }
            }
            () = shared.wakers[number].notified() => {}
            () = tokio::time::sleep_until(handshake_until), if Instant::now() < handshake_until => {}
        }
    }
}

/// Whether what comes over a link is to be heard at once.
fn is_awaited(shared: &Shared, link: Link) -> bool {
    shared.inner.borrow().owner.awaits(link)
}

/// Looks whether a connection goes on, and writes what is pending over it. True when the socket takes no more.
fn go_on(
    shared: &Shared,
    number: usize,
    link: Link,
    wire: &mut Wire,
    handshake_until: Instant,
) -> Result<bool, Broken> {
    let mut inner = shared.inner.borrow_mut();
    if inner.closed {
        return Err(Broken::Over);
    }
    let drop = inner.drops.iter().find(|(dropped, _)| *dropped == link);
    if let Some((_, error)) = drop {
        return Err(Broken::Owner(*error));
    }
    if !inner.owner.is_up(link) && Instant::now() >= handshake_until {
        return Err(if wire.is_encrypted() {
            Broken::HandshakeTimeout
        } else {
            Broken::NoPlainAnswer
        });
    }
    let mut moved = false;
    let wants_write = write(&mut inner, link, wire, &mut moved)?;
    // Only then: two links that cannot write would wake each other for ever.
    if moved {
        wake_others(shared, &inner, number);
    }
    Ok(wants_write)
}

/// What was written may let another link go on: a rebuild reads from one and writes to another.
fn wake_others(shared: &Shared, inner: &Inner, number: usize) {
    for (other, link) in inner.owner.links().enumerate() {
        if other != number && inner.owner.has_output(link) {
            shared.wakers[other].notify_one();
        }
    }
}

/// Writes what is pending. True when the socket takes no more; `moved` tells whether it took anything.
fn write(inner: &mut Inner, link: Link, wire: &mut Wire, moved: &mut bool) -> io::Result<bool> {
    loop {
        match wire.try_flush() {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        }
        let octets = inner.owner.output(link);
        if octets.is_empty() {
            return Ok(false);
        }
        match wire.try_write(octets) {
            Ok(count) => {
                inner.owner.sent(link, count);
                *moved = true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        }
    }
}

fn read(shared: &Shared, link: Link, wire: &mut Wire, buffer: &mut [u8]) -> Result<(), Broken> {
    match wire.try_read(buffer) {
        Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        Ok(count) => {
            let mut inner = shared.inner.borrow_mut();
            let octets = buffer.get(..count).unwrap_or_default();
            let result = inner.owner.input(link, octets, shared.clock.now());
            // What came before the fault stands.
            after(shared, inner);
            result.map_err(Broken::Owner)
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whatever the owner was told: its events are passed on, and whoever has to do something is woken.
fn after(shared: &Shared, mut inner: RefMut<'_, Inner>) {
    let mut replicas_changed = false;
    while let Some(event) = inner.owner.poll_event() {
        replicas_changed |= matches!(event, OwnerEvent::Replica { .. });
        tell(shared, &mut inner, event);
    }
    if replicas_changed {
        shared.replicas.send_replace(inner.owner.table());
    }
    while let Some(drop) = inner.owner.poll_drop() {
        inner.drops.push(drop);
    }
    if inner.owner.has_register_request() {
        shared.keeper.notify_one();
    }
    let links: Vec<Link> = inner.owner.links().collect();
    let wakers = shared.wakers.iter().zip(&shared.unwatched);
    for ((waker, unwatched), link) in wakers.zip(links) {
        let idle = !inner.owner.is_connected(link) && inner.owner.wants(link);
        let dropped = inner.drops.iter().any(|(drop, _)| *drop == link);
        let unheard = unwatched.get() && inner.owner.awaits(link);
        if idle || dropped || unheard || !inner.owner.output(link).is_empty() {
            waker.notify_one();
        }
    }
}

fn tell(shared: &Shared, inner: &mut Inner, event: OwnerEvent) {
    match event {
        OwnerEvent::Opened => {
            shared.lease_waker.notify_one();
            shared.state.send_replace(LinkState::Connected);
        }
        OwnerEvent::Shut(reason) => {
            // A group that is another's stays so, also when its nodes turn away.
            shared.state.send_if_modified(|state| {
                let lost = *state == LinkState::Fenced;
                if !lost {
                    *state = LinkState::Down(reason);
                }
                !lost
            });
        }
        OwnerEvent::Fenced => {
            tracing::error!(group = %shared.options.group, "another gateway has taken the group over");
            shared.state.send_replace(LinkState::Fenced);
            shared.keeper.notify_one();
            shared.lease_waker.notify_one();
        }
        OwnerEvent::RegisterUnreachable => {
            tracing::error!("the membership register does not answer; membership stays as it is");
        }
        OwnerEvent::Replica { node, change } => {
            if change == ReplicaChange::Up {
                inner.troubles.remove(&node);
            }
            tell_replica(&node, change);
        }
        OwnerEvent::Refused { txn, refusal } => inner.pending.refuse(txn, refusal),
        OwnerEvent::Acked { through } => {
            let undo = inner.pending.acknowledge(through);
            if !undo.is_empty() {
                match inner.owner.commit(undo) {
                    Ok(committed) => inner.pending.post(committed.txn),
                    // They stay in the spool and are found at the next start.
                    Err(error) => tracing::error!(%error, "cannot take records back"),
                }
            }
        }
        OwnerEvent::Block { seq, block } => answer(inner, seq, Read::Block(block)),
        OwnerEvent::Stat { seq, stat } => answer(inner, seq, Read::Stat(stat)),
        OwnerEvent::Queues { seq, queues, end } => answer(inner, seq, Read::Queues(queues, end)),
    }
}

fn tell_replica(node: &str, change: ReplicaChange) {
    match change {
        ReplicaChange::Up => tracing::info!(node, "spool node is there"),
        ReplicaChange::Down => tracing::warn!(node, "spool node is away"),
        ReplicaChange::Full => tracing::info!(node, "spool node holds everything"),
        ReplicaChange::Rebuilding => tracing::info!(node, "spool node is being rebuilt"),
        ReplicaChange::CatchingUp => tracing::info!(node, "spool node is given what it missed"),
        ReplicaChange::CaughtUp => tracing::info!(node, "spool node has what it missed"),
        ReplicaChange::Isolated(fault) => {
            tracing::warn!(node, ?fault, "the group goes on without this spool node");
        }
        ReplicaChange::Slow => {
            tracing::warn!(node, "spool node answers later than the others for long");
        }
        ReplicaChange::Keeps => {
            tracing::info!(node, "spool node is no slower than the others any more")
        }
        ReplicaChange::Alone => tracing::warn!(
            node,
            "acknowledged mail is in the memory of this spool node only, and in no log"
        ),
        ReplicaChange::Joined => {
            tracing::info!(node, "acknowledged mail is not in one memory only any more");
        }
        ReplicaChange::Switched => tracing::warn!(node, "changed to the standby connection"),
    }
}

fn answer(inner: &mut Inner, seq: vere_spoolwire::Seq, read: Read) {
    if let Some(sender) = inner.reads.remove(&seq) {
        // The caller may have gone.
        let _ = sender.send(read);
    }
}

/// Fails commits that have waited too long; gives when to look again.
fn expire(shared: &Shared) -> Option<Instant> {
    shared.inner.borrow_mut().pending.expire(Instant::now())
}
