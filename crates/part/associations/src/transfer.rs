//! Transfers of this side.

use bytes::Bytes;
use vere_osi::association::{AssociationError, Event};
use vere_osi::rtse::Broken;
use vere_osi::session::Exception;

use crate::driver::{Feed, Happening};
use crate::end::End;
use crate::open::{Next, OpenAssociation};
use crate::outcome::{NotTransferred, Outcome};
use crate::value::wrapped;

/// Told of each checkpoint that the peer has confirmed.
pub type Checkpoints<'a> = dyn FnMut(&Broken) + Send + 'a;

impl OpenAssociation {
    /// Transfers an APDU of P1, given in pieces that are not copied. Ready when the peer is responsible, or is not, or it is in
    /// doubt. A host that stops waiting asks [`broken`](Self::broken) and drops the association.
    pub async fn transfer(&mut self, apdu: &[Bytes]) -> Outcome {
        self.transfer_noting(apdu, &mut |_| {}).await
    }

    /// As [`transfer`](Self::transfer), for a host that keeps checkpoints on stable storage, to resume after its own end.
    pub async fn transfer_noting(&mut self, apdu: &[Bytes], note: &mut Checkpoints<'_>) -> Outcome {
        if let Some(end) = &self.end {
            return Outcome::NotTransferred(end.clone().into(), None);
        }
        let (mut feed, length) = wrapped::<Feed>(self.context, apdu);
        match self.driver.machine.transfer(length) {
            Err(error) => {
                let end = self.end_behind(error).await;
                Outcome::NotTransferred(not_begun(end), None)
            }
            Ok(_) => self.send(&mut feed, None, note).await,
        }
    }

    /// Settles a transfer that broke off on this or another association with the same peer: continues behind the last
    /// checkpoint, or asks the peer to forget a transfer without one. The APDU is that of the first attempt.
    pub async fn settle(&mut self, broken: &Broken, apdu: &[Bytes]) -> Outcome {
        if let Some(end) = &self.end {
            return Outcome::broken(end.clone(), Some(broken.clone()));
        }
        let (mut feed, length) = wrapped::<Feed>(self.context, apdu);
        // The host has another APDU in its hands, or the peer another context.
        let same = length == broken.length;
        let resumed = broken.is_resumable() && same && broken.checkpoint.position < length;
        let begun = match resumed {
            true => self.driver.machine.resume(broken).map(|_| ()),
            false => self.driver.machine.discard_broken(broken),
        };
        if let Err(error) = begun {
            let end = self.end_behind(error).await;
            return Outcome::broken(end, Some(broken.clone()));
        }
        match resumed {
            true => skip(&mut feed, broken.checkpoint.position),
            false => feed.clear(),
        }
        self.send(&mut feed, Some(broken), &mut |_| {}).await
    }

    /// The end that a refused request hints at, or the fault of the host.
    async fn end_behind(&mut self, error: AssociationError) -> End {
        match self.driver.untold_end() {
            Some(end) => self.conclude(end).await,
            None => error.into(),
        }
    }

    /// A transfer that was complete before is told by an abort: the association has ended with it.
    async fn look_for_end(&mut self) {
        while !self.has_turn() && self.end.is_none() {
            if let Next::Ended(_) = self.next().await {
                return;
            }
        }
    }

    async fn send(
        &mut self,
        feed: &mut Feed,
        before: Option<&Broken>,
        note: &mut Checkpoints<'_>,
    ) -> Outcome {
        let mut before = before.cloned();
        let mut refused = None;
        self.driver.waits_no_more();
        loop {
            match self.driver.next(feed).await {
                Happening::Event(Event::Transferred(_)) => {
                    self.look_for_end().await;
                    return Outcome::Transferred;
                }
                Happening::Event(Event::NotTransferred(broken)) => {
                    return not_transferred(refused, broken);
                }
                Happening::Event(Event::Exception(reason)) => {
                    feed.clear();
                    refused = Some(reason);
                }
                Happening::Event(Event::CheckpointConfirmed(broken)) => {
                    note(&broken);
                    // From now on the peer knows the activity by its new name.
                    before = None;
                }
                Happening::Event(Event::TurnPlease(priority)) => self.note_turn(priority),
                Happening::Event(Event::Aborted(cause, broken)) => {
                    let broken = last_name(before, broken);
                    let end = self.driver.end(Some(cause));
                    return Outcome::broken(self.conclude(end).await, broken);
                }
                Happening::Closed => {
                    let end = self.driver.end(None);
                    return Outcome::broken(self.conclude(end).await, before);
                }
                Happening::Event(_) | Happening::Late => {}
            }
        }
    }
}

fn not_begun(end: End) -> NotTransferred {
    match end {
        End::Host(error) => error.into(),
        end => end.into(),
    }
}

/// Drops octets before a checkpoint.
fn skip(feed: &mut Feed, octets: u64) {
    let mut left = octets;
    while left > 0
        && let Some(front) = feed.front_mut()
    {
        let length = u64::try_from(front.len()).unwrap_or(u64::MAX);
        if length > left {
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            let _sent = front.split_to(left.min(front.len()));
            return;
        }
        left = left.saturating_sub(length);
        feed.pop_front();
    }
}

fn not_transferred(refused: Option<Exception>, broken: Option<Broken>) -> Outcome {
    match refused {
        Some(reason) => Outcome::Refused(reason, broken),
        None => Outcome::NotTransferred(NotTransferred::Discarded, broken),
    }
}

/// The value that finds the transfer again. A resumption that broke off before the peer has confirmed a checkpoint keeps its
/// old name: the peer need not have seen the new one.
fn last_name(before: Option<Broken>, broken: Option<Broken>) -> Option<Broken> {
    match (before, broken) {
        (Some(before), broken) => Some(Broken {
            ended: before.ended || broken.is_some_and(|broken| broken.ended),
            ..before
        }),
        (None, broken) => broken,
    }
}
