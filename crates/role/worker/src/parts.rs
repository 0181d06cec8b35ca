//! The text of a long message, which goes ahead to the gateway in parts while the client sends.
//!
//! The gateway has the file: a worker opens nothing and has no descriptor of a file.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;

use tokio::sync::Notify;
use vere_handoff::message::PART_OCTETS_MAX;
use vere_smtp::server::Server;

use super::gateway::Gateway;

/// Octets of a message held in memory before the first part is sent, where memory allows.
const FROM_MAX: usize = 1 << 20;
/// Divisor of the worker's memory: one long message holds the quotient at most, so that a few of them do not fill a small memory.
const FROM_DIVISOR: usize = 8;

/// What the gateway has said about the parts of a message.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// The last part is in the file.
    kept: Cell<bool>,
    /// The parts are lost, and whether the client is too slow to be heard any further.
    gone: Cell<Option<bool>>,
    changed: Notify,
}

impl Ahead {
    /// The last part is in the file.
    pub(crate) fn kept(&self) {
        self.kept.set(true);
        self.changed.notify_one();
    }

    /// The parts are lost.
    pub(crate) fn gone(&self, ends: bool) {
        self.gone.set(Some(ends));
        self.changed.notify_one();
    }
}

/// The parts of a message at the gateway, which forgets them when this value is dropped.
#[derive(Debug)]
pub(crate) struct Parts {
    gateway: Rc<Gateway>,
    number: u64,
    client: IpAddr,
    ahead: Rc<Ahead>,
    has_come: bool,
}

impl Parts {
    /// The gateway knows the message by the number.
    pub(crate) const fn new(
        gateway: Rc<Gateway>,
        (number, client): (u64, IpAddr),
        ahead: Rc<Ahead>,
    ) -> Self {
        Self {
            gateway,
            number,
            client,
            ahead,
            has_come: false,
        }
    }

    /// Sends octets behind `place` octets, and waits until they are in the file or all parts are lost.
    async fn send(&self, mut place: u64, mut octets: Vec<u8>) {
        while !octets.is_empty() && self.ahead.gone.get().is_none() {
            let rest = octets.split_off(octets.len().min(PART_OCTETS_MAX));
            let behind = place.saturating_add(u64::try_from(octets.len()).unwrap_or(u64::MAX));
            self.ahead.kept.set(false);
            self.gateway
                .send_part((self.number, self.client), place, octets);
            while !self.ahead.kept.get() && self.ahead.gone.get().is_none() {
                self.ahead.changed.notified().await;
            }
            (place, octets) = (behind, rest);
        }
    }

    /// Returns when the parts are lost.
    async fn lost(&self) {
        while self.ahead.gone.get().is_none() {
            self.ahead.changed.notified().await;
        }
    }

    /// The message follows its parts: returns its number.
    pub(crate) fn come(mut self) -> u64 {
        self.has_come = true;
        self.number
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.gateway.forget(self.number, self.has_come);
    }
}

/// Gives the gateway the text of one session's messages once a text is long.
#[derive(Debug)]
pub(crate) struct Aside {
    gateway: Rc<Gateway>,
    client: IpAddr,
    from: usize,
    parts: Option<Parts>,
}

impl Aside {
    /// The memory of the worker for texts is `memory`, in octets.
    pub(crate) fn new(gateway: Rc<Gateway>, client: IpAddr, memory: usize) -> Self {
        Self {
            gateway,
            client,
            from: (memory / FROM_DIVISOR).clamp(1, FROM_MAX),
            parts: None,
        }
    }

    /// Sends what has come of a long message, and lets go of one that is not wanted any more, by the client or by the gateway.
    pub(crate) async fn take(&mut self, server: &mut Server) {
        if server.aside() > 0 {
            self.obey(server);
        }
        if server.aside() == 0 {
            self.parts = None;
        }
        if server.message_memory() < self.from {
            return;
        }
        let place = server.aside();
        let octets = server.set_aside();
        let (gateway, client) = (&self.gateway, self.client);
        let parts = self.parts.get_or_insert_with(|| gateway.parts(client));
        parts.send(place, octets).await;
        self.obey(server);
    }

    fn obey(&mut self, server: &mut Server) {
        let gone = self.parts.as_ref().and_then(|parts| parts.ahead.gone.get());
        match gone {
            Some(true) => server.timed_out(),
            Some(false) => server.refuse_for_room(),
            None => return,
        }
        self.parts = None;
    }

    /// Returns when the gateway has lost the parts: [`Aside::take`] lets go of the message.
    pub(crate) async fn called(&self) {
        match &self.parts {
            Some(parts) => parts.lost().await,
            None => std::future::pending().await,
        }
    }

    /// Takes the parts of a message that is whole.
    pub(crate) const fn finish(&mut self) -> Option<Parts> {
        self.parts.take()
    }
}
