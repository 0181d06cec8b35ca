//! The head of a log segment: state of a group without its records.
//!
//! ```text
//! +0   format version u32 = 3 | refused count u32 | incarnation u64 | last transaction u64 |
//!      queue count u32 | flags u32: 1 incomplete, 2 not known whose | owner u64 | epoch u64
//! +48  refused count x { txn u64 | code u32 | 0 u32 }
//!      queue count x entry of a QUEUE_LIST; first record, records and octets mean nothing
//!      payload of a CHARTERED up to the end; it means nothing with flag 2
//! ```
//!
//! In version 2 no queue had grants; the layout is compatible.

use vere_ports::spool_log::UnreadableEntry;
use vere_spoolwire::{Incarnation, NodeRefusal, QueueStat, Txn};

use super::group_charter::GroupCharter;
use super::store::Store;
use super::title::Title;

/// Written format version, and oldest readable one.
pub(super) const VERSION: u32 = 3;
const VERSION_MIN: u32 = 2;
/// The group is incomplete.
const FLAG_SYNCING: u32 = 1;
/// The account of the group is unknown, because its record is damaged.
const FLAG_UNKNOWN: u32 = 2;

/// Encodes the head for a new log segment. `incomplete`: the log does not represent the whole
/// group.
pub(super) fn encode(store: &Store, incarnation: Incarnation, incomplete: bool) -> Vec<u8> {
    let refused = store.refused(Txn(0), store.processed);
    let mut out = Vec::new();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(refused.len() as u32).to_le_bytes());
    out.extend_from_slice(&incarnation.0.to_le_bytes());
    out.extend_from_slice(&store.processed.0.to_le_bytes());
    out.extend_from_slice(&(store.queue_count() as u32).to_le_bytes());
    let known = store.group_charter.is_known();
    let flags = if incomplete { FLAG_SYNCING } else { 0 } | if known { 0 } else { FLAG_UNKNOWN };
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&store.title.owner.to_le_bytes());
    out.extend_from_slice(&store.title.epoch.to_le_bytes());
    for (txn, refusal) in refused {
        out.extend_from_slice(&txn.0.to_le_bytes());
        out.extend_from_slice(&refusal.code().to_le_bytes());
        out.extend_from_slice(&[0; 4]);
    }
    for (id, queue) in store.queues() {
        queue.stat(id).encode(&mut out);
    }
    if known {
        store.group_charter.write(&mut out);
    } else {
        GroupCharter::default().write(&mut out);
    }
    out
}

/// Content of a head.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) incarnation: Incarnation,
    pub(super) processed: Txn,
    pub(super) title: Title,
    pub(super) group_charter: GroupCharter,
    pub(super) syncing: bool,
    pub(super) refused: Vec<(Txn, NodeRefusal)>,
    pub(super) queues: Vec<QueueStat>,
}

/// Decodes a head.
///
/// # Errors
///
/// [`UnreadableEntry`] for another version or layout.
pub(super) fn decode(head: &[u8]) -> Result<Snapshot, UnreadableEntry> {
    let malformed = || UnreadableEntry("segment head is malformed".to_owned());
    let version = u32::from_le_bytes(*head.first_chunk().ok_or_else(malformed)?);
    if !(VERSION_MIN..=VERSION).contains(&version) {
        return Err(UnreadableEntry(format!(
            "segment head has version {version}, not {VERSION_MIN} to {VERSION}"
        )));
    }
    read(head).ok_or_else(malformed)
}

fn read(head: &[u8]) -> Option<Snapshot> {
    let (fixed, mut rest) = head.split_first_chunk::<48>()?;
    let number =
        |at: usize| -> Option<u64> { Some(u64::from_le_bytes(*fixed.get(at..)?.first_chunk()?)) };
    let count =
        |at: usize| -> Option<u32> { Some(u32::from_le_bytes(*fixed.get(at..)?.first_chunk()?)) };
    let mut refused = Vec::new();
    for _ in 0..count(4)? {
        let (entry, after) = rest.split_first_chunk::<16>()?;
        let txn = u64::from_le_bytes(*entry.first_chunk()?);
        let code = u32::from_le_bytes(*entry.get(8..)?.first_chunk()?);
        refused.push((Txn(txn), NodeRefusal::from_code(code)?));
        rest = after;
    }
    let mut queues = Vec::new();
    for _ in 0..count(24)? {
        queues.push(QueueStat::decode(&mut rest)?);
    }
    let flags = count(28)?;
    let group_charter = GroupCharter::read(rest)?;
    let group_charter = if flags & FLAG_UNKNOWN == 0 {
        group_charter
    } else {
        GroupCharter::unknown()
    };
    (flags & !(FLAG_SYNCING | FLAG_UNKNOWN) == 0).then_some(Snapshot {
        incarnation: Incarnation(number(8)?),
        processed: Txn(number(16)?),
        title: Title {
            owner: number(32)?,
            epoch: number(40)?,
        },
        group_charter,
        syncing: flags & FLAG_SYNCING != 0,
        refused,
        queues,
    })
}

#[cfg(test)]
mod tests {
    use vere_spoolwire::{QueueId, QueueLimits, RecordId};

    use super::super::config::NodeConfig;
    use super::super::memory::Memory;
    use super::*;
    use crate::testing::secret;

    /// A head of version 2 with one queue, as it was written before queues had grants.
    #[test]
    fn a_head_of_the_version_before_is_read_and_others_are_not() {
        let mut store = Store::new(10);
        let limits = QueueLimits {
            length_max: 7,
            bytes_max: 8,
        };
        let mut memory = Memory::new(&NodeConfig::new(secret()));
        let (id, next) = (QueueId(3), RecordId(5));
        store.create(&mut memory, id, "a.test", limits.into(), next);
        let mut head = encode(&store, Incarnation(9), false);
        // Queue and length of the name, then limits and the rest.
        let entry = [&[3, 0, 0, 0, 6, 0, 0, 0, 7][..], &[0; 7], &[8]].concat();
        assert_eq!(head[48..48 + entry.len()], entry);
        for (version, known) in [(1, false), (2, true), (3, true), (4, false)] {
            head[0] = version;
            match decode(&head) {
                Ok(snapshot) => {
                    assert!(known, "version {version}");
                    let queue = &snapshot.queues[0];
                    assert_eq!((queue.limits, queue.next), (limits, RecordId(5)));
                    assert!(queue.readers.get().is_empty());
                }
                Err(error) => {
                    assert!(!known, "version {version}");
                    let wanted = format!("version {version}, not 2 to 3");
                    assert!(error.0.contains(&wanted), "{}", error.0);
                }
            }
        }
    }
}
