//! Delivers the queues of MTAs that are dead, in the foreground (`vere queue --x400 drain --here`).

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use tokio::sync::mpsc;
use vere_groups::drain::Drainer;
use vere_process::tls::ServerTls;
use vere_settings::{GROUP_PREFIX, Settings};

use crate::error::X400Error;
use crate::process::Process;
use crate::scheduler;

/// Why the queues of an MTA are not drained.
pub type DrainError = vere_groups::drain::DrainError<X400Error>;

/// Drains the groups of the given MTAs (`mta2` or `x400.mta2`), or of all dead MTAs. With `force`, also drains the group of a live
/// MTA, which then ends. Writes progress to `out`.
///
/// # Errors
/// When an MTA lives, the archive belongs to a running MTA, or something is left.
pub fn drain(
    settings: &Arc<Settings>,
    names: &[String],
    force: bool,
    out: &mut dyn Write,
) -> Result<(), DrainError> {
    let names: Vec<String> = names.iter().map(|name| group_of(name)).collect();
    let deliver = scheduler::run;
    Drainer { open, deliver }.drain(settings, &names, force, out)
}

/// The group of an MTA.
fn group_of(name: &str) -> String {
    match name.starts_with(GROUP_PREFIX) {
        true => name.to_owned(),
        false => format!("{GROUP_PREFIX}{name}"),
    }
}

fn open(settings: &Arc<Settings>) -> Result<Process, X400Error> {
    let x400 = settings.x400.as_ref().ok_or(X400Error::NoSection)?;
    // Where an MTA runs, the MTA writes its own events.
    let trace = match UnixStream::connect(x400.control_socket()) {
        Ok(_) => settings.drain_trace_directory(),
        Err(_) => x400.trace_folder(),
    };
    // The drain receives no units: a peer with units for an association of the drain keeps the units.
    let (incoming, _) = mpsc::channel(1);
    let tls = ServerTls::new(settings)?;
    Process::open(Arc::clone(settings), incoming, &trace, &tls)
}

#[cfg(test)]
mod tests {
    use super::group_of;

    #[test]
    fn an_mta_is_named_with_and_without_the_prefix_of_its_group() {
        assert_eq!(group_of("mta2"), "x400.mta2");
        assert_eq!(group_of("x400.mta2"), "x400.mta2");
    }
}
