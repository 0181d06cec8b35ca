//! Sessions from the front, and notices to it.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::TcpStream as StdTcpStream;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockaddrLike as _, SockaddrStorage, getsockname};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Mutex, Notify};
use vere_handoff::session::{Done, NOTICE_MAX, Notice, PACKET_OCTETS_MAX, Task};
use vere_net::packets::PacketSocket;
use vere_net::quiet::{Halves, Reading, Writing};
use vere_process::smtp;
use vere_settings::Settings;
use vere_smtp::server::{Handover, Peer};

use super::error::WorkerError;

/// How long the end of a session may wait for further ends and for the next sessions, while sessions are open: the front hears of all by one packet.
const GATHERING: Duration = Duration::from_millis(5);

/// A session that the front hands over.
#[derive(Debug)]
pub(crate) struct Session {
    /// The front's number.
    pub(crate) number: u64,
    /// The connection of the client.
    pub(crate) client: Client,
    /// What the client has said so far; nothing of a client that waits for its greeting.
    pub(crate) handover: Option<Handover>,
    /// Octets of the client that nobody has consumed.
    pub(crate) unread: Vec<u8>,
}

/// The connection of a client.
#[derive(Debug)]
pub(crate) enum Client {
    /// The client's socket.
    Clear(TcpStream),
    /// The plaintext of a connection that a thread of the front encrypts.
    Encrypted(UnixStream),
    /// The client's socket, whose octets the kernel encrypts.
    Kernel(TcpStream),
}

impl Client {
    fn new(connection: OwnedFd, is_encrypted: bool) -> io::Result<Self> {
        // The plaintext of a thread comes by a socket pair, that of the kernel by the client's socket.
        let address: SockaddrStorage = getsockname(connection.as_raw_fd())?;
        let is_pair = address.family() == Some(AddressFamily::Unix);
        Ok(match is_encrypted {
            true if is_pair => {
                Self::Encrypted(UnixStream::from_std(StdUnixStream::from(connection))?)
            }
            true => Self::Kernel(TcpStream::from_std(StdTcpStream::from(connection))?),
            false => Self::Clear(TcpStream::from_std(StdTcpStream::from(connection))?),
        })
    }

    /// The addresses of a connection that the front has not looked at.
    ///
    /// # Errors
    /// When the client is gone.
    pub(crate) fn peer(&self, settings: &Settings) -> io::Result<Peer> {
        match self {
            Self::Clear(stream) => Ok(smtp::peer(
                settings,
                stream.peer_addr()?,
                stream.local_addr()?,
            )),
            Self::Encrypted(_) | Self::Kernel(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// The connection to the front.
#[derive(Debug)]
pub(crate) struct Front {
    from: Reading<PacketSocket>,
    to: Mutex<Writing<PacketSocket>>,
    packet: RefCell<Vec<u8>>,
    /// Ended sessions, for the front to hear of.
    ended: RefCell<Vec<Done>>,
    /// A session has ended.
    changed: Notify,
    /// Sessions go on, so that more ends will be told soon.
    gathers: Cell<bool>,
}

impl Front {
    /// Speaks over a connection.
    ///
    /// # Errors
    /// When the runtime cannot watch the connection.
    pub(crate) fn new(socket: Halves<PacketSocket>) -> io::Result<Self> {
        let (from, to) = socket.watch()?;
        Ok(Self {
            from,
            to: Mutex::new(to),
            packet: RefCell::new(vec![0; PACKET_OCTETS_MAX]),
            ended: RefCell::default(),
            changed: Notify::new(),
            gathers: Cell::default(),
        })
    }

    /// Waits for sessions, and returns the sessions of one packet, without those that cannot be gone on with; `None` at the end. Each has to be
    /// [begun](Self::begin).
    ///
    /// # Errors
    /// When the front breaks the protocol, or the system refuses.
    pub(crate) async fn sessions(&self) -> Result<Option<Vec<Session>>, WorkerError> {
        let receive = |socket: &PacketSocket| socket.receive(&mut self.packet.borrow_mut());
        let Some((length, connections)) = self.from.with(receive).await? else {
            return Ok(None);
        };
        // From here on nothing waits: a caller that stops waiting loses no session.
        let packet = self.packet.borrow();
        let tasks = Task::decode_all(packet.get(..length).unwrap_or_default())?;
        if tasks.len() != connections.len() {
            return Err(WorkerError::Links);
        }
        let given = tasks.iter().zip(connections);
        let sessions = given.filter_map(|(task, connection)| self.session(task, connection));
        Ok(Some(sessions.collect()))
    }

    /// A session, unless the state is unusable; the rest of the packet is served.
    fn session(&self, task: &Task<'_>, connection: OwnedFd) -> Option<Session> {
        let opened = match task.state {
            [] => Ok(None),
            // The front carries out the handshakes.
            state => Handover::decode(state).map(|handover| Some(handover.without_starttls())),
        };
        let handover = opened
            .inspect_err(|error| tracing::error!(%error, "session cannot be gone on with"))
            .ok();
        let client = handover.as_ref().and_then(|handover| {
            let is_encrypted = handover.as_ref().is_some_and(Handover::is_encrypted);
            Client::new(connection, is_encrypted)
                .inspect_err(|error| tracing::error!(%error, "connection cannot be used"))
                .ok()
        });
        let (Some(handover), Some(client)) = (handover, client) else {
            self.done(task.number, 0, true);
            return None;
        };
        Some(Session {
            number: task.number,
            client,
            handover,
            unread: task.unread.to_vec(),
        })
    }

    /// Records the end of a session, with the number of recipients refused here. The end of the last session reaches the front at
    /// once: the place is free.
    pub(crate) fn done(&self, number: u64, refused: u32, is_last: bool) {
        self.gathers.set(!is_last);
        let mut ended = self.ended.borrow_mut();
        ended.push(Done { number, refused });
        self.changed.notify_one();
    }

    /// Tells the front of beginning sessions before the first write to a client: after the death of a worker, the front gives unbegun
    /// sessions away. Ended sessions are told as well.
    ///
    /// # Errors
    /// When the front is gone.
    pub(crate) async fn begin(&self, sessions: &[Session]) -> io::Result<()> {
        let begun = sessions.iter().map(|session| session.number).collect();
        self.progress(begun).await
    }

    /// Tells the front what has ended, for as long as the front is there.
    pub(crate) async fn tell(&self) {
        loop {
            self.changed.notified().await;
            let gathered = tokio::time::sleep(GATHERING);
            tokio::pin!(gathered);
            while self.gathers.get() {
                tokio::select! {
                    () = &mut gathered => break,
                    () = self.changed.notified() => {}
                }
            }
            if self.flush().await.is_err() {
                return;
            }
        }
    }

    /// Tells the front at once what has ended.
    ///
    /// # Errors
    /// When the front is gone.
    pub(crate) async fn flush(&self) -> io::Result<()> {
        while !self.ended.borrow().is_empty() {
            self.progress(Vec::new()).await?;
        }
        Ok(())
    }

    async fn progress(&self, begun: Vec<u64>) -> io::Result<()> {
        let done = {
            let mut ended = self.ended.borrow_mut();
            let count = ended.len().min(NOTICE_MAX);
            ended.drain(..count).collect()
        };
        self.send(&Notice::Progress { begun, done }).await
    }

    /// Sends a notice.
    ///
    /// # Errors
    /// When the front is gone.
    pub(crate) async fn send(&self, notice: &Notice) -> io::Result<()> {
        let mut packet = Vec::new();
        notice.encode(&mut packet);
        let mut to = self.to.lock().await;
        to.with(|socket| socket.send(&packet, &[])).await
    }
}
