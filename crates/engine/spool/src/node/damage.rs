//! Damaged groups: the log or spilled memory of a group cannot be read as written. The node gives
//! the group up, and its owner fills it again from another node, where the group goes on.
//!
//! ```text
//! found            what there was                          the group here
//! at the start     its log is set aside                    empty, incomplete, with a new log
//! while it serves  stays as it is: it may be all there is   incomplete; RESET does the same then
//! ```
//!
//! The old log is discarded when the group is complete again and wholly in the new log. A failure
//! to write or sync is no damage: such a log remains failed until the node restarts.

use vere_ports::spool_log::{LogError, LogRead, SpoolLog, SpoolLogStore};
use vere_spoolwire::{CloseReason, Seq, Txn};

use super::group::Group;
use super::group_charter::GroupCharter;
use super::ingest::Tail;
use super::journal::{Duty, Journal, Promise, Until};
use super::memory::Memory;
use super::mending::{Mending, Notice};
use super::store::Store;
use super::{Node, snapshot};

impl<S: SpoolLogStore> Node<S> {
    /// Starts a group whose log is unreadable: the old log is set aside, and the group stays
    /// incomplete until its owner has filled it. `head`: the newest readable head, the source of
    /// the group's state without records.
    ///
    /// # Errors
    ///
    /// If the log cannot be replaced; the group is then missing, and the node should not serve.
    pub fn begin_again(
        &mut self,
        group: &str,
        head: Option<&[u8]>,
        reason: String,
    ) -> Result<(), LogError> {
        let mut store = Store::new(self.config.queues_max);
        let known = head.and_then(|head| snapshot::decode(head).ok());
        match known.filter(|known| known.incarnation == self.incarnation) {
            Some(known) => {
                (store.group_charter, store.title) = (known.group_charter, known.title);
                store.processed = known.processed;
            }
            None => store.group_charter = GroupCharter::unknown(),
        }
        // A processed transaction marks the group as used: an owner must not create it as new after
        // a loss of the membership record.
        store.processed = store.processed.max(Txn(1));
        store.syncing = true;
        let head = snapshot::encode(&store, self.incarnation, true);
        let log = match &mut self.store {
            Some(logs) => logs.replace(group, &head)?,
            None => return Err(LogError::Failed("there are no logs".to_owned())),
        };
        let mut group = Group::new(group, store, Tail::default(), Some(log));
        group.mending = Some(Mending::Lacks);
        let name = group.name.to_string();
        self.groups.push(group);
        self.notices.push_back(Notice::Damaged {
            group: name,
            reason,
        });
        Ok(())
    }

    /// Returns the next notice about a group; each notice is returned once.
    pub fn take_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Gives up groups found damaged, and discards the old logs of repaired groups.
    pub(super) fn mend(&mut self) {
        for index in 0..self.groups.len() {
            if let Some(reason) = self.groups[index].give_up() {
                let group = self.groups[index].name.to_string();
                self.notices.push_back(Notice::Damaged { group, reason });
                self.close_group(index);
            }
            let group = &mut self.groups[index];
            if !group.is_mended() {
                continue;
            }
            if let Some(logs) = &mut self.store {
                logs.discard(&group.name);
            }
            let group = group.name.to_string();
            self.notices.push_back(Notice::Repaired { group });
        }
    }

    /// Discards a group with a damaged log and replaces the log; the owner has started to fill the
    /// group again. Transactions go on after `through`.
    ///
    /// # Errors
    ///
    /// Errors of the log.
    pub(super) fn renew(&mut self, index: usize, through: Txn) -> Result<(), CloseReason> {
        let group = &mut self.groups[index];
        group.discard(&mut self.memory, through);
        let head = snapshot::encode(&group.store, self.incarnation, true);
        let Some(logs) = &mut self.store else {
            return Err(CloseReason::NoLog);
        };
        let log = logs
            .replace(&group.name, &head)
            .map_err(|error| match error {
                LogError::Full => CloseReason::LogFull,
                LogError::Failed(_) | LogError::Damaged(_) => CloseReason::LogFailed,
            })?;
        group.take_log(&mut self.memory, log);
        Ok(())
    }
}

impl<L: SpoolLog> Group<L> {
    /// Whether the group's log is damaged and the group waits for its owner.
    pub(super) fn lacks_log(&self) -> bool {
        let failed = |journal: &Journal<L>| journal.failure.is_some();
        self.given_up && self.log.as_ref().is_some_and(failed)
    }

    /// Returns the next stretch read back from the group's log or its former log.
    pub(super) fn poll_read(&mut self) -> Option<LogRead> {
        let log = self
            .log
            .as_mut()
            .and_then(|journal| journal.log.poll_read());
        log.or_else(|| self.former_log.as_mut()?.poll_read())
    }

    /// Gives up a damaged group: its content does not count any more. Returns the reason, once.
    fn give_up(&mut self) -> Option<String> {
        let reason = match self.failure() {
            Some(LogError::Damaged(reason)) => reason.clone(),
            _ => return None,
        };
        (self.given_up, self.lost) = (true, None);
        self.store.syncing = true;
        self.mending = Some(Mending::Lacks);
        Some(reason)
    }

    /// Leaves a duty to the next log, because the present log has failed.
    pub(super) fn put_off_duty(&mut self, seq: Seq, log: bool) {
        let Some(journal) = &mut self.log else { return };
        (journal.duty, journal.leaving) = (Duty::Logs, !log);
        journal.promises.push(Promise {
            seq,
            until: Until::Filled,
            at: None,
        });
    }

    /// Replaces the log by a new one, which only says that the group is incomplete.
    fn take_log(&mut self, memory: &mut Memory, log: L) {
        let mut journal = Journal::new(log);
        if let Some(before) = self.log.take() {
            // The new log takes over the duty and the promises of the old one.
            journal.leaving = before.leaving || !before.is_active();
            journal.promises = before.promises;
            for promise in &mut journal.promises {
                promise.at = None;
            }
            // Reads in flight return from the old log as unreadable, or not at all.
            self.former_log = Some(before.log);
        }
        let newest = journal.log.newest();
        self.log = Some(journal);
        self.tail.begin_segment(&mut self.store, memory, newest);
        self.given_up = false;
    }

    /// Whether the group is complete again after damage, including the sync of its log. Returns
    /// true once.
    fn is_mended(&mut self) -> bool {
        let Some(mending) = self.mending else {
            return false;
        };
        let whole = !self.given_up && !self.store.syncing;
        let mended = match self.log.as_ref().filter(|_| whole) {
            None => {
                self.mending = Some(Mending::Lacks);
                return false;
            }
            // Another node keeps the log, so complete memory suffices here.
            Some(journal) if !journal.is_active() => true,
            Some(journal) if journal.duty == Duty::Fills => false,
            Some(journal) => match mending {
                Mending::Until(at) => journal.synced >= at,
                Mending::Lacks => {
                    if journal.logged == self.tail.start && !journal.blocked {
                        self.mending = Some(Mending::Until(journal.end));
                    }
                    false
                }
            },
        };
        if mended {
            self.mending = None;
        }
        mended
    }
}
