//! Responsibility for units: the decisions of the engine, the parts in one batch, and reports.

use std::rc::Rc;

use bytes::Bytes;
use vere_delivery::{DirectoryAway, Lines, Notice};
use vere_mta400::{Arrival, Outcome, Source};
use vere_queue::Report as Queued;
use vere_spoolwire::Batch;
use vere_switch::{parts, report};
use vere_units::TraceId;
use vere_x400::{Apdu, Report};

use super::account::Handover;
use super::world::World;

impl World {
    /// Whether a life takes units.
    pub(super) fn is_ready(&self, life: usize) -> bool {
        self.lives.borrow()[life].group.is_recovered()
    }

    fn decide(
        &self,
        mta: usize,
        source: Source<'_>,
        apdu: Apdu,
    ) -> Result<(TraceId, Outcome), String> {
        let trace = self.next_id();
        let id = trace.to_string();
        let arrival = Arrival {
            source,
            at: self.time().into(),
            id: &id,
        };
        let outcome = self.mta(mta).transfer(apdu, arrival);
        outcome
            .map(|outcome| (trace, outcome))
            .map_err(|refusal| refusal.to_string())
    }

    /// Takes responsibility for a unit, as the role does: afterwards it is safe. `of`: the handover by a peer.
    ///
    /// # Errors
    /// The sender keeps the responsibility.
    pub(super) async fn take(
        &self,
        life: usize,
        (source, of): (Source<'_>, Option<Handover>),
        apdu: Vec<Bytes>,
    ) -> Result<(), String> {
        let mta = self.process(life).mta;
        let apdu = Apdu::split_pieces(&apdu).map_err(|error| error.to_string())?;
        let (trace, outcome) = self.decide(mta, source, apdu)?;
        let mut units = vec![(trace, outcome)];
        let due = units.first_mut().and_then(|unit| unit.1.report.take());
        if let Some(report) = due {
            units.push(self.decide(mta, Source::Local, Apdu::Report(report))?);
        }
        let now = self.time();
        let all: Vec<_> = units
            .iter()
            .flat_map(|(trace, outcome)| parts(outcome, *trace, now))
            .collect();
        if let Some(of) = &of {
            let mut account = self.account.borrow_mut();
            for (trace, _) in &units {
                account.stores_soon(*trace, of);
            }
            if all.is_empty() {
                return account.took(of);
            }
        }
        let group = Rc::clone(&self.lives.borrow()[life].group);
        let stored = group.store(Batch::new(), all, &Lines::new()).await;
        stored.map_err(|error| format!("{error:?}"))
    }

    /// Writes the report that the queues of a life ask for.
    pub(super) fn reports(
        &self,
        life: usize,
        original: &Bytes,
        asked: &Queued,
    ) -> Result<Notice, DirectoryAway> {
        let (mta, now, id) = (self.process(life).mta, self.time(), self.next_id());
        let mut notice = Notice {
            kind: asked.kind,
            to: asked.to.clone(),
            trace: id,
            parts: Vec::new(),
        };
        let text = id.to_string();
        match report(self.mta(mta), original, asked, (&text, now)) {
            Ok(Some(report)) => self.on_its_way(mta, report, &mut notice),
            Ok(None) => {}
            Err(error) => self.fail(format!("a stored unit cannot be read: {error}")),
        }
        Ok(notice)
    }

    fn on_its_way(&self, mta: usize, report: Report, notice: &mut Notice) {
        match self.decide(mta, Source::Local, Apdu::Report(Box::new(report))) {
            Ok((trace, outcome)) => {
                notice.parts = parts(&outcome, trace, self.time());
                notice.trace = trace;
            }
            Err(error) => self.fail(format!("the MTA refuses its own report: {error}")),
        }
    }
}
