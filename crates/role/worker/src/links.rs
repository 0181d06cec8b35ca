//! The connections of a worker, which its keeper makes.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use vere_handoff::session::LINKS;
use vere_net::packets::PacketSocket;
use vere_net::quiet::Halves;
use vere_settings::Settings;

use super::error::WorkerError;

/// How long a worker waits for the packet, and between two looks.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(1);

/// The connections that the keeper makes for a worker.
#[derive(Debug)]
pub(crate) struct Links {
    front: PacketSocket,
    gateway: UnixStream,
    broker: UnixStream,
}

/// The connections in the hands of the worker, parted before the sandbox forbids dup(2).
#[derive(Debug)]
pub(crate) struct Ends {
    /// Sessions come from here, and notices go back.
    pub(crate) front: Halves<PacketSocket>,
    /// Messages go there.
    pub(crate) gateway: Halves<UnixStream>,
    /// Questions about recipients go there.
    pub(crate) broker: Halves<UnixStream>,
}

/// The connections of a worker, and the one to its keeper.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) links: Ends,
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
                    let links = Ends::of(descriptors)?;
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
}

impl Ends {
    fn of(descriptors: Vec<OwnedFd>) -> Result<Self, WorkerError> {
        let ends = <[OwnedFd; 3]>::try_from(descriptors);
        let [front, gateway, broker] = ends.map_err(|_| WorkerError::Links)?;
        Ok(Self {
            front: Halves::of(front.into())?,
            gateway: Halves::of(gateway.into())?,
            broker: Halves::of(broker.into())?,
        })
    }
}
