//! Makes the mail of a report, and stores the mail in the queue.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use vere_delivery::Lines;
use vere_queue::ScheduleHead;
use vere_reports::{Day, Destination, Mail, MailError, Report, Reporter, Sender};
use vere_settings::{Reports, Settings};
use vere_spoolwire::Batch;
use vere_telemetry::log::MAIL_TARGET;
use vere_units::Timestamp;

use super::destinations;
use crate::groups::Groups;
use crate::{routing, signing};

/// The name and version in reports.
const GENERATOR: &str = concat!("vere ", env!("CARGO_PKG_VERSION"));
/// The longest search for the destinations of a domain.
const SEARCH_PATIENCE: Duration = Duration::from_secs(60);

/// Why no report is made.
#[derive(Debug)]
pub(super) enum NotMade {
    /// Nobody wants the report.
    Unwanted,
    /// All destinations want shorter mail.
    TooLong,
    /// Another attempt may succeed.
    Failed(String),
}

/// A report under way.
#[derive(Debug)]
pub(super) struct Making<'a> {
    pub(super) groups: &'a Groups,
    pub(super) domain: &'a str,
    pub(super) counts: &'a Arc<Day>,
    pub(super) now: Timestamp,
}

/// The contents of the mail, for another thread.
#[derive(Debug, Clone)]
struct Contents {
    domain: String,
    counts: Arc<Day>,
    hostname: String,
    /// The name behind the sign of identifiers.
    system: String,
    organization: String,
    contact: String,
    from: String,
    now: Timestamp,
}

impl Contents {
    /// Makes the mail; `None` where nothing was counted.
    fn mail(&self, to: &[String]) -> Result<Option<Mail>, MailError> {
        let reporter = Reporter {
            organization: &self.organization,
            email: &self.contact,
            contact: None,
            submitter: &self.system,
            generator: GENERATOR,
        };
        let Some(report) = self.counts.aggregate(&self.domain, &reporter) else {
            return Ok(None);
        };
        let sender = Sender {
            from: &self.from,
            to,
            submitter: &self.hostname,
            at: self.now,
        };
        Mail::of(&Report::Aggregate(Box::new(report)), &sender).map(Some)
    }

    /// Makes the mail for the destinations with room for the length of the mail.
    fn fitting(&self, all: &[Destination]) -> Result<Option<(Vec<String>, Mail)>, NotMade> {
        // A domain, address or identifier of another form stays so.
        let made = |to: &[String]| {
            self.mail(to).map_err(|error| {
                tracing::info!(domain = self.domain, %error, "no report can be written");
                NotMade::Unwanted
            })
        };
        let every = addresses(all, 0);
        let Some(mail) = made(&every)? else {
            return Ok(None);
        };
        let octets = u64::try_from(mail.octets.len()).unwrap_or(u64::MAX);
        let to = addresses(all, octets);
        match (to.is_empty(), to.len() == every.len()) {
            (true, _) => Err(NotMade::TooLong),
            (false, true) => Ok(Some((to, mail))),
            (false, false) => Ok(made(&to)?.map(|mail| (to, mail))),
        }
    }
}

/// The addresses of destinations with room for so many octets, each once.
fn addresses(all: &[Destination], octets: u64) -> Vec<String> {
    let mut addresses = Vec::new();
    for destination in all.iter().filter(|destination| destination.takes(octets)) {
        if let Destination::Mail { address, .. } = destination
            && !addresses.contains(address)
        {
            addresses.push(address.clone());
        }
    }
    addresses
}

/// The name of this gateway in identifiers: gateways with the same host name report different counts.
fn system(settings: &Settings) -> String {
    let (name, hostname) = (&settings.gateway.name, &settings.hostname);
    let is_label = name.len() <= 63
        && name
            .bytes()
            .all(|octet| octet.is_ascii_alphanumeric() || octet == b'-');
    match is_label {
        true => format!("{}.{hostname}", name.to_ascii_lowercase()),
        false => {
            let octets = name.bytes().take(32);
            let hex: String = octets.map(|octet| format!("{octet:02x}")).collect();
            format!("{hex}.{hostname}")
        }
    }
}

impl Making<'_> {
    /// Makes and stores the mail of the report.
    pub(super) async fn send(&self) -> Result<(), NotMade> {
        let process = self.groups.process();
        let settings = process.settings();
        let reports = settings.reports.as_ref();
        let terms = reports.and_then(|reports| Some((reports, reports.contact.clone()?)));
        let (reports, contact) = terms.ok_or(NotMade::Unwanted)?;
        let all = self.destinations().await?;
        if all.is_empty() {
            return Err(NotMade::Unwanted);
        }
        let contents = self.contents(&settings, reports, contact);
        let made = spawn_blocking(move || contents.fitting(&all)).await;
        let made = made.map_err(|error| NotMade::Failed(error.to_string()))??;
        let (to, mail) = made.ok_or(NotMade::Unwanted)?;
        self.store(&settings, &to, mail).await
    }

    async fn destinations(&self) -> Result<Vec<Destination>, NotMade> {
        let names = self.groups.process().observing.names();
        let found = destinations::of(&names, self.domain);
        let found = tokio::time::timeout(SEARCH_PATIENCE, found).await;
        let failed = || NotMade::Failed("the DNS does not answer".to_owned());
        found.map_err(|_| failed())?.map_err(|_| failed())
    }

    fn contents(&self, settings: &Settings, reports: &Reports, contact: String) -> Contents {
        Contents {
            domain: self.domain.to_owned(),
            counts: Arc::clone(self.counts),
            hostname: settings.hostname.clone(),
            system: system(settings),
            organization: reports.organization.clone(),
            contact,
            from: reports.from.clone(),
            now: self.now,
        }
    }

    async fn store(&self, settings: &Settings, to: &[String], mail: Mail) -> Result<(), NotMade> {
        let process = self.groups.process();
        let trace = process.ids.next(self.now);
        let body = signing::sign_report(process, Bytes::from(mail.octets)).await;
        let head = ScheduleHead::new(trace, self.now, body.len());
        let parts = routing::own_parts(&process.router, settings, to, head, &body);
        let parts = parts.map_err(|refusal| NotMade::Failed(refusal.to_string()))?;
        if parts.is_empty() {
            return Err(NotMade::Unwanted);
        }
        let (batch, lines) = (Batch::new(), Lines::new());
        let stored = self.groups.own.store(batch, parts, &lines).await;
        stored.map_err(|error| NotMade::Failed(error.to_string()))?;
        tracing::info!(
            target: MAIL_TARGET,
            queue_id = %trace,
            domain = self.domain,
            to = to.join(" "),
            file = mail.filename,
            "report about DMARC sent"
        );
        Ok(())
    }
}
