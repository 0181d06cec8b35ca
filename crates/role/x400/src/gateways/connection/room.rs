//! Memory for the submissions of a connection, in turn with all other units ([`crate::budget`]).

use std::future::{Future, pending};
use std::pin::Pin;
use std::rc::Rc;

use vere_mta400::Source;

use crate::budget::Share;
use crate::gateways::Desk;
use crate::origin::Origin;

type Wait = Pin<Box<dyn Future<Output = bool>>>;

/// The memory of a connection: a share for the coming frame, and a wait at a time.
pub(super) struct Room<D> {
    desk: Rc<D>,
    coming: Option<Rc<Share>>,
    wait: Option<Wait>,
}

impl<D: Desk> Room<D> {
    pub(super) fn new(desk: &Rc<D>) -> Self {
        Self {
            desk: Rc::clone(desk),
            coming: None,
            wait: None,
        }
    }

    /// Whether the connection waits for memory: the client is held meanwhile.
    pub(super) fn waits(&self) -> bool {
        self.wait.is_some()
    }

    /// Counts the octets of the coming frame, or waits for room.
    pub(super) fn count(&mut self, source: Source<'_>, octets: u64) {
        let share = match &self.coming {
            Some(share) => Rc::clone(share),
            None => self.share(source),
        };
        self.coming = Some(Rc::clone(&share));
        self.grow(&share, octets);
    }

    /// The frame is whole: the share counts all octets of the unit at the end of the wait.
    pub(super) fn whole(&mut self, source: Source<'_>, octets: u64) -> Rc<Share> {
        let share = self.coming.take().unwrap_or_else(|| self.share(source));
        share.rest();
        self.grow(&share, octets);
        share
    }

    /// The octets of the frame are free: the frame was no submission, or is given up.
    pub(super) fn free(&mut self) {
        self.coming = None;
    }

    /// Ready at the end of a wait, with whether memory was found. A coming frame also ends, without room, in favour of other units.
    pub(super) async fn ended(&mut self) -> bool {
        let called = self.coming.as_ref().map(|share| share.called());
        let called = async {
            match called {
                Some(called) => called.notified().await,
                None => pending().await,
            }
        };
        let wait = async {
            match &mut self.wait {
                Some(wait) => wait.await,
                None => pending().await,
            }
        };
        let found = tokio::select! {
            found = wait => found,
            () = called => false,
        };
        self.wait = None;
        found
    }

    fn share(&self, source: Source<'_>) -> Rc<Share> {
        let origin = Origin {
            source,
            address: None,
        };
        Rc::new(self.desk.budget().share(&origin.text()))
    }

    fn grow(&mut self, share: &Rc<Share>, octets: u64) {
        if share.grow(octets).is_ok() {
            return;
        }
        let (desk, share) = (Rc::clone(&self.desk), Rc::clone(share));
        self.wait = Some(Box::pin(async move {
            let give_way = |shortage| desk.kept().give_way(&share, shortage);
            share.grow_in_turn(octets, give_way).await
        }));
    }
}
