//! What the receiving side wants from the rest of the system.
//!
//! Sessions know only this trait. Today the gateway itself implements it; a session that runs in a worker
//! process of its own will reach the gateway through another implementation.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use vere_handoff::question::{Spf, SpfResults};
use vere_ports::directory::AccountName;
use vere_queue::ledger::OrderNotice;
use vere_queue::order::FOREVER;
use vere_queue::{
    Destination, Envelope, HoldCause, Mail, Report, ReportKind, ReportedRecipient, ScheduleHead,
    TlsWish,
};
use vere_sasl::server::{PasswordAttempt, PasswordOutcome, ScramLookup};
use vere_settings::{OverSending, Settings};
use vere_smtp::command::{MailFrom, RcptTo};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{ClientRights, Message, Peer, Server, SessionInfo, received_header};
use vere_telemetry::metrics::TurnedAway;
use vere_telemetry::trace::{Event, EventKind};
use vere_units::TraceId;

use super::group::Group;
use super::header::{Header, is_headless, spf_fields};
use super::mail_log::Accepted;
use super::pressure::Closed;
use super::sending::Charged;
use super::service::Service;
use super::{clock, convert, routing, sending, signing, telling, throttle};
use vere_delivery::{Happened, Host as _, Lines, Notice, Part};
use vere_login::guessing::{Attempt, Outcome};
use vere_login::login::{self, Logins, Print};
use vere_process::places::Client;
use vere_routing::Found;
use vere_spoolwire::Batch;
use vere_spoolwire::SpoolError;

/// Answers the questions of receiving sessions.
pub(super) trait Intake {
    /// Whether the password is right and may act as wished.
    async fn password(&self, session: &Server, attempt: PasswordAttempt) -> PasswordOutcome;
    /// The SCRAM keys of a user.
    async fn scram_user(&self, session: &Server, username: &str) -> ScramLookup;
    /// Takes note of who has logged in.
    fn follow(&self, session: &Server);
    /// Whether this sender may send now.
    async fn mail(&self, session: &Server, mail: &MailFrom) -> Result<(), Refusal>;
    /// Whether mail for this recipient is taken from this client.
    async fn recipient(&self, session: &Server, rcpt: &RcptTo) -> Result<(), Refusal>;
    /// Takes responsibility for a message: when this gives its queue id, it is safe.
    async fn message(&self, session: &Server, message: Message) -> Result<String, Refusal>;
    /// What a client may do that a trusted proxy speaks for.
    fn rights(&self, peer: &Peer) -> ClientRights;
}

/// Makes the intake of each session.
pub(super) trait Intakes: 'static {
    /// What answers the questions of a session.
    type Intake: Intake;

    /// Returns the intake of a new session.
    fn intake(&self, service: Service) -> Self::Intake;

    /// Why no session may begin now.
    fn closed(&self) -> Option<TurnedAway>;
}

/// The gateway: its sessions put mail into its own group of queues.
#[derive(Debug)]
pub(super) struct GatewayIntakes {
    group: Rc<Group>,
    logins: Logins,
}

impl GatewayIntakes {
    pub(super) fn new(group: Rc<Group>) -> Self {
        Self {
            group,
            logins: Logins::default(),
        }
    }
}

impl Intakes for GatewayIntakes {
    type Intake = ServiceIntake;

    fn intake(&self, service: Service) -> ServiceIntake {
        ServiceIntake {
            group: Rc::clone(&self.group),
            service,
            logins: self.logins.clone(),
            exchange: RefCell::default(),
            shown: Cell::default(),
        }
    }

    fn closed(&self) -> Option<TurnedAway> {
        if self.group.host.link.state().borrow().is_shut() {
            return Some(TurnedAway::Spool);
        }
        let pressed = self.group.is_recovered() && throttle::throttled(&self.group).is_some();
        pressed.then_some(TurnedAway::Pressure)
    }
}

/// The gateway, as the clients of one service meet it.
#[derive(Debug)]
pub(super) struct ServiceIntake {
    group: Rc<Group>,
    service: Service,
    logins: Logins,
    /// A SCRAM exchange that has not ended.
    exchange: RefCell<Option<Attempt>>,
    /// The password by which the client logs in; none where a trusted proxy says who it is.
    shown: Cell<Option<Print>>,
}

impl ServiceIntake {
    /// Whether who logged in to this account may send still.
    fn is_in(&self, account: &str) -> Result<(), Refusal> {
        let Some(shown) = self.shown.get() else {
            return Ok(());
        };
        let Ok(account) = AccountName::parse(account) else {
            return Err(Refusal::LoginOver);
        };
        let now = Print::look_up(self.group.host.process.router.directory(), &account);
        let now = now.map_err(|error| {
            tracing::error!(%error, "directory cannot be read");
            Refusal::LocalError
        })?;
        match now == Some(shown) {
            true => Ok(()),
            false => Err(Refusal::LoginOver),
        }
    }
}

impl Intake for ServiceIntake {
    async fn password(&self, session: &Server, attempt: PasswordAttempt) -> PasswordOutcome {
        self.exchange.take();
        let client = Client::at(session.peer().address.ip());
        let directory = self.group.host.process.router.directory().clone();
        // Before the check: the directory may change the account meanwhile.
        self.shown.set(Print::of_user(&directory, &attempt.authcid));
        // Boxed for the same reason as what follows a message.
        Box::pin(self.logins.password(client, directory, attempt)).await
    }

    async fn scram_user(&self, session: &Server, username: &str) -> ScramLookup {
        // Whether the proof is right only the machine sees: the attempt has failed unless it says so.
        self.exchange.take();
        let client = Client::at(session.peer().address.ip());
        let exchange = Box::pin(self.logins.exchange(client, username)).await;
        self.exchange.replace(Some(exchange));
        let directory = self.group.host.process.router.directory();
        self.shown.set(Print::of_user(directory, username));
        login::scram_keys(directory, username)
    }

    fn follow(&self, session: &Server) {
        if session.account().is_some()
            && let Some(exchange) = self.exchange.take()
        {
            exchange.settle(Outcome::Succeeded);
        }
    }

    async fn mail(&self, session: &Server, mail: &MailFrom) -> Result<(), Refusal> {
        let known = session.account().is_some() || self.service == Service::Sendmail;
        if let Some(closed) = throttle::closed(&self.group, known) {
            if closed == Closed::Lines {
                self.group.host.process.metrics.turned_away_for_lines();
            }
            return Err(closed.refusal());
        }
        if let Some(account) = session.account() {
            self.is_in(account)?;
        }
        let process = &self.group.host.process;
        if let Some(account) = session.account() {
            let sending = &process.settings().sending;
            process.meters.may_begin(sending, account, Instant::now())?;
        }
        match (session.account(), mail.reverse_path.address()) {
            (Some(account), Some(address)) => sending::check_sender(process, account, address),
            _ => Ok(()),
        }
    }

    async fn recipient(&self, session: &Server, rcpt: &RcptTo) -> Result<(), Refusal> {
        let group = &self.group;
        let process = &group.host.process;
        let settings = process.settings();
        let found = process.router.find(&settings, &rcpt.forward_path)?;
        found.permit(self.is_known(session))?;
        room(group, &settings, found)
    }

    async fn message(&self, session: &Server, message: Message) -> Result<String, Refusal> {
        self.take(self.is_known(session), None, message).await
    }

    fn rights(&self, peer: &Peer) -> ClientRights {
        // The proxy announced another client, which has not logged in on this connection.
        self.shown.set(None);
        let settings = self.group.host.process.settings();
        let address = peer.address.ip();
        ClientRights {
            may_relay: settings.relay.contains(address),
            may_auth_in_clear: settings.auth.plaintext_networks.contains(address),
            may_prioritise: settings.priority.networks.contains(address),
        }
    }
}

impl ServiceIntake {
    /// Takes responsibility for a message of a client that [is known](Self::is_known) or not, with the results of SPF where it was asked.
    pub(super) async fn take(
        &self,
        is_known: bool,
        spf: Option<SpfResults>,
        mut message: Message,
    ) -> Result<String, Refusal> {
        let trace = self.group.host.process.trace_id();
        let begun = Instant::now();
        let (octets, recipients) = (message.body.len(), message.recipients.len());
        if !is_known {
            for rcpt in &mut message.recipients {
                rcpt.notify = rcpt.notify.map(convert::without_success);
            }
        }
        let stored = match self.charge(&message) {
            Ok(charged) => {
                let beside = Beside {
                    trace,
                    spf,
                    is_held: charged.as_ref().is_some_and(Charged::is_held),
                };
                // Boxed: the future is large, and every waiting session would reserve memory for it.
                let stored = Box::pin(accept(&self.group, self.service, beside, message)).await;
                if let (Some(charged), Err(_)) = (charged, &stored) {
                    charged.give_back(&self.group.host.process.meters);
                }
                stored
            }
            Err(refusal) => Err(refusal),
        };
        self.group.host.process.metrics.received(
            self.service,
            octets,
            recipients,
            begun.elapsed(),
            stored.as_ref().err(),
        );
        stored.map(|()| trace.to_string())
    }

    /// Counts a message of an account.
    fn charge(&self, message: &Message) -> Result<Option<Charged>, Refusal> {
        let Some(account) = message.session.account.clone() else {
            return Ok(None);
        };
        let process = &self.group.host.process;
        let recipients = u32::try_from(message.recipients.len()).unwrap_or(u32::MAX);
        let settings = process.settings();
        let now = Instant::now();
        let charged = process
            .meters
            .charge(&settings.sending, account, recipients, now);
        let over = match &charged {
            Ok(charged) if charged.is_held() => Some(OverSending::Hold),
            Ok(_) => None,
            Err(_) => Some(OverSending::Defer),
        };
        if let Some(over) = over {
            process.metrics.sent_too_much(over);
        }
        charged.map(Some)
    }

    /// Whether the client is one of ours: it may send to any domain, and its senders hear of success. A stranger's reverse
    /// path may be anybody's, who would be sent a report for each message of his.
    fn is_known(&self, session: &Server) -> bool {
        session.peer().may_relay || session.account().is_some() || self.service == Service::Sendmail
    }
}

/// Whether the queues that a recipient's mail goes to take more.
fn room(group: &Group, settings: &Settings, found: Found) -> Result<(), Refusal> {
    let now = clock::now();
    let limits = &settings.limits;
    // Nearly always nothing is refused, and all queues together hold less than one may.
    let any_bound = group.queues.look(|queues| {
        let totals = queues.totals();
        totals.messages as u64 >= limits.messages_per_destination_max
            || totals.octets >= limits.octets_per_destination_max.as_u64()
            || queues.has_orders()
    });
    if !any_bound {
        return Ok(());
    }
    for destination in found.destinations() {
        let (refused, (messages, octets)) = group.queues.look(|queues| {
            let refused = queues.is_refused(&destination, now);
            (refused, queues.fill(&destination))
        });
        if refused {
            return Err(Refusal::DestinationRefused);
        }
        if messages as u64 >= limits.messages_per_destination_max
            || octets >= limits.octets_per_destination_max.as_u64()
        {
            return Err(Refusal::DestinationFull);
        }
    }
    Ok(())
}

/// What is known of a message beside the message.
#[derive(Debug, Clone, Copy)]
struct Beside {
    trace: TraceId,
    /// The results of SPF; `None` where SPF was not asked.
    spf: Option<SpfResults>,
    /// Whether the message waits for an operator.
    is_held: bool,
}

async fn accept(
    group: &Rc<Group>,
    service: Service,
    beside: Beside,
    message: Message,
) -> Result<(), Refusal> {
    let Beside { trace, spf, .. } = beside;
    let settings = group.host.process.settings();
    let hops_max = usize::try_from(settings.limits.hops_max).unwrap_or(usize::MAX);
    let header = Header::of(&message.body);
    if header.received >= hops_max {
        return Err(Refusal::RoutingLoop);
    }
    let local = service == Service::Sendmail;
    let submitted = local || message.session.account.is_some();
    // One field is allowed (RFC 5322 section 3.6), and a reader may show another one than was checked.
    if submitted && header.from_count > 1 {
        return Err(Refusal::ContentRefused);
    }
    if let Some(account) = &message.session.account {
        sending::check_authors(&group.host.process, account, &header)?;
    }
    let ids = (trace, spf);
    let body = with_trace_header(&settings.hostname, ids, &message, &header, submitted);
    let body = signing::sign_own(
        &group.host.process,
        service,
        &message.session,
        &header,
        body,
    )
    .await?;
    let base = envelope(beside, &message, &header, body.len());
    // A local program has no account; the user's number stands for it.
    let account = match local {
        true => message.session.name.as_deref(),
        false => message.session.account.as_deref(),
    };
    note_received(group, (&message, spf), account, &base);
    let router = &group.host.process.router;
    let (mut parts, expanded) = routing::parts(router, &settings, &message, &base, &body)?;
    let line = Accepted::of(&message, &parts);
    let (notice, mut lines) = tell_expanded(group, &base, &body, expanded).await?;
    let held = held(group, &parts, &base, &mut lines);
    parts.extend(
        notice
            .iter()
            .flat_map(|notice| notice.parts.iter().cloned()),
    );
    group
        .store(Batch::new(), parts, &lines)
        .await
        .map_err(|error| refusal(trace, error))?;
    if let Some(notice) = notice {
        telling::reported(&group.host.process, trace, &notice);
    }
    for destination in &held {
        group
            .host
            .tell(&Happened::Held(destination, trace, base.head.held_until));
    }
    if let Some(line) = line {
        line.write(service, &message.session, account, &base);
    }
    Ok(())
}

/// The destinations of a message that is held, and what other systems are told of that.
fn held(group: &Group, parts: &[Part], base: &Envelope, lines: &mut Lines) -> Vec<Destination> {
    let ScheduleHead {
        trace, held_until, ..
    } = base.head;
    if held_until.is_none() {
        return Vec::new();
    }
    let destinations: Vec<_> = parts.iter().map(|part| part.destination.clone()).collect();
    for destination in &destinations {
        lines.extend(group.hold_lines(destination, trace, OrderNotice::Held, held_until));
    }
    destinations
}

/// The report that recipients stand for several others, if their sender wants to hear of success, to be stored with
/// the message; and what other systems are told of that.
async fn tell_expanded(
    group: &Group,
    envelope: &Envelope,
    message: &Bytes,
    recipients: Vec<ReportedRecipient>,
) -> Result<(Option<Notice>, Lines), Refusal> {
    let Some(to) = envelope
        .mail
        .reverse_path
        .clone()
        .filter(|_| !recipients.is_empty())
    else {
        return Ok((None, Lines::new()));
    };
    let report = Report {
        kind: ReportKind::Expanded,
        to,
        recipients,
        retry_until: None,
    };
    let notice = match group.host.process.may_report(&report, envelope.head.trace) {
        true => Some(
            group
                .host
                .process
                .notice(envelope, message, &report)
                .await?,
        ),
        false => None,
    };
    let sent = notice.as_ref().and_then(Notice::sent);
    let lines = group.expanded_lines(envelope.head.trace, &report, sent);
    Ok((notice, lines))
}

/// The message as it goes on: our Received field in front, and above it the results of SPF; a submitted message without a date gets one
/// (RFC 6409 section 8.1).
fn with_trace_header(
    hostname: &str,
    (trace, spf): (TraceId, Option<SpfResults>),
    message: &Message,
    header: &Header<'_>,
    submitted: bool,
) -> Bytes {
    let only = match message.recipients.as_slice() {
        [one] => Some(&one.forward_path),
        _ => None,
    };
    let now = clock::now();
    let received = received_header(&message.session, hostname, &trace.to_string(), now, only);
    let spf = spf.map(|spf| spf_fields(spf, message, hostname));
    let spf = spf.unwrap_or_default();
    let mut body = Vec::with_capacity(spf.len() + received.len() + message.body.len() + 128);
    body.extend_from_slice(&spf);
    body.extend_from_slice(&received);
    if submitted {
        if !header.has_date {
            body.extend_from_slice(format!("Date: {}\r\n", now.rfc5322()).as_bytes());
        }
        if !header.has_message_id() {
            body.extend_from_slice(format!("Message-ID: <{trace}@{hostname}>\r\n").as_bytes());
        }
    }
    if is_headless(&message.body) {
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(&message.body);
    Bytes::from(body)
}

fn envelope(beside: Beside, message: &Message, header: &Header<'_>, size: usize) -> Envelope {
    let mail = &message.reverse_path;
    let now = clock::now();
    Envelope {
        head: ScheduleHead {
            priority: mail.priority.unwrap_or(0),
            held_until: beside.is_held.then_some(FOREVER),
            held_since: beside.is_held.then_some(now),
            held_for: match beside.is_held {
                true => HoldCause::Sending,
                false => HoldCause::Operator,
            },
            ..ScheduleHead::new(beside.trace, now, size)
        },
        mail: Mail {
            reverse_path: mail
                .reverse_path
                .address()
                .map(|address| address.as_str().to_owned()),
            envid: mail.envid.as_ref().map(|envid| envid.as_str().to_owned()),
            ret: convert::ret(mail),
            smtputf8: mail.smtputf8,
            body_type: convert::body_type(mail),
            tls: tls_wish(mail, header),
            message_id: header.message_id(),
            recipients: Vec::new(),
        },
    }
}

/// What the sender says of encryption. RFC 8689 section 4.1: with REQUIRETLS the field counts for nothing.
fn tls_wish(mail: &MailFrom, header: &Header<'_>) -> TlsWish {
    if mail.require_tls {
        TlsWish::Required
    } else if header.is_tls_optional() {
        TlsWish::Optional
    } else {
        TlsWish::None
    }
}

fn note_received(
    group: &Group,
    (message, spf): (&Message, Option<SpfResults>),
    account: Option<&str>,
    envelope: &Envelope,
) {
    let session: &SessionInfo = &message.session;
    group.host.process.note(&Event {
        reverse_path: Some(envelope.mail.reverse_path.as_deref().unwrap_or_default()),
        message_id: envelope.mail.message_id.as_deref(),
        size: Some(u64::from(envelope.head.size)),
        recipients: u32::try_from(message.recipients.len()).ok(),
        peer: Some(session.address),
        account,
        tls: session.tls.as_ref().map(|tls| tls.version.as_str()),
        spf: spf.map(|spf| spf.sender.as_str()),
        spf_helo: spf.and_then(|spf| spf.helo).map(Spf::as_str),
        ..Event::new(
            EventKind::Received,
            envelope.head.trace,
            envelope.head.accepted,
        )
    });
}

/// Reply to a client whose message the spool did not store: always temporary, so that the client retries.
fn refusal(trace: TraceId, error: SpoolError) -> Refusal {
    tracing::warn!(queue_id = %trace, ?error, "message refused: not safe in the spool");
    match error {
        SpoolError::Refused(refused) if refused.is_temporary() => Refusal::StorageFull,
        SpoolError::Busy | SpoolError::Timeout => Refusal::Busy,
        _ => Refusal::LocalError,
    }
}
