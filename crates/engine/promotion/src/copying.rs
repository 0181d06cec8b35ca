//! Mails on their way from one mailbox to another.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use vere_placement::accounts::mailbox_name;
use vere_ports::mail_accounts::Request;

use crate::format::MailId;

/// Mails on their way at once.
const WINDOW: usize = 8;

/// A mailbox of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) account: u16,
    pub(crate) mailbox: u16,
}

/// A mail to be copied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    pub(crate) from: Place,
    pub(crate) uid_validity: u32,
    pub(crate) uid: u32,
    pub(crate) mail: MailId,
    pub(crate) to: Place,
}

/// Mails that wait, and mails on their way.
#[derive(Debug, Default)]
pub(crate) struct Copying {
    waiting: VecDeque<Order>,
    under_way: BTreeMap<u64, Order>,
    /// Mails that wait until the mails before are stored.
    held: BTreeMap<u64, Bytes>,
    /// The mail of these that is being stored.
    storing: Option<u64>,
    next: u64,
    /// The number of mails ordered since the beginning, and the number of mails stored.
    pub(crate) ordered: usize,
    pub(crate) arrived: usize,
}

impl Copying {
    pub(crate) fn put(&mut self, order: Order) {
        self.ordered = self.ordered.saturating_add(1);
        self.waiting.push_back(order);
    }

    /// The next mail to be read, if the window has room.
    pub(crate) fn next(&mut self) -> Option<(u64, Place, Request)> {
        if self.under_way.len() >= WINDOW {
            return None;
        }
        let order = self.waiting.pop_front()?;
        self.next = self.next.wrapping_add(1);
        self.under_way.insert(self.next, order);
        let request = Request::Read {
            mailbox: mailbox_name(order.from.mailbox),
            uid_validity: order.uid_validity,
            uid: order.uid,
            parts: Vec::new(),
        };
        Some((self.next, order.from, request))
    }

    /// A mail is read, and is stored behind those before.
    pub(crate) fn hold(&mut self, number: u64, mail: Bytes) {
        self.held.insert(number, mail);
    }

    /// The next held mail, as soon as nothing before is under way.
    pub(crate) fn next_in_order(&mut self) -> Option<(u64, Order, Bytes)> {
        let number = *self.under_way.keys().next()?;
        if self.storing.is_some() {
            return None;
        }
        let mail = self.held.remove(&number)?;
        self.storing = Some(number);
        Some((number, self.order(number)?, mail))
    }

    pub(crate) fn order(&self, number: u64) -> Option<Order> {
        self.under_way.get(&number).copied()
    }

    /// A mail has arrived, or cannot be copied.
    pub(crate) fn end(&mut self, number: u64) {
        self.under_way.remove(&number);
        self.storing.take_if(|storing| *storing == number);
        self.arrived = self.arrived.saturating_add(1);
    }
}
