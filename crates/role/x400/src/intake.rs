//! Takes responsibility for units: decides, stores the parts in the spool, and tells of it.

use std::rc::Rc;

use bytes::Bytes;
use vere_archive::ArchiveError;
use vere_delivery::{Lines, Part};
use vere_groups::throttle;
use vere_mta400::{Arrival, Outcome, Refusal, Source};
use vere_process::clock;
use vere_spoolwire::{Batch, SpoolError};
use vere_switch::parts;
use vere_units::{Timestamp, TraceId};
use vere_x400::{Apdu, ApduError, Report};

use crate::archiving;
use crate::origin::Origin;
use crate::process::{Group, Process};
use crate::told;

/// Why no responsibility is taken for a unit.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTaken {
    /// The octets are no unit of P1.
    #[error(transparent)]
    Malformed(#[from] ApduError),
    /// The MTA leaves the responsibility with the sender.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The archive does not have the unit.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The spool does not hold the unit.
    #[error("not safe in the spool: {0:?}")]
    Spool(SpoolError),
}

/// A unit that is safe.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    /// Its id in queues, traces and logs.
    pub(crate) trace: TraceId,
    /// Its MTS identifier.
    pub(crate) identifier: String,
}

/// Takes units of one group of queues.
#[derive(Debug)]
pub(crate) struct Intake {
    group: Rc<Group>,
}

impl Intake {
    pub(crate) fn new(group: Rc<Group>) -> Self {
        Self { group }
    }

    pub(crate) fn process(&self) -> &Rc<Process> {
        &self.group.host.process
    }

    /// Whether units are taken now.
    ///
    /// # Errors
    /// The reason, for the log.
    pub(crate) fn ready(&self) -> Result<(), &'static str> {
        if !self.group.is_recovered() {
            return Err("the queues are being read back");
        }
        if !self.group.host.link.state().borrow().is_up() {
            return Err("the spool acknowledges nothing");
        }
        match throttle::throttled(&self.group) {
            Some(_) => Err("the queues are full"),
            None => Ok(()),
        }
    }

    /// Takes responsibility for a unit: afterwards it is safe.
    ///
    /// # Errors
    /// [`NotTaken`]: the sender keeps the responsibility.
    pub(crate) async fn take(
        &self,
        origin: Origin<'_>,
        octets: Vec<Bytes>,
    ) -> Result<Taken, NotTaken> {
        let apdu = Apdu::split_pieces(&octets)?;
        self.take_unit(origin, apdu).await
    }

    /// Takes responsibility for a unit that was split.
    ///
    /// # Errors
    /// [`NotTaken`].
    pub(crate) async fn take_unit(
        &self,
        origin: Origin<'_>,
        apdu: Apdu,
    ) -> Result<Taken, NotTaken> {
        let process = self.process();
        let (trace, now) = (process.fresh_id(), clock::now());
        let outcome = decide(process, origin.source, apdu, (trace, now))?;
        let report = outcome.report.clone();
        let mut units = vec![(trace, outcome)];
        if let Some(report) = report {
            units.push(reported(process, report, now)?);
        }
        self.archive(origin, &units, now).await?;
        let all = units
            .iter()
            .flat_map(|(trace, outcome)| parts(outcome, *trace, now));
        self.store(all.collect()).await?;
        let identifier = match units.first() {
            Some((_, outcome)) => outcome.facts.identifier.clone(),
            None => String::new(),
        };
        for (place, (trace, outcome)) in units.iter().enumerate() {
            let from = if place == 0 { origin } else { Origin::LOCAL };
            told::received(process, from, *trace, now, outcome);
        }
        Ok(Taken { trace, identifier })
    }

    /// Archives units before anything is delivered: a unit that cannot be archived must not arrive once for each attempt of its
    /// sender.
    async fn archive(
        &self,
        origin: Origin<'_>,
        units: &[(TraceId, Outcome)],
        now: Timestamp,
    ) -> Result<(), NotTaken> {
        let Some(archive) = &self.process().archive else {
            return Ok(());
        };
        for (place, (trace, outcome)) in units.iter().enumerate() {
            let from = if place == 0 { origin } else { Origin::LOCAL };
            archive
                .add(archiving::entry(from, *trace, now, outcome))
                .await?;
        }
        Ok(())
    }

    async fn store(&self, parts: Vec<Part>) -> Result<(), NotTaken> {
        if parts.is_empty() {
            return Ok(());
        }
        let stored = self.group.store(Batch::new(), parts, &Lines::new()).await;
        stored.map_err(NotTaken::Spool)
    }
}

fn decide(
    process: &Process,
    source: Source<'_>,
    apdu: Apdu,
    (trace, now): (TraceId, Timestamp),
) -> Result<Outcome, Refusal> {
    let id = trace.to_string();
    let arrival = Arrival {
        source,
        at: now.into(),
        id: &id,
    };
    process.mta().transfer(apdu, arrival)
}

/// The report of this MTA on its way: the decisions about it.
pub(crate) fn reported(
    process: &Process,
    report: Box<Report>,
    now: Timestamp,
) -> Result<(TraceId, Outcome), Refusal> {
    let trace = process.fresh_id();
    let outcome = decide(process, Source::Local, Apdu::Report(report), (trace, now))?;
    Ok((trace, outcome))
}
