//! Reads all records of the spool in blocks, after a start of the gateway or of a node that lost its memory.

use std::rc::Rc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use vere_queue::order::ORDERS_QUEUE;
use vere_queue::{Destination, Envelope};
use vere_spoolwire::{Batch, QueueId, QueueStat, Record, RecordId, SpoolError};

use crate::group::Group;
use crate::host::{Happened, Host};
use crate::lines;
use crate::reading::{POST_RETRY, own};

/// Records in one block.
const BLOCK_RECORDS: u32 = 1_000;
/// Octets in one block, about.
const BLOCK_OCTETS: u32 = 4 << 20;
/// Queues that are read at the same time: many queues are short, and each needs a request.
const QUEUES_AT_ONCE: usize = 16;

/// The records found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// Queues for destinations.
    pub queues: usize,
    /// Messages.
    pub messages: usize,
    /// Records that this version cannot read, which stay in the spool.
    pub unreadable: usize,
}

impl Recovered {
    /// Adds the figures of another group.
    const fn add(&mut self, more: Self) {
        self.queues += more.queues;
        self.messages += more.messages;
        self.unreadable += more.unreadable;
    }
}

impl<H: Host> Group<H> {
    /// Reads every queue of the group and admits its messages. A repeated call admits only new messages.
    ///
    /// # Errors
    /// When the spool cannot be read; messages admitted until then remain.
    pub async fn recover(self: &Rc<Self>) -> Result<Recovered, SpoolError> {
        recover(self).await
    }
}

async fn recover<H: Host>(group: &Rc<Group<H>>) -> Result<Recovered, SpoolError> {
    let mut found = Recovered::default();
    let mut line_octets = 0;
    let mut reading = FuturesUnordered::new();
    for stat in group.host.queues().await? {
        group.host.renew_readers(&stat).await?;
        if stat.name == ORDERS_QUEUE {
            recover_orders(group, stat.id, stat.first).await?;
            continue;
        }
        if lines::is_lines(&stat.name) {
            group.event_lines.found_queue(&stat);
            line_octets += stat.bytes;
            continue;
        }
        let Ok(destination) = stat.name.parse::<Destination>() else {
            tracing::error!(queue = %stat.name, "queue name is no destination, left alone");
            continue;
        };
        found.queues += 1;
        group
            .queues
            .change(|queues| queues.register(stat.id, destination, group.host.now()));
        if stat.length > 0 {
            if reading.len() >= QUEUES_AT_ONCE
                && let Some(one) = reading.next().await
            {
                found.add(one?);
            }
            reading.push(recover_queue(group, stat));
        }
    }
    while let Some(one) = reading.next().await {
        found.add(one?);
    }
    group.prepare_records(line_octets).await?;
    group.queues.wake();
    Ok(found)
}

async fn recover_orders<H: Host>(
    group: &Group<H>,
    queue: QueueId,
    first: RecordId,
) -> Result<(), SpoolError> {
    let mut from = first;
    loop {
        let block = group
            .host
            .fetch(queue, from, BLOCK_RECORDS, BLOCK_OCTETS)
            .await?;
        for record in &block.records {
            group.recover_order(queue, record);
        }
        if block.end {
            return Ok(());
        }
        from = block.next;
    }
}

async fn recover_queue<H: Host>(
    group: &Group<H>,
    queue: QueueStat,
) -> Result<Recovered, SpoolError> {
    let mut found = Recovered::default();
    let mut from = queue.first;
    loop {
        let block = group
            .host
            .fetch(queue.id, from, BLOCK_RECORDS, BLOCK_OCTETS)
            .await?;
        let mut records = block.records;
        see(group, queue.id, &mut records).await;
        for record in records {
            take(group, queue.id, &queue.name, record, &mut found);
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
async fn see<H: Host>(group: &Group<H>, queue: QueueId, records: &mut [Record]) {
    let now = group.host.now();
    let mut batch = Batch::new();
    for record in records {
        let Ok(mut envelope) = Envelope::decode(&record.meta) else {
            continue;
        };
        if envelope.mail.recipients.is_empty() || !envelope.head.see(now) {
            continue;
        }
        let place = (queue, record.id);
        let is_known = group.queues.look(|queues| {
            queues
                .places(envelope.head.trace)
                .any(|known| known == place)
        });
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
        match group.host.commit(batch.clone()).await {
            Err(SpoolError::Busy) => group.host.pause(POST_RETRY).await,
            Err(error) => {
                tracing::warn!(?error, "ages of messages from the future cannot be kept");
                return;
            }
            Ok(_) => return,
        }
    }
}

fn take<H: Host>(
    group: &Group<H>,
    queue: QueueId,
    name: &str,
    record: Record,
    found: &mut Recovered,
) {
    let envelope = match Envelope::decode(&record.meta) {
        Ok(envelope) => envelope,
        Err(error) => {
            tracing::error!(queue = name, record = record.id.0, %error, "record left alone");
            found.unreadable += 1;
            group.left_alone();
            return;
        }
    };
    let now = group.host.now();
    if envelope.mail.recipients.is_empty() {
        // An envelope without recipients needs no delivery; a version with other rules may have written the record.
        let mut batch = Batch::new();
        batch.delete(queue, record.id);
        let _ = group.host.post(batch);
        return;
    }
    group
        .host
        .tell(&Happened::Recovered(name, envelope.head.trace));
    let admitted = group.queues.change(|queues| {
        // The first ones are about to leave; the others come back when their turn comes.
        let body = queues.keeps(queue, now).then(|| own(&record.body));
        queues.admit(queue, record.id, envelope, body, now)
    });
    if admitted {
        found.messages += 1;
    }
}
