//! UID SEARCH for a word of the subject.

use vere_imap::client::{Command, Response, Status};
use vere_ports::mail_accounts::{Answer, Fault, RequestId};

use crate::fault;
use crate::wire::Wire;
use crate::work::{After, Opened, Task, opened};

/// A search.
#[derive(Debug)]
pub(crate) struct Find {
    id: RequestId,
    mailbox: String,
    word: String,
    selection: Option<u64>,
    found: Option<Vec<u32>>,
}

impl Find {
    pub(crate) const fn new(id: RequestId, mailbox: String, word: String) -> Self {
        Self {
            id,
            mailbox,
            word,
            selection: None,
            found: None,
        }
    }
}

impl Task for Find {
    fn begin(&mut self, wire: &mut Wire) -> After {
        self.selection = Some(wire.select(&self.mailbox, true));
        wire.send(0, &Command::SearchSubject(self.word.as_bytes().to_vec()));
        After::Waits
    }

    fn ended(&mut self, _step: usize, status: &Status, wire: &mut Wire) -> After {
        let answer = match opened(wire, self.selection) {
            Opened::Waits => Err(Fault::Refused("SELECT has no answer".to_owned())),
            Opened::Failed(fault) => Err(fault),
            Opened::Missing => Ok(Answer::Found(0, Vec::new())),
            Opened::Open(_) if !status.is_ok() => Err(fault::of(status)),
            Opened::Open(open) => {
                // A server without a match may say nothing.
                let mut found = self.found.take().unwrap_or_default();
                found.sort_unstable();
                found.dedup();
                Ok(Answer::Found(open.uid_validity, found))
            }
        };
        After::Ends(vec![(self.id, answer)])
    }

    fn heard(&mut self, response: &Response, _wire: &Wire) -> bool {
        match response {
            Response::Found(uids) if self.found.is_none() => {
                self.found = Some(uids.clone());
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
}
