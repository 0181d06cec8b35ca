//! State that all connections share, and their parts of the store's memory.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use vere_directory::Directory;
use vere_imap::limits::Limits;
use vere_imap::server::ServerConfig;
use vere_sasl::{Mechanism, NonceSource};
use vere_settings::Settings;
use vere_smtp::server as smtp;
use vere_telemetry::metrics::TurnedAway;
use vere_units::ByteSize;

use super::client::Client;
use super::error::RoleError;
use super::fetch_memory::FetchMemory;
use super::fetcher::Fetcher;
use super::keeper::Keeper;
use super::keeping::Policy;
use super::quota::{Quotas, SharedQuotas};
use super::sessions::{LetIn, Sessions};
use vere_login::login::Logins;
use vere_process::memory::{BodyMemory, MEMORY, MemoryFigures, Share};
use vere_process::places::{self, Permit, Places};
use vere_process::secret;
use vere_process::tls::ServerTls;

/// State shared by all connections.
#[derive(Debug)]
pub(super) struct Reception {
    settings: RefCell<Arc<Settings>>,
    keeper: Keeper,
    directory: Arc<Directory>,
    tls: ServerTls,
    logins: Logins,
    quotas: SharedQuotas,
    sessions: Rc<Sessions>,
    imap: RefCell<Arc<ServerConfig>>,
    memory: Rc<BodyMemory>,
    delivery_memory: Rc<BodyMemory>,
    fetch_memory: Rc<FetchMemory>,
    places: Rc<Places>,
    stop: watch::Receiver<bool>,
}

impl Reception {
    /// # Errors
    /// When the directory cannot be opened, or there are no random numbers.
    pub(super) fn new(
        settings: Arc<Settings>,
        keeper: Keeper,
        tls: ServerTls,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, RoleError> {
        let quotas = SharedQuotas::new(Quotas::new(&settings)?);
        keeper.set_keeping(Policy::new(&settings.store, quotas.now()));
        let store = vere_disk::directory::create(&settings.directory.store)?;
        let directory = Directory::new(store, settings.directory.subaddress_separator);
        let imap = ServerConfig {
            hostname: settings.hostname.clone(),
            limits: limits(&settings),
            mechanisms: Mechanism::ALL.to_vec(),
            nonces: Arc::new(NonceSource::new(random()?)),
            fake_keys: secret::fake_keys(&settings.data)?,
        };
        let memory = || {
            let memory = BodyMemory::new(MEMORY, MemoryFigures::default());
            memory.set_max(settings.limits.body_memory_max.as_usize());
            Rc::new(memory)
        };
        let (memory, delivery_memory) = (memory(), memory());
        let fetch_memory = Rc::new(FetchMemory::new(keeper.figures().fetch_bytes()));
        fetch_memory.set_max(settings.limits.fetch_memory_max.as_usize());
        Ok(Self {
            settings: RefCell::new(settings),
            keeper,
            directory: Arc::new(directory),
            tls,
            logins: Logins::default(),
            quotas,
            sessions: Rc::default(),
            imap: RefCell::new(Arc::new(imap)),
            memory,
            delivery_memory,
            fetch_memory,
            places: Rc::default(),
            stop,
        })
    }

    /// Applies new settings to later connections, and new quotas at once.
    ///
    /// # Errors
    /// When a certificate cannot be used or an account's name is invalid; then nothing changes.
    pub(super) fn reload(&self, settings: Settings) -> Result<(), RoleError> {
        let quotas = Quotas::new(&settings)?;
        self.tls.reload(&settings)?;
        self.quotas.set(quotas);
        let policy = Policy::new(&settings.store, self.quotas.now());
        self.keeper.set_keeping(policy);
        let imap = ServerConfig {
            limits: limits(&settings),
            ..ServerConfig::clone(&self.imap.borrow())
        };
        *self.imap.borrow_mut() = Arc::new(imap);
        let body_memory_max = settings.limits.body_memory_max.as_usize();
        self.memory.set_max(body_memory_max);
        self.delivery_memory.set_max(body_memory_max);
        self.fetch_memory
            .set_max(settings.limits.fetch_memory_max.as_usize());
        *self.settings.borrow_mut() = Arc::new(settings);
        Ok(())
    }

    pub(super) const fn tls(&self) -> &ServerTls {
        &self.tls
    }

    pub(super) const fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Whether marked mail is filed in mailboxes for junk.
    pub(super) fn files_into_junk(&self) -> bool {
        self.settings.borrow().store.files_into_junk
    }

    /// How long a backup may hold the log.
    pub(super) fn backup_hold_max(&self) -> Duration {
        self.settings.borrow().store.backup_hold_max.duration()
    }

    /// Returns the quotas of accounts.
    pub(super) const fn quotas(&self) -> &SharedQuotas {
        &self.quotas
    }

    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    pub(super) fn connections(&self) -> u32 {
        self.places.taken()
    }

    /// Returns a client's part of the memory for messages in transit.
    pub(super) fn memory(&self, client: IpAddr) -> Share {
        self.memory.share(Some(places::Client::at(client)))
    }

    /// Returns a part for LMTP clients, which deliver mail for many accounts. The pool has the size of
    /// [`Reception::memory`], and IMAP clients cannot use it up.
    pub(super) fn delivery_memory(&self) -> Share {
        self.delivery_memory.share(None)
    }

    /// How long a client may leave sent octets unread.
    pub(super) fn write_patience(&self) -> Duration {
        self.settings.borrow().limits.command_timeout.duration()
    }

    /// Ends sessions of removed accounts and of changed passwords, for as long as the role runs.
    pub(super) fn watch_accounts(&self) -> impl Future<Output = ()> + 'static {
        Rc::clone(&self.sessions).watch(Arc::clone(&self.directory))
    }

    pub(super) fn client(&self, address: IpAddr, let_in: LetIn) -> Client {
        Client::new(
            self.keeper.clone(),
            Arc::clone(&self.directory),
            self.logins.clone(),
            self.quotas.clone(),
            places::Client::at(address),
            (Rc::clone(&self.sessions), let_in),
            Fetcher::new(Rc::clone(&self.fetch_memory)),
        )
    }

    /// Returns the configuration of administrators' sessions. Messages of every size that the store keeps are
    /// accepted, whatever the limit for other clients: messages that exist already must arrive whole.
    pub(super) fn administrators(&self) -> Arc<ServerConfig> {
        let config = self.imap.borrow();
        Arc::new(ServerConfig {
            limits: Limits {
                message_size_max: ByteSize::new(vere_store::MESSAGE_OCTETS_MAX.into()),
                ..config.limits.clone()
            },
            ..ServerConfig::clone(&config)
        })
    }

    /// Returns the configuration of clients' IMAP sessions.
    pub(super) fn imap(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.imap.borrow())
    }

    /// Whether clients at an address may send passwords without TLS.
    pub(super) fn may_auth_in_clear(&self, client: IpAddr) -> bool {
        let settings = self.settings.borrow();
        settings.auth.plaintext_networks.contains(client)
    }

    /// Whether an address belongs to a load balancer that names its clients in a PROXY header.
    pub(super) fn is_imap_proxy(&self, address: IpAddr) -> bool {
        self.settings.borrow().imap_proxy.contains(address)
    }

    /// Takes a place for a client's connection.
    ///
    /// # Errors
    /// When all places are taken, or all of the client's.
    pub(super) fn place(&self, client: places::Client) -> Result<Permit, TurnedAway> {
        self.places.take(&self.settings.borrow(), client)
    }

    /// Returns the configuration of deliveries.
    pub(super) fn lmtp_config(&self) -> smtp::ServerConfig {
        let settings = self.settings.borrow();
        let mut config = smtp::ServerConfig::new(settings.hostname.clone(), smtp::Role::Lmtp);
        let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        // The gateway adds a Received field to every message that it accepted.
        let spare = ByteSize::mib(1).as_u64();
        let size = settings
            .limits
            .message_size_max
            .as_u64()
            .saturating_add(spare);
        config.limits.message_size_max = ByteSize::new(size);
        config.limits.recipients_max = count(settings.limits.recipients_max);
        config.limits.text_line_octets_max = usize::MAX;
        // Messages are kept octet by octet; IMAP shows NUL octets as in RFC 3516.
        config.limits.text_nul = true;
        config
    }
}

fn limits(settings: &Settings) -> Limits {
    let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    Limits {
        message_size_max: settings.limits.message_size_max,
        errors_max: count(settings.limits.errors_max),
        auth_failures_max: count(settings.limits.auth_failures_max),
        ..Limits::default()
    }
}

fn random<const N: usize>() -> Result<[u8; N], RoleError> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(RoleError::NoRandomNumbers)?;
    Ok(octets)
}
