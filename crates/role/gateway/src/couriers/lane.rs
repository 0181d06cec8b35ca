//! A number on the connection of a courier: the hosts of a destination, and at most one connection.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use vere_handoff::delivery::{Answer, Message, Request};
use vere_process::clock;
use vere_queue::SiteName;

use super::line::Line;
use super::room::Held;
use super::slot::Slot;

/// A number, until the value is dropped.
#[derive(Debug)]
pub(super) struct Lane {
    line: Rc<Line>,
    number: u64,
    slot: Rc<Slot>,
}

impl Lane {
    /// A new number at a courier.
    pub(super) fn new(line: Rc<Line>) -> Self {
        let (number, slot) = line.begin();
        if line.is_gone() {
            slot.lose();
        }
        Self { line, number, slot }
    }

    /// Asks, and waits for the answer; `None` when the courier is lost.
    pub(super) async fn ask<'a>(&self, request: impl FnOnce(u64) -> Request<'a>) -> Option<Answer> {
        self.begin_request()?;
        self.tell(request);
        self.answer().await
    }

    /// Has a message with this envelope sent, unless the begin takes longer than `patience`, and waits for the answer;
    /// `None` when the courier is lost.
    pub(super) async fn send(
        &self,
        envelope: &[u8],
        body: Bytes,
        patience: Duration,
    ) -> Option<Answer> {
        self.begin_request()?;
        let until = clock::since_boot().saturating_add(patience);
        let message = Message {
            number: self.number,
            until: u64::try_from(until.as_millis()).unwrap_or(u64::MAX),
            envelope,
            body: &body,
        };
        let write = |to: &mut Vec<u8>| message.encode_before_body(to);
        self.line.outbox.put_with(write, body.clone());
        self.answer().await
    }

    /// Says a request without an answer.
    pub(super) fn tell<'a>(&self, request: impl FnOnce(u64) -> Request<'a>) {
        if !self.is_lost() {
            let request = request(self.number);
            self.line.outbox.put(|to| request.encode(to));
        }
    }

    fn begin_request(&self) -> Option<()> {
        (!self.is_lost()).then(|| self.slot.ask())
    }

    async fn answer(&self) -> Option<Answer> {
        loop {
            if let Some(answer) = self.slot.take() {
                return Some(answer);
            }
            if self.is_lost() {
                return None;
            }
            self.slot.heard().await;
        }
    }

    /// Waits until the courier may hold a further text of this length. `None`: the courier is lost, the gateway stops, or
    /// there was no room for too long.
    pub(super) async fn room(&self, octets: usize, site: &SiteName) -> Option<Held> {
        self.line.room.take(octets, site).await
    }

    /// Whether the courier is lost.
    pub(super) fn is_lost(&self) -> bool {
        self.slot.is_lost()
    }

    /// Whether the connection is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.slot.is_lost() || self.slot.is_closed()
    }

    /// Waits until the connection is closed.
    pub(super) async fn closed(&self) {
        while !self.is_closed() {
            self.slot.heard().await;
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.tell(|number| Request::Forget { number });
        self.line.end(self.number);
    }
}
