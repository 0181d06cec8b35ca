//! What the gateway says: whether messages are taken.

use std::io::{self, Read as _};
use std::path::PathBuf;

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use vere_handoff::message::{Answer, LENGTH_OCTETS, answer_length};
use vere_smtp::refusal::Refusal;

/// The connection to the gateway, made again when it is lost.
#[derive(Debug)]
pub(crate) struct Gateway {
    path: PathBuf,
    token: Token,
    connection: Option<UnixStream>,
    octets: Vec<u8>,
    closed: Option<Refusal>,
    has_spoken: bool,
    /// Whether new connections were turned away when the log was told last; `None` before the gateway has said anything.
    is_shut: Option<bool>,
}

impl Gateway {
    pub(crate) fn new(path: PathBuf, token: Token) -> Self {
        Self {
            path,
            token,
            connection: None,
            octets: Vec::new(),
            closed: Some(Refusal::ServiceUnavailable),
            has_spoken: false,
            is_shut: None,
        }
    }

    /// Why no message is taken now; absent if messages are taken.
    pub(crate) const fn closed(&self) -> Option<&Refusal> {
        self.closed.as_ref()
    }

    /// Whether new connections are turned away. A gateway without room answers MAIL, and room may come within a session.
    pub(crate) const fn is_shut(&self) -> bool {
        !matches!(self.closed, None | Some(Refusal::StorageFull))
    }

    /// Logs that connections are turned away from now on, or are let in again.
    pub(crate) fn log(&mut self) {
        match self.news() {
            Some(true) => tracing::warn!(
                "gateway away, recovering or without its spool: new connections get 421 4.3.2"
            ),
            Some(false) => tracing::info!("gateway accepts mail: new connections are greeted"),
            None => {}
        }
    }

    /// Whether new connections are turned away, where the log does not say so yet. An open gateway at the start of the front is nothing
    /// to tell.
    fn news(&mut self) -> Option<bool> {
        let is_shut = self.is_shut();
        let before = self.is_shut.replace(is_shut).unwrap_or(false);
        (is_shut != before).then_some(is_shut)
    }

    /// Whether the gateway has said anything.
    pub(crate) const fn is_there(&self) -> bool {
        self.has_spoken
    }

    /// Connects if there is no connection. A gateway that does not listen yet is tried again with the next call.
    pub(crate) fn connect(&mut self, registry: &Registry) {
        if self.connection.is_some() {
            return;
        }
        let connected = UnixStream::connect(&self.path).and_then(|mut connection| {
            registry.register(&mut connection, self.token, Interest::READABLE)?;
            Ok(connection)
        });
        self.connection = connected.ok();
    }

    /// Reads what the gateway says.
    pub(crate) fn read(&mut self) {
        if let Err(error) = self.take() {
            tracing::info!(%error, "connection to the gateway lost");
            self.connection = None;
            self.octets.clear();
            self.closed = Some(Refusal::ServiceUnavailable);
        }
    }

    fn take(&mut self) -> io::Result<()> {
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        let mut some = [0; 256];
        loop {
            match connection.read(&mut some) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(octets) => self
                    .octets
                    .extend_from_slice(some.get(..octets).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
            while let Some((length, rest)) = self.octets.split_first_chunk::<LENGTH_OCTETS>() {
                let length = answer_length(*length).map_err(wrong)?;
                let Some(frame) = rest.get(..length) else {
                    break;
                };
                if let Answer::State(refusal) = Answer::decode(frame).map_err(wrong)? {
                    self.has_spoken = true;
                    self.closed = refusal.map(|number| {
                        Refusal::of_number(number).unwrap_or(Refusal::ServiceUnavailable)
                    });
                }
                self.octets.drain(..LENGTH_OCTETS.saturating_add(length));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_hears_of_a_gateway_that_is_shut_at_the_start() {
        let states = [Some(Refusal::ServiceUnavailable), None];
        for (first, told) in [(0, [Some(true), Some(false)]), (1, [None, Some(true)])] {
            let mut gateway = Gateway::new(PathBuf::new(), Token(0));
            gateway.closed = states[first].clone();
            assert_eq!((gateway.news(), gateway.news()), (told[0], None));
            gateway.closed = states[1 - first].clone();
            assert_eq!((gateway.news(), gateway.news()), (told[1], None));
        }
    }
}
