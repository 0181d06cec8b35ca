//! Makes a report, stores its mail in the queue, and hands it to web servers.
//!
//! A report goes to each destination once: by mail first, then to web servers, which may take long. Each part is noted once it is handed over, and
//! is not repeated after a failure of another part or a kill.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use vere_delivery::Lines;
use vere_observed::{Files, destinations};
use vere_queue::{ScheduleHead, TlsWish};
use vere_reports::{Day, Destination, Kind, Mail, MailError, Report, Reporter, Sender};
use vere_settings::{Reports, Settings};
use vere_spoolwire::Batch;
use vere_telemetry::log::MAIL_TARGET;
use vere_units::Timestamp;

use super::tls;
use crate::group::Groups;
use crate::{routing, signing};

/// The name and version in reports.
const GENERATOR: &str = concat!("vere ", env!("CARGO_PKG_VERSION"));
/// The longest search for the destinations of a domain.
const SEARCH_PATIENCE: Duration = Duration::from_secs(60);
/// The type of a TLS report at a web server (RFC 8460 section 5.4).
const WEB_TYPE: &str = "application/tlsrpt+gzip";
/// The part of a report that goes by mail.
const BY_MAIL: &str = "mailto";

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
    pub(super) kind: Kind,
    pub(super) domain: &'a str,
    pub(super) counts: &'a Arc<Day>,
    pub(super) files: &'a Files,
    pub(super) day: u64,
    pub(super) now: Timestamp,
    /// The parts that were handed over at earlier attempts.
    pub(super) done: &'a [String],
}

/// The end of an attempt.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) result: Result<(), NotMade>,
    /// The parts that were handed over and noted.
    pub(super) parts: Vec<String>,
}

/// The contents of the mail, for another thread.
#[derive(Debug, Clone)]
struct Contents {
    kind: Kind,
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
    /// Makes the report; `None` where nothing was counted.
    fn report(&self) -> Option<Report> {
        let reporter = Reporter {
            organization: &self.organization,
            email: &self.contact,
            contact: None,
            submitter: &self.system,
            generator: GENERATOR,
        };
        match self.kind {
            Kind::Dmarc => {
                let report = self.counts.aggregate(&self.domain, &reporter)?;
                Some(Report::Aggregate(Box::new(report)))
            }
            Kind::Tls => {
                let report = self.counts.tls(&self.domain, &reporter)?;
                Some(Report::Tls(Box::new(report)))
            }
        }
    }

    fn mail(&self, report: &Report, to: &[String]) -> Result<Mail, MailError> {
        let sender = Sender {
            from: &self.from,
            to,
            submitter: &self.hostname,
            at: self.now,
        };
        Mail::of(report, &sender)
    }

    /// Makes the mail for the destinations with room for the length of the mail.
    fn fitting(&self, all: &[Destination]) -> Result<(Vec<String>, Mail), NotMade> {
        let report = self.report().ok_or(NotMade::Unwanted)?;
        // A domain, address or identifier of another form stays so.
        let made = |to: &[String]| {
            self.mail(&report, to).map_err(|error| {
                tracing::info!(domain = self.domain, %error, "no report can be written");
                NotMade::Unwanted
            })
        };
        let every = addresses(all, 0);
        let mail = made(&every)?;
        let octets = u64::try_from(mail.octets.len()).unwrap_or(u64::MAX);
        let to = addresses(all, octets);
        match (to.is_empty(), to.len() == every.len()) {
            (true, _) => Err(NotMade::TooLong),
            (false, true) => Ok((to, mail)),
            (false, false) => Ok((to.clone(), made(&to)?)),
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

/// The name of this gateway in identifiers: gateways with equal host names report different counts.
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
    /// Hands the report to all destinations that do not have it yet.
    pub(super) async fn send(&self) -> Made {
        let mut parts = Vec::new();
        let result = self.send_parts(&mut parts).await;
        Made { result, parts }
    }

    async fn send_parts(&self, parts: &mut Vec<String>) -> Result<(), NotMade> {
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
        let uris = destinations::web_servers(&all);
        let mail = self.mail(&settings, &contents, all, parts).await;
        if !uris.is_empty() {
            // Without web servers the note about the domain follows at once.
            self.note(parts).await;
        }
        let web = self.post(contents, uris, parts).await;
        match (web, mail) {
            (Err(failed), _) => Err(failed),
            // The mail is too long, say, and a web server has the report.
            (Ok(true), Err(NotMade::TooLong | NotMade::Unwanted)) => Ok(()),
            (Ok(_), mail) => mail,
        }
    }

    /// Whether a part was handed over before.
    fn is_done(&self, part: &String) -> bool {
        self.done.contains(part) || self.counts.is_sent(self.kind, part)
    }

    async fn note(&self, parts: &[String]) {
        for part in parts {
            self.files.note_sent(self.day, self.kind, part).await;
        }
    }

    /// Hands the report to web servers, each once; `false` where the domain names none.
    async fn post(
        &self,
        contents: Contents,
        uris: Vec<String>,
        parts: &mut Vec<String>,
    ) -> Result<bool, NotMade> {
        if uris.is_empty() {
            return Ok(false);
        }
        let packed = spawn_blocking(move || contents.report().map(|report| report.packed())).await;
        let packed = packed.map_err(|error| NotMade::Failed(error.to_string()))?;
        let packed = Bytes::from(packed.ok_or(NotMade::Unwanted)?);
        let mut result = Ok(true);
        for uri in uris {
            let part = Day::part(self.domain, &uri);
            if self.is_done(&part) {
                continue;
            }
            let outbound = &self.groups.process().outbound;
            match outbound.post(&uri, WEB_TYPE, packed.clone()).await {
                Ok(()) => {
                    tracing::info!(domain = self.domain, uri, "report about TLS posted");
                    self.note(std::slice::from_ref(&part)).await;
                    parts.push(part);
                }
                Err(error) => result = Err(NotMade::Failed(format!("{uri}: {error}"))),
            }
        }
        result
    }

    /// Makes and stores the mail of the report, where the domain wants mail.
    async fn mail(
        &self,
        settings: &Settings,
        contents: &Contents,
        all: Vec<Destination>,
        parts: &mut Vec<String>,
    ) -> Result<(), NotMade> {
        let part = Day::part(self.domain, BY_MAIL);
        if self.is_done(&part) {
            return Ok(());
        }
        if addresses(&all, 0).is_empty() {
            return Err(NotMade::Unwanted);
        }
        let contents = contents.clone();
        let made = spawn_blocking(move || contents.fitting(&all)).await;
        let (to, mail) = made.map_err(|error| NotMade::Failed(error.to_string()))??;
        self.store(settings, &to, mail).await?;
        parts.push(part);
        Ok(())
    }

    async fn destinations(&self) -> Result<Vec<Destination>, NotMade> {
        let names = self.groups.process().names();
        let found = async {
            match self.kind {
                Kind::Dmarc => destinations::of(&names, self.domain).await,
                Kind::Tls => tls::destinations(&names, self.domain).await,
            }
        };
        let found = tokio::time::timeout(SEARCH_PATIENCE, found).await;
        let failed = || NotMade::Failed("the DNS does not answer".to_owned());
        found.map_err(|_| failed())?.map_err(|_| failed())
    }

    fn contents(&self, settings: &Settings, reports: &Reports, contact: String) -> Contents {
        Contents {
            kind: self.kind,
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
        let wish = self.wish();
        let parts = routing::own_parts(&process.router, settings, to, (head, wish), &body);
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
            "report about {} sent",
            self.about()
        );
        Ok(())
    }

    /// RFC 8460 section 5.3: a report about TLS arrives although TLS fails. Such mail does not count for reports either.
    const fn wish(&self) -> TlsWish {
        match self.kind {
            Kind::Dmarc => TlsWish::None,
            Kind::Tls => TlsWish::Optional,
        }
    }

    const fn about(&self) -> &'static str {
        match self.kind {
            Kind::Dmarc => "DMARC",
            Kind::Tls => "TLS",
        }
    }
}
