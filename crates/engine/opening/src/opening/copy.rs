//! A copy that stands in for the lead.

use std::collections::BTreeMap;

use vere_ports::mail_accounts::Fault;

/// The account that stands in for the lead, and why.
#[derive(Debug)]
pub(super) struct StandIn {
    pub(super) account: u16,
    pub(super) reason: String,
    /// Generations of the commits listed, by UID.
    pub(super) generations: BTreeMap<u32, u64>,
}

impl StandIn {
    pub(super) const fn new(account: u16, reason: String) -> Self {
        Self {
            account,
            reason,
            generations: BTreeMap::new(),
        }
    }
}

/// Whether a failure to open is an outage of the lead, so a copy may stand in.
#[must_use]
pub const fn is_outage(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Unreachable(_) | Fault::Login(_) | Fault::Throttled(..) | Fault::Refused(_)
    )
}
