//! Sessions from the front, and notices to it.

use std::cell::RefCell;
use std::io;
use std::net::TcpStream as StdTcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram as StdUnixDatagram, UnixStream as StdUnixStream};
use std::rc::Rc;

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixDatagram, UnixStream};
use tokio::sync::Notify;
use vere_handoff::session::{Done, NOTICE_MAX, Notice, PACKET_OCTETS_MAX, Task};
use vere_net::packets::{self, PacketSocket};
use vere_process::smtp;
use vere_settings::Settings;
use vere_smtp::server::{Handover, Peer};

use super::error::WorkerError;

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
    /// The client's own.
    Clear(TcpStream),
    /// The plaintext of a connection that the front encrypts.
    Encrypted(UnixStream),
}

impl Client {
    fn new(connection: OwnedFd, is_encrypted: bool) -> io::Result<Self> {
        Ok(match is_encrypted {
            true => Self::Encrypted(UnixStream::from_std(StdUnixStream::from(connection))?),
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
            Self::Encrypted(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// The connection to the front.
#[derive(Debug)]
pub(crate) struct Front {
    /// The socket is one for packets with order and end; the runtime only watches the descriptor.
    socket: UnixDatagram,
    packet: RefCell<Vec<u8>>,
    notices: Rc<Notices>,
}

/// What the front has to hear.
#[derive(Debug, Default)]
struct Notices {
    begun: RefCell<Vec<u64>>,
    done: RefCell<Vec<Done>>,
    changed: Notify,
}

impl Front {
    /// Speaks over a connection.
    ///
    /// # Errors
    /// When the runtime cannot watch the connection.
    pub(crate) fn new(socket: PacketSocket) -> io::Result<Self> {
        Ok(Self {
            socket: UnixDatagram::from_std(StdUnixDatagram::from(OwnedFd::from(socket)))?,
            packet: RefCell::new(vec![0; PACKET_OCTETS_MAX]),
            notices: Rc::default(),
        })
    }

    /// Waits for sessions, and returns those that are there, perhaps none; `None` at the end.
    ///
    /// # Errors
    /// When the front breaks the protocol, or the system refuses.
    pub(crate) async fn sessions(&self) -> Result<Option<Vec<Session>>, WorkerError> {
        self.socket.readable().await?;
        // From here on nothing waits: a caller that stops waiting loses no session.
        let mut sessions = Vec::new();
        let mut is_over = false;
        loop {
            match self.receive() {
                Ok(Some(session)) => sessions.extend(session),
                // What came before the end is served first; the end comes again.
                Ok(None) => {
                    is_over = sessions.is_empty();
                    break;
                }
                Err(WorkerError::System(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if is_over {
            return Ok(None);
        }
        let numbers = sessions.iter().map(|session| session.number);
        self.notices.begun.borrow_mut().extend(numbers);
        self.notices.changed.notify_one();
        Ok(Some(sessions))
    }

    /// Receives a packet: a session, unless it cannot be gone on with; `None` at the end.
    fn receive(&self) -> Result<Option<Option<Session>>, WorkerError> {
        let mut packet = self.packet.borrow_mut();
        let receive = || packets::receive(&self.socket, &mut packet);
        let Some((length, descriptors)) = self.socket.try_io(Interest::READABLE, receive)? else {
            return Ok(None);
        };
        let task = Task::decode(packet.get(..length).unwrap_or_default())?;
        let [connection] = <[OwnedFd; 1]>::try_from(descriptors).map_err(|_| WorkerError::Links)?;
        let handover = match task.state {
            [] => None,
            state => match Handover::decode(state) {
                // The front carries out the handshakes.
                Ok(handover) => Some(handover.without_starttls()),
                Err(error) => {
                    // The other sessions of this worker are no worse for it.
                    tracing::error!(%error, "session cannot be gone on with");
                    self.done(task.number, 0);
                    return Ok(Some(None));
                }
            },
        };
        let is_encrypted = handover.as_ref().is_some_and(Handover::is_encrypted);
        Ok(Some(Some(Session {
            number: task.number,
            client: Client::new(connection, is_encrypted)?,
            handover,
            unread: task.unread.to_vec(),
        })))
    }

    /// Records the end of a session, with the number of recipients refused here.
    pub(crate) fn done(&self, number: u64, refused: u32) {
        let mut done = self.notices.done.borrow_mut();
        done.push(Done { number, refused });
        self.notices.changed.notify_one();
    }

    /// Tells the front what has begun and ended, many at once, for as long as the front is there.
    pub(crate) async fn tell(&self) {
        loop {
            self.notices.changed.notified().await;
            if self.flush().await.is_err() {
                return;
            }
        }
    }

    /// Sends all notices.
    pub(crate) async fn flush(&self) -> io::Result<()> {
        let begun = std::mem::take(&mut *self.notices.begun.borrow_mut());
        for some in begun.chunks(NOTICE_MAX) {
            self.send(&Notice::Begun(some.to_vec())).await?;
        }
        let done = std::mem::take(&mut *self.notices.done.borrow_mut());
        for some in done.chunks(NOTICE_MAX) {
            self.send(&Notice::Done(some.to_vec())).await?;
        }
        Ok(())
    }

    /// Sends a notice.
    ///
    /// # Errors
    /// When the front is gone.
    pub(crate) async fn send(&self, notice: &Notice) -> io::Result<()> {
        let mut packet = Vec::new();
        notice.encode(&mut packet);
        let send = || packets::send(&self.socket, &packet, &[]);
        self.socket.async_io(Interest::WRITABLE, send).await
    }
}
