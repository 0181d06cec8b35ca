//! A worker: sessions of the front until there is none left.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::spawn_local;
use tokio::time::Instant;
use vere_handoff::note::Note;
use vere_handoff::session::{Notice, READY};
use vere_net::packets::PacketSocket;
use vere_process::clock::steady;
use vere_process::drive::{Line, drive};
use vere_process::failure::Failure;
use vere_process::life;
use vere_process::memory::{BodyMemory, MEMORY, MemoryFigures};
use vere_process::places::Client;
use vere_process::smtp;
use vere_process::wire::Connection;
use vere_sandbox::{Layers, Sandbox, calls};
use vere_screening::Screening;
use vere_settings::{Front as Plan, Settings};
use vere_smtp::server::{Handover, Server, ServerConfig};

use super::broker::Broker;
use super::client::ClientStream;
use super::error::WorkerError;
use super::front::{Client as Connected, Front, Session};
use super::gateway::Gateway;
use super::host::SessionHost;
use super::judging::Judging;
use super::links::{Ends, Links, Taken};
use super::parts::Aside;
use super::peak::Peak;

/// How long sessions may go on after the stop was asked for.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// How often a worker reports to its keeper; the keeper ends a silent worker.
const BEAT: Duration = Duration::from_secs(2);
/// How long a worker goes on after its successor was asked for.
const RETIRE_DELAY: Duration = Duration::from_secs(1);
/// Descriptors that may be open: as many sessions as any settings allow, whatever the front has read, and some for streams, links and the
/// runtime.
const FILES: u64 = 10_100;

/// Runs until the front or the gateway is gone, enough sessions were served, or a signal asks for the stop; then sessions under way end.
///
/// # Errors
/// When the standard input has no connections, or the front breaks the protocol.
pub fn run(settings: Arc<Settings>) -> Result<(), Failure> {
    life::run(serve(settings))
}

async fn serve(settings: Arc<Settings>) -> Result<(), WorkerError> {
    let plan = settings.front.clone().ok_or(WorkerError::NoFront)?;
    let Taken { links, keeper } = Links::take()?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Ctrl-C reaches the whole foreground group; the keeper decides.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    vere_telemetry::log::write_at_once();
    let layers = confine();
    let worker = Rc::new(Worker::new(&settings, &plan, links)?);
    let _ = worker.front.send(&Notice::Confined(layers.octet())).await;
    let told = Rc::clone(&worker);
    spawn_local(async move { told.front.tell().await });
    let (gateway, broker) = (worker.gateway.gone(), worker.broker.gone());
    let gone = async {
        tokio::select! {
            () = gateway => {}
            () = broker => {}
        }
    };
    tokio::pin!(gone);
    let mut beat = tokio::time::interval(BEAT);
    let (mut retiring, mut peak) = (Retiring::default(), Peak::default());
    let ended = loop {
        tokio::select! {
            sessions = worker.front.sessions() => match sessions {
                Ok(Some(sessions)) => match worker.front.begin(&sessions).await {
                    Ok(()) => worker.begin(sessions),
                    Err(error) => break Err(error.into()),
                },
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            },
            () = &mut gone, if !retiring.is_told => {
                retiring.begin(&keeper, Duration::ZERO);
                retiring.tell(&worker.front).await;
            }
            _ = beat.tick() => {
                let _ = keeper.send(&READY, &[]);
                if peak.is_over(worker.open.get(), worker.memory.held()) {
                    retiring.begin(&keeper, RETIRE_DELAY);
                }
            }
            () = retiring.due() => retiring.tell(&worker.front).await,
            _ = terminate.recv() => break Ok(()),
            _ = interrupt.recv() => {}
            // Its successor reads the settings.
            _ = hangup.recv() => retiring.begin(&keeper, RETIRE_DELAY),
        }
        if worker.begun.get() >= u64::from(plan.sessions_per_worker) {
            retiring.begin(&keeper, RETIRE_DELAY);
        }
    };
    worker.end().await;
    ended
}

/// Gives up everything without use for sessions, logs the missing layers, and returns the others.
fn confine() -> Layers {
    let sandbox = Sandbox {
        files: FILES,
        calls: &[
            calls::ORDINARY,
            calls::STREAM,
            calls::EVENTS,
            calls::ADDRESSES,
        ],
        refused: calls::LOOKING,
    };
    let standing = sandbox.enter();
    match standing.is_whole() {
        true => tracing::debug!(%standing, "worker is confined"),
        false => tracing::warn!(%standing, "worker is confined in part"),
    }
    standing.held
}

/// The end of a worker's service: first the keeper starts another, then the front gives this one no further session.
#[derive(Default)]
struct Retiring {
    /// When the front is told.
    at: Option<Instant>,
    is_told: bool,
}

impl Retiring {
    fn begin(&mut self, keeper: &PacketSocket, delay: Duration) {
        if self.at.is_none() {
            self.at = Some(Instant::now() + delay);
            let mut packet = Vec::new();
            Notice::Last.encode(&mut packet);
            let _ = keeper.send(&packet, &[]);
        }
    }

    async fn due(&self) {
        match self.at {
            Some(at) if !self.is_told => tokio::time::sleep_until(at).await,
            _ => std::future::pending().await,
        }
    }

    async fn tell(&mut self, front: &Front) {
        self.is_told = true;
        let _ = front.send(&Notice::Last).await;
    }
}

/// What the sessions share.
struct Worker {
    settings: Arc<Settings>,
    config: Arc<ServerConfig>,
    front: Front,
    gateway: Rc<Gateway>,
    broker: Rc<Broker>,
    screening: Rc<Screening>,
    judging: Option<Rc<Judging>>,
    memory: Rc<BodyMemory>,
    /// The bound of the memory in octets.
    memory_max: usize,
    /// Becomes true when sessions have to end at their next command.
    stop: watch::Sender<bool>,
    begun: Cell<u64>,
    open: Cell<u32>,
    idle: Notify,
}

impl Worker {
    fn new(settings: &Arc<Settings>, plan: &Plan, links: Ends) -> Result<Self, WorkerError> {
        let memory = BodyMemory::new(MEMORY, MemoryFigures::default());
        let workers = usize::try_from(plan.workers).unwrap_or(usize::MAX);
        let memory_max = settings.limits.body_memory_max.as_usize() / workers.max(1);
        memory.set_max(memory_max);
        let broker = Rc::new(Broker::new(links.broker.watch()?));
        Ok(Self {
            settings: Arc::clone(settings),
            config: Arc::new(smtp::at_port_25(settings, plan)),
            front: Front::new(links.front)?,
            gateway: Rc::new(Gateway::new(links.gateway.watch()?)),
            judging: Judging::new(settings, plan, &broker).map(Rc::new),
            broker,
            screening: Rc::new(Screening::new(settings, plan)),
            memory: Rc::new(memory),
            memory_max,
            stop: watch::Sender::new(false),
            begun: Cell::default(),
            open: Cell::default(),
            idle: Notify::new(),
        })
    }

    fn begin(self: &Rc<Self>, sessions: Vec<Session>) {
        for session in sessions {
            self.begun.set(self.begun.get().saturating_add(1));
            self.open.set(self.open.get().saturating_add(1));
            let worker = Rc::clone(self);
            spawn_local(async move {
                let number = session.number;
                let refused = worker.session(session).await;
                worker.open.set(worker.open.get().saturating_sub(1));
                worker.front.done(number, refused, worker.open.get() == 0);
                worker.idle.notify_one();
            });
        }
    }

    /// Serves a session to its end, and returns the number of recipients refused for good.
    async fn session(&self, session: Session) -> u32 {
        let Session {
            client: connection,
            handover,
            unread,
            ..
        } = session;
        let config = Arc::clone(&self.config);
        let patience = config.limits.command_timeout;
        let note = handover.as_ref().map_or(0, Handover::note);
        let server = match handover {
            Some(handover) => Server::resume(config, handover, steady()),
            None => match connection.peer(&self.settings) {
                Ok(peer) => Server::new(config, peer, steady()),
                // The client is gone already.
                Err(_) => return 0,
            },
        };
        let note = Note::of_octet(note).unwrap_or_default();
        let client = server.peer().address.ip();
        let held = self.memory.share(Some(Client::at(client)));
        let mut line = Line::new(held, self.stop.subscribe(), patience);
        line.give(unread);
        let is_closing = Rc::default();
        let host = SessionHost {
            aside: Aside::new(
                Rc::clone(&self.gateway),
                client,
                self.memory_max,
                self.judging.is_some(),
            ),
            gateway: Rc::clone(&self.gateway),
            broker: Rc::clone(&self.broker),
            refused: 0,
            // The front asks SPF about the first sender.
            spf: note.spf,
            greylist: note.greylist,
            screening: Rc::clone(&self.screening),
            judging: self.judging.clone(),
            is_closing: Rc::clone(&is_closing),
        };
        let session = (server, line, host);
        match connection {
            Connected::Clear(stream) => {
                converse(ClientStream::new(stream, is_closing), session).await
            }
            Connected::Kernel(stream) => {
                converse(ClientStream::by_kernel(stream, is_closing), session).await
            }
            Connected::Encrypted(stream) => converse(stream, session).await,
        }
    }

    /// Waits until the sessions have ended; those that go on for too long end with the process.
    async fn end(&self) {
        self.stop.send_replace(true);
        let quiet = async {
            while self.open.get() > 0 {
                self.idle.notified().await;
            }
            self.front.flush().await
        };
        if tokio::time::timeout(STOP_PATIENCE, quiet).await.is_err() {
            tracing::warn!("stopping with sessions under way; nothing acknowledged is lost");
        }
    }
}

/// Drives a session to its end, and returns the number of recipients refused for good.
async fn converse(
    mut stream: impl Connection,
    (mut server, mut line, mut host): (Server, Line, SessionHost),
) -> u32 {
    let driven = Box::pin(drive(&mut stream, &mut server, &mut host, &mut line)).await;
    if let Err(error) = driven {
        tracing::debug!(peer = %server.peer().address, %error, "connection lost");
    }
    // The front has a duplicate of the descriptor: closing this one would not end the connection.
    let _ = stream.shutdown().await;
    host.refused
}
