//! The web server for mail programs and other systems (`docs/internals/web.md`): for every local domain the MTA-STS policy, the configuration
//! of mail programs, a page and `security.txt`; answers to challenges of ACME.
//!
//! The process has no private key, no directory and no mail: the signer signs its handshakes, the gateway writes the list of local
//! domains and the answers to challenges (`vere_process::published`, `vere_net::acme`), and accounts are never asked for.
//!
//! Reading order: `site` (what is served, from settings and domains), `asked` (whose a request is), `routes` (the answers),
//! `figures` (metrics), `confined` (what the process gives up).

mod asked;
mod confined;
mod error;
mod figures;
mod refusal;
mod routes;
mod site;
#[cfg(test)]
mod tests;

use std::net::TcpListener as StdListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_http::server::{Bounds, Terms, serve, serve_with};
use vere_net::acme::PublishedCertificates;
use vere_net::listen::{Inherited, ListenOptions};
use vere_net::packets::PacketSocket;
use vere_net::tls::{RemoteCertificates, RemoteServer};
use vere_process::failure::Failure;
use vere_process::life::{self, Signals};
use vere_process::log::Level;
use vere_process::signer::{self, SignerClient};
use vere_process::{accept, entry};
use vere_settings::{Settings, Web};
use vere_telemetry::metrics::{Health, Metrics};

pub use error::WebError;
use figures::Figures;
use site::Site;

/// The interval between two looks at the list of domains.
const LOOK: Duration = Duration::from_secs(1);

/// Runs the role until it is told to stop.
///
/// # Errors
/// When the server cannot start: an address, a directory, the TLS library.
pub fn run(settings: &Arc<Settings>, config: &Path, level: Level) -> Result<(), Failure> {
    life::run(start(settings, config, level))
}

/// The sockets of the server, inherited or bound.
struct Sockets {
    https: Vec<StdListener>,
    http: Vec<StdListener>,
    metrics: Vec<StdListener>,
    /// Connections to the signer are passed here.
    signer: Option<PacketSocket>,
}

impl Sockets {
    fn open(settings: &Settings, web: &Web) -> Result<Self, WebError> {
        let mut inherited = Inherited::from_env()?;
        let options = ListenOptions::default();
        let metrics = settings.metrics.web.as_slice();
        Ok(Self {
            https: inherited.take_or_bind("https", &web.https, options)?,
            http: inherited.take_or_bind("http", &web.http, options)?,
            metrics: inherited.take_or_bind("metrics-web", metrics, options)?,
            signer: inherited.take_channel("web-signer"),
        })
    }
}

async fn start(settings: &Arc<Settings>, config: &Path, level: Level) -> Result<(), WebError> {
    let web = settings.web.as_ref().ok_or(WebError::NoSection)?;
    let sockets = Sockets::open(settings, web)?;
    accept::private_folder(&settings.web_directory())?;
    // Before the first thread, which would keep its rights.
    let confined = confined::give_up(settings, config);
    let metrics = Metrics::new();
    let site = Arc::new(Site::new(settings, &metrics)?);
    let bounds = watch::Sender::new(bounds(web));
    let challenges = settings.web_challenge_certificates();
    let challenges = Arc::new(PublishedCertificates::new(&challenges));
    let https = (sockets.https, sockets.signer, challenges);
    let told = open_to_clients(https, &site, &bounds)?;
    open_in_clear(sockets.http, &site, &bounds)?;
    let health = watch::Sender::new(Health::Starting);
    Figures::new(&metrics, &site).serve(sockets.metrics, &health)?;
    spawn_local(life::beat());
    spawn_local({
        let site = Arc::clone(&site);
        async move { site.follow_domains(LOOK).await }
    });
    let mut signals = Signals::new()?;
    entry::keep_notices()?;
    confined::close(confined);
    told.wait().await;
    entry::notify_ready();
    health.send_replace(Health::Ready);
    tracing::info!(https = ?web.https, http = ?web.http, "web server ready");
    let apply = |settings: Settings| {
        let web = settings.web.as_ref().ok_or(WebError::NoSection)?;
        bounds.send_replace(self::bounds(web));
        site.set_settings(&settings)
    };
    signals.wait_for_stop(config, &level, apply).await;
    health.send_replace(Health::Stopping);
    Ok(())
}

fn bounds(web: &Web) -> Bounds {
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let span = |span: vere_units::Span| Duration::from_millis(span.as_millis());
    Bounds {
        connections_max: count(web.connections_max),
        per_client_max: count(web.connections_per_client_max),
        header_octets_max: usize::try_from(web.header_size_max.as_u64()).unwrap_or(usize::MAX),
        header_timeout: span(web.request_timeout),
        connection_timeout: span(web.connection_timeout),
    }
}

/// Whether the signer has told its certificates.
struct Told(Option<watch::Receiver<bool>>);

impl Told {
    async fn wait(self) {
        if let Some(mut told) = self.0 {
            // The thread of certificates lives as long as the process.
            let _ = told.wait_for(|told| *told).await;
        }
    }
}

/// Serves HTTPS, with the certificates of the signer, and with those of challenges for authorities that ask for nothing else (RFC 8737).
fn open_to_clients(
    (listeners, signer, challenges): (
        Vec<StdListener>,
        Option<PacketSocket>,
        Arc<PublishedCertificates>,
    ),
    site: &Arc<Site>,
    bounds: &watch::Sender<Bounds>,
) -> Result<Told, WebError> {
    if listeners.is_empty() {
        return Ok(Told(None));
    }
    let signer = signer.ok_or(WebError::NoSigner)?;
    let client = Arc::new(SignerClient::passing(signer));
    let certificates = Arc::new(RemoteCertificates::new(client.clone()));
    let server = RemoteServer::new(&certificates, Some(challenges))?;
    let (tell, told) = watch::channel(false);
    std::thread::Builder::new()
        .name("certificates".to_owned())
        .spawn(move || {
            signer::follow(&client, &certificates, "HTTPS", || {
                tell.send_replace(true);
            })
        })?;
    let terms = Terms::new("https", bounds.subscribe());
    site.count_https(terms.places());
    for listener in listeners {
        let server = server.clone();
        let handshake = move |stream: TcpStream| {
            let server = server.clone();
            async move { server.accept(stream).await }
        };
        let listener = TcpListener::from_std(listener)?;
        let routes = routes::encrypted(Arc::clone(site));
        // Connections wait until the signer has told its certificates: without one each handshake fails.
        let (told, terms) = (Told(Some(told.clone())), terms.clone());
        spawn_local(async move {
            told.wait().await;
            serve_with(listener, terms, routes, handshake).await;
        });
    }
    Ok(Told(Some(told)))
}

/// Serves HTTP: challenges, and redirects.
fn open_in_clear(
    listeners: Vec<StdListener>,
    site: &Arc<Site>,
    bounds: &watch::Sender<Bounds>,
) -> Result<(), WebError> {
    let terms = Terms::new("http", bounds.subscribe());
    site.count_http(terms.places());
    for listener in listeners {
        let listener = TcpListener::from_std(listener)?;
        let routes = routes::in_clear(Arc::clone(site));
        spawn_local(serve(listener, terms.clone(), routes));
    }
    Ok(())
}
