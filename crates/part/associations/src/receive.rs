//! Transfers of the peer.

use std::collections::VecDeque;
use std::future::{Future, ready};

use bytes::Bytes;
use vere_osi::association::{AssociationError, Event};
use vere_osi::rtse::Checkpoint;
use vere_osi::session::Exception;

use crate::bounds::Wait;
use crate::driver::{Feed, Happening};
use crate::end::End;
use crate::open::OpenAssociation;
use crate::value::unwrapped;

/// The next part of a transfer of the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Octets of the transfer: the APDU, in normal mode within an EXTERNAL that [`unwrapped`] takes off.
    Octets(Bytes),
    /// A checkpoint: `secured` when the octets before it are kept.
    Checkpoint(Checkpoint),
    /// The transfer is complete, with this many octets: `confirm` when it is safe.
    Complete(u64),
    /// The peer interrupts the transfer, and may resume it behind this checkpoint.
    Interrupted(Checkpoint),
    /// The peer has discarded the transfer: what was received of it is void.
    Discarded,
    /// The association has ended. The peer may resume the transfer on another.
    Ended(End),
}

/// Checkpoints of a transfer that are remembered: more than a window of them.
const CHECKPOINTS_MAX: usize = 1_024;

/// The octets of a transfer that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Partial {
    octets: Vec<Bytes>,
    length: u64,
    checkpoints: VecDeque<Checkpoint>,
}

/// Why no APDU was collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotReceived {
    /// The transfer broke off, with the octets up to there. A receiver that keeps them can continue it.
    Broken(Partial, Option<End>),
    /// The peer has discarded the transfer.
    Discarded,
    /// The APDU is longer than the host allows, or the host has no room. It was refused; [`Next::GivenUp`](crate::Next::GivenUp) follows.
    TooLong,
    /// The octets are no APDU in an EXTERNAL. The association was aborted.
    Malformed,
}

impl Partial {
    /// Appends octets.
    pub fn push(&mut self, octets: Bytes) {
        let count = u64::try_from(octets.len()).unwrap_or(u64::MAX);
        self.length = self.length.saturating_add(count);
        self.octets.push(octets);
    }

    /// Remembers a checkpoint behind the last octets.
    pub fn secure(&mut self, checkpoint: Checkpoint) {
        self.checkpoints.push_back(checkpoint);
        if self.checkpoints.len() > CHECKPOINTS_MAX {
            self.checkpoints.pop_front();
        }
    }

    /// Number of octets.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The octets before a checkpoint, as the sender continues behind it; `None` for one that is not known.
    #[must_use]
    pub fn before(&self, serial: u32) -> Option<Self> {
        if serial == 0 {
            return Some(Self::default());
        }
        let place = self
            .checkpoints
            .iter()
            .position(|point| point.serial == serial)?;
        let mut left = self.checkpoints.get(place)?.position;
        let mut before = Self {
            checkpoints: self.checkpoints.iter().take(place + 1).copied().collect(),
            ..Self::default()
        };
        for piece in &self.octets {
            let whole = u64::try_from(piece.len()).unwrap_or(u64::MAX);
            let count = usize::try_from(left.min(whole)).unwrap_or(usize::MAX);
            left = left.saturating_sub(whole);
            if count > 0 {
                before.push(piece.slice(..count.min(piece.len())));
            }
        }
        Some(before)
    }
}

impl OpenAssociation {
    /// The next part of the transfer that the peer has begun. Octets that the host holds longer than `Bounds::hold` end the
    /// association.
    pub async fn part(&mut self) -> Part {
        if let Some(end) = &self.end {
            return Part::Ended(end.clone());
        }
        self.driver.waits_no_more();
        let held = self.held();
        if held > self.driver.bounds().hold {
            self.driver.abort_late(Wait::Hold);
            return Part::Ended(self.conclude(Wait::Hold.into()).await);
        }
        self.driver.postpone(held);
        let part = self.wait_for_part().await;
        self.handed = match part {
            Part::Octets(_) | Part::Checkpoint(_) | Part::Complete(_) => {
                Some(tokio::time::Instant::now())
            }
            _ => None,
        };
        part
    }

    async fn wait_for_part(&mut self) -> Part {
        loop {
            match self.driver.next(&mut Feed::new()).await {
                Happening::Event(Event::Apdu(octets)) => return Part::Octets(octets),
                Happening::Event(Event::Checkpoint(point)) => return Part::Checkpoint(point),
                Happening::Event(Event::Received(length)) => return Part::Complete(length),
                Happening::Event(Event::TransferInterrupted(point, _)) => {
                    return Part::Interrupted(point);
                }
                Happening::Event(Event::TransferDiscarded(_)) => return Part::Discarded,
                Happening::Event(Event::Aborted(cause, _)) => {
                    let end = self.driver.end(Some(cause));
                    return Part::Ended(self.conclude(end).await);
                }
                Happening::Closed => {
                    let end = self.driver.end(None);
                    return Part::Ended(self.conclude(end).await);
                }
                Happening::Event(Event::TurnPlease(priority)) => self.note_turn(priority),
                Happening::Event(_) | Happening::Late => {}
            }
        }
    }

    /// The host has the octets before this checkpoint: the peer need not send them again.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] for a checkpoint that awaits nothing.
    pub fn secured(&mut self, checkpoint: Checkpoint) -> Result<(), AssociationError> {
        self.driver.machine.secured(checkpoint.serial)
    }

    /// The APDU is safe: this side is responsible from now on.
    ///
    /// # Errors
    ///
    /// [`End`] when the host held the APDU too long, or none is complete. The peer may then send it again.
    pub async fn confirm(&mut self) -> Result<(), End> {
        if self.held() > self.driver.bounds().hold {
            self.driver.abort_late(Wait::Hold);
            return Err(self.conclude(Wait::Hold.into()).await);
        }
        self.driver.machine.confirm()?;
        self.driver.push().await;
        Ok(())
    }

    /// Collects the transfer of the peer in memory, and gives the APDU in pieces; `confirm` is left to the host. A transfer that
    /// continues begins with the octets that are there.
    ///
    /// # Errors
    ///
    /// [`NotReceived`], with what was received of it.
    pub async fn collect(&mut self, begun: Partial, max: u64) -> Result<Vec<Bytes>, NotReceived> {
        self.collect_while(begun, |octets| ready(octets <= max))
            .await
    }

    /// Collects the transfer of the peer as [`Self::collect`] does, as long as the host has room for so many octets. A host that waits for room, for less
    /// than `Bounds::hold`, holds the peer meanwhile.
    ///
    /// # Errors
    ///
    /// [`NotReceived`], with what was received of it.
    pub async fn collect_while<F: Future<Output = bool>>(
        &mut self,
        begun: Partial,
        has_room: impl Fn(u64) -> F,
    ) -> Result<Vec<Bytes>, NotReceived> {
        let mut partial = begun;
        loop {
            match self.part().await {
                Part::Octets(octets) => partial.push(octets),
                Part::Checkpoint(point) => {
                    partial.secure(point);
                    if let Err(error) = self.secured(point) {
                        return Err(NotReceived::Broken(partial, Some(error.into())));
                    }
                }
                Part::Complete(_) => return self.complete(partial.octets).await,
                Part::Interrupted(_) => return Err(NotReceived::Broken(partial, None)),
                Part::Ended(end) => return Err(NotReceived::Broken(partial, Some(end))),
                Part::Discarded => return Err(NotReceived::Discarded),
            }
            if !has_room(partial.length).await {
                let reason = Exception::ReceivingAbilityJeopardized;
                if self.refuse(reason).await.is_err() {
                    self.driver.machine.abort(None);
                    let _end = self.conclude(End::Closed).await;
                }
                return Err(NotReceived::TooLong);
            }
        }
    }

    async fn complete(&mut self, octets: Vec<Bytes>) -> Result<Vec<Bytes>, NotReceived> {
        match unwrapped(self.facts().mode, octets) {
            Ok(apdu) => Ok(apdu),
            Err(_) => {
                self.driver.machine.abort(None);
                let _end = self.conclude(End::Closed).await;
                Err(NotReceived::Malformed)
            }
        }
    }
}
