//! From a claimed group to an open one: learns the members' content and waits until the content is
//! safe. Also reports whether the group is open.

use vere_spoolwire::{QueueId, QueueStat, Request, Txn};
use vere_units::Timestamp;

use super::config::OwnerError;
use super::phase::Phase;
use super::question::{Purpose, QUEUES_AT_ONCE};
use super::replica::Replica;
use super::title::Noted;
use super::{Owner, OwnerEvent, ShutReason};

impl Owner {
    /// Moves from Claimed to Learning when the record names exactly the adopted members; and back.
    pub(super) fn adopt(&mut self, now: Timestamp) {
        match self.phase {
            Phase::Claimed { since }
                if self.record.full() > 0
                    && self.adopted(since, now).as_ref() == Some(&self.record) =>
            {
                self.learn();
            }
            Phase::Learning { leader } => {
                let full = || self.replicas.iter().filter(|replica| replica.is_full());
                let base = self.changes.base();
                let sound = self.replicas[leader].is_sound() && full().all(Replica::is_sound);
                let noted = full().all(|replica| replica.noted == Noted::Safe);
                let safe = noted && full().all(|replica| replica.listed && replica.acked >= base);
                let agree = full().all(|replica| replica.agrees(&self.replicas[leader]));
                if !sound || !agree {
                    self.phase = Phase::Claimed { since: now };
                } else if safe {
                    // From now on no crash of a member can undo transactions before the new
                    // numbering, or let the member serve an earlier owner.
                    self.phase = Phase::Open;
                    self.changes.open();
                }
            }
            _ => {}
        }
    }

    /// Restarts the numbering at the members' progress and requests the queues of each full member.
    fn learn(&mut self) {
        let Some(leader) = self.replicas.iter().position(Replica::is_sound) else {
            return;
        };
        let progress = self.replicas[leader].progress.as_ref();
        let processed = progress.map_or(Txn(0), |progress| progress.processed);
        self.changes.restart(processed);
        for replica in self.replicas.iter_mut().filter(|replica| replica.is_full()) {
            let progress = replica.progress.as_ref();
            replica.acked = progress.map_or(Txn(0), |progress| progress.acknowledged);
            replica.position = processed;
        }
        self.names.clear();
        self.reads
            .retain(|_, read| matches!(read.purpose, Purpose::Caller));
        // Ask all members: a record that one member refused and another undid used up a number only
        // on the latter.
        let full = self.replicas.iter().enumerate();
        let full: Vec<_> = full
            .filter(|(_, replica)| replica.is_full())
            .map(|(i, _)| i)
            .collect();
        self.phase = Phase::Learning { leader };
        for index in full {
            self.replicas[index].listed = false;
            self.ask_queues(index, QueueId(0));
        }
    }

    fn ask_queues(&mut self, index: usize, from: QueueId) {
        let request = Request::Queues {
            from,
            count: QUEUES_AT_ONCE,
        };
        self.ask(index, request, Purpose::Learn);
    }

    /// Processes a list of queues from a full replica.
    pub(super) fn learned_queues(
        &mut self,
        index: usize,
        queues: &[QueueStat],
        end: bool,
    ) -> Result<(), OwnerError> {
        if !matches!(self.phase, Phase::Learning { .. }) {
            return Ok(());
        }
        self.replicas[index].listed = end || queues.is_empty();
        if !queues.iter().all(|queue| self.names.learn(queue)) {
            return Err(OwnerError::Protocol);
        }
        if let Some(last) = queues.last().filter(|_| !end) {
            self.ask_queues(index, QueueId(last.id.0 + 1));
        }
        Ok(())
    }

    pub(super) fn tell_whether_open(&mut self, now: Timestamp) {
        let shut = self.why_shut(now);
        if shut == self.shut {
            return;
        }
        self.shut = shut;
        self.events
            .push_back(shut.map_or(OwnerEvent::Opened, OwnerEvent::Shut));
    }

    fn why_shut(&self, now: Timestamp) -> Option<ShutReason> {
        let full = || self.replicas.iter().filter(|replica| replica.is_full());
        let lost = |replica: &Replica| replica.is_up() && !self.is_recorded(replica);
        match self.phase {
            Phase::Open => {
                let there = full().filter(|replica| replica.is_sound()).count();
                let waited = |replica: &Replica| {
                    !replica.is_up()
                        && now.saturating_since(replica.away_since) >= self.config.isolate_after
                };
                if there > 0 && !self.has_log() {
                    Some(ShutReason::Unreachable)
                } else if there == 0 {
                    let all_lost = full().all(|replica| replica.fault.is_some() || lost(replica));
                    Some(if all_lost {
                        ShutReason::NoFullReplica
                    } else {
                        ShutReason::Unreachable
                    })
                } else if self.record.full() < self.config.replicas_min {
                    Some(ShutReason::TooFew)
                } else if full().any(waited) {
                    // The absent member is still in the record because the register does not
                    // answer.
                    Some(ShutReason::Unreachable)
                } else {
                    None
                }
            }
            Phase::Claimed { .. } if self.is_left_to_operator() => Some(ShutReason::NoFullReplica),
            Phase::Start | Phase::Claimed { .. } | Phase::Learning { .. } => {
                Some(self.shut.unwrap_or(ShutReason::Starting))
            }
            Phase::Fenced => Some(ShutReason::Unreachable),
        }
    }
}
