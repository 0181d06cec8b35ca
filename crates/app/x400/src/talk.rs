//! The connection of a command to the running MTA.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vere_attach::{Bounds, Client, ClientEvent, Fault};
use vere_process::failure::Failure;

/// How long the MTA may take for an answer. A message is answered when all spool nodes have it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that is attached without a name.
#[derive(Debug)]
pub(crate) struct Talk {
    stream: UnixStream,
    socket: PathBuf,
    /// The protocol.
    pub(crate) client: Client,
    /// Octets of a content, at most.
    pub(crate) octets_max: u64,
}

impl Talk {
    /// Connects and attaches.
    ///
    /// # Errors
    /// When no MTA listens at the socket, or the MTA refuses.
    pub(crate) fn open(socket: &Path) -> Result<Self, Failure> {
        Self::open_for(socket, PATIENCE)
    }

    fn open_for(socket: &Path, patience: Duration) -> Result<Self, Failure> {
        let stream = UnixStream::connect(socket).map_err(|error| absent(socket, &error))?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let bounds = Bounds {
            octets_max: 0,
            ..Bounds::default()
        };
        let mut talk = Self {
            stream,
            socket: socket.to_owned(),
            client: Client::new(bounds),
            octets_max: 0,
        };
        talk.client.attach(None, 1)?;
        match talk.next()? {
            ClientEvent::Attached(attached) => talk.octets_max = attached.octets_max,
            other => return Err(talk.unexpected(&other)),
        }
        Ok(talk)
    }

    /// Writes all output, and waits for the next event. The end of the connection is an error.
    ///
    /// # Errors
    /// When the connection breaks or ends, or no answer comes in time.
    pub(crate) fn next(&mut self) -> Result<ClientEvent, Failure> {
        let mut refused = None;
        while let Some(piece) = self.client.output() {
            // The MTA may have said why it reads no more.
            if let Err(error) = self.stream.write_all(&piece) {
                refused = Some(self.broken(&error));
                break;
            }
        }
        let mut buffer = vec![0; 16_384];
        loop {
            match self.client.event() {
                Some(ClientEvent::End(Fault::Refused(error))) => return Err(Failure::new(error)),
                Some(ClientEvent::End(fault)) => return Err(self.strange(&fault)),
                Some(event) => return Ok(event),
                None => (),
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    return Err(refused.unwrap_or_else(|| self.silent("closed the connection")));
                }
                Ok(count) => self.client.receive(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) if is_late(error.kind()) => return Err(self.silent("gave no answer")),
                Err(error) => return Err(refused.unwrap_or_else(|| self.broken(&error))),
            }
        }
    }

    /// The failure for an answer out of place.
    pub(crate) fn unexpected(&self, event: &ClientEvent) -> Failure {
        match event {
            ClientEvent::Refused { error, .. } => Failure::new(error.clone()),
            _ => self.strange(&"another answer than asked for"),
        }
    }

    fn strange(&self, what: &dyn std::fmt::Display) -> Failure {
        Failure::new(format!(
            "the X.400 MTA on {} said: {what}",
            self.socket.display()
        ))
    }

    fn broken(&self, error: &std::io::Error) -> Failure {
        Failure::new(format!(
            "cannot talk to the X.400 MTA on {}: {error}",
            self.socket.display()
        ))
    }

    fn silent(&self, what: &str) -> Failure {
        Failure::new(format!(
            "the X.400 MTA on {} {what}; what was submitted may be queued all the same: see `vere queue list`",
            self.socket.display()
        ))
    }
}

const fn is_late(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn absent(socket: &Path, error: &std::io::Error) -> Failure {
    let socket = socket.display();
    Failure::new(match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            format!("no X.400 MTA is running (nobody listens on {socket})")
        }
        _ => format!("cannot connect to the X.400 MTA on {socket}: {error}"),
    })
}

#[cfg(test)]
pub(crate) mod tests;
