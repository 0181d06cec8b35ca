//! Accepts connections: identifies the client, its rights, and enforces the connection limits.

mod sendmail;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use vere_sasl::{FakeKeys, Mechanism, NonceSource};
use vere_settings::Settings;
use vere_smtp::server::{AuthConfig, Peer, Role, ServerConfig};
use vere_telemetry::metrics::TurnedAway;

use super::aside::Aside;
use super::intake::{Intake as _, Intakes};
use super::process::Process;
use super::service::Service;
use super::session::{self, SessionContext, SessionHost};
use vere_process::accept;
use vere_process::drive::Line;
use vere_process::places::{Client, Places};
use vere_process::proxy;
use vere_process::secret::{self, SecretError};
use vere_process::smtp;
use vere_process::tls::ServerTls;

/// The state shared by all listeners.
#[derive(Debug)]
pub(super) struct Reception<I> {
    process: Rc<Process>,
    intakes: I,
    tls: ServerTls,
    configs: RefCell<HashMap<Service, Arc<ServerConfig>>>,
    nonces: Arc<NonceSource>,
    fake_keys: FakeKeys,
    places: Rc<Places>,
    stop: watch::Receiver<bool>,
}

impl<I: Intakes> Reception<I> {
    /// Returns a reception whose sessions are answered by `intakes`.
    ///
    /// # Errors
    /// When the secret behind the keys of unknown users cannot be used.
    pub(super) fn new(
        process: Rc<Process>,
        intakes: I,
        tls: ServerTls,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, SecretError> {
        let reception = Self {
            nonces: Arc::new(NonceSource::new(process.random())),
            fake_keys: secret::fake_keys(&process.settings().data)?,
            tls,
            configs: RefCell::default(),
            places: Rc::default(),
            stop,
            process,
            intakes,
        };
        reception.configure();
        Ok(reception)
    }

    /// Applies the gateway's current settings to later connections.
    pub(super) fn configure(&self) {
        let settings = self.process.settings();
        self.process
            .memory
            .set_max(settings.limits.body_memory_max.as_usize());
        self.process
            .disk
            .set_max(settings.limits.body_disk_max.as_usize());
        let configs =
            Service::ALL.map(|service| (service, Arc::new(self.server_config(&settings, service))));
        *self.configs.borrow_mut() = configs.into_iter().collect();
    }

    /// Returns the certificates for clients.
    pub(super) const fn tls(&self) -> &ServerTls {
        &self.tls
    }

    fn server_config(&self, settings: &Settings, service: Service) -> ServerConfig {
        let role = if service == Service::Smtp {
            Role::Mx
        } else {
            Role::Submission
        };
        let mut config = smtp::config(settings, role);
        if service == Service::Sendmail {
            // The greeting tells the client which domain to complete addresses with.
            config.hostname = settings
                .sendmail
                .as_ref()
                .map_or_else(|| settings.hostname.clone(), |local| local.domain.clone());
            return config;
        }
        // At small sites, users' devices still authenticate on the MX port. As on every port, AUTH is offered only
        // where the password is protected.
        config.auth = Some(AuthConfig {
            mechanisms: vec![Mechanism::ScramSha256, Mechanism::Plain, Mechanism::Login],
            nonces: Arc::clone(&self.nonces),
            fake_keys: self.fake_keys.clone(),
        });
        config
    }

    /// Accepts until the gateway stops.
    pub(super) async fn accept(self: Rc<Self>, service: Service, listener: TcpListener) {
        let stop = self.stop.clone();
        accept::accept(listener, service.name(), stop, |(stream, address)| {
            Rc::clone(&self).receive(service, stream, address)
        })
        .await;
    }

    async fn receive(self: Rc<Self>, service: Service, stream: TcpStream, address: SocketAddr) {
        self.process.metrics.accepted(service);
        if let Err(error) = self.serve(service, stream, address).await {
            tracing::debug!(peer = %address, %error, "connection lost");
        }
        self.process.metrics.ended(service);
    }

    async fn serve(
        self: &Rc<Self>,
        service: Service,
        mut stream: TcpStream,
        from: SocketAddr,
    ) -> io::Result<()> {
        // Each write has whole replies, so waiting for further octets would only delay the replies.
        stream.set_nodelay(true)?;
        let mut local = stream.local_addr()?;
        let mut address = from;
        let settings = self.process.settings();
        if settings.proxy.contains(from.ip()) {
            let patience = settings.limits.command_timeout.duration();
            // Boxed: the header's buffer must not enlarge the future of every session.
            let read = Box::pin(proxy::read(&mut stream, patience)).await;
            if read.is_err() {
                self.process.metrics.turned_away(TurnedAway::Proxy);
            }
            if let Some(real) = read? {
                (address, local) = real;
            }
        }
        if let Some(reason) = self.intakes.closed() {
            // A client that knows another host connects there; other clients come back later.
            self.process.metrics.turned_away(reason);
            let shut = format!(
                "421 4.3.2 {} takes no mail for now, try again later\r\n",
                settings.hostname
            );
            return stream.write_all(shut.as_bytes()).await;
        }
        let client = Client::at(address.ip());
        let _place = match self.places.take(&settings, client) {
            Ok(place) => place,
            Err(reason) => {
                self.process.metrics.turned_away(reason);
                let busy = format!(
                    "421 4.7.0 {} too many connections, try again later\r\n",
                    settings.hostname
                );
                return stream.write_all(busy.as_bytes()).await;
            }
        };
        let context = self.context(service, client);
        let peer = self.peer(&settings, address, local, &context.host.intake);
        // Boxed: a session mostly waits, and the size of its future is the cost of an idle client.
        match service {
            Service::Smtp | Service::Submission => {
                Box::pin(session::serve(stream, peer, context)).await
            }
            Service::Submissions => Box::pin(session::serve_tls(stream, peer, context)).await,
            // This service has no TCP sockets; `local` accepts its clients.
            Service::Sendmail => Ok(()),
        }
    }

    fn context(&self, service: Service, client: Client) -> SessionContext<I::Intake> {
        let config = Arc::clone(&self.configs.borrow()[&service]);
        let held = self.process.memory.share(Some(client));
        SessionContext {
            tls: self.tls.clone(),
            host: SessionHost {
                intake: self.intakes.intake(service),
                service,
                metrics: Rc::clone(&self.process.metrics),
                aside: Aside::new(self.process.file(client)),
            },
            line: Line::new(held, self.stop.clone(), config.limits.command_timeout),
            config,
        }
    }

    fn peer(
        &self,
        settings: &Settings,
        address: SocketAddr,
        local: SocketAddr,
        intake: &I::Intake,
    ) -> Peer {
        let mut peer = Peer::new(address, local);
        let rights = intake.rights(&peer);
        peer.may_relay = rights.may_relay;
        peer.may_auth_in_clear = rights.may_auth_in_clear;
        peer.may_prioritise = rights.may_prioritise;
        // This right belongs to the client that a PROXY header names. The proxy's own right would extend to all clients
        // behind the proxy.
        peer.may_xclient = settings.xclient.contains(address.ip());
        peer.tls_available = self.tls.available();
        peer
    }
}
