//! The gateway role: accepts mail by SMTP, stores the mail in the spool, and delivers it.
//!
//! One thread runs all tasks: `listeners` accept connections, `session` drives a connection, `intake` takes
//! responsibility for a message, `routing` finds the destinations, `scheduler` starts workers, `local` and `relay`
//! deliver, `control` answers commands. The crate [`vere_delivery`] has the state of a group of queues, and decides the
//! order in which records change; [`vere_groups`] has the group's environment, `process` the state of the process, `group`
//! joins them.

mod accepting;
mod aside;
mod certificate;
mod control;
mod convert;
mod couriers;
mod day_reports;
mod domains;
mod drain;
mod error;
mod event_lines;
mod export;
mod filtering;
mod filters;
mod gauges;
mod group;
mod header;
mod intake;
mod judging;
mod key_records;
mod known;
mod listeners;
mod mail_log;
mod maildir;
mod metrics;
mod parts;
mod process;
mod quarantine;
mod relay;
mod renewal;
mod reporting;
mod routing;
mod scheduler;
mod sealing;
mod sending;
mod service;
mod session;
mod signer;
mod signing;
mod telling;
mod throttle;
mod web_names;
mod workers;

pub use self::drain::{DrainError, drain};
pub use self::error::GatewayError;
pub use self::event_lines::EventTargetError;

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::spawn_local;
use vere_groups::control::{serve as serve_control, tell_unrouted};
use vere_groups::gauges::start as start_gauges;
use vere_groups::throttle::watch_nodes;
use vere_groups::{adopt, fenced, follow_lease, follow_link, wait_recovered};
use vere_net::listen::{Inherited, ListenOptions};
use vere_settings::Settings;
use vere_telemetry::metrics::Health;

use self::certificate::Keeping;
use self::group::{Group, Groups};
use self::intake::GatewayIntakes;
use self::listeners::Reception;
use self::process::Process;
use self::service::Service;
use vere_link::link::SpoolLink;
use vere_process::failure::Failure;
use vere_process::life::{self, Signals};
use vere_process::log::Level;
use vere_process::tls::ServerTls;
use vere_process::{accept, clock, entry};

/// Runs the role until it is told to stop.
///
/// # Errors
/// When the gateway cannot start: ports, files, settings.
pub fn run(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), Failure> {
    let mut inherited = Inherited::from_env()?;
    renewal::start(&settings);
    life::run(serve(settings, config, level, &mut inherited))
}

/// Starts the tasks that serve a gateway's queues.
fn keep_queues(group: &Rc<Group>) {
    spawn_local(scheduler::run(Rc::clone(group)));
    spawn_local(follow_link(Rc::clone(group)));
    spawn_local(follow_lease(Rc::clone(group)));
    spawn_local(export::run(Rc::clone(group)));
    spawn_local(Rc::clone(group).keep_known());
    spawn_local(watch_nodes(Rc::clone(group)));
}

/// Starts the tasks that look at all queues: at times, for operators, and for dead gateways.
fn keep_beside(groups: &Rc<Groups>, control: UnixListener, stop: &watch::Sender<bool>) {
    spawn_local(domains::publish(Rc::clone(groups)));
    spawn_local(quarantine::keep(Rc::clone(groups)));
    spawn_local(day_reports::keep(Rc::clone(groups)));
    let groups = || Rc::clone(groups);
    spawn_local(serve_control(groups(), control, control::answer));
    spawn_local(adopt::run(groups(), stop.subscribe(), scheduler::deliver));
}

async fn serve(
    settings: Arc<Settings>,
    config: &Path,
    level: Level,
    inherited: &mut Inherited,
) -> Result<(), GatewayError> {
    let listeners = listen(&settings, inherited)?;
    let metrics = inherited.take_or_bind(
        "metrics",
        settings.metrics.listen.as_slice(),
        ListenOptions::default(),
    )?;
    let control = bind(&settings.control.socket)?;
    let intake = settings.front.as_ref().map(|_| settings.intake_socket());
    if intake.is_some() {
        accept::private_folder(&settings.front_directory())?;
    }
    let intake = intake.map(|path| bind(&path)).transpose()?;
    let distant = couriers_socket(&settings)?;
    let local = inherited.take_local("sendmail");
    // The next steps may have to wait for the end of another gateway's lease.
    spawn_local(life::beat());
    let (options, _mark) = vere_groups::own(&settings, &settings.gateway.name).await?;
    let (link, driver) = SpoolLink::connect(options);
    spawn_local(driver);
    let trace = settings.trace_directory();
    let process = Rc::new(Process::open(settings, &trace)?);
    let group = Rc::new(vere_groups::new(&process, link));
    let groups = Rc::new(Groups::new(Rc::clone(&group)));
    let (stop, stopping) = watch::channel(false);
    let server_tls = ServerTls::new(&process.settings())?;
    let intakes = GatewayIntakes::new(Rc::clone(&group));
    let reception = Reception::new(Rc::clone(&process), intakes, server_tls, stopping)?;
    let reception = Rc::new(reception);

    keep_queues(&group);
    keep_beside(&groups, control, &stop);
    keep_next_hops(&process, distant, &stop);
    spawn_local(key_records::watch(Rc::clone(&process)));
    spawn_local({
        let tls = reception.tls().clone();
        async move { tls.watch().await }
    });
    let (http, alpn) = (inherited.take("acme"), inherited.take("acme-tls"));
    let certificate = Keeping::start(&process, http, alpn, reception.tls().clone())?;
    let (health, _) = watch::channel(Health::Starting);
    start_gauges(&groups, metrics, &health)?;
    spawn_local(gauges::measure(Rc::clone(&groups), reception.tls().clone()));
    wait_recovered(&group).await;
    for (service, listener) in listeners {
        spawn_local(Rc::clone(&reception).accept(service, listener));
    }
    if let Some(listener) = intake {
        spawn_local(workers::serve(
            Rc::clone(&group),
            listener,
            stop.subscribe(),
        ));
    }
    if let Some(listener) = local {
        spawn_local(Rc::clone(&reception).accept_local(UnixListener::from_std(listener)?));
    }
    // A process that hears of the readiness may send signals.
    let mut signals = Signals::new()?;
    let apply = |settings| reload(&reception, &groups, &certificate, settings);
    entry::notify_ready();
    health.send_replace(Health::Ready);
    let end = tokio::select! {
        () = signals.wait_for_stop(config, &level, apply) => Ok(()),
        () = fenced(&group) => Err(GatewayError::Fenced),
    };
    health.send_replace(match &end {
        Ok(()) => Health::Stopping,
        Err(error) => Health::NotReady(error.to_string()),
    });
    wind_down(&group, &stop).await;
    end
}

/// Takes or opens the sockets of the services.
fn listen(
    settings: &Settings,
    inherited: &mut Inherited,
) -> Result<Vec<(Service, TcpListener)>, GatewayError> {
    let mut listeners = Vec::new();
    for service in Service::ALL {
        let addresses = service.addresses(settings);
        let options = ListenOptions::default();
        for listener in inherited.take_or_bind(service.name(), addresses, options)? {
            listeners.push((service, TcpListener::from_std(listener)?));
        }
    }
    Ok(listeners)
}

/// Serves couriers; without couriers keeps the policies of next hops.
fn keep_next_hops(process: &Process, listener: Option<UnixListener>, stop: &watch::Sender<bool>) {
    match (&process.couriers, listener) {
        (Some(couriers), Some(listener)) => {
            spawn_local(Rc::clone(couriers).serve(listener, stop.subscribe()));
        }
        _ => {
            spawn_local(Rc::clone(&process.outbound).refresh_policies());
        }
    }
}

/// Opens the socket for couriers, if the settings ask for couriers.
fn couriers_socket(settings: &Settings) -> Result<Option<UnixListener>, GatewayError> {
    if settings.delivery.courier_processes == 0 {
        return Ok(None);
    }
    accept::private_folder(&settings.couriers_directory())?;
    bind(&settings.couriers_socket()).map(Some)
}

fn bind(path: &Path) -> Result<UnixListener, GatewayError> {
    accept::bind(path).map_err(|source| GatewayError::Control {
        path: path.to_owned(),
        source,
    })
}

/// Applies other settings.
fn reload(
    reception: &Reception<GatewayIntakes>,
    groups: &Groups,
    certificate: &Keeping,
    settings: Settings,
) -> Result<(), GatewayError> {
    reception.tls().reload(&settings)?;
    certificate.reload(&settings)?;
    groups.process().set_settings(Arc::new(settings))?;
    groups.set_policy();
    tell_unrouted(groups);
    reception.configure();
    Ok(())
}

/// Ends sessions at their next command and lets attempts under way finish, within some seconds.
async fn wind_down(group: &Group, stop: &watch::Sender<bool>) {
    stop.send_replace(true);
    vere_groups::wind_down(group, || stop.receiver_count() > 1).await;
}
