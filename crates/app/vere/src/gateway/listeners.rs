//! Accepts connections: who the client is, what it may do, how many there may be.

mod local;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_directory::password::SCRAM_ITERATIONS;
use vere_sasl::{FakeKeys, Mechanism, NonceSource};
use vere_settings::Settings;
use vere_smtp::limits::Limits;
use vere_smtp::server::{AuthConfig, Peer, Role, ServerConfig};
use vere_telemetry::metrics::Refusal;

use super::intake::{Intake as _, ServiceIntake};
use super::session::{self, SessionContext, TextMemory};
use super::state::Gateway;
use super::{proxy, tls::ServerTls};

/// Pause after a failed accept, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A service of the gateway, by the settings section that configures it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Service {
    Smtp,
    Submission,
    Submissions,
    /// Programs of this machine, over a socket in the file system.
    Sendmail,
}

impl Service {
    pub(super) const ALL: [Self; 4] = [
        Self::Smtp,
        Self::Submission,
        Self::Submissions,
        Self::Sendmail,
    ];

    /// The section's name, which is the inherited listeners' name too.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Smtp => "smtp",
            Self::Submission => "submission",
            Self::Submissions => "submissions",
            Self::Sendmail => "sendmail",
        }
    }

    /// Where it listens in the internet.
    pub(super) fn addresses(self, settings: &Settings) -> &[SocketAddr] {
        match self {
            Self::Smtp => &settings.smtp.listen,
            Self::Submission => &settings.submission.listen,
            Self::Submissions => &settings.submissions.listen,
            Self::Sendmail => &[],
        }
    }
}

/// What all listeners share.
#[derive(Debug)]
pub(super) struct Reception {
    gateway: Rc<Gateway>,
    tls: ServerTls,
    configs: RefCell<HashMap<Service, Arc<ServerConfig>>>,
    nonces: Arc<NonceSource>,
    fake_keys: FakeKeys,
    memory: Rc<TextMemory>,
    connections: Cell<u32>,
    clients: RefCell<HashMap<Client, u32>>,
    stop: watch::Receiver<bool>,
}

impl Reception {
    pub(super) fn new(gateway: Rc<Gateway>, tls: ServerTls, stop: watch::Receiver<bool>) -> Self {
        let reception = Self {
            nonces: Arc::new(NonceSource::new(gateway.random())),
            fake_keys: FakeKeys::new(gateway.random(), SCRAM_ITERATIONS),
            tls,
            configs: RefCell::default(),
            memory: Rc::new(TextMemory::new(gateway.metrics.body_memory())),
            connections: Cell::new(0),
            clients: RefCell::default(),
            stop,
            gateway,
        };
        reception.configure();
        reception
    }

    /// Takes the gateway's settings over for connections to come.
    pub(super) fn configure(&self) {
        let settings = self.gateway.settings();
        self.memory
            .set_max(settings.limits.body_memory_max.as_usize());
        let configs =
            Service::ALL.map(|service| (service, Arc::new(self.server_config(&settings, service))));
        *self.configs.borrow_mut() = configs.into_iter().collect();
    }

    /// The certificates shown.
    pub(super) const fn tls(&self) -> &ServerTls {
        &self.tls
    }

    fn server_config(&self, settings: &Settings, service: Service) -> ServerConfig {
        let role = if service == Service::Smtp {
            Role::Mx
        } else {
            Role::Submission
        };
        let mut config = ServerConfig::new(settings.hostname.clone(), role);
        config.limits = limits(settings);
        if service == Service::Sendmail {
            // The greeting tells the client which domain to complete addresses with.
            config.hostname = settings
                .sendmail
                .as_ref()
                .map_or_else(|| settings.hostname.clone(), |local| local.domain.clone());
            return config;
        }
        // Users' devices still authenticate on the MX port of small sites; it is offered only where a
        // password is protected, as everywhere.
        config.auth = Some(AuthConfig {
            mechanisms: vec![Mechanism::ScramSha256, Mechanism::Plain, Mechanism::Login],
            nonces: Arc::clone(&self.nonces),
            fake_keys: self.fake_keys.clone(),
        });
        config
    }

    /// Accepts until the gateway stops.
    pub(super) async fn accept(self: Rc<Self>, service: Service, listener: TcpListener) {
        let mut stop = self.stop.clone();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stop.wait_for(|stopping| *stopping) => return,
            };
            match accepted {
                Ok((stream, address)) => {
                    spawn_local(Rc::clone(&self).receive(service, stream, address));
                }
                Err(error) => {
                    tracing::warn!(%error, service = service.name(), "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn receive(self: Rc<Self>, service: Service, stream: TcpStream, address: SocketAddr) {
        self.gateway.metrics.accepted(service);
        if let Err(error) = self.serve(service, stream, address).await {
            tracing::debug!(peer = %address, %error, "connection lost");
        }
        self.gateway.metrics.ended(service);
    }

    async fn serve(
        self: &Rc<Self>,
        service: Service,
        mut stream: TcpStream,
        from: SocketAddr,
    ) -> io::Result<()> {
        // Replies are written whole: waiting for more would only delay them.
        stream.set_nodelay(true)?;
        let mut local = stream.local_addr()?;
        let mut address = from;
        let settings = self.gateway.settings();
        if settings.proxy.contains(from.ip()) {
            let patience = settings.limits.command_timeout.duration();
            // Boxed: its buffer must not make every session larger.
            let read = Box::pin(proxy::read(&mut stream, patience)).await;
            if read.is_err() {
                self.gateway.metrics.turned_away(Refusal::Proxy);
            }
            if let Some(real) = read? {
                (address, local) = real;
            }
        }
        if self.gateway.link.state().borrow().is_shut() {
            // A client that knows another system goes there; one that does not comes back later.
            self.gateway.metrics.turned_away(Refusal::Spool);
            let shut = format!(
                "421 4.3.2 {} takes no mail for now, try again later\r\n",
                settings.hostname
            );
            return stream.write_all(shut.as_bytes()).await;
        }
        let client = Client::at(address.ip());
        let _place = match Place::take(self, &settings, client) {
            Ok(place) => place,
            Err(reason) => {
                self.gateway.metrics.turned_away(reason);
                let busy = format!(
                    "421 4.7.0 {} too many connections, try again later\r\n",
                    settings.hostname
                );
                return stream.write_all(busy.as_bytes()).await;
            }
        };
        let context = self.context(service);
        let peer = self.peer(&settings, address, local, from.ip(), &context.intake);
        // Boxed: most of a session's life is waiting, and its size is what an idle client costs.
        match service {
            Service::Smtp | Service::Submission => session::serve(stream, peer, context).await,
            Service::Submissions => Box::pin(session::serve_tls(stream, peer, context)).await,
            // Its sockets are none of the internet: `local`.
            Service::Sendmail => Ok(()),
        }
    }

    fn context(&self, service: Service) -> SessionContext<ServiceIntake> {
        SessionContext {
            config: Arc::clone(&self.configs.borrow()[&service]),
            intake: self.intake(service),
            tls: self.tls.clone(),
            metrics: Rc::clone(&self.gateway.metrics),
            memory: Rc::clone(&self.memory),
            stop: self.stop.clone(),
        }
    }

    fn intake(&self, service: Service) -> ServiceIntake {
        ServiceIntake {
            gateway: Rc::clone(&self.gateway),
            service,
        }
    }

    fn peer(
        &self,
        settings: &Settings,
        address: SocketAddr,
        local: SocketAddr,
        from: IpAddr,
        intake: &ServiceIntake,
    ) -> Peer {
        let mut peer = Peer::new(address, local);
        let rights = intake.rights(&peer);
        peer.may_relay = rights.may_relay;
        peer.may_auth_in_clear = rights.may_auth_in_clear;
        // XCLIENT is a matter of who is connected, whomever a PROXY header speaks for.
        peer.may_xclient = settings.xclient.contains(from);
        peer.tls_available = self.tls.available();
        peer
    }
}

/// One of the places that `connections_max` and `connections_per_client_max` give.
struct Place {
    reception: Rc<Reception>,
    client: Client,
}

impl Place {
    fn take(
        reception: &Rc<Reception>,
        settings: &Settings,
        client: Client,
    ) -> Result<Self, Refusal> {
        let mut clients = reception.clients.borrow_mut();
        let of_client = clients.get(&client).copied().unwrap_or(0);
        let limits = &settings.limits;
        if reception.connections.get() >= limits.connections_max {
            return Err(Refusal::Connections);
        }
        if of_client >= limits.connections_per_client_max {
            return Err(Refusal::Client);
        }
        reception.connections.set(reception.connections.get() + 1);
        clients.insert(client, of_client + 1);
        Ok(Self {
            reception: Rc::clone(reception),
            client,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let reception = &self.reception;
        reception
            .connections
            .set(reception.connections.get().saturating_sub(1));
        let mut clients = reception.clients.borrow_mut();
        match clients.get_mut(&self.client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                clients.remove(&self.client);
            }
        }
    }
}

/// Who counts as one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Client {
    /// An IPv4 address, or the beginning of an IPv6 /64, which is what one customer gets.
    Address(IpAddr),
    /// A user of this machine, by number.
    User(u32),
}

impl Client {
    fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(v6) => {
                let mut segments = v6.segments();
                segments[4..].fill(0);
                IpAddr::V6(Ipv6Addr::from(segments))
            }
            v4 => v4,
        })
    }
}

fn limits(settings: &Settings) -> Limits {
    let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let octets = |size: vere_units::ByteSize| usize::try_from(size.as_u64()).unwrap_or(usize::MAX);
    let from = &settings.limits;
    Limits {
        message_size_max: from.message_size_max,
        recipients_max: count(from.recipients_max),
        transactions_max: count(from.messages_per_connection_max),
        errors_max: count(from.errors_max),
        auth_failures_max: count(from.auth_failures_max),
        command_octets_max: octets(from.command_line_length_max),
        text_line_octets_max: octets(from.text_line_length_max),
        command_timeout: from.command_timeout.duration(),
        data_timeout: from.data_timeout.duration(),
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_customer_is_one_client() {
        let client = |text: &str| Client::at(text.parse().expect("an address"));
        assert_eq!(client("2001:db8:1:2:3::4"), client("2001:db8:1:2:ffff::1"));
        assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
    }
}
