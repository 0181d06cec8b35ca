//! Links to nodes: reports of the host about sockets, and their effects on the replicas.

use std::time::Duration;

use vere_spoolwire::{
    Answer, CloseReason, Incarnation, NodeRefusal, Request, Role, SECRET_LEN, Seq, Txn, Welcome,
};
use vere_units::Timestamp;

use super::config::{Link, OwnerError};
use super::connection::{Connection, HEARTBEAT, Said, Terms};
use super::phase::Phase;
use super::question::{Purpose, Read};
use super::replica::{Fault, Progress, Standing};
use super::title::Noted;
use super::{Owner, OwnerEvent, ReplicaChange};

impl Owner {
    /// Returns all links of the configuration.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        self.replicas
            .iter()
            .enumerate()
            .flat_map(|(node, replica)| {
                (0..replica.connections.len()).map(move |address| Link { node, address })
            })
    }

    /// Whether the host should have a connection over the link now.
    #[must_use]
    pub fn wants(&self, link: Link) -> bool {
        let Some(replica) = self.replicas.get(link.node) else {
            return false;
        };
        match self.phase {
            Phase::Start | Phase::Fenced => false,
            Phase::Claimed { .. } if self.record.members.is_empty() => true,
            Phase::Claimed { .. } | Phase::Learning { .. } => replica.is_full(),
            Phase::Open => {
                replica.standing != Standing::Out
                    || self.record.members.len() < self.members_wanted()
                        && self.is_welcome(replica, self.now)
            }
        }
    }

    /// Whether the host has reported a connection over the link.
    #[must_use]
    pub fn is_connected(&self, link: Link) -> bool {
        self.connection(link)
            .is_some_and(|connection| !connection.is_down())
    }

    /// Whether the handshake of the link's connection is complete.
    #[must_use]
    pub fn is_up(&self, link: Link) -> bool {
        self.connection(link).is_some_and(Connection::is_up)
    }

    /// Whether the host should read the link at once. Otherwise the host may leave input unread
    /// until another link has input. This is safe if the node has acknowledged at least as much as
    /// the slowest logging member, or will do so first: the node's answers alone acknowledge
    /// nothing to the caller. The delay does not make the node late (S1): once all logging members
    /// are ahead, the host reads the link at once.
    #[must_use]
    pub fn awaits(&self, link: Link) -> bool {
        let Some(replica) = self.replicas.get(link.node) else {
            return true;
        };
        let open = matches!(self.phase, Phase::Open) && self.shut.is_none();
        let plain = replica.is_sound() && replica.is_settled() && !replica.logged;
        if !open || !plain || replica.active != Some(link.address) {
            return true;
        }
        let asked = |read: &Read| read.asked == Some(link.node);
        if self.connection(link).is_none_or(Connection::is_asked) || self.reads.values().any(asked)
        {
            return true;
        }
        let keepers = self
            .replicas
            .iter()
            .filter(|other| other.is_sound() && other.logged);
        let safe = keepers.map(|keeper| keeper.acked).min();
        safe.is_none_or(|safe| replica.acked < safe)
    }

    pub(super) fn connection(&self, link: Link) -> Option<&Connection> {
        self.replicas.get(link.node)?.connections.get(link.address)
    }

    /// Starts the handshake of a new connection; `nonce` is 32 unpredictable octets.
    pub fn connected(&mut self, link: Link, nonce: [u8; SECRET_LEN], now: Timestamp) {
        self.look_at_clock(now);
        let replica = &mut self.replicas[link.node];
        replica.connections[link.address].connected(nonce, now, self.config.heartbeat);
    }

    /// Handles the end of a connection. Unacknowledged changes remain for the next connection.
    pub fn disconnected(&mut self, link: Link, now: Timestamp) {
        let replica = &mut self.replicas[link.node];
        replica.connections[link.address].disconnected();
        if replica
            .attaching
            .is_some_and(|(slot, _)| slot == link.address)
        {
            replica.attaching = None;
        }
        if replica.active == Some(link.address) {
            (replica.active, replica.duty) = (None, None);
            replica.away_since = now;
            if replica.noted != Noted::Safe {
                replica.noted = Noted::No;
            }
            // Copies in flight are lost, so the state of the node's rebuild is unknown.
            replica.rebuild = None;
            let node = replica.name.clone();
            let change = ReplicaChange::Down;
            self.events.push_back(OwnerEvent::Replica { node, change });
            self.unasked(link.node);
        }
        self.advance(now);
    }

    /// Processes octets from the node.
    ///
    /// # Errors
    ///
    /// Reason for ending the connection; the host then calls [`Owner::disconnected`].
    pub fn input(&mut self, link: Link, octets: &[u8], now: Timestamp) -> Result<(), OwnerError> {
        self.replicas[link.node].connections[link.address].received(octets, now);
        let result = self.hear(link);
        if let Err(error) = result {
            self.failed(link, error);
        }
        self.note_arriving(link, now);
        self.advance(now);
        result
    }

    /// Returns the incarnations that belong to other nodes, from the record or from live
    /// connections. One node under two names would count as two copies, and would be reset and
    /// filled from itself.
    fn taken_from(&self, index: usize) -> Vec<Incarnation> {
        let others = self.replicas.iter().enumerate();
        let others = others.filter(|(other, _)| *other != index);
        others
            .flat_map(|(_, replica)| {
                let member = self.record.member(&replica.name);
                let recorded = member.map(|member| Incarnation(member.incarnation));
                let there = replica.incarnation.filter(|_| replica.is_up());
                recorded.into_iter().chain(there)
            })
            .collect()
    }

    fn hear(&mut self, link: Link) -> Result<(), OwnerError> {
        let taken = self.taken_from(link.node);
        loop {
            let replica = &mut self.replicas[link.node];
            let role = replica.role_for(link.address);
            let terms = Terms {
                group: &self.config.group,
                account: &self.config.account,
                secret: &self.config.secret,
                charter: self.config.charter(),
                life: self.config.life,
                epoch: self.record.epoch,
                role,
                incarnation: replica.incarnation,
                taken: &taken,
                acknowledged: replica.acked,
                frame_max: self.changes.frame_max(),
            };
            let connection = &mut replica.connections[link.address];
            let Some(said) = connection.next(&terms, self.config.heartbeat)? else {
                return Ok(());
            };
            match said {
                Said::Welcome(incarnation, welcome) => self.welcomed(link, incarnation, welcome)?,
                Said::Answer(answer) => self.answered(link, answer)?,
                Said::Block(seq, block) => {
                    let fits = |asked: &Request| matches!(asked, Request::Fetch { .. });
                    let Some(read) = self.take_read(seq, link.node, fits)? else {
                        continue;
                    };
                    match read.purpose {
                        Purpose::Caller => self.events.push_back(OwnerEvent::Block { seq, block }),
                        Purpose::CopyRecords(target, queue) => {
                            self.copied_records(target, seq, queue, block);
                        }
                        Purpose::Learn | Purpose::CopyQueues(_) => {
                            return Err(OwnerError::Protocol);
                        }
                    }
                }
            }
        }
    }

    fn welcomed(
        &mut self,
        link: Link,
        incarnation: Incarnation,
        welcome: Welcome,
    ) -> Result<(), OwnerError> {
        // Two links may have sent their HELLO at the same time.
        if self.taken_from(link.node).contains(&incarnation) {
            return Err(OwnerError::AnotherNode);
        }
        let replica = &mut self.replicas[link.node];
        if replica.connections[link.address].role != Role::Owner {
            return Ok(());
        }
        self.changes.limit_frame(welcome.frame_max);
        replica.active = Some(link.address);
        replica.fenced = false;
        (replica.logged, replica.duty) = (welcome.synced, None);
        // A group restored from a log has a log.
        replica.logless &= !welcome.synced && !welcome.syncing;
        if replica.incarnation.replace(incarnation) != Some(incarnation) {
            (replica.progress, replica.logless) = (None, false);
            replica.noted = Noted::No;
        }
        let node = replica.name.clone();
        let change = ReplicaChange::Up;
        self.events.push_back(OwnerEvent::Replica { node, change });
        let progress = Progress {
            processed: welcome.processed,
            acknowledged: welcome.acknowledged,
            syncing: welcome.syncing,
            refused: welcome.refused,
        };
        self.resume(link.node, progress)
    }

    /// Resumes a connected replica at the reported progress.
    fn resume(&mut self, index: usize, progress: Progress) -> Result<(), OwnerError> {
        if progress.acknowledged > progress.processed {
            return Err(OwnerError::Protocol);
        }
        let recorded = self.is_recorded(&self.replicas[index]);
        let submitted = self.changes.submitted();
        let open = matches!(self.phase, Phase::Open | Phase::Learning { .. });
        let replica = &mut self.replicas[index];
        let told = replica.told(&progress);
        replica.progress = Some(told);
        if !open {
            let lost = replica.is_full() && (!recorded || progress.syncing);
            replica.fault = lost.then_some(Fault::Lost);
            return Ok(());
        }
        match replica.standing {
            Standing::Out => self.returned(index, &progress),
            Standing::Syncing if recorded && replica.promised.is_none() => {
                // Restart the rebuild unless the node is catching up: the arrived copies are
                // unknown.
                replica.rebuild = None;
                self.returned(index, &progress)
            }
            // A replica that the register may already have made full keeps its content and is not
            // rebuilt.
            Standing::Full | Standing::Syncing if recorded && !progress.syncing => {
                if progress.processed < replica.acked || progress.processed > submitted {
                    replica.fault = Some(Fault::Behind);
                    return Err(OwnerError::Behind);
                }
                replica.position = progress.processed;
                if replica.fault != Some(Fault::Diverged) {
                    replica.fault = None;
                }
                self.acked(index, progress.acknowledged, &progress.refused)
            }
            Standing::Full | Standing::Syncing => {
                replica.fault = Some(Fault::Lost);
                Ok(())
            }
        }
    }

    fn answered(&mut self, link: Link, answer: Answer) -> Result<(), OwnerError> {
        match answer {
            Answer::Ack { through, refused } => {
                if self.replicas[link.node].active == Some(link.address) {
                    self.acked(link.node, through, &refused)?;
                }
            }
            Answer::Stats { seq, stat } => {
                let fits = |asked: &Request| matches!(asked, Request::Stat);
                if self.take_read(seq, link.node, fits)?.is_some() {
                    self.events.push_back(OwnerEvent::Stat { seq, stat });
                }
            }
            Answer::QueueList { seq, queues, end } => {
                let first = queues.first().map(|queue| queue.id);
                let fits = |asked: &Request| match asked {
                    Request::Queues { from, .. } => first.is_none_or(|first| first >= *from),
                    _ => false,
                };
                let Some(read) = self.take_read(seq, link.node, fits)? else {
                    return Ok(());
                };
                match read.purpose {
                    Purpose::Caller => {
                        let event = OwnerEvent::Queues { seq, queues, end };
                        self.events.push_back(event);
                    }
                    Purpose::Learn => self.learned_queues(link.node, &queues, end)?,
                    Purpose::CopyQueues(target) => self.copied_queues(target, seq, queues, end),
                    Purpose::CopyRecords(..) => return Err(OwnerError::Protocol),
                }
            }
            Answer::Alive { seq: HEARTBEAT, .. } => {
                self.replicas[link.node].connections[link.address].beat();
            }
            Answer::Alive { seq, .. } => {
                self.completed(link.node, seq);
                self.duty_done(link, seq);
                self.title_noted(link, seq);
            }
            Answer::Attached {
                seq,
                processed,
                acknowledged,
                refused,
            } => self.attached(link, seq, (processed, acknowledged), refused)?,
            Answer::Block { .. } | Answer::Close(_) => {}
        }
        Ok(())
    }

    /// Asks a standby connection to become active if no active connection exists.
    pub(super) fn attach_standby(&mut self, index: usize) {
        let seq = self.next_seq;
        let replica = &mut self.replicas[index];
        let Some(slot) = replica.standby() else {
            return;
        };
        let acknowledged = replica.acked;
        replica.attaching = Some((slot, seq));
        let attach = Request::Attach { acknowledged };
        replica.connections[slot].write(|out| attach.encode(out, seq));
        self.next_seq = Seq(seq.0 + 1);
    }

    fn attached(
        &mut self,
        link: Link,
        seq: Seq,
        (processed, acknowledged): (Txn, Txn),
        refused: Vec<(Txn, NodeRefusal)>,
    ) -> Result<(), OwnerError> {
        let replica = &mut self.replicas[link.node];
        if replica.attaching != Some((link.address, seq)) {
            return Err(OwnerError::Protocol);
        }
        replica.attaching = None;
        (replica.active, replica.duty) = (Some(link.address), None);
        replica.connections[link.address].role = Role::Owner;
        let node = replica.name.clone();
        let change = ReplicaChange::Switched;
        self.events.push_back(OwnerEvent::Replica { node, change });
        let progress = Progress {
            processed,
            acknowledged,
            // A node refuses to attach to an incomplete group.
            syncing: false,
            refused,
        };
        self.resume(link.node, progress)
    }

    /// Draws conclusions about the node from the end of a connection.
    fn failed(&mut self, link: Link, error: OwnerError) {
        let replica = &mut self.replicas[link.node];
        match error {
            OwnerError::Closed(CloseReason::LogFailed) => replica.fault = Some(Fault::LogFailed),
            OwnerError::Closed(CloseReason::NoLog) => replica.logless = true,
            OwnerError::Closed(CloseReason::NoRoom) => replica.fault = Some(Fault::NoRoom),
            OwnerError::Closed(CloseReason::Fenced) => {
                // On a standby connection the node may not have heard of this owner yet.
                replica.fenced |= replica.connections[link.address].role == Role::Owner;
                self.read_register_again();
            }
            _ => {}
        }
    }

    /// Returns the octets to write next, after encoding changes as far as the window allows.
    pub fn output(&mut self, link: Link) -> &[u8] {
        if self.replicas[link.node].active == Some(link.address) {
            self.fill(link.node);
        }
        self.replicas[link.node].connections[link.address].output()
    }

    /// Whether encoded frames wait to be written.
    #[must_use]
    pub fn has_output(&self, link: Link) -> bool {
        self.connection(link)
            .is_some_and(|connection| connection.waiting() > 0)
    }

    /// Records that `count` octets were written.
    pub fn sent(&mut self, link: Link, count: usize) {
        let connection = &mut self.replicas[link.node].connections[link.address];
        connection.sent(count, self.now);
        if self.replicas[link.node].rebuild.is_some() {
            // The output backlog may now permit the next copy.
            self.rebuild(link.node);
        }
    }

    /// Latest time for the next call of [`Owner::timed_out`].
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        let connections = self
            .replicas
            .iter()
            .flat_map(|replica| &replica.connections);
        let heartbeat = connections.map(|connection| connection.heartbeat_at).min();
        let waits = self.shut.is_some()
            || self
                .replicas
                .iter()
                .any(|replica| replica.standing != Standing::Out && !replica.is_up())
            || self.record.members.len() < self.config.replicas;
        let soon = waits.then(|| self.now + self.config.heartbeat);
        let register = self.register_deadline();
        let deadline = heartbeat.into_iter().chain(soon).chain(register).min();
        deadline.unwrap_or(Timestamp::MAX)
    }

    /// Handles the passage of time.
    pub fn timed_out(&mut self, now: Timestamp) {
        self.look_at_clock(now);
        for link in self.links().collect::<Vec<_>>() {
            let connection = &mut self.replicas[link.node].connections[link.address];
            if let Err(error) = connection.timed_out(now, self.config.heartbeat) {
                self.drops.push_back((link, error));
            }
        }
        self.ask_late_anew(now);
        self.advance(now);
    }

    /// Updates the clock. A pause of the owner itself does not make nodes late: their input waited
    /// unread.
    pub(super) fn look_at_clock(&mut self, now: Timestamp) {
        let stood = now.saturating_since(self.now);
        let first = self.now == Timestamp::ZERO;
        self.now = now;
        if first {
            return;
        }
        // A live link causes one turn per heartbeat. Time beyond one heartbeat was the owner's own
        // pause. After a pause of two heartbeats or more the owner forgives all silence and asks
        // anew.
        let beat = self.config.heartbeat;
        let late = stood.saturating_sub(beat);
        if late > Duration::ZERO {
            let forgiven = if late < beat { late } else { Duration::MAX };
            let replicas = self.replicas.iter_mut();
            for connection in replicas.flat_map(|replica| &mut replica.connections) {
                connection.forgive(forgiven, now);
            }
        }
        if stood <= beat * 3 {
            return;
        }
        self.forget_marks();
        for read in self.reads.values_mut() {
            read.asked_at = now;
        }
        for replica in &mut self.replicas {
            replica.moved_at = now;
            replica.away_since = replica.away_since + stood;
        }
    }

    /// Ends connections that the owner no longer needs.
    pub(super) fn drop_unwanted(&mut self) {
        for link in self.links().collect::<Vec<_>>() {
            let up = self.replicas[link.node].connections[link.address].is_up();
            if up && !self.wants(link) && !self.drops.iter().any(|(drop, _)| *drop == link) {
                self.drops.push_back((link, OwnerError::NotWanted));
            }
        }
    }
}
