//! The connections of a worker, which its keeper makes.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use vere_handoff::session::LINKS;
use vere_net::packets::PacketSocket;
use vere_settings::Settings;

use super::error::WorkerError;

/// How long a worker waits for the packet, and between two looks.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(1);

/// The connections.
#[derive(Debug)]
pub(crate) struct Links {
    /// Sessions come from here, and notices go back.
    pub(crate) front: PacketSocket,
    /// Messages go there.
    pub(crate) gateway: UnixStream,
    /// Questions about recipients go there.
    pub(crate) broker: UnixStream,
}

/// The connections of a worker, and the one to its keeper.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) links: Links,
    pub(crate) keeper: PacketSocket,
}

impl Links {
    /// Connects to the processes. The keeper does it for the worker at each place.
    ///
    /// # Errors
    /// When one of the processes does not listen now.
    pub(crate) fn connect(settings: &Settings, place: usize) -> io::Result<Self> {
        let links = Self {
            front: PacketSocket::connect(&settings.worker_socket(place))?,
            gateway: UnixStream::connect(settings.intake_socket())?,
            broker: UnixStream::connect(settings.broker_socket())?,
        };
        // A worker cannot change it behind its sandbox.
        links.gateway.set_nonblocking(true)?;
        links.broker.set_nonblocking(true)?;
        Ok(links)
    }

    /// Sends the connections to a worker that is started with the other end as its standard input.
    ///
    /// # Errors
    /// When the worker is gone.
    pub(crate) fn send(&self, to: &PacketSocket) -> io::Result<()> {
        let descriptors = [
            self.front.as_fd(),
            self.gateway.as_fd(),
            self.broker.as_fd(),
        ];
        to.send(&LINKS, &descriptors)
    }

    /// Takes the connections from the standard input.
    ///
    /// # Errors
    /// [`WorkerError::Links`], and errors of the system.
    pub(crate) fn take() -> Result<Taken, WorkerError> {
        let keeper = PacketSocket::from(io::stdin().as_fd().try_clone_to_owned()?);
        let began = Instant::now();
        let mut octets = [0; 16];
        loop {
            match keeper.receive(&mut octets) {
                Ok(Some((length, descriptors))) if octets[..length] == LINKS => {
                    let links = Self::of(descriptors).ok_or(WorkerError::Links)?;
                    return Ok(Taken { links, keeper });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return Err(WorkerError::Links),
            }
            if began.elapsed() > PATIENCE {
                return Err(WorkerError::Links);
            }
            std::thread::sleep(LOOK);
        }
    }

    fn of(descriptors: Vec<OwnedFd>) -> Option<Self> {
        let [front, gateway, broker] = <[OwnedFd; 3]>::try_from(descriptors).ok()?;
        Some(Self {
            front: front.into(),
            gateway: gateway.into(),
            broker: broker.into(),
        })
    }
}
