//! Mail that arrives, and attempts to deliver it.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use vere_delivery::Part;
use vere_queue::{Envelope, FOREVER, HoldCause, Job, Notify, Recipient, Settlement};
use vere_spoolwire::Batch;
use vere_units::TraceId;

use super::hops::{self, DOMAINS, Manner};
use super::world::{Event, World};
use crate::envelope::blank;
use crate::schedule::{MILLI, SECOND};

impl World {
    pub(super) fn mail(self: &Rc<Self>) {
        if self.calm.get() || self.offered.get() >= self.mail_max {
            return;
        }
        let quick = self.draw(50);
        let pause = match quick {
            true => self.span(MILLI..50 * MILLI),
            false => self.span(SECOND..20 * SECOND),
        };
        self.after(pause, Event::Mail);
        let group = self.group();
        if !group.is_recovered() {
            return;
        }
        self.offered.set(self.offered.get() + 1);
        let (world, life) = (Rc::clone(self), group.host.life);
        let (trace, parts) = self.draw_mail();
        let recipients = parts.iter().flat_map(|part| &part.envelope.mail.recipients);
        let recipients = recipients.map(|one| one.address.clone()).collect();
        self.account.borrow_mut().offered(trace, recipients);
        let aside: Vec<_> = parts
            .iter()
            .filter(|part| part.envelope.head.is_quarantined())
            .map(|part| part.destination.to_string())
            .collect();
        let receive = async move {
            let stored = group.store(Batch::new(), parts, &Vec::new()).await;
            world.note(|| format!("{trace} stored by g{life}: {stored:?}"));
            if stored.is_ok() {
                let mut account = world.account.borrow_mut();
                account.accepted(trace);
                for queue in aside {
                    account.held(trace, queue);
                }
            }
        };
        self.spawn(life, Box::pin(receive));
    }

    pub(super) fn draw_mail(&self) -> (TraceId, Vec<Part>) {
        let (trace, now) = (self.next_id(), self.time());
        let body = Bytes::from(format!(
            "mail {trace} {}",
            "x".repeat(self.span(0..900) as usize)
        ));
        let sender = (!self.draw(10)).then(|| format!("s@{}", hops::domain(DOMAINS - 1)));
        let mut parts: Vec<Part> = Vec::new();
        for number in 0..1 + self.span(0..4) {
            let domain = hops::domain(self.span(0..DOMAINS as u64) as usize);
            let address = format!("r{number}@{domain}");
            let recipient = Recipient {
                notify: self.pick(&[
                    Notify::default(),
                    Notify::default(),
                    Notify::NEVER,
                    Notify::on(true, true, true),
                ]),
                orcpt: None,
                address,
            };
            let destination = hops::destination(&recipient.address);
            if let Some(part) = parts.iter_mut().find(|one| one.destination == destination) {
                part.envelope.mail.recipients.push(recipient);
                continue;
            }
            let mut envelope = blank(trace, now, body.len());
            envelope.mail.reverse_path.clone_from(&sender);
            envelope.head.priority = self.pick(&[0, 0, 4, -4]);
            envelope.mail.recipients.push(recipient);
            if self.draw(30) {
                let lifetime = Duration::from_secs(self.span(0..900));
                envelope.head.expires = Some(now + lifetime);
            }
            if self.draw(10) {
                envelope.head.held_until = Some(FOREVER);
                envelope.head.held_since = Some(now);
                envelope.head.held_for = HoldCause::Quarantine;
            }
            parts.push(Part {
                destination,
                envelope,
                body: body.clone(),
            });
        }
        (trace, parts)
    }

    pub(super) fn manner(&self, hop: usize) -> Manner {
        self.manners.borrow()[hop]
    }

    /// An attempt begins.
    pub(super) fn begins(&self, life: usize, envelope: &Envelope, queue: &str) {
        self.note(|| format!("g{life} tries {} at {queue}", envelope.head.trace));
        if !self.holds_lease(life) {
            self.fail(format!(
                "g{life} delivers {} without the lease",
                envelope.head.trace
            ));
        }
        self.hold(self.account.borrow().begins(envelope, queue));
    }

    /// A gateway settles a message.
    pub(super) fn settles(&self, job: &Job, settlement: &Settlement) {
        let head = &job.envelope.head;
        let (end, now) = (head.end(self.policy.expire), self.time());
        if !settlement.expired.is_empty() && now < end {
            self.fail(format!("{} expires before {end}", head.trace));
        }
    }

    /// A next hop takes a message.
    pub(super) fn takes(&self, life: usize, envelope: &Envelope, address: &str) {
        self.note(|| {
            format!(
                "{} from g{life} is taken for {address}",
                envelope.head.trace
            )
        });
        let copy = (envelope.head.trace, address.to_owned());
        let owner = !self.is_closed(life);
        self.hold(self.account.borrow_mut().took(&copy, owner));
    }

    /// Ends a record that is read for an attempt: the world is broken.
    pub(super) fn end_eagerly(&self, envelope: &Envelope) {
        let mut spool = self.spool.borrow_mut();
        for queue in spool.queues.values_mut() {
            queue.records.retain(|_, (meta, _)| {
                let kept = Envelope::decode(meta);
                kept.is_ok_and(|kept| kept.mail.recipients != envelope.mail.recipients)
            });
        }
    }
}
