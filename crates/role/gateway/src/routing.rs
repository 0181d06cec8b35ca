//! Routes recipients to destinations and checks the sender's right to use them.

use std::collections::BTreeMap;

use bytes::Bytes;
use vere_directory::{self as directory, Directory, Resolution};
use vere_ports::directory::{AccountName, StoreError};
use vere_queue::{
    BodyType, Destination, Envelope, Mail, Notify, Place, Recipient, Report, ReportedRecipient,
    ScheduleHead, TlsWish,
};
use vere_settings::{LocalDelivery, NextHop, Settings};
use vere_smtp::address::{AddrSpec, ForwardPath};
use vere_smtp::command::RcptTo;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Message;
use vere_units::{Timestamp, TraceId};

use super::convert;
use vere_delivery::Part;

/// Resolves recipients by the directory and routes remote ones by the settings.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) directory: Directory,
}

/// A recipient, and the place that receives the recipient's mail.
type Routed = (Place, Recipient);

/// The routes of all recipients of a message.
#[derive(Debug, Default)]
struct Routes {
    routed: Vec<Routed>,
    /// Recipients that expanded to several addresses and whose sender asked for success reports.
    expanded: Vec<ReportedRecipient>,
}

impl Router {
    /// Checks that a client may send to this recipient. With `may_relay`, the client may send to any domain.
    pub(super) fn check(
        &self,
        settings: &Settings,
        path: &ForwardPath,
        may_relay: bool,
    ) -> Result<(), Refusal> {
        match self.resolve(settings, path)? {
            Resolution::NotLocal if may_relay => Ok(()),
            Resolution::NotLocal => match path.address() {
                Some(address) if route(settings, address.domain()) == Place::Local => Ok(()),
                _ => Err(Refusal::RelayDenied),
            },
            other => other.refusal().map_or(Ok(()), Err),
        }
    }

    /// Checks that an account may send under this address: an address of the account, or an address of a domain that is
    /// not local. The addresses of other accounts are refused.
    pub(super) fn check_sender(&self, account: &str, address: &AddrSpec) -> Result<(), Refusal> {
        let check = || {
            if !self.directory.is_local_domain(address.domain())? {
                return Ok(true);
            }
            match AccountName::parse(account) {
                Ok(account) => self.directory.is_address_of(&account, address),
                Err(_) => Ok(false),
            }
        };
        match check() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::SenderNotOwned),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Returns the current destinations of mail for a recipient.
    pub(super) fn destinations(
        &self,
        settings: &Settings,
        path: &ForwardPath,
    ) -> Result<Vec<Destination>, Refusal> {
        let mut routes = Routes::default();
        self.route_recipient(settings, &RcptTo::new(path.clone()), &mut routes)?;
        let routed = routes.routed.into_iter();
        Ok(routed.map(|(place, _)| place.into()).collect())
    }

    /// Returns the current place of mail for a domain.
    pub(super) fn of_domain(&self, settings: &Settings, domain: &str) -> Place {
        match self.directory.is_local_domain(domain) {
            Ok(true) => Place::Local,
            // The acceptance of mail reports an unreadable directory.
            Ok(false) | Err(_) => route(settings, domain),
        }
    }

    /// Checks that the settings and the directory lead mail to a destination; the error is the place that mail for its
    /// domain goes to instead.
    pub(super) fn leads_to(
        &self,
        settings: &Settings,
        destination: &Destination,
    ) -> Result<(), Option<Place>> {
        let place = &destination.place;
        match place {
            Place::Domain(domain) => match self.of_domain(settings, domain) {
                own if own == *place => Ok(()),
                other => Err(Some(other)),
            },
            Place::Relay(_) => {
                let mut routes = settings.routes.iter();
                let leads = routes.any(|route| match &route.next_hop {
                    NextHop::Host { host, port } => relay(host, *port) == *place,
                    NextHop::Mx | NextHop::Local => false,
                });
                leads.then_some(()).ok_or(None)
            }
            Place::Local => Ok(()),
        }
    }

    fn resolve(&self, settings: &Settings, path: &ForwardPath) -> Result<Resolution, Refusal> {
        let resolved = match path.address() {
            Some(address) => self.directory.resolve(address),
            None => self.directory.resolve_postmaster(&settings.hostname),
        };
        resolved.map_err(|error| unavailable(&error))
    }

    /// Returns the records for a received message, one per destination, each recipient once; and the recipients whose
    /// expansion to several addresses is reported to the sender.
    pub(super) fn parts(
        &self,
        settings: &Settings,
        message: &Message,
        base: &Envelope,
        body: &Bytes,
    ) -> Result<(Vec<Part>, Vec<ReportedRecipient>), Refusal> {
        let mut routes = Routes::default();
        for rcpt in &message.recipients {
            self.route_recipient(settings, rcpt, &mut routes)?;
        }
        Ok((group(routes.routed, base, body), routes.expanded))
    }

    fn route_recipient(
        &self,
        settings: &Settings,
        rcpt: &RcptTo,
        routes: &mut Routes,
    ) -> Result<(), Refusal> {
        let Routes { routed, expanded } = routes;
        let mut notify = convert::notify(rcpt.notify);
        let given = rcpt.orcpt.as_ref().map(|orcpt| orcpt.as_str().to_owned());
        let original = rcpt.forward_path.as_str();
        let recipient = |address: &str, notify| {
            // Reports show the address that the sender knows.
            let orcpt = given.clone().or_else(|| {
                (address != original && original.is_ascii())
                    .then(|| convert::rfc822_orcpt(original))
            });
            Recipient {
                address: address.to_owned(),
                notify,
                orcpt,
            }
        };
        match self.resolve(settings, &rcpt.forward_path)? {
            Resolution::Local { account, tag } => {
                let mailbox = mailbox(settings, &account, tag.as_deref());
                routed.push((Place::Local, recipient(&mailbox, notify)));
            }
            Resolution::Forward(targets) => {
                if targets.len() > 1 && notify.success() {
                    expanded.push(expansion(settings, original, &given));
                    notify = without_success(notify);
                }
                routed.extend(targets.iter().map(|target| match target {
                    directory::Destination::Local { account, tag } => {
                        let mailbox = mailbox(settings, account, tag.as_deref());
                        (Place::Local, recipient(&mailbox, notify))
                    }
                    directory::Destination::Remote(address) => (
                        route(settings, address.domain()),
                        recipient(address.as_str(), notify),
                    ),
                }))
            }
            Resolution::NotLocal => {
                let address = rcpt.forward_path.address().ok_or(Refusal::MailboxUnknown)?;
                routed.push((
                    route(settings, address.domain()),
                    recipient(address.as_str(), notify),
                ));
            }
            // The account existed at RCPT, and was removed since.
            other => return Err(other.refusal().unwrap_or(Refusal::MailboxUnknown)),
        }
        Ok(())
    }

    /// Returns the record for a report to the sender of `about`; empty if the sender's address leads nowhere.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn report_parts(
        &self,
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
        match self.route_recipient(settings, &rcpt, &mut routes) {
            Ok(()) => {}
            Err(refusal) if refusal.is_permanent() => return Ok(Vec::new()),
            Err(refusal) => return Err(refusal),
        }
        let mut routed = routes.routed;
        for (_, recipient) in &mut routed {
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
        Ok(group(routed, &base, &body))
    }
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

/// Returns the address under which mail for an account is filed; the store finds the mailbox by the tag (RFC 5233).
fn mailbox(settings: &Settings, account: &AccountName, tag: Option<&str>) -> String {
    let separator = settings.directory.subaddress_separator;
    let to_store = settings.delivery.local == LocalDelivery::Store;
    match (tag, separator) {
        (Some(tag), Some(separator)) if to_store => {
            account
                .to_string()
                .replacen('@', &format!("{separator}{tag}@"), 1)
        }
        _ => account.to_string(),
    }
}

/// Returns the place of mail for a remote domain.
pub fn route(settings: &Settings, domain: &str) -> Place {
    let bare = domain.trim_end_matches('.');
    match settings.route(bare).map(|route| &route.next_hop) {
        None | Some(NextHop::Mx) => Place::Domain(bare.to_ascii_lowercase()),
        Some(NextHop::Local) => Place::Local,
        Some(NextHop::Host { host, port }) => relay(host, *port),
    }
}

/// Returns the place of a fixed next hop.
pub fn relay(host: &str, port: u16) -> Place {
    Place::Relay(if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    })
}

/// Groups recipients into one part per destination, each recipient once, in the given order.
fn group(routed: Vec<Routed>, base: &Envelope, body: &Bytes) -> Vec<Part> {
    let mut parts: BTreeMap<Destination, Vec<Recipient>> = BTreeMap::new();
    for (place, recipient) in routed {
        let recipients = parts.entry(place.with(base.mail.tls)).or_default();
        if recipients
            .iter()
            .all(|known| known.address != recipient.address)
        {
            recipients.push(recipient);
        }
    }
    let part = |(destination, recipients)| Part {
        destination,
        envelope: Envelope {
            head: base.head.clone(),
            mail: Mail {
                recipients,
                ..base.mail.clone()
            },
        },
        body: body.clone(),
    };
    parts.into_iter().map(part).collect()
}

/// Logs the error: an unreadable directory is a local fault, not the client's.
fn unavailable(error: &StoreError) -> Refusal {
    tracing::error!(%error, "directory cannot be read");
    Refusal::LocalError
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
        let parts = router.report_parts(&settings, &about, &report, TraceId::new(2), body, now);
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
        let router = Router {
            directory: Directory::new(Arc::new(store), None),
        };
        assert_eq!(parts(&router, "ann@example.com"), Ok(1));
        assert_eq!(parts(&router, "nobody@example.org"), Ok(0));
        assert_eq!(parts(&router, "no address"), Ok(0));
        for file in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::write(file.unwrap().path(), [0x55; 65_536]).unwrap();
        }
        assert_eq!(parts(&router, "ann@example.com"), Err(Refusal::LocalError));
    }
}
