//! State of the process. All tasks run on a single thread, so no locks are needed.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::mpsc;
use vere_archive::{Archive, Audit};
use vere_groups::TraceIds;
use vere_meters::pressure::Pressure;
use vere_mta400::Mta;
use vere_net::tls::Roots;
use vere_outbound::{Outbound, OutboundMetrics};
use vere_process::clock;
use vere_process::tls::ServerTls;
use vere_settings::{Settings, X400};
use vere_switch::Switch;
use vere_telemetry::metrics::Metrics;
use vere_telemetry::trace::{Event, TraceLog, TraceOptions};
use vere_units::TraceId;

use crate::attached::Gateways;
use crate::budget::{Bounds, Budget};
use crate::error::X400Error;
use crate::metrics::Figures;
use crate::peers::{Incoming, Peers};
use crate::{archiving, auditing};

/// A group of queues of this process.
pub(crate) type Group = vere_groups::Group<Process>;

/// The state of the process.
#[derive(Debug)]
pub(crate) struct Process {
    settings: RefCell<Arc<Settings>>,
    mta: RefCell<Rc<Mta>>,
    /// Associations to peers.
    pub(crate) peers: Rc<Peers>,
    /// Programs that are attached as gateways.
    pub(crate) gateways: Rc<Gateways>,
    /// The way to the mail store.
    pub(crate) outbound: Rc<Outbound>,
    pub(crate) ids: TraceIds,
    pub(crate) figures: Figures,
    pub(crate) pressure: Pressure,
    /// Memory of units that peers and programs are sending.
    pub(crate) budget: Rc<Budget>,
    /// `None` where the settings want no archive.
    pub(crate) archive: Option<Archive>,
    /// `None` where the settings want no audit log.
    pub(crate) audit: Option<Audit>,
    /// The roots of certificates of callers.
    callers: Option<Roots>,
    trace: TraceLog,
}

impl Process {
    /// Opens all resources of the MTA besides a group of queues. Associations of the MTA with transfers from peers go to
    /// `incoming`, trace events to the folder `trace`. Peers that ask are shown a certificate of `tls`.
    ///
    /// # Errors
    /// When settings, name servers, certificates, passwords or files cannot be used.
    pub(crate) fn open(
        settings: Arc<Settings>,
        incoming: mpsc::Sender<Incoming>,
        trace: &Path,
        tls: &ServerTls,
    ) -> Result<Self, X400Error> {
        let (x400, switch) = switch(&settings, tls)?;
        let all = Metrics::new();
        let resolver = vere_outbound::resolver(&settings)?;
        let figures = OutboundMetrics::of(&all);
        let outbound = Outbound::new(&settings, resolver.clone(), figures, None)?;
        let trace = TraceLog::open(TraceOptions::new(trace))?;
        let archive = archiving::open(&settings, &x400)?;
        let audit = auditing::open(&x400)?;
        let budget = Rc::<Budget>::default();
        budget.set_bounds(bounds(&settings, &x400));
        Ok(Self {
            callers: switch.callers,
            gateways: Rc::default(),
            peers: Rc::new(Peers::new(resolver, &x400, switch.reach, incoming)),
            mta: RefCell::new(Rc::new(switch.mta)),
            outbound: Rc::new(outbound),
            ids: TraceIds::of(&x400.group()),
            figures: Figures::new(all),
            pressure: Pressure::default(),
            budget,
            archive,
            audit,
            trace,
            settings: RefCell::new(settings),
        })
    }

    /// The server of `listen_tls`: asks callers for certificates, if the settings have roots for them.
    ///
    /// # Errors
    /// When the roots cannot be used.
    pub(crate) fn asking(&self, tls: ServerTls) -> Result<ServerTls, X400Error> {
        Ok(match &self.callers {
            Some(roots) => tls.asking(roots)?,
            None => tls,
        })
    }

    /// Releases all associations with peers, and writes what is buffered.
    pub(crate) async fn end(&self) {
        self.peers.close().await;
        self.trace.flush();
    }

    /// The settings in force.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.borrow())
    }

    /// Octets of a unit, at most.
    pub(crate) fn octets_max(&self) -> u64 {
        let settings = self.settings.borrow();
        let x400 = settings.x400.as_ref();
        x400.map_or(0, |x400| x400.size_max.as_u64())
    }

    /// The MTA of the settings in force.
    pub(crate) fn mta(&self) -> Rc<Mta> {
        Rc::clone(&self.mta.borrow())
    }

    /// Applies other settings; associations and attempts under way keep theirs.
    ///
    /// # Errors
    /// When addresses, routes, passwords or certificates cannot be used; then nothing changes.
    pub(crate) fn set_settings(
        &self,
        settings: Arc<Settings>,
        tls: &ServerTls,
    ) -> Result<(), X400Error> {
        let (x400, switch) = switch(&settings, tls)?;
        self.outbound.set_settings(&settings)?;
        self.budget.set_bounds(bounds(&settings, &x400));
        self.peers.set(&x400, switch.reach);
        self.mta.replace(Rc::new(switch.mta));
        self.settings.replace(settings);
        Ok(())
    }

    /// Records an event of a message.
    pub(crate) fn note(&self, event: &Event<'_>) {
        self.trace.append(event);
    }

    /// Writes buffered events to disk.
    pub(crate) fn flush(&self) {
        self.trace.flush();
    }

    /// A fresh id.
    pub(crate) fn fresh_id(&self) -> TraceId {
        self.ids.next(clock::now())
    }
}

fn bounds(settings: &Settings, x400: &X400) -> Bounds {
    Bounds {
        all: settings.limits.body_memory_max.as_u64(),
        unit: x400.size_max.as_u64(),
    }
}

fn switch(settings: &Settings, tls: &ServerTls) -> Result<(X400, Switch), X400Error> {
    let x400 = settings.x400.clone().ok_or(X400Error::NoSection)?;
    let mut switch = Switch::of(settings)?.ok_or(X400Error::NoSection)?;
    for way in switch.reach.values_mut() {
        way.show(tls.keyring());
    }
    Ok((x400, switch))
}
