//! The text of a long message, which goes ahead to the gateway in parts while the client sends.
//!
//! The gateway has the file: a worker opens nothing and has no descriptor of a file.

use std::net::IpAddr;
use std::rc::Rc;

use vere_handoff::message::PART_OCTETS_MAX;
use vere_smtp::server::Server;

use vere_judging::Gathering;

use super::ahead::Ahead;
use super::gateway::Gateway;

/// Octets of a message held in memory before the first part is sent, where memory allows.
const FROM_MAX: usize = 1 << 20;
/// Divisor of the worker's memory: one long message holds the quotient at most, so that a few of them do not fill a small memory.
const FROM_DIVISOR: usize = 8;

/// The parts of a message at the gateway, which forgets them when this value is dropped.
#[derive(Debug)]
struct Parts {
    gateway: Rc<Gateway>,
    number: u64,
    client: IpAddr,
    ahead: Rc<Ahead>,
    has_come: bool,
}

impl Parts {
    /// Begins a message of this client.
    fn new(gateway: &Rc<Gateway>, client: IpAddr) -> Self {
        let ahead = Rc::<Ahead>::default();
        Self {
            number: gateway.begin(&ahead),
            gateway: Rc::clone(gateway),
            client,
            ahead,
            has_come: false,
        }
    }

    /// Sends octets behind `place` octets, and waits until they are in the file or all parts are lost.
    async fn send(&self, mut place: u64, mut octets: Vec<u8>) {
        while !octets.is_empty() && self.ahead.lost().is_none() {
            let rest = octets.split_off(octets.len().min(PART_OCTETS_MAX));
            let behind = place.saturating_add(u64::try_from(octets.len()).unwrap_or(u64::MAX));
            self.ahead.expect();
            self.gateway
                .send_part((self.number, self.client), place, octets);
            while !self.ahead.is_kept() && self.ahead.lost().is_none() {
                self.ahead.changed().await;
            }
            (place, octets) = (behind, rest);
        }
    }

    /// Returns when the parts are lost.
    async fn lost(&self) {
        while self.ahead.lost().is_none() {
            self.ahead.changed().await;
        }
    }

    /// The message follows its parts: returns its number.
    fn come(mut self) -> u64 {
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
    /// What has gone ahead of the message, for its judgement; `None` where messages are not judged.
    gathering: Option<Gathering>,
}

impl Aside {
    /// The memory of the worker for texts is `memory`, in octets.
    pub(crate) fn new(
        gateway: Rc<Gateway>,
        client: IpAddr,
        memory: usize,
        is_judged: bool,
    ) -> Self {
        Self {
            gateway,
            client,
            from: (memory / FROM_DIVISOR).clamp(1, FROM_MAX),
            parts: None,
            gathering: is_judged.then(Gathering::default),
        }
    }

    /// Sends what has come of a long message, and lets go of one that is not wanted any more, by the client or by the gateway.
    pub(crate) async fn take(&mut self, server: &mut Server) {
        if server.aside() > 0 {
            self.obey(server);
        }
        if server.aside() == 0 && self.parts.is_some() {
            self.close();
        }
        let beside = match (&self.parts, &self.gathering) {
            (Some(_), Some(gathering)) => gathering.octets(),
            _ => 0,
        };
        if server.message_memory().saturating_sub(beside) < self.from {
            return;
        }
        let place = server.aside();
        let octets = server.set_aside();
        if let Some(gathering) = &mut self.gathering {
            gathering.take(&octets);
            server.hold_beside(gathering.octets());
        }
        let (gateway, client) = (&self.gateway, self.client);
        let parts = self
            .parts
            .get_or_insert_with(|| Parts::new(gateway, client));
        parts.send(place, octets).await;
        self.obey(server);
    }

    fn obey(&mut self, server: &mut Server) {
        let gone = self.parts.as_ref().and_then(|parts| parts.ahead.lost());
        match gone {
            Some(true) => server.timed_out(),
            Some(false) => server.refuse_for_room(),
            None => return,
        }
        self.close();
    }

    /// Returns when the gateway has lost the parts: [`Aside::take`] lets go of the message.
    pub(crate) async fn called(&self) {
        match &self.parts {
            Some(parts) => parts.lost().await,
            None => std::future::pending().await,
        }
    }

    /// Ends the parts of a message that is whole, and returns its number if any part has gone ahead.
    pub(crate) fn finish(&mut self) -> Option<u64> {
        self.parts.take().map(Parts::come)
    }

    /// Takes what has been gathered of the parts of a message that is whole; `None` where messages are not judged.
    pub(crate) fn gathered(&mut self) -> Option<Gathering> {
        self.gathering.as_mut().map(std::mem::take)
    }

    /// Lets go of the message.
    pub(crate) fn close(&mut self) {
        self.parts = None;
        self.gathered();
    }
}
