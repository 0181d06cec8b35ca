//! Goes through the messages of a queue in blocks and settles those without an attempt for which it is
//! time, in constant memory.

use vere_queue::Job;
use vere_spoolwire::{QueueId, RecordId};

use super::state::Gateway;
use super::{clock, recovery};

/// Records in one block.
const BLOCK_RECORDS: u32 = 100;
/// Octets in one block, about.
const BLOCK_OCTETS: u32 = 1 << 20;

/// Settles the messages of a queue whose time is over.
pub(super) async fn expired(gateway: &Gateway, queue: u32, settle: impl Fn(&Job)) {
    loop {
        let first = gateway.queues.borrow().first_expired(queue, clock::now());
        let Some(from) = first else { return };
        let from = RecordId(from);
        let block = gateway
            .link
            .fetch(QueueId(queue), from, BLOCK_RECORDS, BLOCK_OCTETS)
            .await;
        let records = match block {
            Ok(block) => block.records,
            Err(error) => {
                tracing::warn!(?error, "cannot fetch expired messages");
                return;
            }
        };
        let mut settled = 0;
        for (record, envelope, body) in recovery::readable(records) {
            let mut queues = gateway.queues.borrow_mut();
            if !queues.is_expired(envelope.accepted, clock::now()) {
                break;
            }
            let job = queues.claim(queue, record, envelope, body);
            drop(queues);
            settled += job.iter().map(&settle).count();
        }
        // The next look finds the same record otherwise: another version wrote it, or it is gone.
        if settled == 0 {
            return;
        }
    }
}
