//! Certificates from a certificate authority by ACME (RFC 8555), with the challenges http-01, tls-alpn-01 (RFC 8737) and
//! dns-01.
//!
//! [`Acme::run`] keeps one certificate for all configured names: `run` orders a certificate when there is none or
//! the names have changed, and again after two thirds of the lifetime, backing off after failures.
//! [`serve_challenges`] answers the CA on a separate listener, reachable for the CA at port 80 of every name, [`serve_alpn`]
//! at port 443. Records for dns-01 are published by updates (RFC 2136) or by a program ([`Publisher`]).
//! Chain and key lie in one file, replaced atomically, so that a server loading the file ([`Acme::files`],
//! [`crate::tls::ServerTls`]) always gets a matching pair.
//!
//! Files in [`AcmeOptions::dir`], all with mode 0600:
//!
//! ```text
//! account-HOST.json   the account at the authority HOST and its key, as instant-acme writes them
//! certificate.pem     the chain, the server's certificate first, then its key (PKCS #8)
//! ```
//!
//! Not covered: wildcards, external account binding, revocation.

mod alpn;
mod answers;
mod challenges;
mod error;
mod hook;
mod http;
mod names;
mod proof;
mod store;
mod tsig;
mod update;

use std::convert::Infallible;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use instant_acme::{
    Account, AuthorizationStatus, Identifier, NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use tokio::time::{sleep, timeout};

use crate::tls::{CertificateFiles, Roots, TlsError};
pub use alpn::{AlpnChallenges, PublishedCertificates, serve_alpn};
pub use answers::Places;
use answers::Published;
pub use challenges::{Challenges, read_answer, serve_challenges};
pub use error::AcmeError;
use http::ClientFactory;
pub use names::{Most, RefusedName};
pub use proof::{DnsProof, Proof, Publisher, UpdateOptions};
use store::Store;

/// The longest time for an order with all its requests, without the wait for name servers.
const ORDER_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Longest wait for the authority to look at the challenges, and to sign.
const POLL: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(3 * 60));
/// Waits after the first, second, ... failure in a row; the last wait repeats. Authorities allow some five failed
/// validations an hour.
const PAUSES: [Duration; 5] = [
    Duration::from_secs(60),
    Duration::from_secs(15 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(4 * 60 * 60),
    Duration::from_secs(12 * 60 * 60),
];
/// Least wait when the authority says that we ask too often.
const RATE_LIMIT_PAUSE: Duration = Duration::from_secs(60 * 60);
/// The certificate is looked at again after this, also because clocks are set.
const LOOK_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The wanted certificate, and the CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeOptions {
    /// The authority's directory, an https address.
    pub directory: String,
    /// Where the authority writes to: `mailto:` addresses.
    pub contact: Vec<String>,
    /// The names of the certificate, in lower case; at least one.
    pub domains: Vec<String>,
    /// A PEM file of roots for the authority's own server, instead of the system's: for tests.
    pub root: Option<PathBuf>,
    /// How the authority sees that the names are ours.
    pub proof: Proof,
    /// Where account and certificate are kept; made when missing.
    pub dir: PathBuf,
}

/// Keeps a certificate.
#[derive(Debug)]
pub struct Acme {
    options: AcmeOptions,
    store: Store,
    places: Places,
    /// Without configured roots each order looks for the roots of the system: a machine may have none yet, and
    /// mail continues.
    http: Option<ClientFactory>,
}

impl Acme {
    /// Prepares the directory and the roots, without a request to the CA.
    ///
    /// # Errors
    /// The directory cannot be created, the list of names is empty, or the file of roots cannot be used. A system
    /// without CA certificates is an error of each order, not of this function.
    pub fn new(options: AcmeOptions) -> Result<Self, AcmeError> {
        let root = options.root.as_deref();
        let http = root.map(|path| https(Roots::only(path))).transpose()?;
        Self::with_http(options, http)
    }

    fn with_http(options: AcmeOptions, http: Option<ClientFactory>) -> Result<Self, AcmeError> {
        if options.domains.is_empty() {
            return Err(AcmeError::NoDomain);
        }
        let store = Store::open(&options.dir, &options.directory)?;
        Ok(Self {
            options,
            store,
            places: Places::default(),
            http,
        })
    }

    /// The file of the certificate, for [`crate::tls::ServerTlsOptions`]; it may not exist yet.
    #[must_use]
    pub fn files(&self) -> CertificateFiles {
        CertificateFiles {
            may_be_missing: true,
            ..CertificateFiles::new(self.store.certificate(), self.store.certificate())
        }
    }

    /// Where answers are published, for [`serve_challenges`] and [`serve_alpn`].
    #[must_use]
    pub fn places(&self) -> Places {
        self.places.clone()
    }

    /// Publishes answers at other places, which are served already.
    #[must_use]
    pub fn answering_at(self, places: &Places) -> Self {
        Self {
            places: places.clone(),
            ..self
        }
    }

    /// Time until the certificate is due for renewal: zero when the certificate is missing, unreadable, lacks a
    /// name, or has passed two thirds of its lifetime.
    #[must_use]
    pub fn due_in(&self, now: SystemTime) -> Duration {
        self.store.due_in(&self.options.domains, now)
    }

    /// Keeps the certificate for ever; calls `renewed` after each that was stored.
    pub async fn run(&self, mut renewed: impl FnMut()) -> Infallible {
        let mut failures = 0;
        loop {
            let due = self.due_in(SystemTime::now());
            if !due.is_zero() {
                sleep(due.min(LOOK_INTERVAL)).await;
                continue;
            }
            let error = match self.obtain().await {
                Ok(()) => {
                    tracing::info!(domains = ?self.options.domains, "certificate obtained");
                    renewed();
                    if !self.due_in(SystemTime::now()).is_zero() {
                        failures = 0;
                        continue;
                    }
                    // Further orders would give the same result.
                    AcmeError::DueAgain
                }
                Err(error) => error,
            };
            let pause = pause(failures, &error);
            failures += 1;
            tracing::error!(%error, ?pause, "no certificate that serves, trying again later");
            sleep(pause).await;
        }
    }

    /// Orders a certificate now and stores the certificate.
    ///
    /// # Errors
    /// See [`AcmeError`]; the stored certificate remains.
    pub async fn obtain(&self) -> Result<(), AcmeError> {
        // Answered until here is left.
        let published = Published::new(self.options.proof.clone(), self.places.clone());
        let whole = Box::pin(self.obtain_untimed(&published));
        // Other name servers may need longer for a record than everything else takes.
        let longest = ORDER_TIMEOUT + self.options.proof.wait();
        let obtained = match timeout(longest, whole).await {
            Ok(obtained) => obtained,
            Err(_) => Err(AcmeError::Timeout(longest)),
        };
        published.withdraw().await;
        obtained
    }

    async fn obtain_untimed(&self, published: &Published) -> Result<(), AcmeError> {
        let http = match &self.http {
            Some(http) => http.clone(),
            None => https(Roots::load(None))?,
        };
        let (account, restored) = self.account(&http).await?;
        let (chain, key) = match self.order(&account, published).await {
            // The authority has lost the account, as test servers do at each start.
            Err(error) if restored && error.account_is_unknown() => {
                tracing::warn!("account unknown to the CA, new account requested");
                let account = self.new_account(&http).await?;
                self.order(&account, published).await?
            }
            ordered => ordered?,
        };
        self.store.save_certificate(&chain, &key)
    }

    /// The stored account or a new account, and whether the account was stored.
    async fn account(&self, http: &ClientFactory) -> Result<(Account, bool), AcmeError> {
        let Some(credentials) = self.store.account()? else {
            return self.new_account(http).await.map(|account| (account, false));
        };
        let account = http.builder().from_credentials(credentials).await;
        account
            .map(|account| (account, true))
            .map_err(AcmeError::authority)
    }

    async fn new_account(&self, http: &ClientFactory) -> Result<Account, AcmeError> {
        let contact: Vec<&str> = self.options.contact.iter().map(String::as_str).collect();
        let wanted = NewAccount {
            contact: &contact,
            // The administrator has agreed to the terms by configuring the CA.
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let directory = self.options.directory.clone();
        let (account, credentials) = http
            .builder()
            .create(&wanted, directory, None)
            .await
            .map_err(AcmeError::authority)?;
        self.store.save_account(&credentials)?;
        Ok(account)
    }

    /// Orders a chain with its key, both in PEM.
    async fn order(
        &self,
        account: &Account,
        published: &Published,
    ) -> Result<(String, String), AcmeError> {
        let identifiers: Vec<Identifier> = self
            .options
            .domains
            .iter()
            .map(|domain| identifier(domain))
            .collect();
        let mut order = account
            .new_order(&NewOrder::new(&identifiers))
            .await
            .map_err(AcmeError::authority)?;
        self.answer(&mut order, published).await?;
        match order.poll_ready(&POLL).await {
            Ok(OrderStatus::Ready) => {}
            Ok(status) => return Err(refused(&mut order, format!("order is {status:?}")).await),
            Err(instant_acme::Error::Api(problem)) => {
                return Err(refused(&mut order, problem.to_string()).await);
            }
            Err(error) => return Err(AcmeError::authority(error)),
        }
        let key = order.finalize().await.map_err(AcmeError::authority)?;
        let chain = order
            .poll_certificate(&POLL)
            .await
            .map_err(AcmeError::authority)?;
        Ok((chain, key))
    }

    /// Publishes the answers to all challenges, and tells the CA that the answers are ready.
    async fn answer(&self, order: &mut Order, published: &Published) -> Result<(), AcmeError> {
        let kind = || self.options.proof.challenge();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(AcmeError::authority)?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let domain = authorization.identifier().to_string();
            if !is_among(&self.options.domains, &domain) {
                return Err(AcmeError::OtherName { domain });
            }
            let Some(challenge) = authorization.challenge(kind()) else {
                let kind = self.options.proof.name();
                return Err(AcmeError::NoChallenge { domain, kind });
            };
            let (token, answer) = (challenge.token.clone(), challenge.key_authorization());
            published.add(&domain, token, answer).await?;
        }
        published.spread().await;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(AcmeError::authority)?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            if let Some(mut challenge) = authorization.challenge(kind()) {
                challenge.set_ready().await.map_err(AcmeError::authority)?;
            }
        }
        Ok(())
    }
}

/// Whether a name of an authorization was ordered: the name goes to programs and into updates of zones.
fn is_among(domains: &[String], name: &str) -> bool {
    let plain = |name: &str| name.trim_start_matches("*.").to_ascii_lowercase();
    domains.iter().any(|own| plain(own) == plain(name))
}

fn identifier(domain: &str) -> Identifier {
    domain
        .parse::<IpAddr>()
        .map_or_else(|_| Identifier::Dns(domain.to_owned()), Identifier::Ip)
}

/// Says which name was refused and why: the order itself does not tell.
async fn refused(order: &mut Order, otherwise: String) -> AcmeError {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else {
            break;
        };
        if let Some(problem) = state.challenges.iter().find_map(|c| c.error.as_ref()) {
            return AcmeError::Refused {
                domain: state.identifier().to_string(),
                reason: problem.to_string(),
            };
        }
    }
    AcmeError::Refused {
        domain: "the order".to_owned(),
        reason: otherwise,
    }
}

/// The wait after this many failures before this failure.
fn pause(failures: usize, error: &AcmeError) -> Duration {
    let pause = PAUSES
        .get(failures)
        .or(PAUSES.last())
        .copied()
        .unwrap_or(RATE_LIMIT_PAUSE);
    if error.asked_too_often() {
        pause.max(RATE_LIMIT_PAUSE)
    } else {
        pause
    }
}

/// HTTP clients with these trusted roots.
fn https(roots: Result<Roots, TlsError>) -> Result<ClientFactory, AcmeError> {
    ClientFactory::https(&roots.map_err(AcmeError::Roots)?)
}

#[cfg(test)]
mod tests;
