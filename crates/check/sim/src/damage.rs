//! Logs that become damaged, the detection of damage, and nodes that start with a damaged log.

use vere_spool::node::{Node, Notice};

use crate::disk::{Disk, Unopened};
use crate::schedule::{Event, MILLI, SECOND};
use crate::world::World;

impl World {
    /// Damages octets of a log while the node serves. The damage is detected some time later.
    pub(crate) fn rot_under(&mut self, node: usize) {
        let serves = self.nodes[node].process.is_some() && self.nodes[node].is_logged();
        if !serves || !self.may_lose(node) || !self.nodes[node].disk.rot(&mut self.random) {
            return;
        }
        self.note(6, || format!("the log of n{node} goes bad"));
        let lost = (self.nodes[node].incarnation, self.schedule.now());
        self.nodes[node].lost.push(lost);
        self.scrub_later(node);
    }

    /// Verifies a damaged log later.
    pub(crate) fn scrub_later(&mut self, node: usize) {
        if self.nodes[node].disk.is_rotten() {
            let delay = self.random.span(10 * MILLI..10 * SECOND);
            let boot = self.nodes[node].boot;
            self.schedule.after(delay, Event::Scrub { node, boot });
        }
    }

    /// A node's logs are looked through.
    pub(crate) fn scrub(&mut self, node: usize, boot: u64) {
        if self.nodes[node].boot == boot {
            self.nodes[node].disk.scrub();
            self.wake_node(node);
        }
    }

    /// The node's findings about its group.
    pub(crate) fn take_notices(&mut self, node: usize) {
        let state = &mut self.nodes[node];
        while let Some(notice) = state.process.as_mut().and_then(Node::take_notice) {
            let incarnation = state.incarnation;
            if let Notice::Repaired { .. } = notice {
                // The new log may have been damaged before, without detection so far.
                if !state.disk.is_rotten() {
                    state.lost.retain(|(lost, _)| *lost != incarnation);
                }
                self.repaired += 1;
            }
            let now = self.schedule.now();
            self.trace.note(now, 7, || format!("n{node}: {notice:?}"));
        }
    }
}

/// Why a node did not start.
pub(crate) enum Unstarted {
    /// The disk lacks space: the node is started again.
    Room(String),
    /// The log makes no sense.
    Log(String),
}

/// Brings the groups of a disk back. A damaged group begins again.
pub(crate) fn restore(process: &mut Node<Disk>, disk: &Disk) -> Result<(), Unstarted> {
    let mut damaged: Vec<_> = disk
        .missing()
        .into_iter()
        .map(|group| (group, None, "set aside".to_owned()))
        .collect();
    for group in disk.groups() {
        match process.restore(&group, |replay| disk.open(&group, replay)) {
            Ok(()) => {}
            Err(Unopened::Damaged(reason)) => {
                let head = disk.newest_head(&group);
                damaged.push((group, head, reason));
            }
            Err(Unopened::Unreadable(reason)) => return Err(Unstarted::Log(reason)),
        }
    }
    process.set_log_store(disk.clone());
    for (group, head, reason) in damaged {
        process
            .begin_again(&group, head.as_deref(), reason)
            .map_err(|error| Unstarted::Room(error.to_string()))?;
    }
    Ok(())
}
