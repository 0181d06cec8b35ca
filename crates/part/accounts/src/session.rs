//! The requests under way on a connection, as a machine without a socket: requests and octets go in, answers come out.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Bytes, BytesMut};
use vere_imap::client::{
    Client, Condition, Event, Fetched, ProtocolError, Response, Status, Token, Value,
};

use crate::folder::Folder;
use crate::wire::{Owner, Wire};
use crate::work::{After, Answers, Mail, Task, WHOLE};

/// Octets of the literals of a response while parts of mails are read: twice the longest mail of a volume, encoded.
const LITERALS_MAX: usize = 12 << 20;

/// Octets of the literals of any other response: long subjects.
const SMALL_LITERALS_MAX: usize = 256 * 1024;

/// Octets in a row that no request asked for: a response that a request reads counts so until its end. A server may tell much
/// about a long mailbox, such as 900,000 removed mails.
pub(crate) const UNASKED_MAX: usize = LITERALS_MAX + (1 << 20);

/// The reason for the end of a connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionEnd {
    /// The server breaks the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The server sends unexpected literals.
    #[error("the server sent a literal of {0} octets that no request explains")]
    Literal(u64),
    /// The server talks without an end.
    #[error("the server sent over {UNASKED_MAX} octets in a row that no request asked for")]
    Unasked,
    /// BYE.
    #[error("the server ended: {}", .0.text)]
    Bye(Status),
}

/// Counts of what the server has completed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heard {
    /// Whole responses.
    pub(crate) said: u64,
    /// Responses that a request asked for.
    pub(crate) taken: u64,
    /// Ends of commands, but for slices of a mailbox that have given nothing.
    pub(crate) ended: u64,
}

/// The requests of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    wire: Wire,
    heard: Heard,
    tasks: BTreeMap<u64, Box<dyn Task>>,
    last: u64,
    /// Tasks behind a task with a hold on a different mailbox.
    behind: VecDeque<Box<dyn Task>>,
    /// Ends of commands of tasks, while the selection of the task is in doubt.
    held: Vec<(u64, usize, Status)>,
    /// Literals of the response at hand.
    literals: Vec<BytesMut>,
    /// Octets since the last response that a request asked for, or the last end of a command.
    unasked: usize,
    /// Responses that a request asked for, before the last end of a command.
    taken_before: u64,
    answers: Answers,
}

impl Session {
    pub(crate) fn new(client: Client, folder: Folder) -> Self {
        Self {
            wire: Wire::new(client, folder),
            heard: Heard::default(),
            tasks: BTreeMap::new(),
            last: 0,
            behind: VecDeque::new(),
            held: Vec::new(),
            literals: Vec::new(),
            unasked: 0,
            taken_before: 0,
            answers: Vec::new(),
        }
    }

    pub(crate) const fn client(&mut self) -> &mut Client {
        &mut self.wire.client
    }

    /// Whether the server owes answers.
    pub(crate) fn waits(&self) -> bool {
        self.wire.client.under_way() > 0
    }

    /// What the server has completed so far.
    pub(crate) const fn heard(&self) -> Heard {
        self.heard
    }

    /// Whether octets of a mail come that a request reads.
    pub(crate) fn reads_literal(&self) -> bool {
        !self.literals.is_empty() && self.tasks.values().any(|task| task.reads())
    }

    /// Whether a request sends mails.
    pub(crate) fn gives(&self) -> bool {
        self.tasks.values().any(|task| task.gives())
    }

    /// Keeps the connection alive.
    pub(crate) fn keep_alive(&mut self) {
        self.wire.send_for_nobody(&vere_imap::client::Command::Noop);
    }

    /// The answers since the last call.
    pub(crate) fn answers(&mut self) -> Answers {
        std::mem::take(&mut self.answers)
    }

    /// Begins a task, or lets the task wait for a mailbox.
    pub(crate) fn begin(&mut self, task: Box<dyn Task>) {
        self.behind.push_back(task);
        self.begin_waiting();
    }

    fn begin_waiting(&mut self) {
        let mut index = 0;
        while let Some(task) = self.behind.get(index) {
            let held = self
                .tasks
                .values()
                .chain(self.behind.range(..index))
                .any(|own| {
                    own.holds()
                        && task
                            .mailbox()
                            .is_some_and(|mailbox| own.mailbox() != Some(mailbox))
                });
            if held {
                index = index.saturating_add(1);
                continue;
            }
            if let Some(task) = self.behind.remove(index) {
                self.start(task);
            }
        }
    }

    fn start(&mut self, mut task: Box<dyn Task>) {
        self.last = self.last.saturating_add(1);
        self.wire.task = self.last;
        let after = task.begin(&mut self.wire);
        self.tasks.insert(self.last, task);
        self.settle(self.last, after);
    }

    fn settle(&mut self, number: u64, after: After) {
        match after {
            After::Waits => {}
            After::Some(answers) => self.answers.extend(answers),
            After::Ends(answers) => {
                self.answers.extend(answers);
                self.tasks.remove(&number);
                let named = self
                    .tasks
                    .values()
                    .filter_map(|task| task.selection())
                    .min();
                self.wire.forget_below(named);
            }
        }
    }

    /// Takes octets of the server.
    ///
    /// # Errors
    /// When the connection is at its end.
    pub(crate) fn input(&mut self, mut octets: &[u8]) -> Result<(), SessionEnd> {
        while !octets.is_empty() {
            let (taken, event) = self.wire.client.input(octets)?;
            self.unasked = self.unasked.saturating_add(taken);
            match event {
                None | Some(Event::Greeting(_)) => {}
                Some(Event::Literal(octets)) => {
                    let room = self.literal_room(octets)?;
                    self.literals.push(room);
                }
                Some(Event::Piece(piece)) => {
                    if let Some(last) = self.literals.last_mut() {
                        last.extend_from_slice(piece);
                    }
                }
                Some(Event::Said(response)) => self.said(response)?,
                Some(Event::Done(token, status)) => self.done(token, &status),
            }
            if self.unasked > UNASKED_MAX {
                return Err(SessionEnd::Unasked);
            }
            octets = octets.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Memory for a literal, if a task explains the literal.
    fn literal_room(&self, octets: u64) -> Result<BytesMut, SessionEnd> {
        let max = match self.tasks.values().any(|task| task.reads()) {
            true => LITERALS_MAX,
            false => SMALL_LITERALS_MAX,
        };
        let before: usize = self.literals.iter().map(BytesMut::len).sum();
        usize::try_from(octets)
            .ok()
            .filter(|octets| before.saturating_add(*octets) <= max)
            .map(BytesMut::with_capacity)
            .ok_or(SessionEnd::Literal(octets))
    }

    fn said(&mut self, response: Response) -> Result<(), SessionEnd> {
        self.heard.said = self.heard.said.wrapping_add(1);
        let literals = std::mem::take(&mut self.literals);
        match response {
            Response::Status(status) if status.condition == Condition::Bye => {
                Err(SessionEnd::Bye(status))
            }
            Response::Fetched(fetched) => {
                self.fetched(*fetched, literals);
                Ok(())
            }
            Response::Listed(one) if let Some(number) = self.asks_whether_exists() => {
                if !one.has("\\NonExistent") && !one.has("\\Noselect") {
                    self.wire.note_exists(number);
                }
                Ok(())
            }
            other => {
                self.wire.heard(&other);
                self.offer_first(|task, wire| task.heard(&other, wire));
                Ok(())
            }
        }
    }

    fn fetched(&mut self, fetched: Fetched, literals: Vec<BytesMut>) {
        let Some(uid) = fetched.uid else { return };
        let mut literals = literals.into_iter().map(BytesMut::freeze);
        let mut mail = Mail {
            uid,
            size: fetched.size,
            sections: Vec::new(),
        };
        let mut octets = |value| match value {
            Value::PassedOn(_) => literals.next(),
            Value::Atom(octets) | Value::String(octets) => Some(octets.into()),
            Value::Nil => Some(Bytes::new()),
            Value::List(_) => None,
        };
        match fetched.body {
            Some(body) if fetched.sections.is_empty() => {
                let whole = octets(body).map(|octets| (WHOLE.to_owned(), None, octets));
                mail.sections.extend(whole);
            }
            // Nobody asks for a message beside parts: the order of literals is in doubt.
            Some(_) => return,
            None => {
                for section in fetched.sections {
                    if let Some(octets) = octets(section.value) {
                        mail.sections.push((section.name, section.origin, octets));
                    }
                }
            }
        }
        // Commands behind a later SELECT have no answer yet: a mail of another mailbox may have the UID that they want. Tasks without a mailbox of
        // their own are passed over: Dovecot ends an APPEND behind a FETCH, and sends the mails of the FETCHes behind that APPEND first.
        let current = self.wire.owners().find_map(|owner| match owner {
            Owner::Task(number, _) => self.tasks.get(&number)?.selection(),
            _ => None,
        });
        self.offer_first(|task, _| task.selection() == current && task.fetched(&mail));
    }

    /// Offers a response to the tasks in the order of their commands, until a task takes the response.
    /// Such a response is one that a request asked for.
    fn offer_first(&mut self, mut offer: impl FnMut(&mut dyn Task, &Wire) -> bool) {
        let mut before = None;
        for owner in self.wire.owners() {
            let Owner::Task(number, _) = owner else {
                continue;
            };
            if before.replace(number) == Some(number) {
                continue;
            }
            if let Some(task) = self.tasks.get_mut(&number)
                && offer(task.as_mut(), &self.wire)
            {
                self.heard.taken = self.heard.taken.wrapping_add(1);
                self.unasked = 0;
                return;
            }
        }
    }

    fn done(&mut self, token: Token, status: &Status) {
        self.unasked = 0;
        self.literals.clear();
        let has_taken =
            std::mem::replace(&mut self.taken_before, self.heard.taken) != self.heard.taken;
        let mut is_progress = true;
        match self.wire.ended(token, status) {
            None | Some(Owner::Nobody) => {}
            Some(Owner::Task(number, step)) => {
                let task = self.tasks.get(&number);
                let selection = task.and_then(|task| task.selection());
                match selection.is_some_and(|number| self.wire.is_doubted(number)) {
                    true => self.held.push((number, step, status.clone())),
                    false => self.call(number, |task, wire| task.ended(step, status, wire)),
                }
                let slices = self.tasks.get(&number).is_some_and(|task| task.slices());
                is_progress = has_taken || !slices;
            }
            Some(Owner::Selection(selection)) if self.wire.is_doubted(selection) => {}
            Some(Owner::Selection(selection) | Owner::Exists(selection)) => {
                self.opened(selection);
            }
        }
        match is_progress {
            true => self.heard.ended = self.heard.ended.wrapping_add(1),
            false => self.heard.said = self.heard.said.wrapping_add(1),
        }
        self.begin_waiting();
    }

    /// Tells tasks of the end of their selection, and then of the held ends of commands.
    fn opened(&mut self, selection: u64) {
        let mut waiting = Vec::new();
        for (number, task) in &self.tasks {
            if task.selection() == Some(selection) {
                waiting.push(*number);
            }
        }
        for number in &waiting {
            self.call(*number, |task, wire| task.opened(wire));
        }
        let of = |held: &mut (u64, usize, Status)| waiting.contains(&held.0);
        let held: Vec<_> = self.held.extract_if(.., of).collect();
        for (number, step, status) in held {
            self.call(number, |task, wire| task.ended(step, &status, wire));
        }
    }

    /// The selection in doubt, if the next LIST responses belong to the question.
    fn asks_whether_exists(&self) -> Option<u64> {
        let mut owners = self.wire.owners();
        owners.find_map(|owner| match owner {
            Owner::Exists(number) => Some(Some(number)),
            Owner::Task(number, _) => {
                let task = self.tasks.get(&number);
                task.is_some_and(|task| task.lists()).then_some(None)
            }
            _ => None,
        })?
    }

    fn call(&mut self, number: u64, call: impl FnOnce(&mut dyn Task, &mut Wire) -> After) {
        self.wire.task = number;
        let after = match self.tasks.get_mut(&number) {
            Some(task) => call(task.as_mut(), &mut self.wire),
            None => return,
        };
        self.settle(number, after);
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a panic is how a test fails")]
mod tests;
