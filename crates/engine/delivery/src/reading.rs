//! Records read back from the spool.

use std::time::Duration;

use bytes::Bytes;
use vere_queue::Envelope;
use vere_spoolwire::{QueueId, Record, RecordId, SpoolError};

use crate::host::Spool;

/// Limit of octets for the fetch of one record; a single record always comes whole.
const FETCH_BYTES: u32 = 1 << 20;
/// Pause before a record that the spool cannot deliver now is requested again.
pub const POST_RETRY: Duration = Duration::from_millis(500);

/// Reads one record; `None` if the spool does not have it.
///
/// # Errors
/// When the link cannot read now.
pub async fn record(
    spool: &impl Spool,
    queue: QueueId,
    record: RecordId,
) -> Result<Option<Record>, SpoolError> {
    let block = spool.fetch(queue, record, 1, FETCH_BYTES).await?;
    let mut records = block.records.into_iter();
    Ok(records.find(|found| found.id == record))
}

/// Copies a body: the record would keep the memory of its whole block.
#[must_use]
pub fn own(body: &Bytes) -> Bytes {
    Bytes::copy_from_slice(body)
}

/// Decodes the records of a block, and leaves out records that this version cannot read.
pub fn readable(records: Vec<Record>) -> impl Iterator<Item = (RecordId, Envelope, Bytes)> {
    let alone = records.len() == 1;
    records.into_iter().filter_map(move |record| {
        let envelope = Envelope::decode(&record.meta).ok()?;
        let body = if alone {
            record.body
        } else {
            own(&record.body)
        };
        Some((record.id, envelope, body))
    })
}
