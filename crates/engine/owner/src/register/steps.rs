//! Requests of the owner to the register, and the effects of the answers: rules R1 to R6.

use vere_units::Timestamp;

use super::super::membership::{MemberState, Membership};
use super::super::phase::Phase;
use super::super::replica::{Fault, Replica, Standing};
use super::super::{Owner, OwnerEvent, ReplicaChange};
use super::{Asked, LOOK, RETRY, RegisterFailed, RegisterRequest, RegisterSwap};

impl Owner {
    /// Returns the next request to the register, at most one at a time. The host answers with
    /// [`Owner::register_read`] or [`Owner::register_swapped`].
    pub fn poll_register(&mut self) -> Option<RegisterRequest> {
        self.register.request.take()
    }

    /// Whether [`Owner::poll_register`] has a request.
    #[must_use]
    pub const fn has_register_request(&self) -> bool {
        self.register.request.is_some()
    }

    /// Processes the answer to [`RegisterRequest::Read`]: the record and its version, or `None`
    /// without a record; `Err` for an unreachable register or a damaged value.
    pub fn register_read(
        &mut self,
        result: Result<Option<(u64, Vec<u8>)>, RegisterFailed>,
        now: Timestamp,
    ) {
        self.register.asked = None;
        let decode = |(version, octets): (u64, Vec<u8>)| {
            let record = Membership::decode(&octets).map_err(|_| RegisterFailed)?;
            Ok((version, record))
        };
        match result.and_then(|value| value.map(decode).transpose()) {
            Ok(known) => {
                self.register.alarmed = false;
                self.register.known = Some(known);
                self.learned(now);
            }
            Err(RegisterFailed) => self.register_failed(now),
        }
        self.advance(now);
    }

    /// Processes the answer to [`RegisterRequest::Swap`].
    pub fn register_swapped(&mut self, result: &RegisterSwap, now: Timestamp) {
        let Some(Asked::Swap(wanted)) = self.register.asked.take() else {
            return;
        };
        match result {
            RegisterSwap::Done(version) => {
                self.register.alarmed = false;
                self.register.known = Some(Some((*version, wanted)));
                self.learned(now);
            }
            // Read again: an earlier swap with a lost answer may have succeeded.
            RegisterSwap::Conflict => self.register.known = None,
            RegisterSwap::Unknown => {
                self.register.known = None;
                self.register_failed(now);
            }
        }
        self.advance(now);
    }

    fn register_failed(&mut self, now: Timestamp) {
        self.register.retry_at = now + RETRY;
        if !std::mem::replace(&mut self.register.alarmed, true) {
            self.events.push_back(OwnerEvent::RegisterUnreachable);
        }
    }

    /// Discards the known record, which the register may have replaced.
    pub(crate) fn read_register_again(&mut self) {
        if !matches!(self.register.asked, Some(Asked::Swap(_))) {
            self.register.known = None;
        }
    }

    /// Reports that a later owner seems to have the delivery lease. The owner reads the register
    /// again, unless it did so lately, to learn whether the group still is its own. No node knows
    /// of a later owner that died before reaching a node.
    pub fn doubt(&mut self, now: Timestamp) {
        if now.saturating_since(self.register.read_at) >= LOOK {
            self.read_register_again();
            self.advance(now);
        }
    }

    /// Sends the register the wanted record, unless a request is outstanding.
    pub(crate) fn ask_register(&mut self, now: Timestamp) {
        if self.register.asked.is_some()
            || now < self.register.retry_at
            || matches!(self.phase, Phase::Fenced)
        {
            return;
        }
        // While the group is shut, another owner or an operator may have changed the record.
        if self.shut.is_some() && now.saturating_since(self.register.read_at) >= LOOK {
            self.register.known = None;
        }
        let Some(known) = &self.register.known else {
            self.register.asked = Some(Asked::Read);
            self.register.request = Some(RegisterRequest::Read);
            self.register.read_at = now;
            return;
        };
        let expected = known.as_ref().map(|(version, _)| *version);
        if let Some(wanted) = self.wanted(now) {
            let value = wanted.encode();
            for replica in &mut self.replicas {
                let member = wanted.member(&replica.name);
                let full = member.is_some_and(|member| member.state == MemberState::Full);
                if full && replica.standing == Standing::Syncing {
                    replica.promised = expected;
                }
                if !full && replica.is_full() {
                    replica.leaving = expected;
                }
            }
            self.register.request = Some(RegisterRequest::Swap { expected, value });
            self.register.asked = Some(Asked::Swap(wanted));
        }
    }

    /// Time of the next request to the register without an event.
    pub(crate) fn register_deadline(&self) -> Option<Timestamp> {
        if self.register.asked.is_some() || matches!(self.phase, Phase::Fenced) {
            return None;
        }
        let looks = self.shut.map(|_| self.register.read_at + LOOK);
        let retries = self
            .register
            .known
            .is_none()
            .then_some(self.register.retry_at);
        looks.into_iter().chain(retries).min()
    }

    /// Processes a newly read record.
    fn learned(&mut self, now: Timestamp) {
        let Some(Some((version, record))) = &self.register.known else {
            // A claimed group has a record. A vanished record may return.
            if !matches!(self.phase, Phase::Start) {
                self.register.known = None;
                self.register_failed(now);
            } else if self.config.takes.is_some() {
                self.fence();
            }
            return;
        };
        let (version, record) = (*version, record.clone());
        let ours = record.owner == self.config.life;
        if matches!(self.phase, Phase::Start) {
            if ours {
                self.record = record;
                self.phase = Phase::Claimed { since: now };
                self.apply_record(now);
            } else if self.config.takes.is_some_and(|epoch| epoch != record.epoch) {
                self.fence();
            }
            return;
        }
        if !ours || record.epoch != self.record.epoch {
            self.fence();
            return;
        }
        self.record = record;
        // A changed version makes outstanding swaps fail.
        for replica in &mut self.replicas {
            replica.promised = replica.promised.filter(|promised| *promised == version);
            replica.leaving = replica.leaving.filter(|leaving| *leaving == version);
        }
        self.apply_record(now);
    }

    /// Ends the owner: another owner has the group.
    fn fence(&mut self) {
        self.phase = Phase::Fenced;
        self.events.push_back(OwnerEvent::Fenced);
    }

    /// Applies the record to the replicas.
    fn apply_record(&mut self, now: Timestamp) {
        if self.record.full() == 1 {
            let record = &self.record;
            let alone = |replica: &&mut Replica| {
                let member = record.member(&replica.name);
                let full = member.is_some_and(|member| member.state == MemberState::Full);
                full && replica.differs()
            };
            if let Some(replica) = self.replicas.iter_mut().find(alone) {
                replica.fault = None;
            }
        }
        let enough = self.record.members.len() >= self.config.replicas;
        for index in 0..self.replicas.len() {
            let replica = &mut self.replicas[index];
            let member = self.record.member(&replica.name);
            let standing = member.map_or(Standing::Out, |member| member.state.into());
            let before = std::mem::replace(&mut replica.standing, standing);
            if before == standing {
                continue;
            }
            let change = match standing {
                Standing::Out => {
                    replica.rebuild = None;
                    let gone = if replica.is_up() && replica.pace.is_slow() {
                        Fault::Slow
                    } else {
                        Fault::Away
                    };
                    let fault = replica.fault.take().unwrap_or(gone);
                    // An absent node did not fail, so the owner retries as soon as the node
                    // returns.
                    if before == Standing::Syncing && fault != Fault::Away {
                        replica.retry_at = now + self.config.rebuild_pause;
                    }
                    if fault == Fault::Slow {
                        replica.pace.leave(self.config.slow_rest, now);
                    } else if before == Standing::Syncing && enough {
                        replica.pace.put_off(self.config.slow_rest, now);
                    }
                    let held = before == Standing::Full || replica.awaited;
                    let open = matches!(self.phase, Phase::Open);
                    replica.awaited = held && open && fault == Fault::Away;
                    ReplicaChange::Isolated(fault)
                }
                Standing::Full => {
                    replica.rebuild = None;
                    if std::mem::take(&mut replica.awaited) {
                        ReplicaChange::CaughtUp
                    } else {
                        ReplicaChange::Full
                    }
                }
                Standing::Syncing if replica.awaited => ReplicaChange::CatchingUp,
                Standing::Syncing => ReplicaChange::Rebuilding,
            };
            replica.pace.begin(now);
            let node = replica.name.clone();
            self.events.push_back(OwnerEvent::Replica { node, change });
            if before == Standing::Full {
                // Answers of this replica to reads may be outdated.
                self.unasked(index);
                self.doubt_copies(index);
            }
        }
    }

    /// Returns the record that the owner wants instead of the current one, if any.
    fn wanted(&self, now: Timestamp) -> Option<Membership> {
        match self.phase {
            Phase::Start => {
                let known = self.register.known.as_ref()?;
                let first = Membership::new(1, self.config.life);
                let claim = |(_, record): &(u64, Membership)| record.claimed_by(self.config.life);
                Some(known.as_ref().map_or(first, claim))
            }
            Phase::Claimed { since } if self.record.members.is_empty() => self.formed(since, now),
            Phase::Claimed { since } => {
                let adopted = self.adopted(since, now)?;
                (adopted != self.record).then_some(adopted)
            }
            Phase::Learning { .. } | Phase::Fenced => None,
            Phase::Open => self
                .isolated(now)
                .or_else(|| self.promoted())
                .or_else(|| self.admitted(now))
                .or_else(|| self.unchanged()),
        }
    }

    /// Rewrites the record unchanged while an outstanding swap may still remove a member. The new
    /// version makes that swap fail.
    fn unchanged(&self) -> Option<Membership> {
        let leaving = |replica: &Replica| replica.leaving.is_some();
        let doubtful = self.replicas.iter().any(leaving);
        doubtful.then(|| self.record.clone())
    }

    /// R2: removes a member that is absent or at fault, as long as another full member remains.
    fn isolated(&self, now: Timestamp) -> Option<Membership> {
        let replaceable = |gone: &&Replica| {
            let empty = gone.fault == Some(Fault::Lost);
            let holds = !empty && self.config.durable;
            // Divergence from a member that lost its content no longer matters.
            let differs = |replica: &Replica| {
                empty && replica.differs() && replica.is_full() && replica.is_up()
            };
            let other = |replica: &Replica| {
                let stays = replica.is_sound() || differs(replica);
                replica.name != gone.name && stays && (replica.logged || !holds)
            };
            gone.standing == Standing::Syncing || self.replicas.iter().any(other)
        };
        let gone = self
            .replicas
            .iter()
            .filter(|replica| self.must_go(replica, now))
            .find(replaceable)?;
        Some(self.record.without(&gone.name))
    }

    /// Whether a member is absent for too long, at fault, or slow and not needed.
    pub(crate) fn must_go(&self, replica: &Replica, now: Timestamp) -> bool {
        let away = !replica.is_up()
            && now.saturating_since(replica.away_since) >= self.config.isolate_after;
        let gone = replica.standing != Standing::Out && (replica.fault.is_some() || away);
        gone || self.goes_on_without(replica)
    }

    /// R2: makes a rebuilt member full when it has everything.
    fn promoted(&self) -> Option<Membership> {
        let ready = |replica: &&Replica| {
            let complete = replica
                .rebuild
                .as_ref()
                .is_some_and(super::super::rebuild::Rebuild::is_complete);
            let whole = complete || replica.promised.is_some() && !replica.is_full();
            let acked = replica.acked >= self.changes.decided();
            // By then all differences between the node's refusals and the group's are known.
            let decided = self.changes.decided() >= replica.whole_after;
            let compared = replica.compared >= self.changes.decided();
            let settled = acked && decided && compared;
            whole && replica.is_up() && replica.fault.is_none() && settled
        };
        let replica = self.replicas.iter().find(ready)?;
        let incarnation = replica.incarnation?;
        Some(
            self.record
                .with(&replica.name, incarnation, MemberState::Full),
        )
    }

    /// Admits a node for a rebuild when members are lacking, one at a time. Of several nodes the
    /// one that left as slow least often is chosen.
    fn admitted(&self, now: Timestamp) -> Option<Membership> {
        if self.record.members.len() >= self.members_wanted()
            || !self.replicas.iter().any(Replica::is_sound)
        {
            return None;
        }
        let candidate = |replica: &&Replica| {
            let ready = replica.is_up() && now >= replica.retry_at;
            replica.standing == Standing::Out && ready && self.is_welcome(replica, now)
        };
        let candidates = self.replicas.iter().filter(candidate);
        let replica = candidates.min_by_key(|replica| replica.pace.times_left())?;
        let incarnation = replica.incarnation?;
        Some(
            self.record
                .with(&replica.name, incarnation, MemberState::Syncing),
        )
    }
}
