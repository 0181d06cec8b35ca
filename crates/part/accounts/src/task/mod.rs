//! Requests as they are carried out on a connection: a task sends commands, hears responses, and answers.

use std::fmt::Debug;

use bytes::Bytes;
use vere_imap::client::{Response, Status};
use vere_ports::mail_accounts::{Answer, Fault, Request, RequestId};

use crate::wire::{Selection, SelectionState, Wire};

mod append;
mod facts;
mod find;
mod list;
mod read;
mod remove;

pub(crate) use append::Append;

/// Answers of a task.
pub(crate) type Answers = Vec<(RequestId, Result<Answer, Fault>)>;

/// What became of a task.
#[derive(Debug)]
pub(crate) enum After {
    /// Commands are under way.
    Waits,
    /// Some requests of the task are answered.
    Some(Answers),
    /// The task is at its end, with the answers still due.
    Ends(Answers),
}

/// A FETCH response with all octets.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) uid: u32,
    pub(crate) size: Option<u64>,
    /// Name, offset and octets of the parts.
    pub(crate) sections: Vec<(String, Option<u32>, Bytes)>,
}

/// A request on a connection.
pub(crate) trait Task: Send + Debug {
    /// Sends the first commands.
    fn begin(&mut self, wire: &mut Wire) -> After;

    /// A command of the task has ended.
    fn ended(&mut self, step: usize, status: &Status, wire: &mut Wire) -> After;

    /// The opening of the task's mailbox has ended.
    fn opened(&mut self, _wire: &mut Wire) -> After {
        After::Waits
    }

    /// Takes a mail that the task asked for.
    fn fetched(&mut self, _mail: &Mail) -> bool {
        false
    }

    /// Takes a response that the task asked for.
    fn heard(&mut self, _response: &Response, _wire: &Wire) -> bool {
        false
    }

    /// The mailbox of the task, for tasks that open the mailbox.
    fn mailbox(&self) -> Option<&str> {
        None
    }

    /// The number of the task's selection.
    fn selection(&self) -> Option<u64> {
        None
    }

    /// Whether the task sends commands to its mailbox later on, so that no other mailbox may be opened meanwhile.
    fn holds(&self) -> bool {
        false
    }

    /// Whether responses of LIST are part of the task.
    fn lists(&self) -> bool {
        false
    }

    /// Whether long literals are part of the task.
    fn reads(&self) -> bool {
        false
    }
}

/// The task for a request other than APPEND and watching.
pub(crate) fn of(id: RequestId, request: Request) -> Option<Box<dyn Task>> {
    Some(match request {
        Request::Append { mailbox, mail, .. } => {
            Box::new(Append::new(mailbox, vec![(id, mail)], false))
        }
        Request::Read {
            mailbox,
            uid_validity,
            uid,
            parts,
        } => Box::new(read::Read::new(id, mailbox, uid_validity, uid, parts)),
        Request::List { mailbox, range } => Box::new(list::List::new(id, mailbox, range)),
        Request::Find { mailbox, word } => Box::new(find::Find::new(id, mailbox, word)),
        Request::Remove {
            mailbox,
            uid_validity,
            uids,
        } => Box::new(remove::Remove::new(id, mailbox, uid_validity, uids)),
        Request::Mailboxes => Box::new(facts::Mailboxes::new(id)),
        Request::Quota => Box::new(facts::Quota::new(id)),
        Request::Watch { .. } => return None,
    })
}

/// Whether a mailbox is open for a task.
pub(crate) enum Opened<'a> {
    /// Not yet.
    Waits,
    Open(&'a Selection),
    Missing,
    Failed(Fault),
}

pub(crate) fn opened(wire: &Wire, number: Option<u64>) -> Opened<'_> {
    let Some(selection) = number.and_then(|number| wire.selection(number)) else {
        return Opened::Waits;
    };
    match &selection.state {
        SelectionState::Asked | SelectionState::Doubted(..) => Opened::Waits,
        SelectionState::Open { .. } => Opened::Open(selection),
        SelectionState::Missing => Opened::Missing,
        SelectionState::Failed(fault) => Opened::Failed(fault.clone()),
    }
}

/// The check of UIDVALIDITY.
pub(crate) const fn same(expected: u32, found: u32) -> Result<(), Fault> {
    match expected == found {
        true => Ok(()),
        false => Err(Fault::Renumbered { expected, found }),
    }
}
