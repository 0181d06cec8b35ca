//! A task sends commands on a connection, hears responses, and answers requests.

use std::fmt::Debug;

use bytes::Bytes;
use vere_imap::client::{Response, Status};
use vere_ports::mail_accounts::{Answer, Fault, RequestId};

use crate::wire::{Selection, SelectionState, Wire};

/// Answers of a task.
pub(crate) type Answers = Vec<(RequestId, Result<Answer, Fault>)>;

/// What became of a task.
#[derive(Debug)]
pub(crate) enum After {
    /// Commands are under way.
    Waits,
    /// Some requests of the task are answered.
    Some(Answers),
    /// The end of the task, with the last answers.
    Ends(Answers),
}

/// The name of a whole message in [`Mail::sections`].
pub(crate) const WHOLE: &str = "BODY[]";

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

    /// Takes a mail of the task.
    fn fetched(&mut self, _mail: &Mail) -> bool {
        false
    }

    /// Takes a response of the task.
    fn heard(&mut self, _response: &Response, _wire: &Wire) -> bool {
        false
    }

    /// The mailbox of the task, for tasks with a mailbox.
    fn mailbox(&self) -> Option<&str> {
        None
    }

    /// The number of the task's selection.
    fn selection(&self) -> Option<u64> {
        None
    }

    /// Whether the task sends commands to the mailbox later on, so a further mailbox may not be opened meanwhile.
    fn holds(&self) -> bool {
        false
    }

    /// Whether responses of LIST are part of the task.
    fn lists(&self) -> bool {
        false
    }

    /// Whether the task looks at a mailbox in slices: a slice without a mail is no progress.
    fn slices(&self) -> bool {
        false
    }

    /// Whether the task sends mails.
    fn gives(&self) -> bool {
        false
    }

    /// Whether long literals are part of the task.
    fn reads(&self) -> bool {
        false
    }
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
