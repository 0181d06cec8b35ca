//! The user of an owner: reads every record back when the owner opens, then submits changes, reads
//! now and then, and remembers the answers.

use std::collections::{BTreeMap, VecDeque};

use vere_owner::OwnerEvent;
use vere_spoolwire::{NodeRefusal, QueueId, QueueStat, RecordId, Seq, Txn};

use crate::model::{QueueIndex, Status, Step};
use crate::random::Random;
use crate::schedule::{Event, MILLI};
use crate::world::World;

/// A requested read.
#[derive(Debug, Clone, Copy)]
enum Read {
    Queues(Step),
    Block {
        queue: QueueIndex,
        from: RecordId,
        since: Step,
    },
}

/// The user of an owner.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) random: Random,
    /// The owner has opened once.
    pub(crate) opened: bool,
    /// Everything was read back.
    pub(crate) ready: bool,
    listed: Vec<QueueStat>,
    /// Queues to be read whole.
    to_read: VecDeque<QueueIndex>,
    reads: BTreeMap<Seq, Read>,
}

impl Client {
    pub(crate) const fn new(random: Random) -> Self {
        Self {
            random,
            opened: false,
            ready: false,
            listed: Vec::new(),
            to_read: VecDeque::new(),
            reads: BTreeMap::new(),
        }
    }

    /// Whether no read is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready && self.reads.is_empty() && self.to_read.is_empty()
    }
}

impl World {
    /// Handles an event of an owner.
    pub(crate) fn client_hears(&mut self, owner: usize, event: OwnerEvent) -> Result<(), String> {
        let life = self.owners[owner].life;
        let step = self.schedule.serial();
        match event {
            OwnerEvent::Opened if !self.owners[owner].client.opened => self.client_opens(owner),
            OwnerEvent::Acked { through } => {
                self.check_acknowledged(owner, through)?;
                self.model.acked(life, through, step)
            }
            OwnerEvent::Refused { txn, refusal } => self.client_refused(owner, txn, refusal),
            OwnerEvent::Block { seq, block } => {
                let Some(Read::Block { queue, from, since }) =
                    self.owners[owner].client.reads.remove(&seq)
                else {
                    return Ok(());
                };
                self.blocks += 1;
                if self.model.head() != life {
                    return Ok(());
                }
                let Some(block) = block else {
                    let usable = self.model.queues.get(queue);
                    let usable = usable.is_some_and(|queue| self.model.is_usable(queue));
                    return if usable {
                        Err(format!("queue {queue} is lost"))
                    } else {
                        Ok(())
                    };
                };
                self.model.check_block(queue, from, &block, since)?;
                if !block.end {
                    self.client_fetches(owner, queue, block.next);
                }
                Ok(())
            }
            OwnerEvent::Queues { seq, queues, end } => self.client_listed(owner, seq, queues, end),
            OwnerEvent::Opened
            | OwnerEvent::Shut(_)
            | OwnerEvent::Fenced
            | OwnerEvent::RegisterUnreachable
            | OwnerEvent::Replica { .. }
            | OwnerEvent::Stat { .. } => Ok(()),
        }
    }

    fn client_opens(&mut self, owner: usize) -> Result<(), String> {
        let (life, base) = (
            self.owners[owner].life,
            self.owners[owner].machine.submitted(),
        );
        let step = self.schedule.serial();
        self.note(20, || format!("o{owner} opens after transaction {base}"));
        self.owners[owner].client.opened = true;
        self.check_opening(owner)?;
        let epoch = self.owners[owner].machine.membership().epoch;
        self.model.open((life, epoch), base, step)?;
        self.opened += 1;
        let client = &mut self.owners[owner].client;
        let count = client.random.span(1..5_000) as u32;
        let seq = self.owners[owner].machine.queues(QueueId(0), count);
        let client = &mut self.owners[owner].client;
        client.reads.insert(seq, Read::Queues(step));
        Ok(())
    }

    fn client_refused(
        &mut self,
        owner: usize,
        txn: Txn,
        refusal: NodeRefusal,
    ) -> Result<(), String> {
        let (life, until) = (
            self.owners[owner].life,
            self.owners[owner].machine.submitted(),
        );
        let Some(op) = self.model.refused(life, txn, until) else {
            return Ok(());
        };
        let bounded = self.scenario.owner.bytes_max < u64::MAX;
        let room = matches!(refusal, NodeRefusal::QueueFull | NodeRefusal::NodeFull)
            || refusal == NodeRefusal::GroupFull && bounded;
        let effects = self.model.ops.get(op).map(|op| &op.effects);
        let makes = effects.is_some_and(|effects| !effects.makes.is_empty());
        if !room || !makes {
            let stories = self.model.stories(op);
            return Err(format!(
                "transaction {txn} was refused, {refusal}, for no reason: {stories}"
            ));
        }
        Ok(())
    }

    fn client_listed(
        &mut self,
        owner: usize,
        seq: Seq,
        queues: Vec<QueueStat>,
        end: bool,
    ) -> Result<(), String> {
        let life = self.owners[owner].life;
        let client = &mut self.owners[owner].client;
        let Some(Read::Queues(since)) = client.reads.remove(&seq) else {
            return Ok(());
        };
        let next = queues
            .last()
            .map_or(QueueId(0), |last| QueueId(last.id.0 + 1));
        client.listed.extend(queues);
        if !end {
            let seq = self.owners[owner].machine.queues(next, 3);
            self.owners[owner]
                .client
                .reads
                .insert(seq, Read::Queues(since));
            return Ok(());
        }
        let listed = std::mem::take(&mut client.listed);
        if self.model.head() != life {
            return Ok(());
        }
        self.model.check_queues(&listed, since)?;
        let client = &mut self.owners[owner].client;
        client.to_read = self.model.usable_queues().into();
        Ok(())
    }

    /// Asks for records of a queue.
    pub(crate) fn client_fetches(&mut self, owner: usize, queue: QueueIndex, from: RecordId) {
        let since = self.schedule.serial();
        let id = self.model.queue_id(queue);
        let state = &mut self.owners[owner];
        let records = state.client.random.span(1..1_000) as u32;
        let octets = state.client.random.span(100..100_000) as u32;
        let seq = state.machine.fetch(id, from, records, octets);
        state
            .client
            .reads
            .insert(seq, Read::Block { queue, from, since });
    }

    /// Reads on; a client that has read everything is ready to submit.
    pub(crate) fn client_turn(&mut self, owner: usize) {
        let state = &mut self.owners[owner];
        let listing = state
            .client
            .reads
            .values()
            .any(|read| matches!(read, Read::Queues(_)));
        if !state.client.opened || listing {
            return;
        }
        if state.client.reads.is_empty()
            && let Some(queue) = state.client.to_read.pop_front()
        {
            let usable = self.model.queues.get(queue);
            if usable.is_some_and(|queue| self.model.is_usable(queue)) {
                self.client_fetches(owner, queue, RecordId(0));
            }
        }
        let client = &mut self.owners[owner].client;
        if !client.ready && client.reads.is_empty() && client.to_read.is_empty() {
            client.ready = true;
            self.note(21, || format!("client of o{owner} has read everything"));
        }
    }

    /// Everything is read again.
    pub(crate) fn client_reads_all(&mut self, owner: usize) {
        let step = self.schedule.serial();
        let state = &mut self.owners[owner];
        let seq = state.machine.queues(QueueId(0), 4_096);
        state.client.reads.insert(seq, Read::Queues(step));
        self.wake_owner(owner);
    }

    /// The time for another change has come.
    pub(crate) fn client_submits(&mut self, owner: usize) {
        if !self.owners[owner].alive {
            return;
        }
        // A rebuild must be able to keep pace in the end.
        let think = if self.calm {
            100 * MILLI
        } else {
            self.scenario.think
        };
        let pause = self.owners[owner].client.random.range(0..2 * think);
        self.schedule.after(pause, Event::Submit { owner });
        let state = &self.owners[owner];
        let paused = state.paused_until > self.schedule.now();
        // The changes of a fenced owner must have no effect; a few changes suffice for the check.
        let flying = self.model.flying(state.life) < self.scenario.flying_max;
        let many = self.model.ops.len() as u64 > self.scenario.changes_max;
        let rests = self.quiet || many && !self.calm;
        if rests || paused || !state.client.ready || state.fenced || !flying {
            return;
        }
        if self.owners[owner].client.random.percent(10) {
            let queues = self.model.usable_queues();
            if let Some(queue) = self.owners[owner].client.random.pick(&queues) {
                self.client_fetches(owner, queue, RecordId(0));
            }
        } else if let Err(wrong) = self.submit_something(owner) {
            self.fail(format!("o{owner}: {wrong}"));
        }
        self.wake_owner(owner);
    }

    /// Whether all requests to an owner are settled.
    pub(crate) fn is_settled(&self, owner: usize) -> bool {
        let life = self.owners[owner].life;
        let adopted = |op: &crate::model::Op| matches!(op.status, Status::Adopted(_));
        self.model.flying(life) == 0
            && self.owners[owner].client.is_idle()
            && !self.model.ops.iter().any(adopted)
    }
}
