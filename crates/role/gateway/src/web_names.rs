//! Certificates for the web names of local domains, a certificate for each domain: a name that the CA refuses costs neither the other
//! names their certificate nor the mail servers theirs.
//!
//! A certificate is requested for a name only if all addresses of the name are among the addresses of `hostname`, so the name leads to the machine.

use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};
use vere_discovery::names::of_domain;
use vere_net::acme::{Acme, AcmeError, Places};
use vere_net::resolver::{AddressAnswer, Resolver};
use vere_ports::directory::DomainName;
use vere_process::tls::acme;
use vere_process::web_names;
use vere_settings::Settings;

use super::process::Process;

/// The interval between two looks at the list of domains; a look without work reads one number.
const LOOK: Duration = Duration::from_secs(2);
/// The interval between two looks at the names of a domain.
const AGAIN: Duration = Duration::from_secs(600);
/// The interval while the addresses of this host cannot be looked up.
const RETRY: Duration = Duration::from_secs(60);
/// The rest of a name that the CA has refused, and of a domain without a certificate. Authorities allow some five failed validations
/// of a name within an hour.
const REST: Duration = Duration::from_secs(3 * 3_600);
/// How long a new name waits for its certificate while another name of the domain, which has one, does not resolve or is refused.
const HOLD_MAX: Duration = Duration::from_secs(24 * 3_600);
/// The rest of all domains after the CA reports too many requests.
const REST_OF_ALL: Duration = Duration::from_secs(3_600);

/// Keeps the certificates for ever, if there is a web server and a CA.
pub(super) async fn keep(process: Rc<Process>, places: Places) {
    let mut plan = Plan::default();
    loop {
        let settings = process.settings();
        let is_wanted = settings
            .web
            .as_ref()
            .is_some_and(|web| !web.https.is_empty());
        // The order for the mail servers comes first, and makes the account.
        let has_account = || matches!(acme(&settings), Ok(Some(acme)) if acme.has_account());
        if is_wanted && has_account() {
            plan.look(&process, &settings, &places).await;
        }
        sleep(LOOK).await;
    }
}

/// When which domain is looked at again.
#[derive(Debug, Default)]
struct Plan {
    revision: Option<u64>,
    next: HashMap<DomainName, Instant>,
    /// Refused names, and the end of their rest.
    resting: HashMap<String, Instant>,
    /// Domains whose stored certificate stays although an order is due, and the time since when.
    held: HashMap<DomainName, Instant>,
    all_rest_until: Option<Instant>,
}

impl Plan {
    async fn look(&mut self, process: &Process, settings: &Settings, places: &Places) {
        if self
            .all_rest_until
            .is_some_and(|until| Instant::now() < until)
        {
            return;
        }
        self.follow(process, settings);
        let now = Instant::now();
        self.resting.retain(|_, until| now < *until);
        let due = self.next.iter().filter(|(_, at)| **at <= now);
        let mut due: Vec<(Instant, DomainName)> =
            due.map(|(domain, at)| (*at, domain.clone())).collect();
        // A limit of the CA ends a turn: the longest due come first, or some would never have theirs.
        due.sort();
        if due.is_empty() {
            return;
        }
        let resolver = match vere_outbound::resolver(settings) {
            Ok(resolver) => resolver,
            Err(error) => {
                tracing::warn!(%error, "web names cannot be looked up");
                return;
            }
        };
        let AddressAnswer::Found(own) = resolver.addresses(&settings.hostname).await else {
            // Nothing can be said about any name; the stored certificates stay.
            tracing::debug!("the addresses of this host are not known");
            let domains = due.into_iter().map(|(_, domain)| (domain, now + RETRY));
            self.next.extend(domains);
            return;
        };
        for (_, domain) in due {
            let rest = self.one(&domain, settings, places, (&resolver, &own)).await;
            self.next.insert(domain, Instant::now() + rest);
            if self
                .all_rest_until
                .is_some_and(|until| Instant::now() < until)
            {
                return;
            }
        }
    }

    /// Follows the list of domains; a new domain is due at once.
    fn follow(&mut self, process: &Process, settings: &Settings) {
        let store = process.router.directory().store();
        let revision = store.revision().ok();
        if revision.is_some() && revision == self.revision {
            return;
        }
        // A directory that does not answer is asked again.
        let Ok(domains) = store.domains() else {
            return;
        };
        self.revision = revision;
        let mut next = HashMap::new();
        for domain in domains {
            let at = self.next.remove(&domain.name).unwrap_or_else(Instant::now);
            next.insert(domain.name, at);
        }
        self.held.retain(|domain, _| next.contains_key(domain));
        let names = next.keys().map(|domain| domain.as_str().to_owned());
        web_names::remove_others(settings, &names.collect());
        self.next = next;
    }

    /// Looks at the names of a domain, and orders a certificate if the stored one is due. Returns the time until the next look.
    async fn one(
        &mut self,
        domain: &DomainName,
        settings: &Settings,
        places: &Places,
        (resolver, own): (&Resolver, &[IpAddr]),
    ) -> Duration {
        let (mut names, mut wanted) = (Vec::new(), Vec::new());
        for name in of_domain(domain) {
            let leads = leads(resolver, &name, own).await;
            if leads == Leads::Elsewhere {
                continue;
            }
            wanted.push(name.clone());
            if leads == Leads::Here && !self.resting.contains_key(&name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            return AGAIN;
        }
        match self.obtain(settings, places, domain, (names, wanted)).await {
            Ok(refused) => {
                let until = Instant::now() + REST;
                self.resting
                    .extend(refused.into_iter().map(|name| (name, until)));
                AGAIN
            }
            Err(error) => {
                let is_too_often = error.asked_too_often();
                tracing::error!(%error, %domain, "no certificate for the web names of a domain");
                if is_too_often {
                    self.all_rest_until = Some(Instant::now() + REST_OF_ALL);
                }
                REST
            }
        }
    }

    /// Orders a certificate if the stored certificate is due. Returns the names refused by the CA.
    ///
    /// A certificate without a wanted name replaces none with that name, while the stored one serves: the name may have failed to resolve
    /// for a moment.
    async fn obtain(
        &mut self,
        settings: &Settings,
        places: &Places,
        domain: &DomainName,
        (names, wanted): (Vec<String>, Vec<String>),
    ) -> Result<Vec<String>, AcmeError> {
        let Some(acme) = acme(settings)? else {
            return Ok(Vec::new());
        };
        let acme: Acme = acme.answering_at(places);
        let file = web_names::file(settings, domain.as_str());
        let acme = acme.beside(&file, names.clone())?;
        let now = SystemTime::now();
        if !acme.due_in(now).is_zero() {
            self.held.remove(domain);
            return Ok(Vec::new());
        }
        if acme.would_lose(&wanted, now) && self.holds(domain, acme.lacks_a_name()) {
            return Ok(Vec::new());
        }
        let most = acme.obtain_most().await?;
        for one in &most.refused {
            let error = &one.error;
            tracing::warn!(name = one.name, %error, "the CA refuses a web name; the others have their certificate");
        }
        if most.is_new {
            let refused = most.refused.len();
            tracing::info!(%domain, ?names, refused, "certificate for web names obtained");
            self.held.remove(domain);
        }
        Ok(most.refused.into_iter().map(|one| one.name).collect())
    }

    /// Whether the stored certificate of a domain stays for now: without a new name until its end is near, otherwise for a day.
    fn holds(&mut self, domain: &DomainName, has_new_name: bool) -> bool {
        let since = self.held.entry(domain.clone()).or_insert_with(|| {
            tracing::warn!(%domain, "a web name does not resolve or is refused; the certificate with it stays");
            Instant::now()
        });
        !has_new_name || since.elapsed() < HOLD_MAX
    }
}

/// Where a name leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leads {
    Here,
    Elsewhere,
    /// The lookup failed.
    Unknown,
}

async fn leads(resolver: &Resolver, name: &str, own: &[IpAddr]) -> Leads {
    of_answer(&resolver.addresses(name).await, own)
}

fn of_answer(answer: &AddressAnswer, own: &[IpAddr]) -> Leads {
    match answer {
        AddressAnswer::TempFail(_) => Leads::Unknown,
        AddressAnswer::Found(found)
            if !found.is_empty() && found.iter().all(|address| own.contains(address)) =>
        {
            Leads::Here
        }
        _ => Leads::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use vere_net::resolver::LookupFailure;

    use super::*;

    /// A name server that did not answer made a name lead elsewhere, and the next order left the name out.
    #[test]
    fn a_failed_lookup_says_nothing_about_a_name() {
        let own: [IpAddr; 2] = ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().unwrap());
        let found = |texts: &[&str]| {
            let addresses = texts.iter().map(|text| text.parse().unwrap());
            AddressAnswer::Found(addresses.collect())
        };
        assert_eq!(of_answer(&found(&["192.0.2.1"]), &own), Leads::Here);
        assert_eq!(
            of_answer(&found(&["192.0.2.1", "192.0.2.9"]), &own),
            Leads::Elsewhere
        );
        assert_eq!(of_answer(&found(&[]), &own), Leads::Elsewhere);
        let failed = AddressAnswer::TempFail(LookupFailure::Timeout);
        assert_eq!(of_answer(&failed, &own), Leads::Unknown);
    }

    #[tokio::test(start_paused = true)]
    async fn a_certificate_is_held_for_a_day_where_a_new_name_waits() {
        let mut plan = Plan::default();
        let domain = DomainName::parse("example.org").unwrap();
        assert!(plan.holds(&domain, true) && plan.holds(&domain, false));
        tokio::time::advance(HOLD_MAX).await;
        assert!(!plan.holds(&domain, true) && plan.holds(&domain, false));
    }
}
