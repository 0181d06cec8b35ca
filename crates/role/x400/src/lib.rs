//! The MTA of X.400: receives messages, probes and reports by P1, stores them in the spool, and transfers or delivers them.
//!
//! One thread runs all tasks, as in the gateway. `listeners` accept connections, `caller` serves an association of a peer, `receiver` receives
//! its units, `intake` takes responsibility for a unit, `records` makes the parts for the queues, `scheduler` starts workers, `transfer`
//! (peers), `files` (local users) and `mailboxes` (the mail store) deliver. [`vere_mta400`] decides, [`vere_groups`] has the
//! queues. `process` is the state of the process, `trade` tells the queues what reports and events of X.400 are.

mod answered;
mod archiving;
mod attached;
mod auditing;
mod budget;
mod caller;
mod drain;
mod error;
mod files;
mod gateways;
mod gauges;
mod intake;
mod kept;
mod listeners;
mod mailboxes;
mod memo;
mod metrics;
mod origin;
mod peers;
mod process;
mod receiver;
mod reception;
mod report;
mod scheduler;
mod told;
mod trade;
mod transfer;
mod waiting;

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_local;
use vere_control::{Answer, Request};
use vere_groups::control::Receiving;
use vere_groups::{Groups, adopt, control, throttle};
use vere_link::link::SpoolLink;
use vere_net::listen::Inherited;
use vere_process::failure::Failure;
use vere_process::life::{self, Signals};
use vere_process::log::Level;
use vere_process::tls::ServerTls;
use vere_process::{accept, entry};
use vere_settings::Settings;
use vere_telemetry::metrics::Health;

pub use drain::{DrainError, drain};
pub use error::X400Error;

use self::gateways::MtaDesk;
use self::intake::Intake;
use self::process::Process;
use self::reception::Reception;

/// Waiting associations of this MTA.
const INCOMING_MAX: usize = 16;

/// Runs the role until it is told to stop.
///
/// # Errors
/// When the MTA cannot start: ports, files, settings.
pub fn run(settings: Arc<Settings>, config: &Path, level: Level) -> Result<(), Failure> {
    let mut inherited = Inherited::from_env()?;
    life::run(serve(settings, config, level, &mut inherited))
}

async fn serve(
    settings: Arc<Settings>,
    config: &Path,
    level: Level,
    inherited: &mut Inherited,
) -> Result<(), X400Error> {
    let Some(x400) = settings.x400.clone() else {
        return Err(X400Error::NoSection);
    };
    accept::private_folder(&x400.folder).map_err(X400Error::at(&x400.folder))?;
    let ports = listeners::open(&x400, inherited)?;
    let metrics = inherited.take("metrics-x400");
    let control = bind(&x400.control_socket())?;
    let socket = bind(&x400.socket)?;
    // The next steps may have to wait for the end of another owner's lease.
    spawn_local(life::beat());
    let (options, _mark) = vere_groups::own(&settings, &x400.group()).await?;
    let (link, driver) = SpoolLink::connect(options);
    spawn_local(driver);
    let tls = ServerTls::new(&settings)?;
    let (incoming, lent) = mpsc::channel(INCOMING_MAX);
    let process = Rc::new(Process::open(
        settings,
        incoming,
        &x400.trace_folder(),
        &tls,
    )?);
    let tls = process.asking(tls)?;
    let group = Rc::new(vere_groups::new(&process, link));
    let groups = Rc::new(Groups::new(Rc::clone(&group)));
    let (stop, stopping) = watch::channel(false);
    let intake = Rc::new(Intake::new(Rc::clone(&group)));
    let reception = Rc::new(Reception::new(intake, tls.clone(), stopping));
    spawn_local(answered::receive(Rc::clone(&reception), lent));
    keep_queues(&groups, stop.subscribe());
    spawn_local(control::serve(Rc::clone(&groups), control, answer));
    let (health, _) = watch::channel(Health::Starting);
    vere_groups::gauges::start(&groups, metrics, &health).map_err(X400Error::Metrics)?;
    spawn_local(gauges::keep(Rc::clone(&groups), tls.clone()));
    spawn_local(peers::keep_open(Rc::clone(&process.peers)));
    vere_groups::wait_recovered(&group).await;
    for port in ports {
        spawn_local(Rc::clone(&reception).accept(port));
    }
    let desk = MtaDesk {
        group: Rc::clone(&group),
        reception: Rc::clone(&reception),
    };
    spawn_local(gateways::serve(
        Rc::new(desk),
        Rc::clone(&process.gateways),
        socket,
        stop.subscribe(),
    ));
    let watched = tls.clone();
    spawn_local(async move { watched.watch().await });
    let mut signals = Signals::new()?;
    let apply = |settings| reload(&groups, &tls, settings);
    entry::notify_ready();
    health.send_replace(Health::Ready);
    let end = tokio::select! {
        () = signals.wait_for_stop(config, &level, apply) => Ok(()),
        () = vere_groups::fenced(&group) => Err(X400Error::Fenced),
    };
    health.send_replace(match &end {
        Ok(()) => Health::Stopping,
        Err(error) => Health::NotReady(error.to_string()),
    });
    stop.send_replace(true);
    drop(reception);
    vere_groups::wind_down(&group, || stop.receiver_count() > 0).await;
    process.end().await;
    end
}

/// Starts the tasks that serve the queues, until the MTA stops.
fn keep_queues(groups: &Rc<Groups<Process>>, stop: watch::Receiver<bool>) {
    let group = &groups.own;
    spawn_local(scheduler::run(Rc::clone(group)));
    spawn_local(vere_groups::follow_link(Rc::clone(group)));
    spawn_local(vere_groups::follow_lease(Rc::clone(group)));
    spawn_local(throttle::watch_nodes(Rc::clone(group)));
    let known = Rc::clone(group);
    spawn_local(async move { known.keep_known().await });
    spawn_local(adopt::run(Rc::clone(groups), stop, scheduler::run));
}

/// Answers a command about queues.
async fn answer(groups: &Rc<Groups<Process>>, request: &Request) -> Answer {
    let process = groups.process();
    let receiving = || Receiving {
        bodies: vec![control::octets(
            "incoming units",
            process.budget.held(),
            Some(process.budget.max()),
        )],
        ..Receiving::default()
    };
    let answer = control::answer(groups, request, receiving).await;
    answer
        .unwrap_or_else(|| Answer::Error("the MTA of X.400 keeps nothing of this kind".to_owned()))
}

fn bind(path: &Path) -> Result<UnixListener, X400Error> {
    accept::bind(path).map_err(X400Error::at(path))
}

/// Applies other settings.
fn reload(groups: &Groups<Process>, tls: &ServerTls, settings: Settings) -> Result<(), X400Error> {
    tls.reload(&settings)?;
    groups.process().set_settings(Arc::new(settings), tls)?;
    groups.set_policy();
    Ok(())
}
