//! Which nodes keep a log, where what is acknowledged must be in one: on each machine one of its nodes.
//!
//! Nodes of one machine lose power together, so that one log says after it what all of them held. What
//! keeps that true:
//!
//! - Nothing is acknowledged unless the log of one full member holds everything ([`Owner::has_log`]).
//! - The record does not lose its last such member: before a member leaves, or is not adopted, another
//!   one writes all that it holds to its log and says that it has (`register`).
//! - A member gives up its log only while another full one of its machine, that is there, keeps one.
//! - While the register may still let a member go, though that is not wanted any more, its log does not count
//!   ([`Replica::keeps_log`]).
//!
//! What a node does not say now is taken for no: it may be doing already what it was told.

use vere_spoolwire::{Request, Seq};
use vere_units::Timestamp;

use super::Owner;
use super::config::Link;
use super::phase::Phase;
use super::replica::{Replica, Standing};

impl Owner {
    /// Whether the log of a full member holds everything that was acknowledged, if there must be one.
    pub(super) fn has_log(&self) -> bool {
        !self.config.durable || self.replicas.iter().any(Replica::keeps_log)
    }

    /// Tells nodes to keep a log, or not to.
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
                // Who is gone on with has to have a log before others are left out.
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

    /// Tells one node, if it does something else.
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

    /// A node has done what it was told.
    pub(super) fn duty_done(&mut self, link: Link, seq: Seq) {
        let replica = &mut self.replicas[link.node];
        if let Some((asked, log)) = replica.duty
            && asked == seq
            && replica.active == Some(link.address)
        {
            (replica.duty, replica.logged) = (None, log);
        }
    }

    /// Whether a node is to keep a log: no other full member of its machine does. One that is away for a
    /// moment only still does; of several the first that is there.
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
