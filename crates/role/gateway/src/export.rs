//! Brings event lines from the spool to the target that the settings name.

use std::rc::Rc;
use std::time::Duration;

use vere_export::SinkError;
use vere_spoolwire::{QueueId, RecordId};

use super::event_lines::EventTarget;
use super::group::Group;
use vere_spoolwire::SpoolError;

/// Lines taken at once.
const BLOCK_LINES: u32 = 1_000;
/// Octets taken at once, about.
const BLOCK_OCTETS: u32 = 1 << 20;
/// Lines that arrive within this time are written together: every write is synced.
const GATHER: Duration = Duration::from_millis(200);
/// Pauses after a failure, doubled from the first to the last.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Brings the lines of a group to where they go, until the gateway ends.
pub(super) async fn run(group: Rc<Group>) {
    let process = Rc::clone(&group.host.process);
    let Some(target) = &process.event_target else {
        return;
    };
    let mut from = [RecordId(0); 2];
    let mut pause = PAUSE_MIN;
    loop {
        let queues = group.event_lines.queues();
        let mut drained = Ok(false);
        for (queue, from) in queues.into_iter().zip(&mut from) {
            if let (Some(queue), Ok(before)) = (queue, &drained) {
                let before = *before;
                let block = drain_block(&group, target, queue, from).await;
                drained = block.map(|more| more || before);
            }
        }
        match drained {
            Ok(more) => {
                pause = PAUSE_MIN;
                if !more {
                    group.host.more_lines().await;
                    tokio::time::sleep(GATHER).await;
                }
            }
            Err(Trouble::Spool(SpoolError::Closed)) => return,
            Err(trouble) => {
                if let Trouble::Sink(error) = &trouble {
                    group.host.process.metrics.lines_failed();
                    tracing::warn!(%error, "records are not taken; they wait");
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

/// Why lines stay for now.
enum Trouble {
    Spool(SpoolError),
    Sink(SinkError),
}

/// Sends the next lines of a queue to the export target, then ends their records. Returns whether more lines remain.
async fn drain_block(
    group: &Group,
    target: &EventTarget,
    queue: QueueId,
    from: &mut RecordId,
) -> Result<bool, Trouble> {
    let link = &group.host.link;
    let block = link.fetch(queue, *from, BLOCK_LINES, BLOCK_OCTETS).await;
    let block = block.map_err(Trouble::Spool)?;
    let Some(last) = block.records.last() else {
        return Ok(false);
    };
    // A node also shows records not yet safe: an end must not be reported while an undo is possible.
    link.acknowledged().await.map_err(Trouble::Spool)?;
    let lines: Vec<_> = block.records.iter().map(|one| one.meta.clone()).collect();
    let taken = target.take(&lines).await;
    taken.map_err(Trouble::Sink)?;
    let purged = link.purge(queue, last.id).await;
    purged.map_err(Trouble::Spool)?;
    *from = block.next;
    group.host.process.metrics.lines_written(lines.len());
    let sizes = block
        .records
        .iter()
        .map(|one| one.meta.len() + one.body.len());
    group.event_lines.gone(sizes.sum::<usize>() as u64);
    Ok(!block.end)
}
