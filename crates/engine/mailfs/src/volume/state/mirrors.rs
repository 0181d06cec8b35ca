//! Copies of commits and pages on further metadata accounts.

use std::collections::{BTreeMap, VecDeque};

use vere_order::copies::Copy;
use vere_order::recent::Recent;
use vere_ports::files::{CallId, Reply};
use vere_units::Timestamp;

/// Copies of commits and pages, and who waits for copies.
#[derive(Debug, Default)]
pub(crate) struct Mirrors {
    /// The newest commits of the chain.
    pub(crate) recent: Recent,
    /// The copies, by account.
    pub(crate) copies: BTreeMap<u16, Copy>,
    /// Who waits until so many accounts have the commit of a generation.
    pub(crate) waiters: VecDeque<(u64, Vec<(CallId, Reply)>)>,
    /// When pages are compared again, because another mount has stored some.
    pub(crate) pages_at: Option<Timestamp>,
    /// When a mount that ends waits for copies no longer.
    pub(crate) finish_until: Option<Timestamp>,
}

impl Mirrors {
    /// A call has waited for too long: copies are no more urgent for its sake.
    pub(crate) fn give_up(&mut self, call: CallId) {
        self.waiters.retain_mut(|(_, waiters)| {
            waiters.retain(|(waiting, _)| *waiting != call);
            !waiters.is_empty()
        });
    }
}
