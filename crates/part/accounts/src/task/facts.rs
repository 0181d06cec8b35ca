//! Facts about an account: mailboxes, quota.

use vere_imap::client::{Command, Response, Status};
use vere_ports::mail_accounts::{Answer, Fault, RequestId};

use crate::fault;
use crate::wire::Wire;
use crate::work::{After, Task};

/// Mailboxes in an answer; a volume of 50 million mails has 1,000.
const MAILBOXES_MAX: usize = 10_000;
/// Octets of the name of a mailbox; ours are shorter than 40.
const NAME_MAX: usize = 1_000;

/// Quota roots in an answer.
const ROOTS_MAX: usize = 1_000;

/// Octets of the unit of STORAGE (RFC 9208 section 5.1).
const STORAGE_UNIT: u64 = 1_024;

/// The names of the volume's mailboxes.
#[derive(Debug)]
pub(crate) struct Mailboxes {
    id: RequestId,
    names: Vec<String>,
}

impl Mailboxes {
    pub(crate) const fn new(id: RequestId) -> Self {
        Self {
            id,
            names: Vec::new(),
        }
    }
}

impl Task for Mailboxes {
    fn begin(&mut self, wire: &mut Wire) -> After {
        let pattern = wire.folder().pattern();
        wire.send(0, &Command::ListMatching(pattern));
        After::Waits
    }

    fn ended(&mut self, _step: usize, status: &Status, _wire: &mut Wire) -> After {
        let answer = if !status.is_ok() {
            Err(fault::of(status))
        } else if self.names.len() >= MAILBOXES_MAX {
            Err(Fault::Refused(format!("over {MAILBOXES_MAX} mailboxes")))
        } else {
            self.names.sort();
            self.names.dedup();
            Ok(Answer::Mailboxes(std::mem::take(&mut self.names)))
        };
        After::Ends(vec![(self.id, answer)])
    }

    fn heard(&mut self, response: &Response, wire: &Wire) -> bool {
        let Response::Listed(one) = response else {
            return false;
        };
        let none = one.has("\\Noselect") || one.has("\\NonExistent");
        let name = wire.folder().mailbox(&one.name);
        let room = self.names.len() < MAILBOXES_MAX && one.name.len() <= NAME_MAX;
        let new = name.filter(|_| !none && room);
        let is_asked = new.is_some();
        self.names.extend(new);
        is_asked
    }

    fn lists(&self) -> bool {
        true
    }
}

/// Quota of the account.
#[derive(Debug)]
pub(crate) struct Quota {
    id: RequestId,
    roots: usize,
    /// Used octets and limit of the root with the least room.
    least: Option<(u64, u64)>,
}

impl Quota {
    pub(crate) const fn new(id: RequestId) -> Self {
        Self {
            id,
            roots: 0,
            least: None,
        }
    }
}

impl Task for Quota {
    fn begin(&mut self, wire: &mut Wire) -> After {
        if !wire.client.can("QUOTA") {
            return After::Ends(vec![(self.id, Ok(Answer::Quota(None)))]);
        }
        wire.send(0, &Command::QuotaRoot(b"INBOX".to_vec()));
        After::Waits
    }

    fn ended(&mut self, _step: usize, status: &Status, _wire: &mut Wire) -> After {
        let answer = match status.is_ok() {
            true => Ok(Answer::Quota(self.least)),
            false => Err(fault::of(status)),
        };
        After::Ends(vec![(self.id, answer)])
    }

    fn heard(&mut self, response: &Response, _wire: &Wire) -> bool {
        let Response::Quota(quota) = response else {
            return false;
        };
        for (name, usage, limit) in &quota.resources {
            let own = (
                usage.saturating_mul(STORAGE_UNIT),
                limit.saturating_mul(STORAGE_UNIT),
            );
            let room = |(used, limit): (u64, u64)| limit.saturating_sub(used);
            if name == "STORAGE" && self.least.is_none_or(|least| room(own) < room(least)) {
                self.least = Some(own);
            }
        }
        self.roots = self.roots.saturating_add(1);
        self.roots <= ROOTS_MAX
    }
}
