//! UID SEARCH for a word of the subject.

use vere_imap::client::{Command, Response, Status};
use vere_ports::mail_accounts::{Answer, Fault, RequestId};

use super::slices::{SLICES_MAX, too_many_slices};
use crate::fault;
use crate::wire::Wire;
use crate::work::{After, Opened, Task, opened};

/// UIDs in an answer: more than the mails of a mailbox of packs, and 4 MB.
const FOUND_MAX: usize = 1_000_000;

/// A search.
#[derive(Debug)]
pub(crate) struct Find {
    id: RequestId,
    mailbox: String,
    word: String,
    selection: Option<u64>,
    /// UIDs of the answer at hand.
    heard: Option<Vec<u32>>,
    found: Vec<u32>,
    /// The mails of a command, at a server with a limit (MESSAGELIMIT, RFC 9738); the newest are searched first.
    slice: Option<u32>,
    /// The lowest UID that was searched.
    from: u32,
    /// Whether a search is under way.
    waits: bool,
    /// Slices so far.
    slices: u32,
}

impl Find {
    pub(crate) const fn new(id: RequestId, mailbox: String, word: String) -> Self {
        Self {
            id,
            mailbox,
            word,
            selection: None,
            heard: None,
            found: Vec::new(),
            slice: None,
            from: u32::MAX,
            waits: false,
            slices: 0,
        }
    }

    fn ends(&self, answer: Result<Answer, Fault>) -> After {
        After::Ends(vec![(self.id, answer)])
    }

    /// Searches the next slice below, once the mailbox is open.
    fn search_slice(&mut self, slice: u32, wire: &mut Wire) -> After {
        let (uid_validity, uid_next) = match opened(wire, self.selection) {
            Opened::Waits => return After::Waits,
            Opened::Failed(fault) => return self.ends(Err(fault)),
            Opened::Missing => return self.ends(Ok(Answer::Found(0, Vec::new()))),
            Opened::Open(open) => (open.uid_validity, open.uid_next),
        };
        if self.from == u32::MAX {
            self.from = uid_next;
        }
        let last = self.from.saturating_sub(1);
        if last == 0 {
            self.found.sort_unstable();
            self.found.dedup();
            let found = std::mem::take(&mut self.found);
            return self.ends(Ok(Answer::Found(uid_validity, found)));
        }
        if self.slices >= SLICES_MAX {
            return self.ends(Err(too_many_slices()));
        }
        self.slices = self.slices.saturating_add(1);
        self.from = self.from.saturating_sub(slice).max(1);
        self.waits = true;
        let word = self.word.as_bytes().to_vec();
        wire.send(0, &Command::SearchSubjectWithin(self.from, last, word));
        After::Waits
    }
}

impl Task for Find {
    fn begin(&mut self, wire: &mut Wire) -> After {
        self.selection = Some(wire.select(&self.mailbox, true));
        self.slice = wire.mails_max();
        if self.slice.is_none() {
            wire.send(0, &Command::SearchSubject(self.word.as_bytes().to_vec()));
        }
        After::Waits
    }

    fn opened(&mut self, wire: &mut Wire) -> After {
        match (self.slice, self.waits) {
            (Some(slice), false) => self.search_slice(slice, wire),
            _ => After::Waits,
        }
    }

    fn ended(&mut self, _step: usize, status: &Status, wire: &mut Wire) -> After {
        self.waits = false;
        let uid_validity = match opened(wire, self.selection) {
            Opened::Waits => {
                return self.ends(Err(Fault::Refused("SELECT has no answer".to_owned())));
            }
            Opened::Failed(fault) => return self.ends(Err(fault)),
            Opened::Missing => return self.ends(Ok(Answer::Found(0, Vec::new()))),
            Opened::Open(_) if !status.is_ok() => return self.ends(Err(fault::of(status))),
            Opened::Open(_) if fault::is_partial(status) => {
                let text = format!(
                    "the server searched some of the mails only: {}",
                    status.text
                );
                return self.ends(Err(Fault::Refused(text)));
            }
            Opened::Open(open) => open.uid_validity,
        };
        // A server without a match may say nothing.
        let heard = self.heard.take().unwrap_or_default();
        self.found.extend(heard.into_iter().filter(|uid| *uid != 0));
        if self.found.len() > FOUND_MAX {
            let text = format!("the search finds over {FOUND_MAX} mails");
            return self.ends(Err(Fault::Refused(text)));
        }
        if let Some(slice) = self.slice {
            return self.search_slice(slice, wire);
        }
        self.found.sort_unstable();
        self.found.dedup();
        let found = std::mem::take(&mut self.found);
        self.ends(Ok(Answer::Found(uid_validity, found)))
    }

    fn heard(&mut self, response: &Response, _wire: &Wire) -> bool {
        match response {
            Response::Found(uids) if self.heard.is_none() => {
                self.heard = Some(uids.clone());
                true
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

    fn slices(&self) -> bool {
        true
    }

    fn holds(&self) -> bool {
        self.slice.is_some()
    }
}
