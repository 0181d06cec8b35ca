//! Transfers that broke off behind a checkpoint go on there, and octets before the checkpoint are not sent again.

use vere_associations::Outcome;
use vere_osi::rtse::Broken;
use vere_osi::session::Exception;

use super::account::Handover;
use super::world::World;

/// Octets around each checkpoint, at most.
const CHECKPOINT_HEADERS: u64 = 64;
/// Octets around each transfer, at most: the begin and the end of the activity.
const HEADERS: u64 = 400;

/// The rest of a transfer that broke off, and the lives of both sides when the transfer got the name.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) broken: Broken,
    pub(super) lives: [usize; 2],
}

impl Rest {
    fn is_same(&self, other: &Self) -> bool {
        let name = |rest: &Self| (rest.broken.session.clone(), rest.broken.activity);
        name(self) == name(other)
    }
}

impl World {
    /// A transfer broke off, with or without a rest.
    pub(super) fn notes_rest(&self, of: &Handover, rest: Option<Rest>) {
        let mut rests = self.rests.borrow_mut();
        let before = rests.remove(of);
        if let Some(mut rest) = rest {
            // An attempt that the receiver has not noticed leaves the memory of the receiver unchanged.
            if let Some(before) = before.filter(|before| before.is_same(&rest)) {
                rest.lives = before.lives;
            }
            rests.insert(of.clone(), rest);
        }
    }

    /// A receiver does not know a transfer any more, after the spool has not taken the unit.
    pub(super) fn forgets(&self, of: Option<Handover>) {
        self.forgotten.borrow_mut().extend(of);
    }

    /// Checks the outcome of a further attempt with a number of octets.
    pub(super) fn check_rest(
        &self,
        of: &Handover,
        lives: [usize; 2],
        outcome: &Outcome,
        octets: u64,
    ) {
        let rests = self.rests.borrow();
        let Some(rest) = rests.get(of) else {
            return;
        };
        let is_known = rest.lives == lives && !self.forgotten.borrow().contains(of);
        if !rest.broken.is_resumable() || !is_known {
            return;
        }
        let left = rest.broken.length - rest.broken.checkpoint.position;
        let headers = (left / 1_024 + 1) * CHECKPOINT_HEADERS + HEADERS;
        let unknown = Exception::UnrecoverableProceduralError;
        match outcome {
            Outcome::Refused(exception, _) if *exception == unknown => {
                self.fail(format!("{of:?} is unknown to the peer, which had {rest:?}"));
            }
            Outcome::Transferred if octets > left + headers => {
                self.fail(format!(
                    "{of:?}: {octets} octets were sent, {left} were left"
                ));
            }
            _ => {}
        }
    }
}
