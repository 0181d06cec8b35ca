//! Messages as a server sends them. The server may misbehave, so only requested messages are kept.

use std::collections::{HashMap, HashSet};

use vere_imap::client::{Event, Fetched, Response, Value};

use super::message::{LineEnds, Message, Writer};
use vere_process::failure::Failure;

/// Limit of octets sent by a server for a request, unrequested messages included: no message may be longer here, and
/// the sizes reported by servers are not exact.
const SENT_OCTETS_MAX: usize = 2 * vere_store::MESSAGE_OCTETS_MAX as usize;

/// Memory for the responses of a server.
pub(super) struct Room(pub(super) usize);

impl Room {
    /// # Errors
    /// When the memory is used up.
    pub(super) fn take(&mut self, octets: usize) -> Result<(), Failure> {
        let left = self.0.checked_sub(octets);
        self.0 = left.ok_or_else(|| Failure::new("the server tells more than there can be"))?;
        Ok(())
    }
}

/// Arriving messages.
pub(super) struct Bodies {
    /// Requested messages that have not arrived. A server may send unrequested messages, or one message twice.
    asked: HashSet<u64>,
    coming: Option<Writer>,
    whole: HashMap<u64, Message>,
    room: Room,
}

impl Bodies {
    pub(super) fn of(asked: impl Iterator<Item = u64>) -> Self {
        Self {
            asked: asked.collect(),
            coming: None,
            whole: HashMap::new(),
            room: Room(SENT_OCTETS_MAX),
        }
    }

    /// Processes an event of the server.
    ///
    /// # Errors
    /// When the server sends too many octets, or memory is exhausted.
    pub(super) fn hear(&mut self, event: Event<'_>) -> Result<(), Failure> {
        match event {
            Event::Literal(octets) => {
                self.room
                    .take(usize::try_from(octets).unwrap_or(usize::MAX))?;
                self.coming = Some(Writer::new(LineEnds::Kept));
            }
            Event::Piece(piece) => {
                if let Some(writer) = &mut self.coming {
                    writer.write(piece)?;
                }
            }
            Event::Said(Response::Fetched(one)) => self.fetched(*one)?,
            _ => {}
        }
        Ok(())
    }

    /// Takes a message that has arrived.
    pub(super) fn take(&mut self, uid: u64) -> Option<Message> {
        self.whole.remove(&uid)
    }

    fn fetched(&mut self, one: Fetched) -> Result<(), Failure> {
        let coming = self.coming.take();
        let (Some(uid), Some(body)) = (one.uid.map(u64::from), one.body) else {
            return Ok(());
        };
        if !self.asked.remove(&uid) {
            return Ok(());
        }
        let writer = match (body, coming) {
            (Value::PassedOn(_), Some(writer)) => writer,
            (Value::String(octets) | Value::Atom(octets), _) => {
                let mut writer = Writer::new(LineEnds::Kept);
                writer.write(&octets)?;
                writer
            }
            _ => return Ok(()),
        };
        self.whole.insert(uid, writer.finish());
        Ok(())
    }
}
