//! What reports and events of X.400 are, for the queues.

use std::sync::Arc;

use bytes::Bytes;
use vere_delivery::{DirectoryAway, Happened, Notice};
use vere_groups::Trade;
use vere_meters::pressure::{Bound, Pressure};
use vere_process::clock;
use vere_queue::limits::{Names, Scope};
use vere_queue::{
    Attempt, Destination, Disposition, Envelope, FOREVER, Job, Limits, Place, Policy, Report,
    Rules, Settlement,
};
use vere_settings::{GROUP_PREFIX, Settings, X400};
use vere_switch::parts;
use vere_telemetry::metrics::Metrics;
use vere_telemetry::trace::{Event, EventKind};
use vere_units::TraceId;

use crate::origin::Origin;
use crate::process::Process;
use crate::{archiving, auditing, report};

/// Workers for one local user.
const LOCAL_WORKERS: usize = 4;

impl Trade for Process {
    const OWNER: &'static str = "MTA";
    const REFUSING: &'static str = "peers keep their messages";

    fn settings(&self) -> Arc<Settings> {
        Self::settings(self)
    }

    fn group(&self) -> String {
        let settings = Self::settings(self);
        settings.x400.as_ref().map(X400::group).unwrap_or_default()
    }

    fn policy(&self) -> Policy {
        let settings = Self::settings(self);
        let general = vere_groups::policy(&settings);
        match &settings.x400 {
            Some(x400) => policy(general, x400),
            None => general,
        }
    }

    fn next_id(&self) -> TraceId {
        self.fresh_id()
    }

    /// The MTA sends one report for a message; a message reported more than once has more recipients.
    fn may_report(&self, _report: &Report, _about: TraceId) -> bool {
        true
    }

    async fn write(
        &self,
        _about: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> Result<Notice, DirectoryAway> {
        let now = clock::now();
        let mut notice = Notice {
            kind: report.kind,
            to: report.to.clone(),
            trace: self.fresh_id(),
            parts: Vec::new(),
        };
        if let Some((trace, outcome)) = report::write(self, original, report, now) {
            if let Some(archive) = &self.archive {
                let entry = archiving::entry(Origin::LOCAL, trace, now, &outcome);
                let added = archive.add(entry).await;
                added.map_err(|error| {
                    tracing::warn!(%error, "cannot archive a report yet");
                    DirectoryAway
                })?;
            }
            notice.parts = parts(&outcome, trace, now);
            notice.trace = trace;
        }
        Ok(notice)
    }

    fn tell(&self, happened: &Happened<'_>) {
        tell(self, happened);
    }

    fn flush_trace(&self) {
        self.flush();
    }

    fn metrics(&self) -> &Metrics {
        &self.figures.all
    }

    fn pressure(&self) -> &Pressure {
        &self.pressure
    }

    fn tell_throttled(&self, by: Option<(Bound, u64)>) {
        match by {
            Some((bound, percent)) => {
                tracing::warn!(%bound, percent, "intake throttled: transfers of peers are refused for now");
            }
            None => tracing::info!("intake throttling ended"),
        }
    }

    fn adopts(name: &str) -> bool {
        name.starts_with(GROUP_PREFIX)
    }

    fn leads_to(&self, destination: &Destination) -> Result<(), Option<Place>> {
        let Ok(wanted) = destination.to_string().parse::<vere_mta400::Destination>() else {
            return Err(None);
        };
        let mta = self.mta();
        let leads = mta
            .routes
            .rows()
            .any(|row| row.to.as_ref() == Some(&wanted));
        leads.then_some(()).ok_or(None)
    }
}

/// The delivery rules of the MTA: associations of each peer, and times by grade.
fn policy(general: Policy, x400: &X400) -> Policy {
    let mut rules = Rules::default();
    for peer in &x400.peers {
        let limits = Limits {
            connections_max: usize::try_from(peer.associations_max).ok(),
            messages_per_connection_max: Some(peer.messages_per_association_max),
            ..Limits::default()
        };
        let name = format!("peer:{}", peer.name);
        rules.insert(Scope::Domains(Names::One(name)), limits);
    }
    for gateway in &x400.gateways {
        let limits = Limits {
            connections_max: usize::try_from(gateway.keep_max).ok(),
            ..Limits::default()
        };
        let name = format!("gateway:{}", gateway.name);
        rules.insert(Scope::Domains(Names::One(name)), limits);
    }
    let grades = [
        x400.expire.urgent,
        x400.expire.normal,
        x400.expire.non_urgent,
    ];
    let longest = grades.iter().map(|span| span.duration()).max();
    Policy {
        retry: x400.retry.iter().map(|span| span.duration()).collect(),
        expire: longest.unwrap_or(general.expire),
        // X.411 has no report about a delay.
        delay_notice: None,
        connections_per_destination_max: LOCAL_WORKERS,
        rules,
        ..general
    }
}

fn tell(process: &Process, happened: &Happened<'_>) {
    match happened {
        Happened::Queued(destination, envelope) => {
            let queue = destination.to_string();
            for recipient in &envelope.mail.recipients {
                process.note(&Event {
                    queue: Some(&queue),
                    rcpt: Some(&recipient.address),
                    ..Event::new(EventKind::Queued, envelope.head.trace, clock::now())
                });
            }
        }
        Happened::Settled {
            queue,
            job,
            attempt,
            settlement,
        } => settled(process, *queue, (job, attempt), settlement),
        Happened::Reported(about, notice) => reported(process, *about, notice),
        Happened::Recovered(queue, trace) => {
            process.ids.seen(*trace);
            note(process, EventKind::Recovered, Some(queue), *trace);
        }
        Happened::Lost(queue, trace) => note(process, EventKind::Lost, *queue, *trace),
        Happened::Purged(trace) => note(process, EventKind::Purged, None, *trace),
        Happened::Held(destination, trace, until) => {
            let kind = match until {
                Some(_) => EventKind::Held,
                None => EventKind::Released,
            };
            process.note(&Event {
                queue: Some(&destination.to_string()),
                next: until.filter(|until| *until != FOREVER),
                ..Event::new(kind, *trace, clock::now())
            });
        }
        // Figures of queues and spool are counted already, and nothing is in a quarantine.
        Happened::Stored(..)
        | Happened::Unquarantined(..)
        | Happened::ClockStepped(_)
        | Happened::LinesStored => {}
    }
}

fn note(process: &Process, kind: EventKind, queue: Option<&str>, trace: TraceId) {
    process.note(&Event {
        queue,
        ..Event::new(kind, trace, clock::now())
    });
}

fn settled(
    process: &Process,
    queue: Option<&str>,
    (job, attempt): (&Job, &Attempt),
    settlement: &Settlement,
) {
    let (now, head) = (clock::now(), &job.envelope.head);
    if let Some(audit) = &process.audit {
        auditing::attempt(audit, queue.unwrap_or_default(), &job.envelope, attempt);
    }
    let rest = settlement.remaining.as_ref();
    let next = rest.and_then(|rest| rest.head.not_before);
    for (recipient, result) in job.envelope.mail.recipients.iter().zip(&attempt.results) {
        let expired = settlement.expired.contains(&recipient.address);
        let kind = match result.disposition {
            Disposition::Delivered => EventKind::Delivered,
            Disposition::Failed => EventKind::Bounced,
            Disposition::Deferred if expired => EventKind::Expired,
            Disposition::Deferred => EventKind::Deferred,
        };
        process.figures.settled(kind);
        process.note(&Event {
            queue,
            rcpt: Some(&recipient.address),
            reply: Some(&result.reply),
            remote: Some(&attempt.remote),
            attempt: Some(u32::from(head.attempts) + 1),
            next,
            ..Event::new(kind, head.trace, now)
        });
        tracing::info!(
            queue_id = %head.trace,
            queue = queue.unwrap_or_default(),
            recipient = recipient.address,
            remote = attempt.remote,
            reply = result.reply,
            "{}",
            kind.name()
        );
    }
}

fn reported(process: &Process, about: TraceId, notice: &Notice) {
    let sent = notice.sent();
    let action = notice.kind.action();
    process.note(&Event {
        rcpt: Some(&notice.to),
        reply: Some(if sent.is_some() {
            action
        } else {
            "no report is due"
        }),
        related: sent,
        ..Event::new(EventKind::Dsn, about, clock::now())
    });
    if let Some(trace) = sent {
        if let Some(audit) = &process.audit {
            auditing::report(audit, about, notice);
        }
        process.figures.reported();
        tracing::info!(queue_id = %trace, %about, to = notice.to, action, "report");
    }
}
