//! Faults, and the end of a run.

use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use vere_queue::Envelope;

use super::hops::{self, DOMAINS, Manner};
use super::operator;
use super::world::{Event, World};
use crate::schedule::{MILLI, Micros, SECOND};
use crate::stage::Due;

/// Within so long after the last fault everything must have ended.
const END: Micros = 6 * 3_600 * SECOND;
/// For so long after the last fault a destination may stay away: longer than orders of operators hold its queue, and
/// than nothing expires after a start.
const AWAY: Range<Micros> = 420 * SECOND..900 * SECOND;
/// So much later than its own end a message may end.
const LATE_MAX: Duration = Duration::from_secs(60);

impl World {
    pub(super) fn fault(self: &Rc<Self>) {
        if self.calm.get() {
            return;
        }
        self.after(self.span(100 * MILLI..60 * SECOND), Event::Fault);
        let life = self.lives.borrow().len() - 1;
        match self.span(0..11) {
            0..=4 => {
                let hop = self.span(0..DOMAINS as u64) as usize;
                let manner = Manner::draw(&mut self.random.borrow_mut());
                self.note(|| format!("d{hop} {manner:?}"));
                self.manners.borrow_mut()[hop] = manner;
            }
            5..=6 => {
                let until = self.now.get() + self.span(100 * MILLI..30 * SECOND);
                self.note(|| "the spool stands still".to_owned());
                self.lives.borrow_mut()[life].pipe.stalled_until = until;
            }
            7 => {
                let until = self.now.get() + self.span(MILLI..60 * SECOND);
                self.note(|| format!("g{life} is stopped"));
                self.lives.borrow_mut()[life].paused_until = until;
                self.due(until, Due::GoOn);
                if self.draw(60) {
                    self.take_over();
                }
            }
            8 => self.take_over(),
            9 => self.vanish(),
            _ => {
                self.note(|| format!("g{life} loses the lease for a while"));
                self.lease.set(None);
                self.after(self.span(MILLI..10 * SECOND), Event::Lease(life));
            }
        }
    }

    /// Somebody else ends a record behind the gateway's back.
    fn vanish(&self) {
        let mut spool = self.spool.borrow_mut();
        let records = spool.mail();
        let place = self.random.borrow_mut().below(records);
        if let Some(envelope) = spool.remove_record(place) {
            self.note(|| format!("the record of {} vanishes", envelope.head.trace));
            let recipients = envelope.mail.recipients.iter();
            let addresses = recipients.map(|one| one.address.clone());
            let mut account = self.account.borrow_mut();
            account.ends_silently(envelope.head.trace, addresses);
        }
    }

    pub(super) fn take_over(self: &Rc<Self>) {
        self.account.borrow_mut().figures.takeovers += 1;
        self.new_life();
    }

    pub(super) fn calm_down(self: &Rc<Self>) {
        self.note(|| "calm from here on".to_owned());
        self.calm.set(true);
        *self.manners.borrow_mut() = [Manner::Takes; DOMAINS];
        let mut spool = self.spool.borrow_mut();
        (spool.queues_max, spool.records_max) = (usize::MAX, usize::MAX);
        drop(spool);
        if self.draw(40) {
            self.manners.borrow_mut()[0] = self.pick(&[Manner::Down, Manner::SiteDown]);
            let away = self.span(AWAY);
            return self.after(away, Event::Back);
        }
        self.await_end();
    }

    /// The destination that stayed away can be reached. Messages that waited there have ended in time.
    pub(super) fn come_back(self: &Rc<Self>) {
        self.hold(self.check_overdue());
        self.note(|| "d0 is back".to_owned());
        self.manners.borrow_mut()[0] = Manner::Takes;
        self.await_end();
    }

    fn check_overdue(&self) -> Result<(), String> {
        let (now, spool) = (self.time(), self.spool.borrow());
        let queues = spool.queues.values();
        let away = queues.filter(|queue| queue.name == hops::domain(0));
        let records = away.flat_map(|queue| queue.records.values());
        for (meta, _) in records {
            let Ok(Envelope { head, .. }) = Envelope::decode(meta) else {
                continue;
            };
            let latest = head.expires.map(|end| end + LATE_MAX);
            if head.held_until.is_none() && latest.is_some_and(|latest| latest < now) {
                return Err(format!("{} has not ended yet", head.trace));
            }
        }
        Ok(())
    }

    fn await_end(&self) {
        self.give_up_at.set(self.now.get() + END);
        self.after(SECOND, Event::Look);
    }

    /// Whether everything has ended.
    pub(super) fn look(self: &Rc<Self>) {
        let group = self.group();
        if group.is_recovered() {
            operator::releases(self, &group);
        }
        let messages = group.queues.look(|queues| queues.messages());
        let settled = self
            .lives
            .borrow()
            .last()
            .is_some_and(|life| life.pipe.requests.is_empty());
        let left = self.spool.borrow().mail();
        if group.is_recovered() && messages == 0 && left == 0 && settled {
            self.over.set(true);
            return self.hold(self.account.borrow().check_end());
        }
        if self.now.get() > self.give_up_at.get() {
            let state = group.queues.look(|queues| format!("{:?}", queues.totals()));
            self.fail(format!(
                "{left} records and {messages} messages are there at the end: {state}"
            ));
        }
        self.after(10 * SECOND, Event::Look);
    }
}
