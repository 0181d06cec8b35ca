//! The certificate from a certificate authority: kept while the gateway runs, by other settings after a reload.

use std::cell::RefCell;
use std::net::TcpListener as StdListener;
use std::rc::Rc;

use tokio::net::TcpListener;
use tokio::task::{AbortHandle, spawn_local};
use vere_net::acme::{Acme, AlpnChallenges, Challenges, Places, serve_alpn, serve_challenges};
use vere_process::tls::{ServerTls, ServerTlsError, acme};
use vere_settings::Settings;

use super::error::GatewayError;
use super::process::Process;
use super::web_names;

/// The task that keeps the certificate, and the places of its answers.
#[derive(Debug)]
pub(super) struct Keeping {
    tls: ServerTls,
    places: Places,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The settings of the task.
    settings: Option<vere_settings::Acme>,
    task: Option<AbortHandle>,
}

impl Keeping {
    /// Answers challenges at the listeners, and keeps the certificate requested by the settings, if any.
    ///
    /// # Errors
    /// When a listener or the folder of the certificate cannot be used.
    pub(super) fn start(
        process: &Rc<Process>,
        http: Vec<StdListener>,
        alpn: Vec<StdListener>,
        tls: ServerTls,
    ) -> Result<Self, GatewayError> {
        let settings = process.settings();
        let acme = acme(&settings).map_err(ServerTlsError::Acme)?;
        let places = places(&settings)?;
        for listener in http {
            let listener = TcpListener::from_std(listener)?;
            spawn_local(serve_challenges(listener, places.http()));
        }
        for listener in alpn {
            let listener = TcpListener::from_std(listener)?;
            spawn_local(serve_alpn(listener, places.alpn()));
        }
        spawn_local(web_names::keep(Rc::clone(process), places.clone()));
        let keeping = Self {
            tls,
            places,
            state: RefCell::default(),
        };
        keeping.keep(&settings, acme);
        Ok(keeping)
    }

    /// Keeps the certificate of changed settings. An order under way is given up if the settings of the order have changed.
    ///
    /// # Errors
    /// When the folder of the certificate cannot be used; then nothing changes.
    pub(super) fn reload(&self, settings: &Settings) -> Result<(), GatewayError> {
        if self.state.borrow().settings == settings.acme {
            return Ok(());
        }
        let acme = acme(settings).map_err(ServerTlsError::Acme)?;
        self.keep(settings, acme);
        Ok(())
    }

    fn keep(&self, settings: &Settings, acme: Option<Acme>) {
        let task = acme.map(|acme| {
            let (acme, tls) = (acme.answering_at(&self.places), self.tls.clone());
            spawn_local(async move { acme.run(|| tls.look()).await }).abort_handle()
        });
        let settings = settings.acme.clone();
        let before = self.state.replace(State { settings, task });
        if let Some(task) = before.task {
            task.abort();
        }
    }
}

/// The places of answers: a web server reads the answers from directories, those for port 80 and those for port 443.
fn places(settings: &Settings) -> Result<Places, GatewayError> {
    let web = settings.web.as_ref();
    let http = match web.is_some_and(|web| !web.http.is_empty()) {
        true => Challenges::in_directory(&settings.web_challenges())?,
        false => Challenges::default(),
    };
    let alpn = match web.is_some_and(|web| !web.https.is_empty()) {
        true => AlpnChallenges::in_directory(&settings.web_challenge_certificates())?,
        false => AlpnChallenges::default(),
    };
    Ok(Places::new(http, alpn))
}
