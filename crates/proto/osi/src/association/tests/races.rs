//! Two hosts that ask for anything at any time, and octets that cross: no request that is granted breaks the protocol.

use std::collections::VecDeque;

use bytes::Bytes;
use proptest::prelude::*;

use super::pair::{Pair, X410, request};
use crate::association::*;
use crate::rtse::*;
use crate::session::Exception;

/// A host, and the octets on the way to the host.
struct Host {
    association: Association,
    arriving: VecDeque<Bytes>,
    /// Octets of the APDU that are still to be supplied.
    rest: u64,
    broken: Option<Broken>,
    resuming: bool,
    point: Option<u32>,
    closed: bool,
    /// APDUs that were begun, told of as transferred, and confirmed.
    counts: [u32; 3],
}

impl Host {
    fn new(association: Association) -> Self {
        Self {
            association,
            arriving: VecDeque::new(),
            rest: 0,
            broken: None,
            resuming: false,
            point: None,
            closed: false,
            counts: [0; 3],
        }
    }

    /// Asks for something. A refusal is no fault.
    fn ask(&mut self, action: u8, value: u8) {
        let association = &mut self.association;
        match action {
            0 => {
                let length = u64::from(value) * 12 + 1;
                if association.transfer(length).is_ok() {
                    self.rest = length;
                    self.counts[0] += 1;
                }
            }
            1 | 2 => {
                let length = self.rest.min(u64::from(value) * 32);
                let mut octets = Bytes::from(vec![7; usize::try_from(length).unwrap()]);
                self.rest -= u64::try_from(association.supply(&mut octets).unwrap_or(0)).unwrap();
            }
            3 => self.counts[2] += u32::from(association.confirm().is_ok()),
            4 => drop(self.point.take().map(|serial| association.secured(serial))),
            5 if value < 60 => drop(association.interrupt(Exception::NonSpecific)),
            6 if value < 60 => drop(association.discard(Exception::NonSpecific)),
            7 => {
                if let Some(broken) = self.broken.clone()
                    && let Ok(from) = association.resume(&broken)
                {
                    self.rest = broken.length - from.checkpoint.position;
                    self.broken = None;
                }
            }
            8 => drop(association.please_turn(u32::from(value))),
            9 => drop(association.give_turn()),
            10 if value < 60 => drop(association.refuse_transfer(Exception::LocalUserError)),
            11 if value < 10 => drop(association.release()),
            _ => self.answer(value),
        }
    }

    fn answer(&mut self, value: u8) {
        if !std::mem::take(&mut self.resuming) {
            return;
        }
        let _answered = match value % 3 {
            0 => self.association.continue_from(0),
            1 => {
                self.counts[2] += 1;
                self.association.already_received()
            }
            _ => self
                .association
                .refuse_transfer(Exception::UnrecoverableProceduralError),
        };
    }

    /// Looks at what has arrived and gives octets to the other side.
    fn look(&mut self, to: &mut VecDeque<Bytes>) -> Result<(), TestCaseError> {
        while let Some(output) = self.association.poll() {
            prop_assert!(!self.closed, "something after the end");
            match output {
                Output::Write(pieces) => to.push_back(pieces.into_bytes()),
                Output::Close => self.closed = true,
                Output::Event(event) => self.take(event)?,
            }
        }
        Ok(())
    }

    fn take(&mut self, event: Event) -> Result<(), TestCaseError> {
        match event {
            Event::Checkpoint(point) => self.point = Some(point.serial),
            Event::ResumeIndication(_) => self.resuming = true,
            Event::NotTransferred(broken) => self.broken = broken,
            Event::Transferred(_) => self.counts[1] += 1,
            Event::ReleaseIndication => prop_assert!(self.association.accept_release().is_ok()),
            Event::Aborted(cause, _) => {
                let completed = AbortReason::TransferCompleted;
                let known = [
                    AbortCause::ReliableTransfer(completed),
                    AbortCause::Ours(completed),
                ];
                prop_assert!(known.contains(&cause), "{:?}", cause);
            }
            _ => {}
        }
        Ok(())
    }
}

fn race(
    mode: Mode,
    checkpoint_size: u32,
    turn: bool,
    actions: &[(bool, u8, u8)],
) -> Result<[u32; 3], TestCaseError> {
    let open = OpenRequest {
        checkpoint_size,
        responder_has_turn: turn,
        ..request(mode)
    };
    let pair = Pair::open_with(open, Pair::plain(usize::MAX));
    let (mut a, mut b) = (Host::new(pair.a.association), Host::new(pair.b.association));
    for (of_a, action, value) in actions {
        let (host, other) = if *of_a {
            (&mut a, &mut b)
        } else {
            (&mut b, &mut a)
        };
        match action % 20 {
            action @ 0..13 => host.ask(action, *value),
            _ => {
                if let Some(octets) = host.arriving.pop_front() {
                    host.association.receive(octets);
                }
            }
        }
        host.look(&mut other.arriving)?;
    }
    let sum = |place: usize| a.counts[place] + b.counts[place];
    prop_assert!(sum(1) <= sum(2), "transferred before it was confirmed");
    Ok([sum(0), sum(1), sum(2)])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hosts_that_race_do_not_break_the_protocol(
        x410: bool,
        checkpoint_size in 0_u32..3,
        turn: bool,
        actions in prop::collection::vec(any::<(bool, u8, u8)>(), 1..250),
    ) {
        let mode = if x410 { X410 } else { Mode::Normal };
        race(mode, checkpoint_size, turn, &actions)?;
    }
}
