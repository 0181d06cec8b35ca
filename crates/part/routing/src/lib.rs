//! Where mail for an address goes, by the directory and the routes of the settings.
//!
//! [`Router::find`] answers the one question about a recipient for the process that accepts mail, for the process that
//! answers the front, and for reports; [`place_of`] answers for remote domains alone, without a directory.

mod place;
mod srs;

use std::time::{SystemTime, UNIX_EPOCH};

use vere_directory::{self as directory, Directory, Resolution};
use vere_ports::directory::{AccountName, StoreError};
use vere_queue::{Destination, Place};
use vere_settings::{LocalDelivery, NextHop, Settings};
use vere_smtp::address::{AddrSpec, ForwardPath};
use vere_smtp::refusal::Refusal;

pub use place::place_of;
pub use srs::Srs;

/// Resolves recipients by the directory and routes remote ones by the settings.
#[derive(Debug)]
pub struct Router {
    directory: Directory,
    srs: Option<Srs>,
}

/// The answer of directory and settings to the one question about a recipient: where does the mail go?
#[derive(Debug)]
pub struct Found {
    /// Each place with the address that the mail has there; at least one.
    targets: Vec<(Place, String)>,
    /// Whether the recipient is outside our domains, and mail for its domain is not kept here either.
    is_foreign: bool,
    /// The domain of the alias that forwards the mail.
    forwarder: Option<String>,
    /// Whether the recipient is the sender of mail that was forwarded.
    is_return: bool,
    /// Whether every client may send to the recipients of this domain that the next hop accepts.
    calls_ahead: bool,
}

impl Found {
    /// Checks that a client may send here. With `may_relay`, the client may send to any domain.
    ///
    /// # Errors
    /// [`Refusal::RelayDenied`] when the client may not.
    pub const fn permit(&self, may_relay: bool) -> Result<(), Refusal> {
        match self.is_foreign && !may_relay {
            true => Err(Refusal::RelayDenied),
            false => Ok(()),
        }
    }

    /// Returns the next hop that decides about the recipient for clients that may not relay, and the recipient's address
    /// there; `None` where [`permit`](Self::permit) decides for all clients.
    #[must_use]
    pub fn asks_next_hop(&self) -> Option<(&Place, &str)> {
        let (place, address) = self.targets.first()?;
        (self.is_foreign && self.calls_ahead).then_some((place, address))
    }

    /// Returns the current destinations of mail for the recipient.
    pub fn destinations(self) -> impl Iterator<Item = Destination> {
        self.targets.into_iter().map(|(place, _)| place.into())
    }

    /// The domain of the alias that forwards the mail, if it is an alias.
    #[must_use]
    pub fn forwarder(&self) -> Option<&str> {
        self.forwarder.as_deref()
    }

    /// Whether the recipient is a stranger whose mail was forwarded. Reports alone may go there: mail of others would be relayed.
    #[must_use]
    pub const fn is_return(&self) -> bool {
        self.is_return
    }

    /// Returns each place with the address that the mail has there; at least one.
    #[must_use]
    pub fn into_targets(self) -> Vec<(Place, String)> {
        self.targets
    }
}

impl Router {
    /// Returns a router over a directory.
    #[must_use]
    pub const fn new(directory: Directory) -> Self {
        Self {
            directory,
            srs: None,
        }
    }

    /// Rewrites the reverse-paths of forwarded mail, and finds the senders of what comes back.
    #[must_use]
    pub fn with_srs(self, srs: Srs) -> Self {
        Self {
            srs: Some(srs),
            ..self
        }
    }

    /// Returns the directory, for the other questions about users.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Finds where mail for a recipient goes: the one question of RCPT, of acceptance and of reports.
    ///
    /// # Errors
    /// The refusal of an unknown recipient; [`Refusal::LocalError`] when the directory cannot be read.
    pub fn find(&self, settings: &Settings, path: &ForwardPath) -> Result<Found, Refusal> {
        if let Some(sender) = self.sender_in(path)? {
            // A domain may have become ours since, and each step makes the address shorter.
            let is_ours = self.directory.is_local_domain(sender.domain());
            if is_ours.map_err(|error| unavailable(&error))? {
                return self.find(settings, &ForwardPath::Address(sender));
            }
            let place = place_of(settings, sender.domain());
            return Ok(Found {
                targets: vec![(place, sender.as_str().to_owned())],
                is_foreign: false,
                forwarder: None,
                is_return: true,
                calls_ahead: false,
            });
        }
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
        let route = path.address().and_then(|address| {
            let bare = address.domain().trim_end_matches('.');
            settings.route(bare)
        });
        let calls_ahead = route.is_some_and(|route| route.call_ahead);
        let is_foreign = resolution == Resolution::NotLocal
            && targets.iter().all(|(place, _)| *place != Place::Local);
        let forwards = matches!(resolution, Resolution::Forward(_));
        let forwarder = path.address().filter(|_| forwards);
        Ok(Found {
            targets,
            is_foreign,
            forwarder: forwarder.map(|alias| alias.domain().to_owned()),
            is_return: false,
            calls_ahead,
        })
    }

    /// The sender in an address that stands in the reverse-paths of mail that this system has forwarded.
    fn sender_in(&self, path: &ForwardPath) -> Result<Option<AddrSpec>, Refusal> {
        let (Some(srs), Some(address)) = (&self.srs, path.address()) else {
            return Ok(None);
        };
        let Some(sender) = srs.back(address.local_part(), today()) else {
            return Ok(None);
        };
        let is_ours = self.directory.is_local_domain(address.domain());
        let is_ours = is_ours.map_err(|error| unavailable(&error))?;
        Ok(is_ours.then_some(sender))
    }

    /// The reverse-path of a sender's mail that an alias of this domain forwards to another system. It is the sender where the
    /// settings want it so, where the sender is of this system, and where the rewritten path would be too long.
    ///
    /// # Errors
    /// [`Refusal::LocalError`] when the directory cannot be read.
    pub fn forwarded(
        &self,
        settings: &Settings,
        sender: &str,
        forwarder: &str,
    ) -> Result<String, Refusal> {
        let srs = self.srs.as_ref().filter(|_| settings.delivery.srs);
        let (Some(srs), Ok(address)) = (srs, AddrSpec::parse(sender)) else {
            return Ok(sender.to_owned());
        };
        let is_ours = self.directory.is_local_domain(address.domain());
        if is_ours.map_err(|error| unavailable(&error))? {
            return Ok(sender.to_owned());
        }
        let path = srs.forward(&address, forwarder, today());
        Ok(path.map_or_else(|| sender.to_owned(), |path| path.as_str().to_owned()))
    }

    /// Checks that an account may send under this address: an address of the account, or an address of a domain that is
    /// not local. The addresses of other accounts are refused.
    ///
    /// # Errors
    /// [`Refusal::SenderNotOwned`]; [`Refusal::LocalError`] when the directory cannot be read.
    pub fn check_sender(&self, account: &str, address: &AddrSpec) -> Result<(), Refusal> {
        match self.directory.is_local_domain(address.domain()) {
            Ok(true) => self.check_owner(account, address),
            Ok(false) => Ok(()),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Checks that an account owns this address.
    ///
    /// # Errors
    /// [`Refusal::SenderNotOwned`]; [`Refusal::LocalError`] when the directory cannot be read.
    pub fn check_owner(&self, account: &str, address: &AddrSpec) -> Result<(), Refusal> {
        let owned = match AccountName::parse(account) {
            Ok(account) => self.directory.is_address_of(&account, address),
            Err(_) => Ok(false),
        };
        match owned {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::SenderNotOwned),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Returns the current place of mail for a domain.
    #[must_use]
    pub fn of_domain(&self, settings: &Settings, domain: &str) -> Place {
        match self.directory.is_local_domain(domain) {
            Ok(true) => Place::Local,
            // The acceptance of mail reports an unreadable directory.
            Ok(false) | Err(_) => place_of(settings, domain),
        }
    }

    /// Checks that the settings and the directory lead mail to a destination.
    ///
    /// # Errors
    /// The place that mail for the destination's domain goes to instead, if there is a place.
    pub fn leads_to(
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

/// Days since 1970. A clock that jumps by weeks makes reports of mail from before the jump unknown recipients.
fn today() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| (since.as_secs() / 86_400) as u32)
}

/// Logs the error: an unreadable directory is a local fault, not the client's.
fn unavailable(error: &StoreError) -> Refusal {
    tracing::error!(%error, "directory cannot be read");
    Refusal::LocalError
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vere_ports::directory::{DomainName, MemoryStore};

    use super::*;

    #[test]
    fn next_hops_decide_about_foreign_recipients_of_their_routes_alone() {
        let text = "version = 1\nhostname = \"mx.example.org\"\n[smtp]\n[front]\n\
            [[route]]\ndomain = \"example.org\"\nnext_hop = \"relay.example:26\"\ncall_ahead = \"yes\"\n\
            [[route]]\ndomain = \"far.example\"\nnext_hop = \"mx\"\ncall_ahead = \"yes\"\n\
            [[route]]\ndomain = \"*\"\nnext_hop = \"relay.example:26\"\n";
        let settings = Settings::parse(text, "vere.toml").unwrap();
        let directory = Directory::new(Arc::new(MemoryStore::default()), None);
        let domain = DomainName::parse("example.org").unwrap();
        directory.add_domain(domain, None).unwrap();
        let ann = AccountName::parse("ann@example.org").unwrap();
        directory.add_account(ann, None).unwrap();
        let all = AccountName::parse("all@example.org").unwrap();
        directory.set_alias(all, ["bob@far.example"]).unwrap();
        let router = Router::new(directory);
        for (address, expected) in [
            ("ann@example.org", None),
            // An operator who made the alias answers for it.
            ("all@example.org", None),
            (
                "x@Far.example",
                Some((Place::Domain("far.example".to_owned()), "x@far.example")),
            ),
            ("x@else.example", None),
        ] {
            let path = ForwardPath::Address(AddrSpec::parse(address).unwrap());
            let found = router.find(&settings, &path).unwrap();
            let expected = expected.as_ref().map(|(place, address)| (place, *address));
            assert_eq!(found.asks_next_hop(), expected, "{address}");
        }
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
        let router = Router::new(directory);
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
