//! Forgetting: removes hints at bodies and threads, of a stretch of the log, that no message refers to any more. No
//! data is lost: hints only help to find equal content and the rest of a thread.

use std::collections::VecDeque;

use vere_ports::mail_meta::{MetaEngine, Partition};

use super::marking::{Marking, partitions};
use crate::error::StoreError;
use crate::rows::keys;

/// Rows that a step looks at.
const ROWS: usize = 2_000;
/// Partitions asked for at once, and what each costs beside its rows, in rows.
const PARTITIONS: usize = 100;
const PARTITION_ROWS: usize = 10;

/// Looks through the hints of all accounts, and those that all accounts share.
#[derive(Debug, Default)]
pub(super) struct Forgetting {
    queue: VecDeque<Partition>,
    /// The last partition listed by the engine.
    after: Option<Partition>,
    /// The current partition, the kind of hints, and the last hint read.
    current: Option<(Partition, u8, Vec<u8>)>,
    done: bool,
}

impl Forgetting {
    /// Whether all partitions were searched.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Searches some hints, removes useless hints, and returns the number removed. An unreadable partition is
    /// skipped, as only hints are affected. An unreadable list of partitions is an error: partitions behind it would
    /// be missed.
    pub(super) fn step<M: MetaEngine>(
        &mut self,
        meta: &mut M,
        marking: &Marking,
    ) -> Result<u64, StoreError> {
        let (mut left, mut gone) = (ROWS, Vec::new());
        while left > 0 && !self.done {
            left = match self.current.take() {
                Some(current) => self.hints(meta, marking, current, left, &mut gone),
                None => {
                    self.enter(meta)?;
                    left.saturating_sub(PARTITION_ROWS)
                }
            };
        }
        if !gone.is_empty() {
            meta.remove_hints(&gone)?;
        }
        Ok(gone.len() as u64)
    }

    /// Goes on to the next partition.
    fn enter<M: MetaEngine>(&mut self, meta: &M) -> Result<(), StoreError> {
        if self.queue.is_empty() {
            self.queue = partitions(meta, self.after.as_ref(), PARTITIONS)?.into();
            if let Some(last) = self.queue.back() {
                self.after = Some(last.clone());
            }
        }
        let Some(partition) = self.queue.pop_front() else {
            self.done = true;
            return Ok(());
        };
        if matches!(partition, Partition::Account(_)) || partition == keys::EVERYBODY {
            self.current = Some((partition, keys::CONTENTS, Vec::new()));
        }
        Ok(())
    }

    /// Searches hints of a kind. Returns the rows left to this step.
    fn hints<M: MetaEngine>(
        &mut self,
        meta: &M,
        marking: &Marking,
        (partition, kind, after): (Partition, u8, Vec<u8>),
        rows: usize,
        gone: &mut Vec<(Partition, Vec<u8>)>,
    ) -> usize {
        let (mut left, mut last) = (rows, Vec::new());
        let read = meta.scan_after(&partition, &[kind], &after, &mut |key, value| {
            if marking.is_unused(kind, value) {
                gone.push((partition.clone(), key.to_vec()));
            }
            left -= 1;
            if left == 0 {
                last = key.to_vec();
            }
            left > 0
        });
        self.current = match (left, kind) {
            _ if read.is_err() => None,
            (0, _) => Some((partition, kind, last)),
            (_, keys::CONTENTS) => Some((partition, keys::THREADS, Vec::new())),
            _ => None,
        };
        left
    }
}
