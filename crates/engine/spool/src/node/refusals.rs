//! Recent refusals, for an owner that repeats a refused transaction.

use vere_spoolwire::{NodeRefusal, Txn, WINDOW_TXNS_MAX};

use super::store::Store;

impl Store {
    /// Returns the remembered refusal of a transaction.
    pub(super) fn refusal(&self, txn: Txn) -> Option<NodeRefusal> {
        let index = self
            .refused
            .binary_search_by_key(&txn, |(txn, _)| *txn)
            .ok()?;
        Some(self.refused[index].1)
    }

    /// Returns the remembered refusals after `from`, up to and including `through`.
    pub(super) fn refused(&self, from: Txn, through: Txn) -> Vec<(Txn, NodeRefusal)> {
        let start = self.refused.partition_point(|(txn, _)| *txn <= from);
        let until = |&&(txn, _): &&(Txn, NodeRefusal)| txn <= through;
        self.refused
            .range(start..)
            .take_while(until)
            .copied()
            .collect()
    }

    /// Remembers the refusal of a transaction.
    pub(super) fn refuse(&mut self, txn: Txn, refusal: NodeRefusal) {
        self.refused.push_back((txn, refusal));
        let old = txn.0.saturating_sub(WINDOW_TXNS_MAX);
        while self.refused.front().is_some_and(|(txn, _)| txn.0 <= old) {
            self.refused.pop_front();
        }
    }
}
