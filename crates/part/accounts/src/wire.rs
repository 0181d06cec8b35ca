//! The commands of a connection, the owner of each, and the opened mailboxes.

use std::collections::VecDeque;

use bytes::Bytes;
use vere_imap::client::{AppendTo, Client, Code, Command, Response, Status, Token};
use vere_ports::mail_accounts::Fault;

use crate::fault;
use crate::folder::Folder;

/// Who waits for the end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A task, and the step of the task.
    Task(u64, usize),
    /// The opening of a mailbox.
    Selection(u64),
    /// The question whether the mailbox of a refused selection exists.
    Exists(u64),
    /// Nobody: a NOOP against idle time-outs.
    Nobody,
}

/// A mailbox opened by SELECT.
#[derive(Debug)]
pub(crate) struct Selection {
    number: u64,
    mailbox: String,
    /// UIDVALIDITY; 0 if not told.
    pub(crate) uid_validity: u32,
    /// UIDNEXT at the time of SELECT; 0 if not told.
    pub(crate) uid_next: u32,
    /// Mails at the time of SELECT.
    pub(crate) exists: u32,
    pub(crate) state: SelectionState,
}

/// How SELECT ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SelectionState {
    /// Not yet.
    Asked,
    /// The mailbox is open.
    Open {
        /// Whether the mailbox takes no change.
        read_only: bool,
    },
    /// There is no such mailbox.
    Missing,
    /// The server refused without a code; whether the mailbox exists, as far as the answer to LIST tells.
    Doubted(Fault, bool),
    /// The server refused.
    Failed(Fault),
}

impl SelectionState {
    const fn is_pending(&self) -> bool {
        matches!(self, Self::Asked | Self::Doubted(..))
    }
}

/// The common state of all tasks.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) client: Client,
    folder: Folder,
    /// Commands under way, in order.
    order: VecDeque<(Token, Owner)>,
    /// The last selection, and earlier selections of tasks under way.
    selections: VecDeque<Selection>,
    selected_last: u64,
    /// The task at work.
    pub(crate) task: u64,
}

impl Wire {
    pub(crate) fn new(client: Client, folder: Folder) -> Self {
        Self {
            client,
            folder,
            order: VecDeque::new(),
            selections: VecDeque::new(),
            selected_last: 0,
            task: 0,
        }
    }

    /// The most mails of a command, where the server has a limit (MESSAGELIMIT, RFC 9738).
    pub(crate) fn mails_max(&self) -> Option<u32> {
        let value = self.client.capability_value("MESSAGELIMIT")?;
        value.parse().ok().filter(|limit| *limit > 0)
    }

    pub(crate) const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Sends a command of the current task.
    pub(crate) fn send(&mut self, step: usize, command: &Command) {
        let token = self.client.send(command);
        self.order.push_back((token, Owner::Task(self.task, step)));
    }

    /// Sends a command of no task.
    pub(crate) fn send_for_nobody(&mut self, command: &Command) {
        let token = self.client.send(command);
        self.order.push_back((token, Owner::Nobody));
    }

    /// Sends mails of the current task by a single command.
    pub(crate) fn append<'a>(
        &mut self,
        step: usize,
        mailbox: &str,
        mails: impl ExactSizeIterator<Item = &'a Bytes>,
    ) {
        let to = AppendTo {
            mailbox: self.folder.wire(mailbox),
            flags: vec!["\\Seen".to_owned()],
            date: None,
            binary: false,
        };
        let count = mails.len();
        for (place, mail) in mails.enumerate() {
            let octets = u64::try_from(mail.len()).unwrap_or(u64::MAX);
            match place {
                0 => {
                    let token = self.client.append_several(&to, octets, count);
                    self.order.push_back((token, Owner::Task(self.task, step)));
                }
                _ => self.client.append_next(&to, octets),
            }
            self.client.append_bytes(mail.clone());
        }
    }

    /// Opens a mailbox, unless open or about to be and no `fresh` view is wanted; the number of the selection. The
    /// following commands find the mailbox open, or are refused.
    pub(crate) fn select(&mut self, mailbox: &str, fresh: bool) -> u64 {
        let usable = |last: &&Selection| {
            last.mailbox == mailbox
                && matches!(
                    last.state,
                    SelectionState::Asked | SelectionState::Open { .. }
                )
        };
        if let Some(last) = self.selections.back().filter(usable)
            && !fresh
        {
            return last.number;
        }
        self.selected_last = self.selected_last.saturating_add(1);
        let number = self.selected_last;
        let command = Command::Select(self.folder.wire(mailbox));
        let token = self.client.send(&command);
        self.order.push_back((token, Owner::Selection(number)));
        self.selections.push_back(Selection {
            number,
            mailbox: mailbox.to_owned(),
            uid_validity: 0,
            uid_next: 0,
            exists: 0,
            state: SelectionState::Asked,
        });
        number
    }

    /// The selection of the mailbox, if open and the last.
    pub(crate) fn open(&self, mailbox: &str) -> Option<&Selection> {
        let last = self.selections.back()?;
        let open = matches!(last.state, SelectionState::Open { .. });
        (open && last.mailbox == mailbox).then_some(last)
    }

    /// The selection with the number.
    pub(crate) fn selection(&self, number: u64) -> Option<&Selection> {
        self.selections.iter().find(|one| one.number == number)
    }

    /// The number of the last selection.
    pub(crate) const fn newest(&self) -> u64 {
        self.selected_last
    }

    /// Whether the next commands meet the selection.
    pub(crate) fn is_current(&self, number: u64) -> bool {
        self.selections
            .back()
            .is_some_and(|last| last.number == number)
    }

    /// Forgets selections without a task, save the last.
    pub(crate) fn forget_below(&mut self, number: Option<u64>) {
        let below = number.unwrap_or(u64::MAX);
        while self.selections.len() > 1
            && let Some(first) = self.selections.front()
            && first.number < below
            && !first.state.is_pending()
        {
            self.selections.pop_front();
        }
    }

    /// The owners of the commands under way, in order.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        self.order.iter().map(|(_, owner)| *owner)
    }

    /// Takes the owner of an ended command; the end of SELECT is noted.
    pub(crate) fn ended(&mut self, token: Token, status: &Status) -> Option<Owner> {
        let at = self.order.iter().position(|(own, _)| *own == token)?;
        let (_, owner) = self.order.remove(at)?;
        match owner {
            Owner::Selection(number) => self.selection_ended(number, status),
            Owner::Exists(number) => {
                if let Some(selection) = self.selection_mut(number)
                    && let SelectionState::Doubted(fault, exists) = &selection.state
                {
                    selection.state = match *exists || !status.is_ok() {
                        true => SelectionState::Failed(fault.clone()),
                        false => SelectionState::Missing,
                    };
                }
            }
            Owner::Task(..) | Owner::Nobody => {}
        }
        Some(owner)
    }

    fn selection_mut(&mut self, number: u64) -> Option<&mut Selection> {
        self.selections.iter_mut().find(|one| one.number == number)
    }

    fn selection_ended(&mut self, number: u64, status: &Status) {
        let Some(selection) = self.selection_mut(number) else {
            return;
        };
        let fault = fault::of(status);
        selection.state = if status.is_ok() && selection.uid_validity == 0 {
            // Nobody may take this mailbox for an absent one.
            let text = "expected UIDVALIDITY in the answer to SELECT; found none".to_owned();
            SelectionState::Failed(Fault::Refused(text))
        } else if status.is_ok() {
            SelectionState::Open {
                read_only: status
                    .code
                    .as_ref()
                    .is_some_and(|code| code.is("READ-ONLY")),
            }
        } else if fault::names_no_mailbox(status) {
            SelectionState::Missing
        } else if matches!(fault, Fault::Refused(_)) {
            SelectionState::Doubted(fault, false)
        } else {
            SelectionState::Failed(fault)
        };
        let mailbox = selection.mailbox.clone();
        if self.is_doubted(number) {
            // Dovecot 2.3 and Courier give no code for an absent mailbox.
            let name = self.folder.wire(&mailbox);
            let token = self.client.send(&Command::ListMatching(name));
            self.order.push_back((token, Owner::Exists(number)));
        }
    }

    /// Whether the answer to the selection is still in doubt.
    pub(crate) fn is_doubted(&self, number: u64) -> bool {
        let selection = self.selection(number);
        selection.is_some_and(|one| matches!(one.state, SelectionState::Doubted(..)))
    }

    /// Notes the existence of the mailbox of a refused selection.
    pub(crate) fn note_exists(&mut self, number: u64) {
        if let Some(selection) = self.selection_mut(number)
            && let SelectionState::Doubted(_, exists) = &mut selection.state
        {
            *exists = true;
        }
    }

    /// Notes numbers of the mailbox under SELECT.
    pub(crate) fn heard(&mut self, response: &Response) {
        let asked = |one: &&mut Selection| one.state == SelectionState::Asked;
        let Some(selection) = self.selections.iter_mut().find(asked) else {
            return;
        };
        match response {
            Response::Exists(exists) => selection.exists = *exists,
            Response::Status(status) => match status.code {
                Some(Code::UidValidity(number)) => selection.uid_validity = number,
                Some(Code::UidNext(number)) => selection.uid_next = number,
                _ => {}
            },
            _ => {}
        }
    }
}
