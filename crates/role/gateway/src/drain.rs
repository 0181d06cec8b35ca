//! Delivers the queues of gateways that are dead, in the foreground (`vere queue drain --here`).

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use vere_groups::drain::Drainer;
use vere_settings::{RecordSink, Settings};

use super::error::GatewayError;
use super::process::Process;
use super::scheduler::deliver;

/// Why the queues of a gateway are not drained.
pub type DrainError = vere_groups::drain::DrainError<GatewayError>;

/// Drains the groups of the given gateways, or of all dead gateways. With `force`, also drains the group of a live
/// gateway, which then ends. Writes progress to `out`.
///
/// # Errors
/// When a gateway lives, or something is left.
pub fn drain(
    settings: &Arc<Settings>,
    names: &[String],
    force: bool,
    out: &mut dyn Write,
) -> Result<(), DrainError> {
    Drainer { open, deliver }.drain(settings, names, force, out)
}

fn open(settings: &Arc<Settings>) -> Result<Process, GatewayError> {
    let mut trace = settings.trace_directory();
    let is_running = UnixStream::connect(&settings.control.socket).is_ok();
    let drained = settings.drain_trace_directory();
    let mut settings = Arc::clone(settings);
    // The couriers of this machine serve its gateway.
    Arc::make_mut(&mut settings).delivery.courier_processes = 0;
    if is_running {
        // A gateway runs here, and writes there.
        trace = drained;
        let records = Arc::make_mut(&mut settings).records.as_mut();
        if let Some(RecordSink::File { path, .. }) = records.map(|records| &mut records.to) {
            path.as_mut_os_string().push(".drain");
        }
    }
    Process::open(settings, &trace)
}
