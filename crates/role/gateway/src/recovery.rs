//! Takes back from the spool what it holds, in blocks, after a start of the gateway or of a node that
//! lost its memory.

use std::fmt;
use std::rc::Rc;

use tokio::task::JoinSet;
use vere_queue::order::ORDERS_QUEUE;
use vere_queue::{Destination, Envelope};
use vere_spool::owner::{Batch, Record};
use vere_spoolwire::{QueueId, QueueStat, RecordId};
use vere_telemetry::trace::{Event, EventKind};

use super::group::Group;
use super::reading::{POST_RETRY, own};
use super::{clock, event_lines, orders};
use vere_link::link::SpoolError;
use vere_process::wording::{counted, messages};

/// Records in one block.
const BLOCK_RECORDS: u32 = 1_000;
/// Octets in one block, about.
const BLOCK_OCTETS: u32 = 4 << 20;
/// Queues that are read at the same time: many hold little, and each is asked for.
const QUEUES_AT_ONCE: usize = 16;

/// The findings.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recovered {
    pub(super) queues: usize,
    pub(super) messages: usize,
    /// Records that this version cannot read; they stay in the spool untouched.
    pub(super) unreadable: usize,
}

impl Recovered {
    /// Adds the figures of another group.
    const fn add(&mut self, more: Self) {
        self.queues += more.queues;
        self.messages += more.messages;
        self.unreadable += more.unreadable;
    }
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queues = counted(self.queues, "queue", "queues");
        write!(f, "{} in {queues}", messages(self.messages))?;
        if self.unreadable > 0 {
            let records = counted(self.unreadable, "record", "records");
            write!(f, ", {records} left alone that cannot be read")?;
        }
        Ok(())
    }
}

/// Reads every queue of the group and admits its messages. A repeated call admits only new messages.
///
/// # Errors
/// When the link cannot read; messages admitted until then remain.
pub(super) async fn recover(group: &Rc<Group>) -> Result<Recovered, SpoolError> {
    let mut found = Recovered::default();
    let mut lines = 0;
    let mut reading = JoinSet::new();
    for stat in group.link.queues().await? {
        group.link.renew_readers(&stat).await?;
        if stat.name == ORDERS_QUEUE {
            recover_orders(group, stat.id, stat.first).await?;
            continue;
        }
        if event_lines::is_lines(&stat.name) {
            group.found_lines(&stat);
            lines += stat.bytes;
            continue;
        }
        let Ok(destination) = stat.name.parse::<Destination>() else {
            tracing::error!(queue = %stat.name, "queue name is no destination, left alone");
            continue;
        };
        found.queues += 1;
        group
            .queues
            .change(|queues| queues.register(stat.id.0, destination, clock::now()));
        if stat.length > 0 {
            if reading.len() >= QUEUES_AT_ONCE {
                found.add(next(&mut reading).await?);
            }
            reading.spawn_local(recover_queue(Rc::clone(group), stat));
        }
    }
    while !reading.is_empty() {
        found.add(next(&mut reading).await?);
    }
    group.prepare_records(lines).await?;
    group.queues.wake();
    Ok(found)
}

/// What was found in the next queue that is read.
async fn next(
    reading: &mut JoinSet<Result<Recovered, SpoolError>>,
) -> Result<Recovered, SpoolError> {
    match reading.join_next().await {
        Some(Ok(found)) => found,
        // They never panic; they are cancelled only when the process ends.
        Some(Err(_)) => Err(SpoolError::Closed),
        None => Ok(Recovered::default()),
    }
}

async fn recover_orders(group: &Group, queue: QueueId, first: RecordId) -> Result<(), SpoolError> {
    let mut from = first;
    loop {
        let block = group
            .link
            .fetch(queue, from, BLOCK_RECORDS, BLOCK_OCTETS)
            .await?;
        for record in &block.records {
            orders::recover(group, queue, record);
        }
        if block.end {
            return Ok(());
        }
        from = block.next;
    }
}

async fn recover_queue(group: Rc<Group>, queue: QueueStat) -> Result<Recovered, SpoolError> {
    let mut found = Recovered::default();
    let mut from = queue.first;
    loop {
        let block = group
            .link
            .fetch(queue.id, from, BLOCK_RECORDS, BLOCK_OCTETS)
            .await?;
        let mut records = block.records;
        see(&group, queue.id, &mut records).await;
        for record in records {
            take(&group, queue.id, &queue.name, record, &mut found);
        }
        if block.end {
            return Ok(found);
        }
        from = block.next;
    }
}

/// Stores the time of first sight in envelopes whose acceptance lies in the future of the clock. Without the stored
/// time, their age would start anew with each restart. Runs before anything else can change the records; a busy spool
/// is retried, any other failure leaves the ages to the next start.
async fn see(group: &Group, queue: QueueId, records: &mut [Record]) {
    let now = clock::now();
    let mut batch = Batch::new();
    for record in records {
        let Ok(mut envelope) = Envelope::decode(&record.meta) else {
            continue;
        };
        if envelope.recipients.is_empty() || !envelope.see(now) {
            continue;
        }
        let place = (queue.0, record.id.0);
        let is_known = group
            .queues
            .look(|queues| queues.places(envelope.trace).any(|known| known == place));
        if is_known {
            continue;
        }
        record.meta = envelope.encode().into();
        batch.replace(queue, record.id, record.meta.clone());
    }
    if batch.is_empty() {
        return;
    }
    loop {
        match group.link.commit(batch.clone()).await {
            Err(SpoolError::Busy) => tokio::time::sleep(POST_RETRY).await,
            Err(error) => {
                tracing::warn!(?error, "ages of messages from the future cannot be kept");
                return;
            }
            Ok(_) => return,
        }
    }
}

fn take(group: &Group, queue: QueueId, name: &str, record: Record, found: &mut Recovered) {
    let envelope = match Envelope::decode(&record.meta) {
        Ok(envelope) => envelope,
        Err(error) => {
            tracing::error!(queue = name, record = record.id.0, %error, "record left alone");
            found.unreadable += 1;
            group.left_alone();
            return;
        }
    };
    let now = clock::now();
    if envelope.recipients.is_empty() {
        // An envelope without recipients needs no delivery; a version with other rules may have written the record.
        let mut batch = Batch::new();
        batch.delete(queue, record.id);
        let _ = group.link.post(batch);
        return;
    }
    group.process.ids.seen(envelope.trace);
    group.process.note(&Event {
        queue: Some(name),
        ..Event::new(EventKind::Recovered, envelope.trace, now)
    });
    let admitted = group.queues.change(|queues| {
        // The first ones are about to leave; the others come back when their turn comes.
        let body = queues.keeps(queue.0, now).then(|| own(&record.body));
        queues.admit(queue.0, record.id.0, envelope, body, now)
    });
    if admitted {
        found.messages += 1;
    }
}
