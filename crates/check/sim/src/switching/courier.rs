//! Transfers to peers, as in the role: an association for each worker, and questions about transfers that broke off.

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use vere_associations::{NotTransferred, OpenAssociation, Outcome, Peer, Remote, open_over};
use vere_delivery::{BeforeMessage, Courier, Session, Unroutable};
use vere_mta400::{Destination as Next, RecordRecipient};
use vere_osi::association::Mode;
use vere_osi::rtse::{Broken, DialogueMode};
use vere_queue::{Attempt, Destination, Disposition, Envelope, RecipientResult, SiteName};

use super::BrokenSwitching;
use super::account::Handover;
use super::network::locked;
use super::process::Process;
use super::rest::Rest;
use super::world::{Shared, World};
use super::{mtas, stream};
use crate::schedule::MILLI;
use crate::stage::Staged;

/// Octets between checkpoints, in units of 1,024: the smallest number, so that messages have several.
pub(super) const CHECKPOINT: u32 = 1;

/// The other end of each connection.
pub(super) fn remote() -> Remote {
    Remote {
        address: SocketAddr::from(([192, 0, 2, 1], 102)),
        tls: None,
    }
}

/// The way of a life to the peers.
pub(super) struct Transfers {
    pub(super) world: Shared,
    pub(super) process: Rc<Process>,
}

impl Courier for Transfers {
    type Route = (String, SiteName);
    type Session = Transfer;

    async fn find(&self, way: &Destination) -> Result<Self::Route, Unroutable> {
        let text = way.to_string();
        let site = SiteName::new([(text.as_str(), 0)], None);
        match text.strip_prefix("peer:") {
            Some(peer) => Ok((peer.to_owned(), site)),
            None => Err(Unroutable::Temporary(format!("no peer: {text}"))),
        }
    }

    fn site<'a>(&self, route: &'a Self::Route) -> &'a SiteName {
        &route.1
    }

    async fn open(&self, (peer, _): &Self::Route) -> Result<Transfer, Unroutable> {
        self.world.pause(0..50 * MILLI).await;
        let peer_life = self.world.life_of(peer);
        let opened = self.associate(peer).await.map_err(Unroutable::Site);
        opened.map(|(open, wire)| Transfer {
            world: Rc::clone(&self.world),
            process: Rc::clone(&self.process),
            peer: peer.clone(),
            lives: [self.process.life, peer_life],
            open: Some(open),
            wire,
        })
    }

    fn messages_max(&self) -> u32 {
        u32::MAX
    }
}

impl Transfers {
    /// Opens an association with a peer, and gives the number of the connection.
    async fn associate(&self, name: &str) -> Result<(OpenAssociation, usize), String> {
        let mta = self.world.mta(self.process.mta);
        let place = mtas::place(name).ok_or("no such peer")?;
        let terms = mta.peers.get(name).ok_or("no such peer")?;
        let (wire, [near, far]) = stream::pair(&self.world.network(), self.process.mta, place);
        self.world.called(place, far, wire);
        let peer = Peer {
            mode: self.world.mode(),
            // Associations that an MTA opens carry own units alone.
            dialogue_mode: DialogueMode::Monologue,
            checkpoint_size: CHECKPOINT,
            ..Peer::new(Vec::new(), terms.argument())
        };
        let opened = open_over(&peer, Box::new(near), remote(), self.process.session());
        let (open, result) = opened.await.map_err(|refusal| refusal.to_string())?;
        let checked = terms.check_result(&result);
        checked.map_err(|denied| denied.why.to_string())?;
        Ok((open, wire))
    }
}

/// An association with a peer.
pub(super) struct Transfer {
    world: Shared,
    process: Rc<Process>,
    peer: String,
    /// The lives of both sides.
    lives: [usize; 2],
    open: Option<OpenAssociation>,
    wire: usize,
}

/// The places of the recipients of an envelope.
pub(super) fn places(envelope: &Envelope) -> Vec<u32> {
    let recipients = envelope.mail.recipients.iter();
    let tags = recipients.filter_map(|one| one.orcpt.as_deref());
    tags.filter_map(RecordRecipient::place_of).collect()
}

/// The same result for all recipients.
pub(super) fn all(
    envelope: &Envelope,
    remote: &str,
    (disposition, status, reply): (Disposition, &str, String),
) -> Attempt {
    let result = RecipientResult {
        disposition,
        status: status.to_owned(),
        reply,
        from_remote: false,
    };
    Attempt {
        remote: remote.to_owned(),
        reports_taken_over: true,
        results: vec![result; envelope.mail.recipients.len()],
    }
}

impl Session for Transfer {
    async fn send(
        &mut self,
        envelope: &Rc<Envelope>,
        body: Bytes,
    ) -> Result<Attempt, BeforeMessage> {
        let trace = envelope.head.trace;
        let to = Next::Peer(self.peer.clone());
        let mta = self.world.mta(self.process.mta);
        let unit = mta.outgoing(&body, &places(envelope), &to);
        let apdu = match unit.map(|unit| unit.apdu.map(|apdu| apdu.to_pieces())) {
            Ok(Some(apdu)) => apdu,
            other => {
                self.world
                    .fail(format!("{trace} cannot be sent: {other:?}"));
                return Err(BeforeMessage);
            }
        };
        let of = (trace, to.to_string());
        self.world.account.borrow_mut().begins(&of);
        self.world.sends(self.wire, &of);
        let (broken, begun) = (self.process.take_broken(trace, &self.peer), self.written());
        let Some(open) = &mut self.open else {
            return Err(BeforeMessage);
        };
        let outcome = match &broken {
            Some(broken) => open.settle(broken, &apdu).await,
            None => open.transfer(&apdu).await,
        };
        let octets = self.written() - begun;
        self.world
            .note(|| format!("{of:?}: {outcome:?} after {octets} octets"));
        if octets == 0 && matches!(&outcome, Outcome::NotTransferred(why, None) if is_end(why)) {
            // A kept association had ended: the message was not tried.
            let ended = self.world.account.borrow_mut().ends(&of, false);
            self.world.hold(ended);
            return Err(BeforeMessage);
        }
        self.world.check_rest(&of, self.lives, &outcome, octets);
        Ok(all(envelope, &self.peer, self.came_to(&of, outcome)))
    }

    fn usable(&mut self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.ended().is_none())
    }

    async fn closed(&mut self) {
        let Some(open) = &mut self.open else { return };
        while !matches!(open.next().await, vere_associations::Next::Ended(_)) {}
    }

    async fn quit(&mut self) {
        if let Some(open) = self.open.take() {
            let _end = open.release().await;
        }
    }
}

impl Transfer {
    fn written(&self) -> u64 {
        locked(&self.world.network()).written(self.wire, 0)
    }

    fn keep(&self, of: &Handover, broken: Option<Broken>) {
        let Some(broken) = broken else {
            return self.world.notes_rest(of, None);
        };
        let wasteful = self.world.broken() == BrokenSwitching::WastefulSender;
        let hasty = self.world.broken() == BrokenSwitching::HastySender;
        if !(wasteful && broken.is_resumable() && !broken.ended || hasty && broken.ended) {
            self.process.keep_broken(of.0, &self.peer, broken.clone());
        }
        let lives = self.lives;
        self.world.notes_rest(of, Some(Rest { broken, lives }));
    }

    /// The result for the message, as in the role.
    fn came_to(&self, of: &Handover, outcome: Outcome) -> (Disposition, &'static str, String) {
        let broke_off = "4.4.2";
        let end = |told| {
            let ended = self.world.account.borrow_mut().ends(of, told);
            self.world.hold(ended);
        };
        match outcome {
            Outcome::Transferred => {
                end(true);
                (Disposition::Delivered, "2.0.0", "transferred".to_owned())
            }
            Outcome::NotTransferred(why, broken) => {
                end(false);
                self.keep(of, broken);
                (Disposition::Deferred, broke_off, why.to_string())
            }
            Outcome::Refused(exception, broken) => {
                end(false);
                self.keep(of, broken);
                (Disposition::Deferred, "4.5.0", format!("{exception:?}"))
            }
            Outcome::InDoubt(why, broken) => {
                self.world.account.borrow_mut().figures.doubts += 1;
                if self.world.broken() == BrokenSwitching::TrustingSender {
                    return (Disposition::Delivered, "2.0.0", "trusted".to_owned());
                }
                self.keep(of, Some(broken));
                (Disposition::Deferred, broke_off, why.to_string())
            }
        }
    }
}

const fn is_end(why: &NotTransferred) -> bool {
    matches!(why, NotTransferred::Ended(_))
}

/// The mode of associations: normal, or that of X.410.
pub(super) const fn mode(old: bool) -> Mode {
    match old {
        true => Mode::X410(12),
        false => Mode::Normal,
    }
}

impl World {
    /// The octets of a transfer go over a connection from now on.
    fn sends(&self, wire: usize, of: &Handover) {
        self.wires.borrow_mut().insert(wire, of.clone());
    }
}
