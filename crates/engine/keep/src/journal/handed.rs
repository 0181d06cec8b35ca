//! A journal that another opening has taken over.

use vere_ports::storage::Storage;

use super::Journal;

impl<S: Storage> Journal<S> {
    /// Another opening reads the records, and begins a segment behind them: nothing is written here any more.
    pub const fn hand_over(&mut self) {
        self.has_failed = true;
    }
}
