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
use vere_control::place_of;
use vere_delivery::Part;

/// Resolves recipients by the directory and routes remote ones by the settings.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) directory: Directory,
}

/// The answer of directory and settings to the one question about a recipient: where does the mail go?
#[derive(Debug)]
pub(super) struct Found {
    /// Each place with the address that the mail has there; at least one.
    targets: Vec<(Place, String)>,
    /// Whether the recipient is outside our domains, and mail for its domain is not kept here either.
    is_foreign: bool,
}

impl Found {
    /// Checks that a client may send here. With `may_relay`, the client may send to any domain.
    pub(super) const fn permit(&self, may_relay: bool) -> Result<(), Refusal> {
        match self.is_foreign && !may_relay {
            true => Err(Refusal::RelayDenied),
            false => Ok(()),
        }
    }

    /// Returns the current destinations of mail for the recipient.
    pub(super) fn destinations(self) -> impl Iterator<Item = Destination> {
        self.targets.into_iter().map(|(place, _)| place.into())
    }
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
    /// Finds where mail for a recipient goes: the one question of RCPT, of acceptance and of reports.
    ///
    /// # Errors
    /// The refusal of an unknown recipient; [`Refusal::LocalError`] when the directory cannot be read.
    pub(super) fn find(&self, settings: &Settings, path: &ForwardPath) -> Result<Found, Refusal> {
        let resolved = match path.address() {
            Some(address) => self.directory.resolve(address),
            None => self.directory.resolve_postmaster(&settings.hostname),
        };
        let local = |account: &AccountName, tag: &Option<String>| {
            (Place::Local, mailbox(settings, account, tag.as_deref()))
        };
        let remote = |address: &AddrSpec| {
            let place = place_of(settings, address.domain());
            (place, address.as_str().to_owned())
        };
        let resolution = resolved.map_err(|error| unavailable(&error))?;
        let targets = match (&resolution, path.address()) {
            (Resolution::Local { account, tag }, _) => vec![local(account, tag)],
            (Resolution::Forward(targets), _) => {
                let place = |target: &directory::Target| match target {
                    directory::Target::Local { account, tag } => local(account, tag),
                    directory::Target::Remote(address) => remote(address),
                };
                targets.iter().map(place).collect()
            }
            (Resolution::NotLocal, Some(address)) => vec![remote(address)],
            (other, _) => return Err(other.refusal().unwrap_or(Refusal::MailboxUnknown)),
        };
        let is_foreign = resolution == Resolution::NotLocal
            && targets.iter().all(|(place, _)| *place != Place::Local);
        Ok(Found {
            targets,
            is_foreign,
        })
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

    /// Returns the current place of mail for a domain.
    pub(super) fn of_domain(&self, settings: &Settings, domain: &str) -> Place {
        match self.directory.is_local_domain(domain) {
            Ok(true) => Place::Local,
            // The acceptance of mail reports an unreadable directory.
            Ok(false) | Err(_) => place_of(settings, domain),
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
                    NextHop::Host { host, port } => Place::relay(host, *port) == *place,
                    NextHop::Mx | NextHop::Local => false,
                });
                leads.then_some(()).ok_or(None)
            }
            Place::Local => Ok(()),
        }
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
        let recipient = |address: String, notify| {
            // Reports show the address that the sender knows.
            let orcpt = given.clone().or_else(|| {
                (address != original && original.is_ascii())
                    .then(|| convert::rfc822_orcpt(original))
            });
            Recipient {
                address,
                notify,
                orcpt,
            }
        };
        // An account that existed at RCPT may have been removed since.
        let targets = self.find(settings, &rcpt.forward_path)?.targets;
        if targets.len() > 1 && notify.success() {
            expanded.push(expansion(settings, original, &given));
            notify = without_success(notify);
        }
        let recipients = targets.into_iter();
        routed.extend(recipients.map(|(place, address)| (place, recipient(address, notify))));
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
    use vere_ports::directory::{Change, Domain, DomainName, MemoryStore};
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

    #[test]
    fn one_question_says_where_mail_goes_and_who_may_send_it() {
        let text = "version = 1\nhostname = \"mx.example.org\"\n\
            [[route]]\ndomain = \"kept.example\"\nnext_hop = \"local\"\n\
            [[route]]\ndomain = \"fixed.example\"\nnext_hop = \"relay.example:26\"\n";
        let settings = Settings::parse(text, "vere.toml").unwrap();
        let directory = Directory::new(Arc::new(MemoryStore::default()), Some('+'));
        let name = |name: &str| AccountName::parse(name).unwrap();
        let domain = DomainName::parse("example.org").unwrap();
        directory.add_domain(domain, None).unwrap();
        directory
            .add_account(name("ann@example.org"), None)
            .unwrap();
        let targets = ["ann@example.org", "bob@Far.example"];
        directory
            .set_alias(name("all@example.org"), targets)
            .unwrap();
        let router = Router { directory };
        let find = |address: &str| {
            let path = ForwardPath::Address(AddrSpec::parse(address).unwrap());
            let found = router.find(&settings, &path)?;
            let strangers = found.permit(false);
            assert_eq!(found.permit(true), Ok(()), "{address}");
            let targets = found.targets.iter();
            let targets = targets.map(|(place, address)| format!("{place:?} {address}"));
            Ok((targets.collect::<Vec<_>>().join(", "), strangers))
        };
        let denied = || Err(Refusal::RelayDenied);
        for (address, expected) in [
            ("ann@example.org", Ok(("Local ann@example.org", Ok(())))),
            ("Ann+a@example.org", Ok(("Local ann+a@example.org", Ok(())))),
            (
                "all@example.org",
                Ok((
                    "Local ann@example.org, Domain(\"far.example\") bob@far.example",
                    Ok(()),
                )),
            ),
            ("x@kept.example", Ok(("Local x@kept.example", Ok(())))),
            (
                "x@fixed.example",
                Ok(("Relay(\"relay.example:26\") x@fixed.example", denied())),
            ),
            (
                "x@far.example",
                Ok(("Domain(\"far.example\") x@far.example", denied())),
            ),
            ("nobody@example.org", Err(Refusal::MailboxUnknown)),
        ] {
            let expected = expected.map(|(targets, strangers)| (targets.to_owned(), strangers));
            assert_eq!(find(address), expected, "{address}");
        }
    }
}
