//! The records of a message, one per destination that the router finds.

use std::collections::BTreeMap;

use bytes::Bytes;
use vere_queue::{
    BodyType, Destination, Envelope, Mail, Notify, Place, Recipient, Report, ReportedRecipient,
    ScheduleHead, TlsWish,
};
use vere_settings::Settings;
use vere_smtp::address::{AddrSpec, ForwardPath};
use vere_smtp::command::RcptTo;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Message;
use vere_units::{Timestamp, TraceId};

use super::convert;
use vere_delivery::Part;
use vere_routing::Router;

/// A recipient, and the place that receives the recipient's mail.
#[derive(Debug)]
struct Routed {
    place: Place,
    recipient: Recipient,
    /// The domain of the alias that forwards the mail.
    forwarder: Option<String>,
}

/// The routes of all recipients of a message.
#[derive(Debug, Default)]
struct Routes {
    routed: Vec<Routed>,
    /// Recipients that expanded to several addresses and whose sender asked for success reports.
    expanded: Vec<ReportedRecipient>,
    /// Whether a recipient is the sender of forwarded mail, to whom reports alone go back.
    has_return: bool,
}

/// A record, and the domain of the first alias with a forward of a recipient's mail to a remote system.
pub(super) type Forwarded = (Part, Option<String>);

/// Returns the records for a received message, one per destination, each recipient once; and the recipients whose
/// expansion to several addresses is reported to the sender.
pub(super) fn parts(
    router: &Router,
    settings: &Settings,
    message: &Message,
    base: &Envelope,
    body: &Bytes,
) -> Result<(Vec<Forwarded>, Vec<ReportedRecipient>), Refusal> {
    let mut routes = Routes::default();
    for rcpt in &message.recipients {
        route_recipient(router, settings, rcpt, &mut routes)?;
    }
    if routes.has_return && base.mail.reverse_path.is_some() {
        return Err(Refusal::SenderRefused);
    }
    let mut parts = group(routes.routed, base, body);
    if let Some(sender) = &base.mail.reverse_path {
        for (part, forwarder) in &mut parts {
            if let Some(forwarder) = forwarder {
                let path = router.forwarded(settings, sender, forwarder)?;
                part.envelope.mail.reverse_path = Some(path);
            }
        }
    }
    Ok((parts, routes.expanded))
}

fn route_recipient(
    router: &Router,
    settings: &Settings,
    rcpt: &RcptTo,
    routes: &mut Routes,
) -> Result<(), Refusal> {
    let Routes {
        routed,
        expanded,
        has_return,
    } = routes;
    let mut notify = convert::notify(rcpt.notify);
    let given = rcpt.orcpt.as_ref().map(|orcpt| orcpt.as_str().to_owned());
    let original = rcpt.forward_path.as_str();
    let recipient = |address: String, notify| {
        // Reports show the address that the sender knows.
        let orcpt = given.clone().or_else(|| {
            (address != original && original.is_ascii()).then(|| convert::rfc822_orcpt(original))
        });
        Recipient {
            address,
            notify,
            orcpt,
        }
    };
    // An account that existed at RCPT may have been removed since.
    let found = router.find(settings, &rcpt.forward_path)?;
    *has_return |= found.is_return();
    let forwarder = found.forwarder().map(str::to_owned);
    let targets = found.into_targets();
    if targets.len() > 1 && notify.success() {
        expanded.push(expansion(settings, original, &given));
        notify = without_success(notify);
    }
    let recipients = targets.into_iter();
    routed.extend(recipients.map(|(place, address)| Routed {
        forwarder: forwarder.clone().filter(|_| place != Place::Local),
        place,
        recipient: recipient(address, notify),
    }));
    Ok(())
}

/// Returns the record for a report to the sender of `about`; empty if the sender's address leads nowhere.
///
/// # Errors
/// When the directory cannot be read.
pub(super) fn report_parts(
    router: &Router,
    settings: &Settings,
    about: &Envelope,
    report: &Report,
    trace: TraceId,
    body: Bytes,
    now: Timestamp,
) -> Result<Vec<Part>, Refusal> {
    let Ok(address) = AddrSpec::parse(&report.to) else {
        return Ok(Vec::new());
    };
    let rcpt = RcptTo::new(ForwardPath::Address(address));
    let mut routes = Routes::default();
    match route_recipient(router, settings, &rcpt, &mut routes) {
        Ok(()) => {}
        Err(refusal) if refusal.is_permanent() => return Ok(Vec::new()),
        Err(refusal) => return Err(refusal),
    }
    let mut routed = routes.routed;
    for Routed { recipient, .. } in &mut routed {
        recipient.notify = Notify::NEVER;
    }
    let base = Envelope {
        head: ScheduleHead {
            // A report is as urgent as its message.
            priority: about.head.priority,
            ..ScheduleHead::new(trace, now, body.len())
        },
        mail: Mail {
            smtputf8: about.mail.smtputf8,
            body_type: if body.is_ascii() {
                BodyType::SevenBit
            } else {
                BodyType::EightBitMime
            },
            // RFC 8689 section 5: a report about a message travels as safely as the message.
            tls: match about.mail.tls {
                TlsWish::Required => TlsWish::Required,
                TlsWish::None | TlsWish::Optional => TlsWish::None,
            },
            ..Mail::default()
        },
    };
    let parts = group(routed, &base, &body).into_iter();
    Ok(parts.map(|(part, _)| part).collect())
}

/// Returns the records for a message of the system's own, with the null reverse-path and without reports to a sender. Addresses without
/// a destination are left out.
///
/// # Errors
/// When the directory cannot be read.
pub(super) fn own_parts(
    router: &Router,
    settings: &Settings,
    addresses: &[String],
    (head, tls): (ScheduleHead, TlsWish),
    body: &Bytes,
) -> Result<Vec<Part>, Refusal> {
    let mut routes = Routes::default();
    for address in addresses {
        let Ok(address) = AddrSpec::parse(address) else {
            continue;
        };
        let rcpt = RcptTo::new(ForwardPath::Address(address));
        match route_recipient(router, settings, &rcpt, &mut routes) {
            Err(refusal) if !refusal.is_permanent() => return Err(refusal),
            _ => {}
        }
    }
    let mut routed = routes.routed;
    for Routed { recipient, .. } in &mut routed {
        recipient.notify = Notify::NEVER;
    }
    let mail = Mail {
        tls,
        ..Mail::default()
    };
    let parts = group(routed, &Envelope { head, mail }, body).into_iter();
    Ok(parts.map(|(part, _)| part).collect())
}

/// Returns the report line for an address that expanded to several (RFC 3461 section 5.2.7, action "expanded").
fn expansion(settings: &Settings, address: &str, orcpt: &Option<String>) -> ReportedRecipient {
    ReportedRecipient {
        address: address.to_owned(),
        orcpt: orcpt.clone(),
        status: "2.1.5".to_owned(),
        diagnostic: String::new(),
        from_remote: false,
        remote: settings.hostname.clone(),
    }
}

/// Removes the request for success reports. The sender got a report about the expansion, and gets none about the
/// addresses behind it.
const fn without_success(notify: Notify) -> Notify {
    match (notify.failure(), notify.delay()) {
        (false, false) => Notify::NEVER,
        (failure, delay) => Notify::on(false, failure, delay),
    }
}

/// Groups recipients into one part per destination, each recipient once, in the given order.
fn group(routed: Vec<Routed>, base: &Envelope, body: &Bytes) -> Vec<Forwarded> {
    let mut parts: BTreeMap<Destination, (Vec<Recipient>, Option<String>)> = BTreeMap::new();
    for Routed {
        place,
        recipient,
        forwarder,
    } in routed
    {
        let (recipients, first) = parts.entry(place.with(base.mail.tls)).or_default();
        if first.is_none() {
            *first = forwarder;
        }
        if recipients
            .iter()
            .all(|known| known.address != recipient.address)
        {
            recipients.push(recipient);
        }
    }
    let part = |(destination, (recipients, forwarder))| {
        let mail = Mail {
            recipients,
            ..base.mail.clone()
        };
        let head = base.head.clone();
        let part = Part {
            destination,
            envelope: Envelope { head, mail },
            body: body.clone(),
        };
        (part, forwarder)
    };
    parts.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vere_directory::Directory;
    use vere_disk::directory::SqliteStore;
    use vere_ports::directory::{Change, Domain, DomainName};
    use vere_queue::ReportKind;

    use super::*;

    fn parts(router: &Router, to: &str) -> Result<usize, Refusal> {
        let text = "version = 1\nhostname = \"mx.example.org\"\n";
        let settings = Settings::parse(text, "vere.toml").unwrap();
        let now = Timestamp::from_millis(1);
        let about = Envelope {
            head: ScheduleHead::new(TraceId::new(1), now, 0),
            mail: Mail {
                reverse_path: Some(to.to_owned()),
                ..Mail::default()
            },
        };
        let report = Report {
            kind: ReportKind::Failed,
            to: to.to_owned(),
            recipients: Vec::new(),
            retry_until: None,
        };
        let body = Bytes::from_static(b"Subject: a\r\n\r\n");
        let parts = report_parts(
            router,
            &settings,
            &about,
            &report,
            TraceId::new(2),
            body,
            now,
        );
        parts.map(|parts| parts.len())
    }

    /// A report is dropped for an address that leads nowhere, and not because nobody can say now where it leads.
    #[test]
    fn a_report_waits_for_a_directory_that_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory.sqlite");
        let store = SqliteStore::create(&path).unwrap();
        let name = DomainName::parse("example.org").unwrap();
        let catch_all = None;
        let domain = Change::AddDomain(Domain { name, catch_all });
        vere_ports::directory::DirectoryStore::apply(&store, &domain).unwrap();
        let router = Router::new(Directory::new(Arc::new(store), None));
        assert_eq!(parts(&router, "ann@example.com"), Ok(1));
        assert_eq!(parts(&router, "nobody@example.org"), Ok(0));
        assert_eq!(parts(&router, "no address"), Ok(0));
        for file in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::write(file.unwrap().path(), [0x55; 65_536]).unwrap();
        }
        assert_eq!(parts(&router, "ann@example.com"), Err(Refusal::LocalError));
    }
}
