//! A courier: finds the hosts of destinations, connects to them and sends messages for the gateway, over a socket in the file system and in the
//! protocol of [`vere_handoff::delivery`]. A courier has neither a queue nor a spool; the gateway tries the messages of a
//! lost courier again.
//!
//! Reading order: `service` (the connection to the gateway), `lane` (one destination and its connection), `answers`.

mod answers;
mod error;
mod lane;
mod service;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use tokio::task::spawn_local;
use vere_outbound::{Outbound, OutboundMetrics};
use vere_process::failure::Failure;
use vere_process::life::{self, Signals};
use vere_process::log::Level;
use vere_process::{accept, entry};
use vere_settings::Settings;

use self::error::CourierError;

/// Pause before the gateway is looked for again.
const AGAIN: Duration = Duration::from_millis(50);
/// The longest pause, after connections that the gateway closed at once.
const AGAIN_MAX: Duration = Duration::from_secs(1);
/// A connection that lasts so long was taken by the gateway.
const TAKEN: Duration = Duration::from_secs(1);

/// Runs the role until it is told to stop. `name` tells the couriers of a system apart.
///
/// # Errors
/// When the courier cannot start: name servers, certificates, passwords, files.
pub fn run(
    settings: Arc<Settings>,
    name: &str,
    config: &Path,
    level: Level,
) -> Result<(), Failure> {
    life::run(serve(settings, name, config, level))
}

async fn serve(
    settings: Arc<Settings>,
    name: &str,
    config: &Path,
    level: Level,
) -> Result<(), CourierError> {
    let metrics = OutboundMetrics::for_another();
    let folder = settings.couriers_directory();
    accept::private_folder(&folder)?;
    // Couriers with a common cache would overwrite entries of other couriers.
    let policies = folder.join(format!("mta-sts-policies-{name}"));
    let resolver = vere_outbound::resolver(&settings)?;
    let outbound = Outbound::new(&settings, resolver, metrics.clone(), Some(&policies))?;
    let outbound = Rc::new(outbound);
    spawn_local(life::beat());
    spawn_local(Rc::clone(&outbound).refresh_policies());
    spawn_local(serve_gateways(
        settings.couriers_socket(),
        Rc::clone(&outbound),
        metrics,
    ));
    let mut signals = Signals::new()?;
    entry::notify_ready();
    let apply = |settings| outbound.set_settings(&Arc::new(settings));
    signals.wait_for_stop(config, &level, apply).await;
    // The gateway stops before the couriers: no attempt is under way.
    Ok(())
}

/// Serves one gateway after another.
async fn serve_gateways(
    socket: std::path::PathBuf,
    outbound: Rc<Outbound>,
    metrics: OutboundMetrics,
) {
    let mut pause = AGAIN;
    loop {
        if let Ok(stream) = UnixStream::connect(&socket).await {
            let begun = Instant::now();
            match service::serve(stream, &outbound, &metrics).await {
                Ok(()) => tracing::info!("gateway gone"),
                Err(error) => tracing::warn!(%error, "connection of the gateway lost"),
            }
            pause = next_pause(pause, begun.elapsed());
        }
        tokio::time::sleep(pause).await;
    }
}

/// The pause after a connection that lasted so long.
fn next_pause(pause: Duration, lasted: Duration) -> Duration {
    match lasted < TAKEN {
        true => AGAIN_MAX.min(pause * 2),
        false => AGAIN,
    }
}
