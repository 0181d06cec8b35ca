//! What is served: the settings as clients see them, and the local domains.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use vere_discovery::policy::Policy;
use vere_discovery::{Access, Security, Services};
use vere_http::server::Places;
use vere_net::acme;
use vere_ports::directory::DomainName;
use vere_process::published::{self, Stamp};
use vere_settings::{Settings, StsMode};
use vere_telemetry::metrics::{Metrics, WebMetrics};
use vere_units::Timestamp;

use crate::error::WebError;

/// The port that a URI of `https` leaves out.
const HTTPS: u16 = 443;

/// What the settings say to clients, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// Names of this host that are no local domain.
    pub(crate) hosts: Vec<String>,
    pub(crate) services: Services,
    /// The text of the MTA-STS policy, if there is one.
    pub(crate) policy: Option<String>,
    pub(crate) contacts: Vec<String>,
    pub(crate) body_octets_max: usize,
    pub(crate) body_timeout: Duration,
    /// The port of HTTPS, where it is another one than usual; `None` without HTTPS.
    pub(crate) https_port: Option<u16>,
}

impl View {
    fn of(settings: &Settings) -> Option<Self> {
        let web = settings.web.as_ref()?;
        let mode = web.mta_sts.map(mode);
        let policy = |mode| Policy {
            mode,
            max_age: Duration::from_millis(web.mta_sts_max_age.as_millis()),
            mx: &web.mx,
        };
        Some(Self {
            hosts: vec![settings.hostname.clone(), web.host.clone()],
            services: services(settings, &web.host),
            policy: mode.map(|mode| policy(mode).write()),
            contacts: web.security_contact.clone(),
            body_octets_max: usize::try_from(web.body_size_max.as_u64()).unwrap_or(usize::MAX),
            body_timeout: Duration::from_millis(web.request_timeout.as_millis()),
            https_port: web.https.first().map(std::net::SocketAddr::port),
        })
    }

    /// A name with the port of HTTPS, as the authority of a URI has it.
    pub(crate) fn authority(&self, name: &str) -> Option<String> {
        Some(match self.https_port? {
            HTTPS => name.to_owned(),
            port => format!("{name}:{port}"),
        })
    }
}

const fn mode(mode: StsMode) -> &'static str {
    match mode {
        StsMode::Enforce => "enforce",
        StsMode::Testing => "testing",
        StsMode::None => "none",
    }
}

/// TLS from the first octet before STARTTLS, as RFC 8314 recommends.
fn services(settings: &Settings, host: &str) -> Services {
    let access = |listen: &vere_settings::Listen, security| {
        let port = listen.listen.first()?.port();
        Some(Access { port, security })
    };
    let both = |tls, start_tls| {
        let both = [
            access(tls, Security::Tls),
            access(start_tls, Security::StartTls),
        ];
        both.into_iter().flatten().collect()
    };
    Services {
        host: host.to_owned(),
        imap: both(&settings.imaps, &settings.imap),
        smtp: both(&settings.submissions, &settings.submission),
    }
}

/// The local domains as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Domains {
    /// The gateway has not written the list yet.
    #[default]
    Unknown,
    /// The list.
    Known(HashSet<DomainName>),
}

/// The state of the server, which all requests share.
#[derive(Debug)]
pub(crate) struct Site {
    view: RwLock<Arc<View>>,
    domains: RwLock<Arc<Domains>>,
    list: PathBuf,
    challenges: PathBuf,
    pub(crate) metrics: WebMetrics,
    /// Connections of HTTPS and of HTTP.
    places: RwLock<[Option<Arc<Places>>; 2]>,
}

impl Site {
    pub(crate) fn new(settings: &Settings, metrics: &Metrics) -> Result<Self, WebError> {
        let view = View::of(settings).ok_or(WebError::NoSection)?;
        let site = Self {
            view: RwLock::new(Arc::new(view)),
            domains: RwLock::default(),
            list: settings.web_domains(),
            challenges: settings.web_challenges(),
            metrics: metrics.web.clone(),
            places: RwLock::default(),
        };
        site.look(&mut None);
        Ok(site)
    }

    /// Applies other settings, from the next request on.
    pub(crate) fn set_settings(&self, settings: &Settings) -> Result<(), WebError> {
        let view = Arc::new(View::of(settings).ok_or(WebError::NoSection)?);
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = view;
        Ok(())
    }

    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn domains(&self) -> Arc<Domains> {
        Arc::clone(&self.domains.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The answer to a challenge of type http-01.
    pub(crate) fn challenge(&self, token: &str) -> Option<String> {
        acme::read_answer(&self.challenges, token)
    }

    pub(crate) fn count_https(&self, places: Arc<Places>) {
        self.places.write().unwrap_or_else(PoisonError::into_inner)[0] = Some(places);
    }

    pub(crate) fn count_http(&self, places: Arc<Places>) {
        self.places.write().unwrap_or_else(PoisonError::into_inner)[1] = Some(places);
    }

    pub(crate) fn places(&self) -> [Option<Arc<Places>>; 2] {
        self.places
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes over the list of domains at each change, for ever.
    pub(crate) async fn follow_domains(&self, interval: Duration) {
        let mut known = None;
        loop {
            self.look(&mut known);
            tokio::time::sleep(interval).await;
        }
    }

    /// Reads the list if the file has changed. After a failed read, the known list remains.
    fn look(&self, known: &mut Option<Stamp>) {
        let stamp = published::stamp(&self.list);
        if stamp == *known {
            return;
        }
        if stamp.is_none() {
            *known = stamp;
            return;
        }
        match published::read(&self.list) {
            Ok(domains) => {
                // Only now: a list that was not read is read at the next look.
                *known = stamp;
                tracing::info!(domains = domains.len(), "local domains read");
                let domains = Domains::Known(domains.into_iter().collect());
                *self.domains.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(domains);
            }
            Err(error) => {
                tracing::error!(%error, file = %self.list.display(), "the earlier list of local domains is served");
            }
        }
    }
}

/// The time now.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
