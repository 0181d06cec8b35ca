//! The connection of a courier.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use vere_handoff::delivery::{Answer, answer_length};
use vere_outbound::OutboundMetrics;
use vere_process::frames::{self, Outbox};
use vere_process::wire;

use super::room::Room;
use super::slot::Slot;

/// The longest silence of a courier, which beats every two seconds; also the longest time without a read by the courier.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Octets that are read from a courier at once.
const READ_OCTETS: usize = 64 * 1024;

/// The connection of a courier.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) outbox: Outbox,
    slots: RefCell<HashMap<u64, Rc<Slot>>>,
    next: Cell<u64>,
    gone: Cell<bool>,
    /// Room for messages at the courier.
    pub(super) room: Room,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            outbox: Outbox::default(),
            slots: RefCell::default(),
            next: Cell::new(1),
            gone: Cell::new(false),
            room: Room::default(),
        }
    }
}

impl Line {
    /// Serves the connection until the courier is gone or holds still.
    pub(super) async fn serve(
        &self,
        stream: UnixStream,
        metrics: &OutboundMetrics,
    ) -> io::Result<()> {
        let (read, write) = stream.into_split();
        tokio::select! {
            ended = self.hear(read, metrics) => ended,
            ended = self.outbox.write_to(write, SILENCE_MAX) => ended,
        }
    }

    async fn hear(&self, read: OwnedReadHalf, metrics: &OutboundMetrics) -> io::Result<()> {
        let mut from = BufReader::with_capacity(READ_OCTETS, read);
        loop {
            let frame = frames::read(&mut from, answer_length);
            let Some(frame) = wire::within(SILENCE_MAX, frame).await?? else {
                return Ok(());
            };
            let answer = Answer::decode(&frame).map_err(invalid)?;
            match answer.number() {
                Some(number) => self.answered(number, answer)?,
                None => match answer {
                    Answer::Counts(counts) => metrics.add(&counts),
                    Answer::Sessions(frame) => metrics.sessions.add_frame(*frame),
                    _ => {}
                },
            }
        }
    }

    pub(super) fn answered(&self, number: u64, answer: Answer) -> io::Result<()> {
        // The number may have been forgotten while its answer was on the way.
        let slot = self.slots.borrow().get(&number).cloned();
        match slot {
            Some(slot) if !slot.hear(answer) => Err(invalid("an answer without a request")),
            _ => Ok(()),
        }
    }

    /// Gives up all numbers, and returns how many had a request under way.
    pub(super) fn lose(&self) -> usize {
        self.gone.set(true);
        self.room.close();
        let slots = self.slots.take();
        slots.values().filter(|slot| slot.lose()).count()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.get()
    }

    /// A new number and its place.
    pub(super) fn begin(&self) -> (u64, Rc<Slot>) {
        let number = self.next.replace(self.next.get().wrapping_add(1));
        let slot = Rc::<Slot>::default();
        self.slots.borrow_mut().insert(number, Rc::clone(&slot));
        (number, slot)
    }

    pub(super) fn end(&self, number: u64) {
        self.slots.borrow_mut().remove(&number);
    }

    /// The numbers in use.
    pub(super) fn lanes(&self) -> usize {
        self.slots.borrow().len()
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests;
