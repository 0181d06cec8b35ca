//! Processing of a whole message: trace fields, signature, envelope, records in the spool.

use std::fmt::Write as _;
use std::rc::Rc;

use bytes::Bytes;
use vere_handoff::question::{Spf, SpfResults};
use vere_queue::ledger::OrderNotice;
use vere_queue::order::FOREVER;
use vere_queue::{
    Destination, Envelope, HoldCause, Mail, Report, ReportKind, ReportedRecipient, ScheduleHead,
    TlsWish,
};
use vere_smtp::command::MailFrom;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{Message, SessionInfo, received_header};
use vere_telemetry::trace::{Event, EventKind};
use vere_units::TraceId;

use super::group::Group;
use super::header::{Header, is_headless, spf_fields};
use super::judging::{self, Class, Gathered};
use super::mail_log::Accepted;
use super::process::Process;
use super::sealing::{self, Sealable};
use super::service::Service;
use super::throttle::Coming;
use super::{clock, convert, routing, sending, signing, telling, throttle};
use vere_delivery::{Happened, Host as _, Lines, Notice, Part};
use vere_spoolwire::Batch;
use vere_spoolwire::SpoolError;

/// What is known of a message beside the message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    pub(super) trace: TraceId,
    /// Whether the client may send to any domain: an account, a local program, or a client of `relay.networks`.
    pub(super) is_known: bool,
    /// The results of SPF; `None` where SPF was not asked.
    pub(super) spf: Option<SpfResults>,
    /// Why the message waits for an operator, if it does.
    pub(super) held_for: Option<HoldCause>,
}

/// Takes responsibility for a message: judges a stranger's message, signs a local user's message, and stores the message for each
/// destination.
///
/// # Errors
/// The refusal for the client.
pub(super) async fn accept(
    group: &Rc<Group>,
    service: Service,
    beside: Beside,
    mut message: Message,
    gathered: Option<Gathered>,
) -> Result<(), Refusal> {
    let process = &group.host.process;
    let hops_max = usize::try_from(process.settings().limits.hops_max).unwrap_or(usize::MAX);
    let header = Header::of(&message.body);
    if header.received >= hops_max {
        return Err(Refusal::RoutingLoop);
    }
    let hostname = process.settings().hostname.clone();
    if is_submitted(service, &message) {
        check(process, &header, &message)?;
        // Before filters: a signature of a filter covers the absence of fields too.
        let missing = missing_fields(&hostname, beside.trace, &header);
        add_above(&mut message.body, &missing);
    }
    let sealable = Sealable::of(gathered.as_ref());
    // Before filters change the sender: the results are about the client's.
    let spf = beside.spf.map(|spf| spf_fields(spf, &message, &hostname));
    let spf = spf.unwrap_or_default();
    let judged = judging::judge(
        process,
        (service, beside.is_known),
        beside.trace,
        &mut message,
        gathered,
    )
    .await?;
    let _coming = quarantine_room(group, beside.trace, &message, &judged.classes)?;
    let mut copies = Vec::with_capacity(judged.classes.len());
    for (n, mut class) in judged.classes.into_iter().enumerate() {
        let mut beside = beside;
        if n > 0 {
            // A copy with different fields is a separate message: queue commands about a copy leave further copies alone.
            beside.trace = process.trace_id();
        }
        if let Some(told) = &class.told {
            told.write(process, beside.trace);
        }
        class.fields.extend_from_slice(&spf);
        if class.is_quarantined {
            // No hold for sending ends here: of submitted mail, nothing is quarantined.
            beside.held_for = Some(HoldCause::Quarantine);
        }
        message.recipients = class.recipients;
        let whole = (&message, &class.fields[..]);
        copies.push(prepare(group, service, beside, whole, sealable.as_ref()).await?);
    }
    store(group, copies, beside.trace).await?;
    if let Some(counted) = judged.counted {
        counted.count(process, &message);
    }
    Ok(())
}

/// Keeps room in the quarantine for each class that is kept aside.
///
/// # Errors
/// The refusal for the client. The trace has the judgement then, and the refusal.
fn quarantine_room<'a>(
    group: &'a Group,
    trace: TraceId,
    message: &Message,
    classes: &[Class],
) -> Result<Vec<Coming<'a>>, Refusal> {
    let aside = classes.iter().filter(|class| class.is_quarantined);
    let rooms = aside
        .clone()
        .map(|class| throttle::quarantine_room(group, &class.recipients));
    rooms.collect::<Result<Vec<_>, _>>().inspect_err(|refusal| {
        let process = &group.host.process;
        let mut told = aside.filter_map(|class| class.told.as_ref());
        if let Some(told) = told.next() {
            told.write(process, trace);
        }
        let recipients = classes.iter().map(|class| class.recipients.len()).sum();
        judging::note_deferred(process, trace, message, recipients, refusal);
    })
}

/// A message in the form for recipients of a class, before storage.
struct Copy {
    base: Envelope,
    parts: Vec<Part>,
    /// The report about recipients that expand to several addresses.
    notice: Option<Notice>,
    lines: Lines,
    /// The destinations of a copy that is held.
    held: Vec<Destination>,
    line: Option<Accepted>,
}

/// Makes the copy of a message for recipients of one class, with these fields above its header.
async fn prepare(
    group: &Rc<Group>,
    service: Service,
    beside: Beside,
    (message, fields): (&Message, &[u8]),
    sealable: Option<&Sealable>,
) -> Result<Copy, Refusal> {
    let Beside { trace, spf, .. } = beside;
    let process = &group.host.process;
    let settings = process.settings();
    let header = Header::of(&message.body);
    let body = with_trace_header(&settings.hostname, trace, message, fields);
    let body = signing::sign_own(process, service, &message.session, &header, body).await?;
    let base = envelope(beside, message, &header, body.len());
    // A local program has no account; the user's number stands for it.
    let account = match service == Service::Sendmail {
        true => message.session.name.as_deref(),
        false => message.session.account.as_deref(),
    };
    note_received(group, (message, spf), account, &base);
    let (parts, expanded) = routing::parts(&process.router, &settings, message, &base, &body)?;
    let parts = sealing::seal(process, sealable, parts).await;
    let line = Accepted::of(service, account, message, &parts);
    let (notice, mut lines) = tell_expanded(group, &base, &body, expanded).await?;
    let held = held(group, &parts, &base, &mut lines);
    Ok(Copy {
        base,
        parts,
        notice,
        lines,
        held,
        line,
    })
}

/// Stores all copies of a message at once: a client that hears of a failure sends the message again, to all recipients.
async fn store(group: &Rc<Group>, mut copies: Vec<Copy>, trace: TraceId) -> Result<(), Refusal> {
    let (mut parts, mut lines) = (Vec::new(), Lines::new());
    for copy in &mut copies {
        parts.append(&mut copy.parts);
        lines.append(&mut copy.lines);
        let notices = copy.notice.iter();
        parts.extend(notices.flat_map(|notice| notice.parts.iter().cloned()));
    }
    group
        .store(Batch::new(), parts, &lines)
        .await
        .map_err(|error| refusal(trace, error))?;
    for copy in copies {
        let head = &copy.base.head;
        if let Some(notice) = copy.notice {
            telling::reported(&group.host.process, head.trace, &notice);
        }
        for destination in &copy.held {
            group
                .host
                .tell(&Happened::Held(destination, head.trace, head.held_until));
        }
        if let Some(line) = copy.line {
            line.write(&copy.base);
        }
    }
    Ok(())
}

/// The destinations of a held message, and the notices to further systems about the hold.
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

/// The report that recipients expand to several addresses, if the sender wants to hear of success, to be stored
/// with the message; and its event lines.
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

/// Whether a message is the first of its way: a program for mail or a local program has written it.
fn is_submitted(service: Service, message: &Message) -> bool {
    service == Service::Sendmail || message.session.account.is_some()
}

/// Checks the authors of a submitted message.
fn check(process: &Process, header: &Header<'_>, message: &Message) -> Result<(), Refusal> {
    // One field is allowed (RFC 5322 section 3.6), and a reader may show another one than was checked.
    if header.from_count > 1 {
        return Err(Refusal::ContentRefused);
    }
    match &message.session.account {
        Some(account) => sending::check_authors(process, account, header, &message.body),
        None => Ok(()),
    }
}

/// The date and id that a submitted message lacks (RFC 6409 sections 8.1 and 8.2).
fn missing_fields(hostname: &str, trace: TraceId, header: &Header<'_>) -> String {
    let mut fields = String::new();
    // Writing to a String cannot fail.
    if !header.has_date {
        let _ = write!(fields, "Date: {}\r\n", clock::now().rfc5322());
    }
    if !header.has_message_id() {
        let _ = write!(fields, "Message-ID: <{trace}@{hostname}>\r\n");
    }
    fields
}

/// Puts fields above the header of a message.
fn add_above(body: &mut Vec<u8>, fields: &str) {
    if !fields.is_empty() {
        let end: &[u8] = if is_headless(body) { b"\r\n" } else { b"" };
        *body = [fields.as_bytes(), end, body].concat();
    }
}

/// The message to forward: our Received field in front, and our further fields above.
fn with_trace_header(hostname: &str, trace: TraceId, message: &Message, fields: &[u8]) -> Bytes {
    let only = match message.recipients.as_slice() {
        [one] => Some(&one.forward_path),
        _ => None,
    };
    let now = clock::now();
    let received = received_header(&message.session, hostname, &trace.to_string(), now, only);
    let ours = fields.len() + received.len();
    let mut body = Vec::with_capacity(ours + message.body.len() + 2);
    body.extend_from_slice(fields);
    body.extend_from_slice(&received);
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
            held_until: beside.held_for.map(|_| FOREVER),
            held_since: beside.held_for.map(|_| now),
            held_for: beside.held_for.unwrap_or_default(),
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

/// Reply to a client for a message not stored by the spool: always temporary, so the client retries.
fn refusal(trace: TraceId, error: SpoolError) -> Refusal {
    tracing::warn!(queue_id = %trace, ?error, "message refused: not safe in the spool");
    match error {
        SpoolError::Refused(refused) if refused.is_temporary() => Refusal::StorageFull,
        SpoolError::Busy | SpoolError::Timeout => Refusal::Busy,
        _ => Refusal::LocalError,
    }
}
