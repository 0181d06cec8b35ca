//! From the logs of a node's groups back to the groups, or what is wrong with them.

use std::path::PathBuf;
use std::time::Instant;

use vere_disk::log::{NodeDirectory, is_damage};
use vere_disk::spill::SpillFile;
use vere_ports::spool_log::OpenLogError;
use vere_spool::node::{Node, NodeConfig, Notice};
use vere_spoolwire::Incarnation;

use super::error::NodeError;

/// A group that cannot be read back here.
struct Damaged {
    group: String,
    reason: String,
    /// The newest head of its log that can be read.
    head: Option<Vec<u8>>,
}

/// Brings back every group that has a log. One whose log is damaged begins again, incomplete, and its
/// owner fills it from another node.
///
/// # Errors
///
/// When a log cannot be opened for any other reason than damage, or no other one can be begun in its
/// place: the queues are unknown then, not empty.
pub(super) fn restore(
    config: NodeConfig,
    logs: NodeDirectory,
    spill: Option<SpillFile>,
) -> Result<Node<NodeDirectory>, NodeError> {
    let begun = Instant::now();
    let groups = logs.groups()?;
    let mut node = Node::new(config, Incarnation(logs.incarnation()), None);
    if let Some(spill) = spill {
        node.set_spill_store(Box::new(spill));
    }
    let mut damaged = missing(&logs)?;
    for (group, path) in groups {
        match node.restore(&group, |replay| logs.open_group(&path, replay)) {
            Ok(()) => {}
            Err(error) if is_damage(&error) => damaged.push(Damaged {
                reason: error.to_string(),
                head: (logs.newest_head(&path)).or_else(|| logs.newest_head_aside(&group)),
                group,
            }),
            Err(error) => return Err(error.into()),
        }
    }
    node.set_log_store(logs);
    for (group, stat) in node.stats() {
        let (records, queues) = (stat.records, stat.queues);
        let ms = begun.elapsed().as_millis();
        tracing::info!(group, records, queues, ms, "spool group is back");
    }
    for Damaged {
        group,
        reason,
        head,
    } in damaged
    {
        let begun = node.begin_again(&group, head.as_deref(), reason.clone());
        begun.map_err(|error| NodeError::Damaged {
            group,
            reason,
            error,
        })?;
    }
    Ok(node)
}

/// Groups that were set aside, and nothing was put in their place before the process ended.
fn missing(logs: &NodeDirectory) -> Result<Vec<Damaged>, OpenLogError> {
    let damaged = |(group, path): (String, PathBuf)| Damaged {
        reason: format!("{} was set aside", path.display()),
        head: logs.newest_head_aside(&group),
        group,
    };
    Ok(logs.missing()?.into_iter().map(damaged).collect())
}

/// Tells what was found out about a group.
pub(super) fn tell(notice: &Notice) {
    match notice {
        Notice::Damaged { group, reason } => tracing::error!(
            group,
            reason,
            "spool group is damaged here: given up until its gateway has filled it again"
        ),
        Notice::Repaired { group } => tracing::info!(group, "spool group is whole again"),
    }
}
