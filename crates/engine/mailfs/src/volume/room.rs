//! Room of the accounts: writes are refused before an account would have to refuse them.

use std::time::Duration;

use vere_ports::files::{Call, Errno};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

use super::state::{Asked, Volume};

/// How old a told quota may be.
const QUOTA_AGE: Duration = Duration::from_secs(600);
/// Octets that stay free for commits, for what waits already, and for the cleaning up that makes room.
const RESERVE: u64 = 16 << 20;
/// Room that a change of names takes in commits.
const CHANGE: u64 = 1 << 10;

impl<S: Storage> Volume<S> {
    /// Why a call that takes room is refused, if so. Calls that make room are never refused.
    pub(super) fn without_room(&self, call: &Call) -> Option<Errno> {
        let octets = match call {
            Call::Write { data, .. } => u64::try_from(data.len()).unwrap_or(u64::MAX),
            Call::SetXattr { value, .. } => u64::try_from(value.len()).unwrap_or(u64::MAX),
            Call::Allocate { .. }
            | Call::Create { .. }
            | Call::MakeNode { .. }
            | Call::MakeFolder { .. }
            | Call::Symlink { .. }
            | Call::Link { .. } => CHANGE,
            _ => return None,
        };
        if self.accounts.are_read_only(self.terms.lead) {
            // The journal must not grow without an end in sight. What waits is tried again, and so ends the state.
            return Some(Errno::RoFs);
        }
        let waiting = self.files.unsent().octets().saturating_add(octets);
        // The dearest encoding takes 37 of 27 octets.
        let cost = waiting.saturating_mul(37) / 27;
        let lead = self.accounts.free(self.terms.lead);
        let is_short = self.accounts.room().free < cost.saturating_add(RESERVE)
            || lead.is_some_and(|free| free < RESERVE);
        is_short.then_some(Errno::NoSpc)
    }

    /// Asks every account for its room.
    pub(super) fn ask_quotas(&mut self) {
        self.quotas_at = Some(self.now.steady + QUOTA_AGE);
        let accounts = self.terms.accounts.iter().map(|terms| terms.account);
        for account in accounts.collect::<Vec<u16>>() {
            let account = AccountId(account);
            self.ask(account, Urgency::Idle, Request::Quota, Asked::Quota);
        }
    }

    /// An account has told its room.
    pub(super) fn quota_answered(&mut self, account: u16, answer: Result<Answer, Fault>) {
        if let Ok(Answer::Quota(quota)) = answer {
            self.accounts.quota(account, quota);
            self.show_room();
        }
    }

    /// An account has taken a mail.
    pub(super) fn takes_room(&mut self, account: u16, octets: u32) {
        self.accounts.takes(account, octets.into());
        self.show_room();
    }

    fn show_room(&mut self) {
        let room = self.accounts.room();
        self.files.set_room(room);
    }
}
