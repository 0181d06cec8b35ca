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
/// The rest of a name that the CA has refused, and of a domain without a certificate. Authorities allow some five failed validations
/// of a name within an hour.
const REST: Duration = Duration::from_secs(3 * 3_600);
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
        self.follow(process);
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
        let own = addresses(&resolver, &settings.hostname).await;
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
    fn follow(&mut self, process: &Process) {
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
        let mut names = Vec::new();
        for name in of_domain(domain) {
            if !self.resting.contains_key(&name) && leads_here(resolver, &name, own).await {
                names.push(name);
            }
        }
        if names.is_empty() {
            return AGAIN;
        }
        match obtain(settings, places, domain, names).await {
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
}

/// Orders a certificate if the stored certificate is due. Returns the names refused by the CA.
async fn obtain(
    settings: &Settings,
    places: &Places,
    domain: &DomainName,
    names: Vec<String>,
) -> Result<Vec<String>, AcmeError> {
    let Some(acme) = acme(settings)? else {
        return Ok(Vec::new());
    };
    let acme: Acme = acme.answering_at(places);
    let file = web_names::file(settings, domain.as_str());
    let acme = acme.beside(&file, names.clone())?;
    if !acme.due_in(SystemTime::now()).is_zero() {
        return Ok(Vec::new());
    }
    let refused = acme.obtain_most().await?;
    for one in &refused {
        let error = &one.error;
        tracing::warn!(name = one.name, %error, "the CA refuses a web name; the others have their certificate");
    }
    tracing::info!(%domain, ?names, refused = refused.len(), "certificate for web names obtained");
    Ok(refused.into_iter().map(|one| one.name).collect())
}

async fn addresses(resolver: &Resolver, name: &str) -> Vec<IpAddr> {
    match resolver.addresses(name).await {
        AddressAnswer::Found(found) => found,
        _ => Vec::new(),
    }
}

async fn leads_here(resolver: &Resolver, name: &str, own: &[IpAddr]) -> bool {
    let found = addresses(resolver, name).await;
    !found.is_empty() && found.iter().all(|address| own.contains(address))
}
