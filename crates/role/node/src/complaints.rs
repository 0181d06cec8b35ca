//! Log lines about connections closed for their content: enough to find the client, in a bounded number however
//! many connections there are.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use vere_spool::node::Parting;
use vere_spoolwire::CloseReason;

/// So many lines are written in this time; others are counted.
const LINES_MAX: u32 = 10;
const PERIOD: Duration = Duration::from_secs(60);

/// Lines of the present period.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    began: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl Complaints {
    /// A connection is closed by the node.
    pub(super) fn note(&mut self, peer: SocketAddr, parting: &Parting<'_>, now: Instant) {
        if !is_fault(parting.reason) {
            return;
        }
        let over = |began: Instant| now.saturating_duration_since(began) >= PERIOD;
        if self.began.is_none_or(over) {
            (self.began, self.lines) = (Some(now), 0);
        }
        if self.lines >= LINES_MAX {
            self.left_out += 1;
            return;
        }
        self.lines += 1;
        let left_out = std::mem::take(&mut self.left_out);
        let left_out = (left_out > 0).then_some(left_out);
        let Parting {
            account,
            group,
            reason,
        } = parting;
        tracing::warn!(%peer, account, group, left_out, "connection closed: {reason}");
    }
}

/// Whether it is for what the peer sent or wants, and nothing else says so.
const fn is_fault(reason: CloseReason) -> bool {
    matches!(
        reason,
        CloseReason::NotAuthenticated
            | CloseReason::Version
            | CloseReason::Malformed
            | CloseReason::Checksum
            | CloseReason::TxnGap
            | CloseReason::TooLong
            | CloseReason::TooManyGroups
    )
}
