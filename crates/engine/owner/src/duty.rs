//! Which nodes keep a log, if acknowledged changes must be in a log: one node of each machine.
//!
//! Nodes of one machine lose power together, so after the failure one log restores the content of
//! all of them. These rules guarantee a complete log:
//!
//! - The owner acknowledges nothing unless the log of one full member is complete
//!   ([`Owner::has_log`]).
//! - The record never loses its last member with a complete log. Before such a member leaves, or is
//!   not adopted, another member writes its whole content to its log and confirms (`register`).
//! - A member gives up its log only while another connected full member of its machine keeps one.
//! - A member's log does not count while the register may still remove the member by an outdated
//!   request ([`Replica::keeps_log`]).
//!
//! The owner treats a missing answer as "no log": the node may already have stopped logging.

use vere_spoolwire::{Request, Seq};
use vere_units::Timestamp;

use super::Owner;
use super::config::Link;
use super::phase::Phase;
use super::replica::{Replica, Standing};

impl Owner {
    /// Whether the log of a full member holds all acknowledged changes, if `durable` requires a
    /// log.
    pub(super) fn has_log(&self) -> bool {
        !self.config.durable || self.replicas.iter().any(Replica::keeps_log)
    }

    /// Assigns each node its duty to keep a log, or not to.
    pub(super) fn assign_duty(&mut self, now: Timestamp) {
        if !self.config.durable {
            return;
        }
        match self.phase {
            Phase::Open => {
                for index in 0..self.replicas.len() {
                    let replica = &self.replicas[index];
                    if replica.is_sound() && replica.duty.is_none() {
                        self.assign_duty_of(index, now);
                    }
                }
            }
            Phase::Claimed { since } => {
                // The adopted member needs a complete log before the record may drop other members.
                if let Some((record, leader)) = self.adoptable(since, now)
                    && self.adopted(since, now).is_none()
                    && self.replicas[leader].duty.is_none()
                    && !self.replicas[leader].logless
                    && record.full() > 0
                {
                    self.send_duty(leader, true);
                }
            }
            Phase::Start | Phase::Learning { .. } | Phase::Fenced => {}
        }
    }

    /// Sends a node its duty if the node's current duty differs.
    pub(super) fn assign_duty_of(&mut self, index: usize, now: Timestamp) {
        let wanted = self.should_log(index, now);
        let replica = &self.replicas[index];
        let can = !wanted || !replica.logless;
        if self.config.durable && can && wanted != replica.logged {
            self.send_duty(index, wanted);
        }
    }

    fn send_duty(&mut self, index: usize, log: bool) {
        let seq = self.next_seq;
        let replica = &mut self.replicas[index];
        let Some(connection) = replica.active_connection() else {
            return;
        };
        connection.write(|out| Request::Duty { log }.encode(out, seq));
        replica.duty = Some((seq, log));
        replica.logged &= log;
        self.next_seq = Seq(seq.0 + 1);
    }

    /// Handles a node's answer to its duty.
    pub(super) fn duty_done(&mut self, link: Link, seq: Seq) {
        let replica = &mut self.replicas[link.node];
        if let Some((asked, log)) = replica.duty
            && asked == seq
            && replica.active == Some(link.address)
        {
            (replica.duty, replica.logged) = (None, log);
        }
    }

    /// Whether a node is to keep a log: no other full member of its machine keeps one. The log of a
    /// briefly absent member counts. Of several members with logs the first connected one keeps its
    /// log.
    fn should_log(&self, index: usize, now: Timestamp) -> bool {
        let own = &self.replicas[index];
        let keeps = |replica: &Replica| replica.keeps_log() && !self.must_go(replica, now);
        let logs = own.standing == Standing::Full && own.logged;
        let instead = |(other, replica): (usize, &Replica)| {
            let same = other != index && replica.machine == own.machine && keeps(replica);
            same && (!logs || other < index && replica.is_sound())
        };
        !self.replicas.iter().enumerate().any(instead)
    }
}
