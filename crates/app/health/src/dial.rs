//! `vere dial`: follows the path of a message up to its recipient, and sends no message.

mod own;
pub mod verdict;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use serde::Serialize;
use vere_directory::Directory;
use vere_net::sts::StsAnswer;
use vere_net::tls::{PeerCertificate, TlsInfo};
use vere_queue::{Destination, Place, TlsWish};
use vere_settings::Settings;
use vere_smtp::address::{AddrSpec, ForwardPath, ReversePath};
use vere_smtp::client::{OutgoingMessage, RecipientOutcome};
use vere_smtp::command::RcptTo;

use vere_outbound::hosts::Host;
use vere_outbound::{Hosts, Opened, Outbound, Progress, Unroutable, drive};
use vere_process::clock;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_routing::place_of;

use verdict::Verdict;

/// The arguments of `vere dial`.
#[derive(Debug, Args)]
pub struct DialArgs {
    /// A domain, or an address, whose mailbox is checked; or the IP address of a host.
    target: String,
    /// The sender in MAIL; by default the null reverse-path.
    #[arg(long, value_name = "ADDRESS")]
    from: Option<String>,
    /// Test as for a message with REQUIRETLS.
    #[arg(long)]
    requiretls: bool,
    /// Print JSON: an object with `target`, `queue`, `proven`, `mta_sts`, `hosts`, `verdict` (`taken`, `deferred` or
    /// `refused`) and `reason`; a host has `host`, `port`, `preference`, `addresses`, `addresses_proven`, `tlsa`,
    /// `policy`, `remote`, `tls`, `keywords`, `rcpt`, `problem`.
    #[arg(long)]
    json: bool,
}

/// The result of the trial.
#[derive(Debug, Serialize)]
struct Report {
    target: String,
    /// The queue of the mail.
    queue: String,
    /// Whether DNSSEC proves the domain's MX records; absent where the settings, or an IP address, name the host.
    proven: Option<bool>,
    mta_sts: Option<StsRow>,
    hosts: Vec<HostRow>,
    verdict: Verdict,
    /// The reason, when no host was asked, as for a local address.
    reason: Option<String>,
}

/// The domain's MTA-STS policy.
#[derive(Debug, Serialize)]
struct StsRow {
    mode: Option<&'static str>,
    id: Option<String>,
    max_age_seconds: Option<u64>,
    mx: Vec<String>,
    /// The reason why the policy is unavailable.
    problem: Option<String>,
}

/// A host.
#[derive(Debug, Default, Serialize)]
struct HostRow {
    host: String,
    port: u16,
    preference: Option<u16>,
    addresses: Vec<String>,
    /// Whether DNSSEC proves the addresses; absent for a host that is named by its address.
    addresses_proven: Option<bool>,
    tlsa: Vec<String>,
    /// The source of the encryption policy.
    policy: Option<&'static str>,
    remote: Option<String>,
    tls: Option<TlsRow>,
    keywords: Vec<String>,
    /// The answer to RCPT.
    rcpt: Option<String>,
    /// The reason why the host would not get the mail.
    problem: Option<String>,
}

/// An encrypted connection.
#[derive(Debug, Serialize)]
struct TlsRow {
    version: &'static str,
    cipher: &'static str,
    /// Whether the certificate authenticates the host, by roots or by TLSA records.
    verified: bool,
    /// The reason of a failed authentication.
    problem: Option<String>,
}

/// Dials, and returns the result as text.
///
/// # Errors
/// When the target is no domain or address, or the settings cannot be used.
pub fn run(args: &DialArgs, settings: &Arc<Settings>) -> Result<Outcome, Failure> {
    let address = |text: &str| {
        AddrSpec::parse(text).map_err(|_| Failure::new(format!("{text:?} is no mail address")))
    };
    let recipient = match args.target.contains('@') {
        true => address(&args.target)?,
        false => address(&format!("postmaster@{}", own::domain_of(&args.target)))?,
    };
    let sender = match &args.from {
        Some(text) => ReversePath::Address(address(text)?),
        None => ReversePath::Null,
    };
    let outbound = crate::outward::outbound(settings)?;
    let dialling = Dialling {
        outbound,
        directory: vere_login::directory::open_if_there(settings)?,
        settings: Arc::clone(settings),
        recipient,
        sender,
        wish: match args.requiretls {
            true => TlsWish::Required,
            false => TlsWish::None,
        },
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(dialling.report(&args.target));
    let text = match args.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => report.table(),
    };
    Ok(Outcome::Report(text, report.verdict.code()))
}

struct Dialling {
    outbound: Outbound,
    /// The local domains; `None` when no directory exists yet.
    directory: Option<Directory>,
    settings: Arc<Settings>,
    recipient: AddrSpec,
    sender: ReversePath,
    wish: TlsWish,
}

impl Dialling {
    async fn report(&self, target: &str) -> Report {
        let place = place_of(&self.settings, self.recipient.domain());
        let destination = place.with(self.wish);
        let mut report = Report {
            target: target.to_owned(),
            queue: destination.to_string(),
            proven: None,
            mta_sts: None,
            hosts: Vec::new(),
            verdict: Verdict::Deferred,
            reason: None,
        };
        if let Some((verdict, reason)) = own::answer(self.directory.as_ref(), &self.recipient) {
            report.queue = Destination::LOCAL.to_string();
            (report.verdict, report.reason) = (verdict, Some(reason));
            return report;
        }
        let hosts = match self.outbound.find(&destination).await {
            Ok(hosts) => hosts,
            Err(Unroutable::Permanent { status, reply }) => {
                report.verdict = Verdict::Refused;
                report.reason = Some(format!("{status} {reply}"));
                return report;
            }
            Err(Unroutable::Temporary(reply) | Unroutable::Site(reply)) => {
                report.reason = Some(reply);
                return report;
            }
        };
        // The identity of a host named in the settings does not depend on DNSSEC.
        let by_mx = hosts
            .hosts
            .iter()
            .any(|host| host.name.parse::<IpAddr>().is_err())
            && matches!(destination.place, Place::Domain(_));
        report.proven = by_mx.then_some(hosts.proven);
        if hosts.hosts.iter().any(|host| host.preference.is_some()) {
            report.mta_sts = self.sts().await;
        }
        for host in &hosts.hosts {
            let (row, verdict) = self.host(&hosts, host).await;
            report.hosts.push(row);
            report.verdict = match (report.verdict, verdict) {
                // A delivery goes to the first host that accepts messages, whatever its reply to RCPT.
                (known, _) if known != Verdict::Deferred => known,
                (_, verdict) => verdict,
            };
        }
        report
    }

    async fn sts(&self) -> Option<StsRow> {
        let (policy, id, problem) = match self.outbound.sts_answer(self.recipient.domain()).await {
            StsAnswer::None => return None,
            StsAnswer::Unavailable(error) => (None, None, Some(error.to_string())),
            StsAnswer::Policy(held) => (Some(held.policy.clone()), Some(held.id.clone()), None),
        };
        Some(StsRow {
            mode: policy.as_ref().map(|policy| policy.mode.as_str()),
            max_age_seconds: policy.as_ref().map(|policy| policy.max_age.as_secs()),
            mx: policy.map_or_else(Vec::new, |policy| policy.mx),
            id,
            problem,
        })
    }

    async fn host(&self, hosts: &Hosts, host: &Host) -> (HostRow, Verdict) {
        let mut row = HostRow {
            host: host.name.clone(),
            port: host.port,
            preference: host.preference,
            addresses: host.sockets().map(|at| at.ip().to_string()).collect(),
            addresses_proven: (host.name.parse::<IpAddr>().is_err() && host.addresses.is_ok())
                .then_some(!host.tlsa_bases.is_empty()),
            ..HostRow::default()
        };
        if let Ok(Some((_, records))) = self.outbound.tlsa(hosts, host).await {
            row.tlsa = records.iter().map(ToString::to_string).collect();
        }
        let opened = match self.outbound.open(hosts, host).await {
            Ok(opened) => opened,
            Err(error) => {
                row.problem = Some(error.into_reply());
                return (row, Verdict::Deferred);
            }
        };
        row.policy = Some(opened.policy.value());
        row.remote = Some(opened.remote.clone());
        row.tls = opened.tls.as_ref().map(TlsRow::new);
        let hello = opened.client.hello();
        row.keywords = hello.map_or_else(Vec::new, |reply| {
            reply.text.iter().skip(1).cloned().collect()
        });
        match self.ask(opened).await {
            Some(outcome) => {
                row.rcpt = Some(vere_outbound::reply_line(outcome.reply()));
                let verdict = match outcome {
                    RecipientOutcome::Delivered(_) => Verdict::Taken,
                    RecipientOutcome::Failed(_) => Verdict::Refused,
                    RecipientOutcome::Deferred(_) => Verdict::Deferred,
                };
                (row, verdict)
            }
            None => {
                row.problem = Some("the connection ended before RCPT".to_owned());
                (row, Verdict::Deferred)
            }
        }
    }

    /// MAIL and RCPT, and no command behind both.
    async fn ask(&self, mut opened: Opened) -> Option<RecipientOutcome> {
        let recipient = RcptTo::new(ForwardPath::Address(self.recipient.clone()));
        let message = OutgoingMessage {
            dry_run: true,
            require_tls: self.wish == TlsWish::Required,
            ..OutgoingMessage::new(self.sender.clone(), vec![recipient], Bytes::new())
        };
        opened.client.begin(message, clock::now());
        let Opened { stream, client, .. } = &mut opened;
        let progress = drive(stream, client).await;
        let Progress::Done(outcome) = progress else {
            return None;
        };
        opened.quit().await;
        outcome.recipients.into_iter().next()
    }
}

impl TlsRow {
    fn new(info: &TlsInfo) -> Self {
        Self {
            version: info.version,
            cipher: info.cipher,
            verified: info.certificate == PeerCertificate::Valid,
            problem: match &info.certificate {
                PeerCertificate::Invalid(_, problem) => Some(problem.clone()),
                PeerCertificate::Valid | PeerCertificate::Client(_) | PeerCertificate::NotAsked => {
                    None
                }
            },
        }
    }
}

impl Report {
    fn table(&self) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: &str| {
            // Writing to a text does not fail, so the result is ignored.
            let _ = writeln!(text, "{key:<12}{}", printable(value));
        };
        line("target", &self.target);
        line("queue", &self.queue);
        for host in &self.hosts {
            let preference = host.preference.map_or(String::new(), |it| format!("{it} "));
            let addresses = host.addresses.join(", ");
            let key = if host.preference.is_some() {
                "mx"
            } else {
                "next hop"
            };
            line(
                key,
                &format!("{preference}{}:{}  {addresses}", host.host, host.port),
            );
        }
        if !self.hosts.is_empty() {
            line(
                "dnssec",
                match self.proven {
                    Some(true) => "MX records are proven",
                    Some(false) => "MX records are not proven",
                    None => "no MX records are asked for",
                },
            );
            line(
                "mta-sts",
                &self
                    .mta_sts
                    .as_ref()
                    .map_or("none".to_owned(), StsRow::words),
            );
        }
        for host in &self.hosts {
            line("", "");
            line("host", host.remote.as_ref().unwrap_or(&host.host));
            let proven = host.addresses_proven.map(|proven| match proven {
                true => "addresses are proven",
                false => "addresses are not proven",
            });
            proven.iter().for_each(|words| line("  dnssec", words));
            for record in &host.tlsa {
                line("  tlsa", record);
            }
            for (key, value) in [
                ("  policy", host.policy.map(str::to_owned)),
                ("  failed", host.problem.as_deref().map(with_hint)),
            ] {
                value.into_iter().for_each(|value| line(key, &value));
            }
            if host.remote.is_some() {
                line(
                    "  tls",
                    &host.tls.as_ref().map_or("none".to_owned(), TlsRow::words),
                );
                line("  ehlo", &host.keywords.join(", "));
            }
            host.rcpt.iter().for_each(|reply| line("  rcpt", reply));
        }
        line("", "");
        self.reason.iter().for_each(|reason| line("reason", reason));
        line("verdict", self.verdict.words());
        text
    }
}

impl StsRow {
    fn words(&self) -> String {
        match (&self.problem, self.mode) {
            (Some(problem), _) => format!("cannot be had: {problem}"),
            (None, Some(mode)) => format!(
                "{mode}, id {}, {} s, {}",
                self.id.as_deref().unwrap_or_default(),
                self.max_age_seconds.unwrap_or_default(),
                self.mx.join(" ")
            ),
            (None, None) => "none".to_owned(),
        }
    }
}

impl TlsRow {
    fn words(&self) -> String {
        let verdict = match &self.problem {
            Some(problem) => format!("certificate proves nothing: {}", with_hint(problem)),
            None if self.verified => "certificate verified".to_owned(),
            None => "certificate not looked at".to_owned(),
        };
        format!("{} {}, {verdict}", self.version, self.cipher)
    }
}

/// Adds a hint for a certificate of a private CA.
fn with_hint(problem: &str) -> String {
    match problem.contains("(UnknownIssuer)") {
        true => format!("{problem}; the setting delivery.ca names one that is trusted too"),
        false => problem.to_owned(),
    }
}

/// The reply of another host must not control the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_what_happened() {
        let report = Report {
            target: "x@example.org".to_owned(),
            queue: "example.org".to_owned(),
            proven: Some(true),
            mta_sts: None,
            hosts: vec![HostRow {
                host: "mx.example.org".to_owned(),
                port: 25,
                preference: Some(10),
                addresses: vec!["192.0.2.1".to_owned()],
                problem: Some("421 \u{1b}[2Jgo away".to_owned()),
                ..HostRow::default()
            }],
            verdict: Verdict::Deferred,
            reason: None,
        };
        let table = report.table();
        for line in [
            "mx          10 mx.example.org:25  192.0.2.1\n",
            "dnssec      MX records are proven\n",
            "  failed    421 ?[2Jgo away\n",
        ] {
            assert!(table.contains(line), "{line} in {table}");
        }
        let verdict = "verdict     mail would wait and be tried again\n";
        assert!(table.ends_with(verdict), "{table}");
    }
}
