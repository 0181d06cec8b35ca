//! Associations that peers have opened, as the role serves associations: a transfer is stored, noted in the history, and confirmed.

use std::cell::RefCell;
use std::rc::Rc;

use vere_associations::{
    Activity, Decision, History, Known, Next, NotReceived, OpenAssociation, Partial, Responder,
    Resumption, respond,
};
use vere_mta400::{Caller, Source};
use vere_osi::session::Exception;

use super::BrokenSwitching;
use super::courier::{CHECKPOINT, remote};
use super::process::Process;
use super::stream::SimStream;
use super::world::Shared;

/// Octets of a unit, at most.
const SIZE_MAX: u64 = 1 << 20;

/// An association with a peer.
struct Association {
    world: Shared,
    life: usize,
    peer: String,
    history: Rc<RefCell<History>>,
    open: OpenAssociation,
    wire: usize,
}

/// Answers the bind of a peer, and serves the association until the end.
pub(super) async fn answer(
    world: Shared,
    (life, process): (usize, Rc<Process>),
    (stream, wire): (SimStream, usize),
) {
    let responder = Responder {
        checkpoint_size: CHECKPOINT,
        ..Responder::default()
    };
    let Ok(caller) = respond(&responder, Box::new(stream), remote()).await else {
        return;
    };
    let who = Caller {
        address: remote().address.ip(),
        certificate: &[],
    };
    let mta = world.mta(process.mta);
    let admitted = match mta.peers.admit(&caller.asked().bind, who, |_| 0) {
        Ok(admitted) => admitted,
        Err(denied) => return world.fail(format!("bind refused: {}", denied.why)),
    };
    let decision = Decision::Accept(admitted.result);
    if let Ok(open) = caller.answer(async { decision }).await {
        let association = Association {
            history: process.history(&admitted.peer),
            peer: admitted.peer,
            world,
            life,
            open,
            wire,
        };
        association.serve().await;
    }
}

impl Association {
    async fn serve(mut self) {
        loop {
            match self.open.next().await {
                Next::Incoming(activity) => self.incoming(activity, Partial::default()).await,
                Next::Resume(resumption) => self.resume(resumption).await,
                Next::TurnWanted(_) => {
                    let _given = self.open.give_turn().await;
                }
                Next::Ended(_) => return,
                Next::Turn | Next::Reconfirmed | Next::GivenUp | Next::Idle => {}
            }
        }
    }

    fn is(&self, broken: BrokenSwitching) -> bool {
        self.world.broken() == broken
    }

    /// Receives a unit, or the rest of a unit.
    async fn incoming(&mut self, activity: Activity, begun: Partial) {
        if !self.world.is_ready(self.life) {
            if begun.length() > 0 {
                self.history.borrow_mut().broke(&activity, begun);
            }
            let reason = Exception::ReceivingAbilityJeopardized;
            let _refused = self.open.refuse(reason).await;
            return;
        }
        let blind = self.is(BrokenSwitching::BlindHistory);
        if !blind && !self.history.borrow_mut().begun(&activity) {
            // The peer has settled the transfer on another association.
            return self.open.break_off().await;
        }
        match self.open.collect(begun, SIZE_MAX).await {
            Ok(apdu) => self.complete(activity, apdu).await,
            Err(NotReceived::Broken(partial, _)) => {
                self.history.borrow_mut().broke(&activity, partial);
            }
            Err(error) => {
                self.world
                    .note(|| format!("transfer of {} not received: {error:?}", self.peer));
                self.history.borrow_mut().forget(&activity);
            }
        }
    }

    /// Stores and confirms a unit.
    async fn complete(&mut self, activity: Activity, apdu: Vec<bytes::Bytes>) {
        let source = Source::Peer(&self.peer);
        let of = self.world.sent_over(self.wire);
        if self.is(BrokenSwitching::EarlyConfirmation) {
            self.history.borrow_mut().received(&activity);
            let _confirmed = self.open.confirm().await;
            let _lost = self.world.take(self.life, (source, of), apdu).await;
            return;
        }
        match self.world.take(self.life, (source, of.clone()), apdu).await {
            Ok(()) => {
                self.history.borrow_mut().received(&activity);
                // Without a confirmation the peer asks again, and the history answers.
                let _confirmed = self.open.confirm().await;
            }
            Err(error) => {
                // A complete transfer cannot be refused any more: the association ends.
                self.world.note(|| format!("{of:?} is not taken: {error}"));
                self.world.forgets(of);
                self.history.borrow_mut().forget(&activity);
                self.open.break_off().await;
            }
        }
    }

    async fn resume(&mut self, resumption: Resumption) {
        if self.is(BrokenSwitching::ForgetfulHistory) {
            self.history.borrow_mut().forget(&resumption.old);
        }
        let known = self.history.borrow_mut().resumed(&resumption);
        self.count(&known);
        match known {
            // Errors: the peer has gone meanwhile, as the next event tells.
            Known::Received => {
                let _answered = self.open.already_received();
            }
            Known::Unknown => {
                let unknown = Exception::UnrecoverableProceduralError;
                let _answered = self.open.refuse(unknown).await;
            }
            Known::Busy => self.open.break_off().await,
            Known::Partial(partial) => {
                if self.open.continue_from(partial.length()).is_ok() {
                    self.incoming(resumption.new, partial).await;
                }
            }
        }
    }

    fn count(&self, known: &Known) {
        let figures = &mut self.world.account.borrow_mut().figures;
        match known {
            Known::Partial(partial) => figures.resumed += u64::from(partial.length() > 0),
            Known::Received => figures.reconfirmed += 1,
            Known::Busy => figures.busy += 1,
            Known::Unknown => {}
        }
    }
}
