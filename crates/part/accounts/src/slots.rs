//! The connections of a pool: load and purpose of each.

use std::collections::BTreeMap;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use vere_ports::mail_accounts::{Request, RequestId};

use crate::asked::{Asked, cost};
use crate::connection::{self, Report};
use crate::folder::Folder;
use crate::link::Link;
use crate::progress::Times;
use crate::task::{self, Append};
use crate::watch;
use crate::work::Task;

/// Octets without an answer on a connection.
const WINDOW: usize = 4 << 20;

/// Octets of mails in an APPEND: half a window, so the next mails travel while the server stores.
pub(crate) const JOINED_MAX: usize = WINDOW / 2;

/// Mails in an APPEND.
const JOINED_MAILS_MAX: usize = 256;

/// What a connection is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Commits, and the listings between.
    Lead,
    /// All other requests.
    Common,
    /// Watching a mailbox.
    Watch(String),
}

#[derive(Debug)]
enum State {
    Dials,
    Open(UnboundedSender<Box<dyn Task>>),
    Watches(UnboundedSender<RequestId>),
}

#[derive(Debug)]
struct Slot {
    kind: Kind,
    state: State,
    /// Octets without an answer.
    load: usize,
    /// The most mails of an APPEND.
    joins: usize,
    answered: bool,
}

/// All connections of an account.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: BTreeMap<usize, Slot>,
    last: usize,
    /// Whether a connection for commits and another one for requests were ever open together.
    has_had_both: bool,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn all(&self) -> Vec<usize> {
        self.slots.keys().copied().collect()
    }

    pub(crate) fn any_open(&self) -> bool {
        self.open_count() > 0
    }

    /// Whether any connection serves requests.
    pub(crate) fn any_serves(&self) -> bool {
        let serves = |slot: &Slot| matches!(slot.state, State::Open(_));
        self.slots.values().any(serves)
    }

    pub(crate) fn open_count(&self) -> usize {
        let open = |slot: &&Slot| !matches!(slot.state, State::Dials);
        self.slots.values().filter(open).count()
    }

    pub(crate) fn any_dials(&self) -> bool {
        self.slots
            .values()
            .any(|slot| matches!(slot.state, State::Dials))
    }

    /// Whether there is a connection for other requests than commits, open or not.
    pub(crate) fn any_common(&self) -> bool {
        self.slots.values().any(|slot| slot.kind == Kind::Common)
    }

    /// Whether a connection for other requests than commits is on the way. The one for commits is no reason to wait: logins
    /// take round trips.
    pub(crate) fn any_common_dials(&self) -> bool {
        self.slots
            .values()
            .any(|slot| matches!(slot.state, State::Dials) && slot.kind != Kind::Lead)
    }

    /// Whether a connection for commits and another one for requests were ever open together.
    pub(crate) const fn has_had_both(&self) -> bool {
        self.has_had_both
    }

    /// The connection for commits, open or not.
    pub(crate) fn lead_number(&self) -> Option<usize> {
        let mut lead = self
            .slots
            .iter()
            .filter(|(_, slot)| slot.kind == Kind::Lead);
        lead.next().map(|(number, _)| *number)
    }

    /// The open connection for commits.
    pub(crate) fn lead(&self) -> Option<usize> {
        let open = |number: &usize| {
            let slot = self.slots.get(number);
            slot.is_some_and(|slot| matches!(slot.state, State::Open(_)))
        };
        self.lead_number().filter(open)
    }

    /// While the connection for commits is not open, gives the purpose to the least used open connection.
    pub(crate) fn promote(&mut self) {
        if self.lead().is_some() {
            return;
        }
        let open =
            |slot: &&mut Slot| slot.kind == Kind::Common && matches!(slot.state, State::Open(_));
        let common = self.slots.values_mut().filter(open);
        let Some(slot) = common.min_by_key(|slot| slot.load) else {
            return;
        };
        slot.kind = Kind::Lead;
        let dials =
            |slot: &&mut Slot| slot.kind == Kind::Lead && matches!(slot.state, State::Dials);
        if let Some(slot) = self.slots.values_mut().find(dials) {
            slot.kind = Kind::Common;
        }
    }

    /// Gives the purpose of a busy connection for commits to an open one with less to do: no commit waits behind long mails.
    pub(crate) fn free_lead(&mut self) {
        let open = |(_, slot): &(&usize, &Slot)| {
            slot.kind != Kind::Lead && matches!(slot.state, State::Open(_))
        };
        let others = self.slots.iter().filter(open);
        let idlest = others
            .min_by_key(|(_, slot)| slot.load)
            .map(|(number, slot)| (*number, slot.load));
        let (Some(lead), Some((other, load))) = (self.lead(), idlest) else {
            return;
        };
        if self.slots.get(&lead).is_none_or(|slot| slot.load <= load) {
            return;
        }
        for (number, kind) in [(lead, Kind::Common), (other, Kind::Lead)] {
            if let Some(slot) = self.slots.get_mut(&number) {
                slot.kind = kind;
            }
        }
    }

    pub(crate) fn has_room(&self, number: usize, cost: usize) -> bool {
        let slot = self.slots.get(&number);
        slot.is_some_and(|slot| slot.load == 0 || slot.load.saturating_add(cost) <= WINDOW)
    }

    /// The least used connection with room for a request other than a commit.
    pub(crate) fn least(&self, cost: usize, shares_lead: bool) -> Option<usize> {
        let fits = |(number, slot): &(&usize, &Slot)| {
            let kind = slot.kind == Kind::Common || shares_lead && slot.kind == Kind::Lead;
            kind && matches!(slot.state, State::Open(_)) && self.has_room(**number, cost)
        };
        let least = self
            .slots
            .iter()
            .filter(fits)
            .min_by_key(|(_, slot)| slot.load);
        least.map(|(number, _)| *number)
    }

    /// The connection for a watched mailbox, and whether the connection is open.
    pub(crate) fn watcher(&self, mailbox: &str) -> Option<(usize, bool)> {
        let mut watchers = self.slots.iter();
        let (number, slot) =
            watchers.find(|(_, slot)| matches!(&slot.kind, Kind::Watch(own) if own == mailbox))?;
        Some((*number, matches!(slot.state, State::Watches(_))))
    }

    /// The most mails that the connection stores by an APPEND.
    pub(crate) fn joins(&self, number: usize) -> usize {
        self.slots.get(&number).map_or(1, |slot| slot.joins)
    }

    pub(crate) fn has_answered(&self, number: usize) -> bool {
        self.slots.get(&number).is_some_and(|slot| slot.answered)
    }

    pub(crate) fn note_answer(&mut self, number: usize) {
        if let Some(slot) = self.slots.get_mut(&number) {
            slot.answered = true;
        }
    }

    /// Notes a connection before the dial.
    pub(crate) fn begin(&mut self, kind: Kind) -> usize {
        self.last = self.last.saturating_add(1);
        let slot = Slot {
            kind,
            state: State::Dials,
            load: 0,
            joins: 1,
            answered: false,
        };
        self.slots.insert(self.last, slot);
        self.last
    }

    /// Starts a connection after the login.
    pub(crate) fn opened(
        &mut self,
        number: usize,
        link: Link,
        folder: Folder,
        times: Times,
        reports: UnboundedSender<(usize, Report)>,
    ) {
        let Some(slot) = self.slots.get_mut(&number) else {
            return;
        };
        // RFC 9738 limits the mails of an APPEND too.
        let limit = link
            .value("MESSAGELIMIT")
            .and_then(|value| value.parse().ok());
        slot.joins = match link.can("MULTIAPPEND") {
            true => limit.unwrap_or(JOINED_MAILS_MAX).clamp(1, JOINED_MAILS_MAX),
            false => 1,
        };
        slot.state = match &slot.kind {
            Kind::Watch(mailbox) => {
                let (send, requests) = unbounded_channel();
                let mailbox = mailbox.clone();
                let ways = (requests, reports);
                let patience = times.patience;
                tokio::spawn(watch::run(number, link, folder, mailbox, patience, ways));
                State::Watches(send)
            }
            _ => {
                let (send, tasks) = unbounded_channel();
                tokio::spawn(connection::run(number, link, folder, times, tasks, reports));
                State::Open(send)
            }
        };
        let is_common =
            |slot: &Slot| slot.kind == Kind::Common && matches!(slot.state, State::Open(_));
        let has_common = self.slots.values().any(is_common);
        self.has_had_both |= has_common && self.lead().is_some();
    }

    /// Gives requests to an open connection: a single request, or mails of a mailbox. An ended connection reports the
    /// end later; the requests count as sent.
    pub(crate) fn carry(&mut self, number: usize, all: &[Asked], create: bool) {
        let Some(slot) = self.slots.get_mut(&number) else {
            return;
        };
        let mut mailbox = String::new();
        let mut mails = Vec::new();
        let mut other = None;
        for asked in all {
            slot.load = slot.load.saturating_add(cost(&asked.request));
            match &asked.request {
                Request::Append {
                    mailbox: own, mail, ..
                } => {
                    mailbox.clone_from(own);
                    mails.push((asked.id, mail.clone()));
                }
                request => other = task::of(asked.id, request.clone()),
            }
        }
        let task = match mails.is_empty() {
            true => other,
            false => Some(Box::new(Append::new(mailbox, mails, create)) as Box<dyn Task>),
        };
        if let (State::Open(send), Some(task)) = (&slot.state, task) {
            let _ = send.send(task);
        }
    }

    /// Gives a watch to the connection of the mailbox.
    pub(crate) fn watch(&self, number: usize, id: RequestId) {
        if let Some(slot) = self.slots.get(&number)
            && let State::Watches(send) = &slot.state
        {
            let _ = send.send(id);
        }
    }

    /// A request was answered.
    pub(crate) fn ended(&mut self, number: usize, cost: usize) {
        if let Some(slot) = self.slots.get_mut(&number) {
            slot.load = slot.load.saturating_sub(cost);
        }
    }

    /// Removes and ends a connection; whether the connection watched a mailbox.
    pub(crate) fn remove(&mut self, number: usize) -> bool {
        let slot = self.slots.remove(&number);
        slot.is_some_and(|slot| matches!(slot.kind, Kind::Watch(_)))
    }
}
