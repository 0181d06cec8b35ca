//! Receives the units of a peer, over associations opened by either side.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use vere_associations::{
    Activity, History, Known, NotReceived, OpenAssociation, Partial, Resumption,
};
use vere_mta400::Source;
use vere_osi::session::Exception;

use crate::budget::{Budget, Share};
use crate::intake::NotTaken;
use crate::kept::Kept;
use crate::origin::Origin;

/// The MTA, as receivers see it.
pub(crate) trait Host {
    /// The memory of coming units.
    fn budget(&self) -> &Rc<Budget>;

    /// The memory of broken transfers.
    fn kept(&self) -> &Kept;

    /// The resumable transfers of a peer.
    fn history(&self, peer: &str) -> Rc<RefCell<History>>;

    /// Octets of a unit, at most.
    fn octets_max(&self) -> u64;

    /// Whether units are taken now.
    ///
    /// # Errors
    /// The reason, for the log.
    fn ready(&self) -> Result<(), &'static str>;

    /// Takes responsibility for a unit; ready when the unit is safe.
    fn take(
        &self,
        origin: Origin<'_>,
        apdu: Vec<Bytes>,
    ) -> impl Future<Output = Result<(), NotTaken>>;

    /// Counts a refused transfer.
    fn refused(&self);

    /// Notes why a complete unit was not taken.
    fn not_taken(&self, origin: Origin<'_>, why: &NotTaken);
}

/// The receiver of a peer's units. All receivers of a peer share a history and half of the memory.
pub(crate) struct Receiver<'a, H> {
    host: &'a H,
    history: Rc<RefCell<History>>,
    peer: &'a str,
    /// The address of a caller.
    address: Option<SocketAddr>,
}

impl<'a, H: Host> Receiver<'a, H> {
    pub(crate) fn new(host: &'a H, peer: &'a str, address: Option<SocketAddr>) -> Self {
        Self {
            host,
            history: host.history(peer),
            peer,
            address,
        }
    }

    fn origin(&self) -> Origin<'_> {
        Origin {
            source: Source::Peer(self.peer),
            address: self.address,
        }
    }

    /// Receives a unit, or the rest of a unit. True: the unit is safe.
    pub(crate) async fn transfer(
        &self,
        open: &mut OpenAssociation,
        activity: Activity,
        begun: Partial,
    ) -> bool {
        // Octets of a continued transfer are counted anew, before another sender can have the room.
        let share = self.host.budget().share(self.peer);
        share.hold(begun.length());
        if let Err(why) = self.host.ready() {
            tracing::warn!(peer = self.peer, why, "transfer refused for now");
            // Octets of a transfer that continues go too: behind an exception a sender may begin anew.
            self.history.borrow_mut().forget(&activity);
            self.refuse(open).await;
            return false;
        }
        if !self.history.borrow_mut().begun(&activity) {
            tracing::info!(
                peer = self.peer,
                "transfer settled on another association, its late octets are dropped"
            );
            open.break_off().await;
            return false;
        }
        self.host.kept().release(&activity);
        let collected = self.collect(open, begun, &share).await;
        // A complete unit waits for the spool alone.
        share.rest();
        match collected {
            None => self.give_way(open, &activity).await,
            Some(Ok(apdu)) => return self.take(open, &activity, apdu).await,
            Some(Err(NotReceived::Broken(partial, _))) => self.keep(activity, partial, share),
            Some(Err(error)) => {
                tracing::warn!(peer = self.peer, ?error, "transfer not received");
                self.host.refused();
                self.history.borrow_mut().forget(&activity);
            }
        }
        false
    }

    /// Collects a unit as memory allows; `None` when the unit has to give way to other units.
    async fn collect(
        &self,
        open: &mut OpenAssociation,
        begun: Partial,
        share: &Share,
    ) -> Option<Result<Vec<Bytes>, NotReceived>> {
        let (most, kept) = (self.host.octets_max(), self.host.kept());
        let has_room = |octets| async move {
            let give_way = |shortage| kept.give_way(share, shortage);
            octets <= most && share.grow_in_turn(octets, give_way).await
        };
        let called = share.called();
        tokio::select! {
            collected = open.collect_while(begun, has_room) => Some(collected),
            () = called.notified() => None,
        }
    }

    /// Keeps the octets of a broken transfer.
    fn keep(&self, activity: Activity, partial: Partial, share: Share) {
        self.history.borrow_mut().broke(&activity, partial);
        self.host.kept().keep(&self.history, activity, share);
    }

    /// Takes responsibility for a complete unit.
    async fn take(
        &self,
        open: &mut OpenAssociation,
        activity: &Activity,
        apdu: Vec<Bytes>,
    ) -> bool {
        // Boxed: the decisions about a unit need much room, and an association mostly waits.
        let taken = Box::pin(self.host.take(self.origin(), apdu)).await;
        match &taken {
            Ok(_) => {
                self.history.borrow_mut().received(activity);
                // Without a confirmation the peer asks again, and the history answers.
                let _confirmed = open.confirm().await;
            }
            Err(error) => self.not_taken(open, activity, error).await,
        }
        taken.is_ok()
    }

    /// The unit has had memory for long while other units wait: the peer keeps the unit, and begins anew.
    async fn give_way(&self, open: &mut OpenAssociation, activity: &Activity) {
        tracing::warn!(
            peer = self.peer,
            "transfer refused for now: too slow while others wait for memory"
        );
        self.history.borrow_mut().forget(activity);
        self.refuse(open).await;
    }

    /// Refuses a transfer for now: the peer keeps the unit, and tries again.
    async fn refuse(&self, open: &mut OpenAssociation) {
        self.host.refused();
        let jeopardized = Exception::ReceivingAbilityJeopardized;
        if open.refuse(jeopardized).await.is_err() {
            open.break_off().await;
        }
    }

    /// A complete transfer cannot be refused any more: the association ends.
    async fn not_taken(&self, open: &mut OpenAssociation, activity: &Activity, error: &NotTaken) {
        tracing::warn!(peer = self.peer, %error, "unit not taken, its sender keeps it");
        self.host.refused();
        self.host.not_taken(self.origin(), error);
        self.history.borrow_mut().forget(activity);
        open.break_off().await;
    }

    /// Answers a peer's request to continue a transfer, and receives the rest. True: the unit is now safe.
    pub(crate) async fn resume(&self, open: &mut OpenAssociation, resumption: Resumption) -> bool {
        let known = self.history.borrow_mut().resumed(&resumption);
        match known {
            // Errors: the peer has gone meanwhile, which the next event tells.
            Known::Received => {
                let _answered = open.already_received();
            }
            Known::Unknown => {
                // The peer sends the whole unit anew, also with octets up to another checkpoint here.
                self.history.borrow_mut().forget(&resumption.old);
                self.host.kept().release(&resumption.old);
                let unknown = Exception::UnrecoverableProceduralError;
                let _answered = open.refuse(unknown).await;
            }
            Known::Busy => open.break_off().await,
            Known::Partial(partial) => {
                if open.continue_from(partial.length()).is_ok() {
                    // The transfer has another name from now on.
                    self.host.kept().release(&resumption.old);
                    return self.transfer(open, resumption.new, partial).await;
                }
                // The peer has gone meanwhile, and asks again.
                self.history.borrow_mut().broke(&resumption.old, partial);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
