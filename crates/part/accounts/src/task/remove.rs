//! Removal of mails for good, without harm to the mails beside.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use vere_imap::client::{Command, Response, Status};
use vere_ports::mail_accounts::{Answer, Fault, RequestId};

use crate::fault;
use crate::wire::{SelectionState, Wire};
use crate::work::{After, Opened, Task, opened, same};

/// Octets of a set of UIDs in a command.
const SET_OCTETS_MAX: usize = 4_000;

const STORE: usize = 0;
const EXPUNGE: usize = 1;
const SEARCH: usize = 2;

/// Mails to remove.
#[derive(Debug)]
pub(crate) struct Remove {
    id: RequestId,
    mailbox: String,
    uid_validity: u32,
    uids: BTreeSet<u32>,
    selection: Option<u64>,
    /// Commands under way.
    open: usize,
    /// Whether the removal itself was sent.
    expunges: bool,
    fault: Option<Fault>,
    /// The deleted mails of the mailbox.
    found: Option<Deleted>,
}

/// What a search for deleted mails says.
#[derive(Debug, Default)]
struct Deleted {
    is_heard: bool,
    /// A mail that is not to be removed.
    other: Option<u32>,
}

impl Remove {
    pub(crate) fn new(id: RequestId, mailbox: String, uid_validity: u32, uids: Vec<u32>) -> Self {
        Self {
            id,
            mailbox,
            uid_validity,
            uids: uids.into_iter().collect(),
            selection: None,
            open: 0,
            expunges: false,
            fault: None,
            found: None,
        }
    }

    fn ends(&self, answer: Result<Answer, Fault>) -> After {
        After::Ends(vec![(self.id, answer)])
    }

    fn send(&mut self, step: usize, command: &Command, wire: &mut Wire) {
        self.open = self.open.saturating_add(1);
        wire.send(step, command);
    }

    /// Marks the mails, once the mailbox is open and known to be the expected one.
    fn mark(&mut self, wire: &mut Wire) -> After {
        let read_only = match opened(wire, self.selection) {
            Opened::Waits => return After::Waits,
            Opened::Failed(fault) => return self.ends(Err(fault)),
            Opened::Missing => {
                return self.ends(same(self.uid_validity, 0).map(|()| Answer::Removed));
            }
            Opened::Open(open) => {
                if let Err(fault) = same(self.uid_validity, open.uid_validity) {
                    return self.ends(Err(fault));
                }
                open.state == (SelectionState::Open { read_only: true })
            }
        };
        if read_only {
            let text = format!("{} is open for reading only", self.mailbox);
            return self.ends(Err(Fault::ReadOnly(text)));
        }
        if !self.selection.is_some_and(|number| wire.is_current(number)) {
            // Another mailbox was opened meanwhile.
            self.selection = Some(wire.select(&self.mailbox, false));
            return After::Waits;
        }
        let most = wire.mails_max().map_or(usize::MAX, |most| {
            usize::try_from(most).unwrap_or(usize::MAX)
        });
        let sets = sets(&self.uids, most);
        for set in &sets {
            self.send(STORE, &Command::StoreDeleted(set.clone()), wire);
        }
        if wire.client.can("UIDPLUS") || wire.client.can("IMAP4REV2") {
            for set in sets {
                self.send(EXPUNGE, &Command::ExpungeSet(set), wire);
            }
            self.expunges = true;
        }
        After::Waits
    }

    /// Without UIDPLUS, EXPUNGE removes every deleted mail: allowed only when there are no others.
    fn expunge(&mut self, wire: &mut Wire) -> After {
        let Some(found) = self.found.take() else {
            if !self.selection.is_some_and(|number| wire.is_current(number)) {
                return self.ends(Err(Fault::Refused(
                    "another mailbox was opened during a removal".to_owned(),
                )));
            }
            self.found = Some(Deleted::default());
            self.send(SEARCH, &Command::SearchDeleted, wire);
            return After::Waits;
        };
        if let Some(other) = found.other {
            return self.ends(Err(Fault::Refused(format!(
                "UID {other} is deleted as well, and the server cannot remove mails singly (UIDPLUS)"
            ))));
        }
        self.expunges = true;
        self.send(EXPUNGE, &Command::Expunge, wire);
        After::Waits
    }
}

impl Task for Remove {
    fn begin(&mut self, wire: &mut Wire) -> After {
        if self.uids.is_empty() {
            return self.ends(Ok(Answer::Removed));
        }
        self.selection = Some(wire.select(&self.mailbox, false));
        self.mark(wire)
    }

    fn opened(&mut self, wire: &mut Wire) -> After {
        match self.open {
            0 => self.mark(wire),
            _ => After::Waits,
        }
    }

    fn ended(&mut self, step: usize, status: &Status, wire: &mut Wire) -> After {
        self.open = self.open.saturating_sub(1);
        let gone = status
            .code
            .as_ref()
            .is_some_and(|code| code.is("EXPUNGEISSUED"));
        if !status.is_ok() && !gone {
            self.fault.get_or_insert(fault::of(status));
        }
        if self.open > 0 {
            return After::Waits;
        }
        if let Some(fault) = self.fault.take() {
            return self.ends(Err(fault));
        }
        match (step, self.expunges) {
            (_, true) => self.ends(Ok(Answer::Removed)),
            (_, false) => self.expunge(wire),
        }
    }

    fn heard(&mut self, response: &Response, _wire: &Wire) -> bool {
        match (response, &mut self.found) {
            (Response::Found(uids), Some(found)) => {
                let other = uids.iter().find(|uid| !self.uids.contains(uid));
                found.other = found.other.or(other.copied());
                !std::mem::replace(&mut found.is_heard, true)
            }
            _ => false,
        }
    }

    fn mailbox(&self) -> Option<&str> {
        Some(&self.mailbox)
    }

    fn selection(&self) -> Option<u64> {
        self.selection
    }

    fn holds(&self) -> bool {
        true
    }
}

/// The UIDs as sets of a command's length, with at most so many UIDs each.
fn sets(uids: &BTreeSet<u32>, most: usize) -> Vec<String> {
    let mut sets = vec![String::new()];
    let mut count = 0_usize;
    let mut uids = uids.iter().copied().peekable();
    while let Some(first) = uids.next() {
        let mut last = first;
        if count >= most || sets.last().is_some_and(|set| set.len() > SET_OCTETS_MAX) {
            sets.push(String::new());
            count = 0;
        }
        count = count.saturating_add(1);
        while count < most
            && let Some(next) = uids.next_if(|next| Some(*next) == last.checked_add(1))
        {
            last = next;
            count = count.saturating_add(1);
        }
        if let Some(set) = sets.last_mut() {
            let comma = if set.is_empty() { "" } else { "," };
            // Writing to a string does not fail.
            let _ = match first == last {
                true => write!(set, "{comma}{first}"),
                false => write!(set, "{comma}{first}:{last}"),
            };
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_ranges_and_a_length() {
        let of = |uids: &[u32]| sets(&uids.iter().copied().collect(), usize::MAX);
        let few = sets(&[1, 2, 3, 4, 6, 8].into_iter().collect(), 3);
        assert_eq!(few, ["1:3", "4,6,8"]);
        assert_eq!(of(&[9, 7, 8, 1, u32::MAX]), ["1,7:9,4294967295"]);
        let odd: Vec<u32> = (0..5_000).map(|number| number * 2 + 1).collect();
        let sets = of(&odd);
        assert!(sets.len() > 1 && sets.iter().all(|set| set.len() < SET_OCTETS_MAX + 20));
        assert_eq!(sets.join(",").split(',').count(), odd.len());
    }
}
