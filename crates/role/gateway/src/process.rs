//! State that exists once per process; all groups of queues share the state.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use vere_directory::Directory;
use vere_groups::TraceIds;
use vere_judge::Judge;
use vere_judging::Names;
use vere_meters::Meters;
use vere_net::resolver::Resolver;
use vere_observed::Observing;
use vere_quarantine::Learned;
use vere_queue::ReportLimit;
use vere_settings::Settings;
use vere_telemetry::trace::{Event, TraceLog, TraceOptions};
use vere_units::TraceId;

use super::aside::{Closer, Filed};
use super::couriers::Couriers;
use super::error::GatewayError;
use super::event_lines::EventTarget;
use super::filters::Filtering;
use super::metrics::GatewayMetrics;
use super::signer::Signer;
use vere_meters::pressure::Pressure;
use vere_outbound::Outbound;
use vere_process::clock;
use vere_process::memory::{BodyMemory, DISK, MEMORY};
use vere_process::places::Client;
use vere_process::secret;
use vere_routing::{Router, Srs};

/// The state of the process, shared by the groups. All tasks run on a single thread, so no locks are needed.
#[derive(Debug)]
pub(super) struct Process {
    settings: RefCell<Arc<Settings>>,
    pub(super) router: Router,
    /// Judges received messages; `None` where the settings have no judgement.
    judge: RefCell<Option<Rc<Judge>>>,
    /// Connections to other hosts.
    pub(super) outbound: Rc<Outbound>,
    /// The processes that send mail; `None` if the gateway does so.
    pub(super) couriers: Option<Rc<Couriers>>,
    pub(super) metrics: Rc<GatewayMetrics>,
    trace: TraceLog,
    /// The target of event lines; `None` if event export is off.
    pub(super) event_target: Option<EventTarget>,
    /// The number of reports that each address got.
    pub(super) report_limit: RefCell<ReportLimit>,
    /// Signs the mail of local users and reports, if the settings ask for signatures.
    pub(super) signer: Option<Signer>,
    /// Judged messages for reports to other systems.
    pub(super) observing: Observing,
    /// The DNS for reports and for the records of keys.
    resolver: Resolver,
    /// Content filters.
    pub(super) filtering: Filtering,
    pub(super) ids: TraceIds,
    /// Memory of messages that are being received.
    pub(super) memory: Rc<BodyMemory>,
    /// Disk space of long messages that are being received.
    pub(super) disk: Rc<BodyMemory>,
    /// Closes the files of these messages.
    closer: Closer,
    /// Limits that stand against the acceptance of mail.
    pub(super) pressure: Pressure,
    /// Senders whom releases from the quarantine have taught.
    pub(super) learned: Learned,
    /// What accounts have sent.
    pub(super) meters: Meters,
}

impl Process {
    /// Opens everything that deliveries need besides a group of queues. `trace`: directory of the event files.
    ///
    /// # Errors
    /// When the directory, name servers, certificates, passwords or files cannot be used.
    pub(super) fn open(settings: Arc<Settings>, trace: &Path) -> Result<Self, GatewayError> {
        let store = vere_disk::directory::create(&settings.directory.store)?;
        let srs = secret::srs(&settings.data).map(Srs::new);
        let srs = srs.map_err(GatewayError::Secret)?;
        let metrics = Rc::<GatewayMetrics>::default();
        let processes = settings.delivery.courier_processes;
        let lease = vere_link::lease_terms(&settings).lease;
        // Couriers and this process count the same figures.
        let figures = metrics.outbound();
        let couriers = (processes > 0).then(|| Couriers::new(processes, lease, figures.clone()));
        let policies = settings.data.join("mta-sts-policies");
        let resolver = vere_outbound::resolver(&settings)?;
        let outbound = Outbound::new(
            &settings,
            resolver.clone(),
            figures,
            couriers.is_none().then_some(policies.as_path()),
        )?;
        let trace = TraceLog::open(TraceOptions::new(trace.to_owned()))?;
        let event_target = EventTarget::new(&settings)?;
        let filtering = Filtering::new(&settings)?;
        let signer = settings.dkim.as_ref();
        let separator = settings.directory.subaddress_separator;
        let learned = Learned::open(&settings.data);
        Ok(Self {
            learned,
            signer: signer.map(|dkim| Signer::new(&dkim.socket, Rc::clone(&metrics))),
            report_limit: RefCell::default(),
            observing: Observing::default(),
            resolver,
            filtering,
            ids: TraceIds::of(&settings.gateway.name),
            judge: RefCell::new(judge(&settings)),
            settings: RefCell::new(settings),
            router: Router::new(Directory::new(store, separator)).with_srs(srs),
            outbound: Rc::new(outbound),
            couriers: couriers.map(Rc::new),
            memory: Rc::new(BodyMemory::new(MEMORY, metrics.body_memory())),
            disk: Rc::new(BodyMemory::new(DISK, metrics.body_disk())),
            closer: Closer::start(),
            metrics,
            trace,
            event_target,
            pressure: Pressure::default(),
            meters: Meters::default(),
        })
    }

    /// Returns the settings in force.
    pub(super) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Applies other settings; sessions and attempts under way keep theirs.
    ///
    /// # Errors
    /// When root certificates or passwords cannot be used; then nothing changes.
    pub(super) fn set_settings(&self, settings: Arc<Settings>) -> Result<(), GatewayError> {
        let filters = self.filtering.renewed(&settings)?;
        self.outbound.set_settings(&settings)?;
        self.judge.replace(judge(&settings));
        self.filtering.set(filters);
        self.settings.replace(settings);
        Ok(())
    }

    /// Returns the names of the DNS.
    pub(super) fn names(&self) -> Names {
        Names::new(self.resolver.clone())
    }

    /// Returns the DNS.
    pub(super) const fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// Returns the judge of received messages.
    pub(super) fn judge(&self) -> Option<Rc<Judge>> {
        self.judge.borrow().clone()
    }

    /// A file for a long message of a client, in the data folder.
    pub(super) fn file(&self, client: Client) -> Filed {
        let held = self.disk.share(Some(client));
        Filed::new(self.settings(), held, self.closer.clone())
    }

    /// Records an event of a message.
    pub(super) fn note(&self, event: &Event<'_>) {
        self.trace.append(event);
    }

    /// Writes buffered events to disk.
    pub(super) fn flush_trace(&self) {
        self.trace.flush();
    }

    /// Returns 32 unguessable octets.
    pub(super) fn random(&self) -> [u8; 32] {
        secret::random()
    }

    /// Returns a fresh trace id.
    pub(super) fn trace_id(&self) -> TraceId {
        self.ids.next(clock::now())
    }
}

fn judge(settings: &Settings) -> Option<Rc<Judge>> {
    let terms = settings.judging.clone()?;
    Some(Rc::new(Judge::new(terms)))
}
