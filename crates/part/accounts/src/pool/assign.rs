//! The choice of a connection for each request.

use std::sync::atomic::Ordering;

use tokio::time::Instant;
use vere_ports::mail_accounts::{Fault, Request, Urgency};

use super::{Pool, UNTAKEN_MAX};
use crate::asked::{Asked, cost, is_alone, octets};
use crate::slots::{JOINED_MAX, Kind};
use crate::watch;

impl Pool {
    /// Gives waiting requests to connections.
    pub(super) fn assign(&mut self, now: Instant) {
        if now < self.pace.ask_from {
            return;
        }
        self.slots.promote();
        let no_more = self.slots.len() >= self.pace.connections(now) || now < self.pace.dial_from;
        // The first connection serves all while the second one has no login yet: a start waits for one login, not for two.
        let is_first = !self.slots.has_had_both() && self.slots.any_common_dials();
        // A connection that waits for commits of an account without commits would be of no use to anybody.
        let shares = !self.has_commits || is_first || no_more && !self.slots.any_common();
        let (mut lead_full, mut others_full) = (false, false);
        let keys: Vec<(Urgency, u64)> = self.queue.keys().copied().collect();
        for key in keys {
            if lead_full && others_full {
                return;
            }
            let Some(asked) = self.queue.get(&key) else {
                // Joined with an earlier mail.
                continue;
            };
            if let Request::Watch { mailbox } = &asked.request {
                let mailbox = mailbox.clone();
                self.watch(key, &mailbox, now);
                continue;
            }
            if let Some(fault) = self.budget.refuses(key.0, &asked.request) {
                self.refuse(key, fault);
                continue;
            }
            let of_lead = key.0 == Urgency::Commit || is_alone(&asked.request);
            if self.reads_too_far(&asked.request) {
                continue;
            }
            let full = if of_lead {
                &mut lead_full
            } else {
                &mut others_full
            };
            if *full {
                continue;
            }
            let cost = cost(&asked.request);
            let place = match of_lead {
                true => self
                    .slots
                    .lead()
                    .filter(|slot| self.slots.has_room(*slot, cost)),
                false => self.slots.least(cost, shares),
            };
            match place {
                Some(number) => self.carry(key, number),
                None => *full = true,
            }
        }
    }

    /// Whether the caller has to take answers before further octets are read.
    pub(super) fn reads_too_far(&self, request: &Request) -> bool {
        matches!(request, Request::Read { .. })
            && self.shared.untaken.load(Ordering::Relaxed) > UNTAKEN_MAX
    }

    /// Answers a waiting request.
    fn refuse(&mut self, key: (Urgency, u64), fault: Fault) {
        if let Some(asked) = self.queue.remove(&key) {
            self.answer(asked.id, octets(&asked.request), Err(fault));
        }
    }

    /// Gives a request, together with mails for the same APPEND, to a connection.
    fn carry(&mut self, key: (Urgency, u64), number: usize) {
        let Some(first) = self.queue.remove(&key) else {
            return;
        };
        let mut all = vec![first];
        self.join(&mut all, self.slots.joins(number));
        let create = match all.first().map(|first| &first.request) {
            Some(Request::Append { mailbox, .. }) => self.known.insert(mailbox.clone()),
            _ => false,
        };
        self.slots.carry(number, &all, create);
        for asked in all {
            self.budget.charge(&asked.request);
            self.under_way.insert(asked.id, (asked, number));
        }
    }

    /// Takes further mails for the mailbox of the first request from the queue.
    fn join(&mut self, all: &mut Vec<Asked>, most: usize) {
        let Some(Request::Append {
            mailbox,
            alone: false,
            mail,
        }) = all.first().map(|first| first.request.clone())
        else {
            return;
        };
        let mut left = JOINED_MAX.saturating_sub(mail.len());
        let mut keys = Vec::new();
        for (key, asked) in &self.queue {
            if keys.len().saturating_add(1) >= most {
                break;
            }
            match &asked.request {
                Request::Append {
                    mailbox: own,
                    mail,
                    alone: false,
                } if *own == mailbox && mail.len() <= left => {
                    left = left.saturating_sub(mail.len());
                    keys.push(*key);
                }
                _ => {}
            }
        }
        all.extend(keys.iter().filter_map(|key| self.queue.remove(key)));
    }

    /// Gives a watch to the connection of the mailbox, opened where the account has room for a further connection.
    pub(super) fn watch(&mut self, key: (Urgency, u64), mailbox: &str, now: Instant) {
        let open = self.slots.watcher(mailbox);
        if let Some((number, true)) = open {
            if let Some(asked) = self.queue.remove(&key) {
                self.slots.watch(number, asked.id);
                self.under_way.insert(asked.id, (asked, number));
            }
            return;
        }
        let allowed = self.pace.connections(now);
        if open.is_none() && self.slots.any_open() {
            // The connections for requests go first.
            if self.slots.len() < allowed && allowed > 1 {
                self.open(Kind::Watch(mailbox.to_owned()), now);
            } else if let Some(asked) = self.queue.remove(&key) {
                self.polls.push((now + watch::POLL, asked.id));
            }
        }
    }
}
