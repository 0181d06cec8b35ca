//! The gateway role: takes mail by SMTP, keeps it in the spool, and delivers it.
//!
//! One thread and its tasks: [`listeners`] accept, [`session`] drives a connection, [`intake`] takes
//! responsibility for a message, [`routing`] says where it goes, [`state`] stores it, [`scheduler`] starts
//! workers, [`local`] and [`mod@relay`] deliver, [`outbound`] connects to other hosts, [`settling`] ends
//! attempts, [`recovery`] takes back what the spool holds, [`records`] tells other systems, [`control`]
//! answers commands.

mod adopt;
mod aside;
mod audit;
mod behind;
mod control;
pub(crate) mod convert;
mod drain;
mod group;
mod header;
mod hold;
mod ids;
mod intake;
mod known;
mod listeners;
mod local;
mod look;
mod mail_log;
mod metrics;
mod operate;
mod orders;
pub(crate) mod outbound;
mod part;
mod policy;
mod pressure;
mod reading;
mod records;
mod recovery;
mod relay;
mod reporting;
mod routing;
mod scheduler;
mod service;
mod session;
mod settling;
mod signing;
mod state;
mod sweep;
mod throttle;
pub(crate) mod tls;
mod top;
mod worker;

pub(crate) use self::drain::drain;

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_directory::Directory;
use vere_net::acme::serve_challenges;
use vere_net::listen::{Inherited, ListenOptions};
use vere_net::resolver::{Resolver, ResolverError, ResolverOptions};
use vere_settings::{Durability, Settings, SpoolNode};
use vere_spool::owner::ShutReason;
use vere_telemetry::metrics::Health;
use vere_telemetry::trace::{TraceLog, TraceOptions};
use vere_units::ByteSize;

use self::listeners::Reception;
use self::outbound::Outbound;
use self::policy::policy;
use self::records::Records;
pub(crate) use self::routing::{relay, route as destination_of};
use self::service::Service;
use self::state::{Gateway, Parts};
use crate::failure::Failure;
use crate::role::life::{self, Signals};
use crate::role::log::Level;
use crate::role::tls::{ServerTls, acme};
use crate::role::{accept, clock, entry, wire};
use crate::spool as nodes;
use crate::spool::encryption::{self, Encryption};
use crate::spool::link::{
    LinkOptions, LinkState, NodeAddresses, SlowTerms, SpoolError, SpoolLink, random_life,
};
use crate::spool::mark::OwnerMark;
use crate::spool::namesake::{self, By, Namesake};

/// How long deliveries and sessions may go on after the stop was asked for.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// Pause before the spool is asked again for what it holds.
const RECOVERY_PAUSE: Duration = Duration::from_millis(200);

/// Where the events of every message lie.
pub(crate) fn trace_directory(settings: &Settings) -> PathBuf {
    settings.data.join("trace")
}

/// Where those of a drain are while a gateway runs on the same machine.
pub(crate) fn drain_trace_directory(settings: &Settings) -> PathBuf {
    settings.data.join("trace-drain")
}

/// Runs the role until it is told to stop.
///
/// # Errors
/// When it cannot start: ports, files, settings.
pub(crate) fn run(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), Failure> {
    let mut inherited = Inherited::from_env()?;
    life::run(serve(settings, config, level, &mut inherited))
}

/// Begins what a gateway does for its queues.
fn keep_queues(gateway: &Rc<Gateway>) {
    spawn_local(scheduler::run(Rc::clone(gateway)));
    spawn_local(follow_link(Rc::clone(gateway)));
    spawn_local(follow_lease(Rc::clone(gateway)));
    spawn_local(records::drain(Rc::clone(gateway)));
    spawn_local(known::run(Rc::clone(gateway)));
    spawn_local(throttle::watch_nodes(Rc::clone(gateway)));
}

async fn serve(
    settings: Arc<Settings>,
    config: &Path,
    level: Level,
    inherited: &mut Inherited,
) -> Result<(), Failure> {
    let mut listeners = Vec::new();
    for service in Service::ALL {
        let addresses = service.addresses(&settings);
        for listener in
            inherited.take_or_bind(service.name(), addresses, ListenOptions::default())?
        {
            listeners.push((service, TcpListener::from_std(listener)?));
        }
    }
    let metrics = inherited.take_or_bind(
        "metrics",
        settings.metrics.listen.as_slice(),
        ListenOptions::default(),
    )?;
    let control = accept::bind(&settings.control.socket).map_err(|error| {
        Failure::new(format!(
            "cannot open {}: {error}",
            settings.control.socket.display()
        ))
    })?;
    let local = inherited.take_local("sendmail");
    // What follows may have to wait for another gateway's lease.
    spawn_local(life::beat());
    let (options, _mark) = own(&settings).await?;
    let (link, driver) = SpoolLink::connect(options);
    spawn_local(driver);
    let trace = trace_directory(&settings);
    let gateway = Rc::new(Gateway::new(parts(settings, link, &trace)?));
    let (stop, stopping) = watch::channel(false);
    let server_tls = ServerTls::new(&gateway.settings())?;
    let reception = Rc::new(Reception::new(Rc::clone(&gateway), server_tls, stopping)?);

    keep_queues(&gateway);
    spawn_local(control::serve(Rc::clone(&gateway), control));
    spawn_local(adopt::run(Rc::clone(&gateway), stop.subscribe()));
    spawn_local(Rc::clone(&gateway.outbound).refresh_policies());
    spawn_local({
        let tls = reception.tls().clone();
        async move { tls.watch().await }
    });
    let challenges = inherited.take("acme");
    keep_certificate(&gateway.settings(), challenges, reception.tls().clone())?;
    let (health, _) = watch::channel(Health::Starting);
    metrics::start(&gateway, reception.tls().clone(), metrics, &health)?;
    wait_recovered(&gateway).await;
    for (service, listener) in listeners {
        spawn_local(Rc::clone(&reception).accept(service, listener));
    }
    if let Some(listener) = local {
        spawn_local(Rc::clone(&reception).accept_local(UnixListener::from_std(listener)?));
    }
    // Whoever hears that it is ready may send signals.
    let mut signals = Signals::new()?;
    let apply = |settings| reload(&reception, &gateway, settings);
    entry::notify_ready();
    health.send_replace(Health::Ready);
    let end = tokio::select! {
        () = signals.wait_for_stop(config, &level, apply) => Ok(()),
        () = fenced(&gateway) => Err(Failure::new(
            "another gateway has taken the queues over; nothing acknowledged is lost",
        )),
    };
    health.send_replace(match &end {
        Ok(()) => Health::Stopping,
        Err(failure) => Health::NotReady(failure.to_string()),
    });
    wind_down(&gateway, &stop).await;
    end
}

/// Waits until another gateway has taken the queues.
async fn fenced(gateway: &Gateway) {
    let mut state = gateway.link.state();
    let fenced = |state: &LinkState| *state == LinkState::Fenced;
    // The link is never dropped before the gateway.
    let _ = state.wait_for(fenced).await;
}

/// What makes this gateway the owner of its group, unless another one of its name lives.
async fn own(settings: &Settings) -> Result<(LinkOptions, OwnerMark), Failure> {
    let (group, life) = (settings.gateway.name.as_str(), random_life());
    let mark = nodes::mark(settings, group, life)?;
    if mark.is_elsewhere() {
        tracing::warn!(group, "another process of this machine owns the queues");
    }
    let mut options = link_options(settings, group)?;
    let seen = namesake::look(
        &options.register,
        group,
        options.lease,
        &mark.dead,
        By::Itself,
    )
    .await;
    if seen == Namesake::Alive {
        return Err(Failure::new(format!(
            "another gateway named {group} lives and has the queues: each needs its own gateway.name"
        )));
    }
    (options.life, options.dead) = (life, mark.dead.clone());
    Ok((options, mark))
}

/// How the group of that name is reached.
fn link_options(settings: &Settings, group: &str) -> Result<LinkOptions, nodes::SetupError> {
    let spool = &settings.spool;
    let tls = encryption::certificates(settings)?;
    let addresses = |(node, machine): (&SpoolNode, usize)| NodeAddresses {
        name: node.name.clone(),
        machine,
        addresses: node.addresses().collect(),
        encryption: Encryption::of(tls.as_ref(), node),
    };
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let nodes = spool.nodes.iter().zip(spool.log_places());
    Ok(LinkOptions {
        durable: spool.durability == Durability::Synced,
        replicas: count(spool.replicas),
        replicas_min: count(spool.replicas_min),
        slow: SlowTerms {
            after: spool.slow_after.duration(),
            lag: spool.slow_lag.duration(),
            rest: spool.slow_rest.duration(),
        },
        lease: nodes::lease_terms(settings),
        grants: nodes::grants(settings),
        readers: nodes::queue_readers(settings),
        group_max: spool.group_max.map_or(u64::MAX, ByteSize::as_u64),
        ..LinkOptions::new(
            nodes.map(addresses).collect(),
            Rc::new(nodes::register(settings)?),
            group,
            nodes::account(settings)?,
        )
    })
}

fn parts(settings: Arc<Settings>, link: SpoolLink, trace: &Path) -> Result<Parts, Failure> {
    let store = vere_disk::directory::create(&settings.directory.store)?;
    let metrics = Rc::default();
    let outbound = Outbound::new(
        &settings,
        resolver(&settings)?,
        Rc::clone(&metrics),
        Some(&settings.data.join("mta-sts-policies")),
    )?;
    let outbound = Rc::new(outbound);
    let trace = TraceLog::open(TraceOptions::new(trace.to_owned()))?;
    let separator = settings.directory.subaddress_separator;
    Ok(Parts {
        directory: Directory::new(store, separator),
        records: Records::new(&settings)?,
        settings,
        link,
        outbound,
        metrics,
        trace,
    })
}

/// What names are looked up with.
///
/// # Errors
/// When the zone file or the system's list of name servers cannot be used.
pub(crate) fn resolver(settings: &Settings) -> Result<Resolver, ResolverError> {
    let options = ResolverOptions {
        servers: settings.resolver.servers.clone(),
        zone: settings.resolver.zone.clone(),
        dnssec: settings.resolver.dnssec,
        trust_anchor: settings.resolver.trust_anchor.clone(),
        ..ResolverOptions::default()
    };
    Resolver::new(&options)
}

/// Keeps a certificate from a certificate authority, if the settings want one, and answers its challenges.
fn keep_certificate(
    settings: &Settings,
    listeners: Vec<std::net::TcpListener>,
    tls: ServerTls,
) -> Result<(), Failure> {
    let Some(acme) = acme(settings)? else {
        return Ok(());
    };
    for listener in listeners {
        let listener = TcpListener::from_std(listener)?;
        spawn_local(serve_challenges(listener, acme.challenges()));
    }
    spawn_local(async move { acme.run(|| tls.look()).await });
    Ok(())
}

/// Waits until what the spool holds is back; mail is taken only then.
async fn wait_recovered(gateway: &Gateway) {
    while !gateway.is_recovered() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Recovers when the link comes up for the first time.
async fn follow_link(gateway: Rc<Gateway>) {
    let mut state = gateway.link.state();
    loop {
        let now = *state.borrow_and_update();
        match now {
            LinkState::Connected if !gateway.is_recovered() => recover(&gateway).await,
            LinkState::Connected => tracing::info!("the spool acknowledges again"),
            LinkState::Down(ShutReason::NoFullReplica) => tracing::error!(
                "no spool node holds the queues any more as the register knows them: mail is answered \
                 4xx until an operator decides (vere spool salvage)"
            ),
            LinkState::Down(reason) => {
                tracing::warn!(
                    ?reason,
                    "the spool acknowledges nothing, mail is answered 4xx"
                );
            }
            // Whoever took over delivers from now on.
            LinkState::Fenced => return gateway.stop_delivering(),
            LinkState::Connecting => {}
        }
        if state.changed().await.is_err() {
            return;
        }
    }
}

/// Wakes the scheduler when deliveries may begin.
async fn follow_lease(gateway: Rc<Gateway>) {
    let mut lease = gateway.link.lease();
    while lease.changed().await.is_ok() {
        gateway.changed.notify_one();
    }
}

async fn recover(gateway: &Rc<Gateway>) {
    loop {
        match recovery::recover(gateway).await {
            Ok(found) => {
                tracing::info!("recovered {found}");
                return gateway.recovered();
            }
            Err(SpoolError::Closed) => return,
            Err(error) => tracing::warn!(?error, "cannot recover yet"),
        }
        tokio::time::sleep(RECOVERY_PAUSE).await;
    }
}

/// Puts other settings in force.
fn reload(reception: &Reception, gateway: &Rc<Gateway>, settings: Settings) -> Result<(), Failure> {
    reception.tls().reload(&settings)?;
    gateway.set_settings(Arc::new(settings))?;
    operate::tell_unrouted(gateway);
    reception.configure();
    Ok(())
}

/// Ends sessions at their next command and lets attempts under way finish, within [`STOP_PATIENCE`].
async fn wind_down(gateway: &Gateway, stop: &watch::Sender<bool>) {
    gateway.stop_delivering();
    stop.send_replace(true);
    let quiet = async {
        while stop.receiver_count() > 1 || gateway.in_flight() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(STOP_PATIENCE, quiet).await.is_err() {
        tracing::warn!(
            "stopping with sessions or attempts under way; nothing acknowledged is lost"
        );
    }
    // Nothing is begun any more: whoever is next need not wait.
    gateway.link.give_back().await;
    gateway.link.close();
    gateway.flush_trace();
}
