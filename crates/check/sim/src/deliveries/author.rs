//! Reports of this world: a line of text.

use std::rc::Rc;

use vere_delivery::{DirectoryAway, Notice, Part};
use vere_queue::{Envelope, Notify, Recipient, Report};
use vere_units::TraceId;

use super::hops;
use super::world::World;
use crate::envelope::blank;
use crate::schedule::MILLI;
use crate::stage::Staged;

impl World {
    /// Whether a report may be sent; the address may have had enough.
    pub(super) fn lets_report(&self, report: &Report, about: TraceId) -> bool {
        let may = !self.draw_fault(3);
        if !may {
            let recipients = report.recipients.iter();
            let addresses = recipients.map(|one| one.address.clone());
            let mut account = self.account.borrow_mut();
            account.ends_silently(about, addresses);
        }
        may
    }

    /// Writes a report, unless the directory is away.
    pub(super) async fn reports(
        self: &Rc<Self>,
        about: &Envelope,
        report: &Report,
    ) -> Result<Notice, DirectoryAway> {
        self.pause(0..20 * MILLI).await;
        if self.draw_fault(5) {
            return Err(DirectoryAway);
        }
        let trace = self.next_id();
        let mut text = format!("report {} {}", report.kind.action(), about.head.trace);
        for one in &report.recipients {
            text.push(' ');
            text.push_str(&one.address);
        }
        let mut envelope = blank(trace, self.time(), text.len());
        envelope.mail.recipients = vec![Recipient {
            address: report.to.clone(),
            notify: Notify::default(),
            orcpt: None,
        }];
        let part = Part {
            destination: hops::destination(&report.to),
            envelope,
            body: text.into(),
        };
        Ok(Notice {
            kind: report.kind,
            to: report.to.clone(),
            trace,
            parts: vec![part],
        })
    }
}
