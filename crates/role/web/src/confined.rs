//! What the web server gives up before it answers strangers (`docs/internals/sandbox.md`).

use std::path::{Path, PathBuf};

use vere_process::settings::ACCEPTED_SETTINGS;
use vere_sandbox::{Service, Standing, calls};
use vere_settings::Settings;

/// The directories whose files are read again: the gateway's list and answers, and the settings, which have no secrets under a supervisor.
fn readable(settings: &Settings, config: &Path) -> Vec<PathBuf> {
    let accepted = std::env::var_os(ACCEPTED_SETTINGS).map(PathBuf::from);
    let file = accepted.unwrap_or_else(|| config.to_owned());
    let folder = file.parent().map(Path::to_owned);
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    vec![
        settings.web_directory(),
        folder.unwrap_or_else(|| PathBuf::from(".")),
    ]
}

fn service(readable: &[PathBuf]) -> Service<'_> {
    Service {
        readable,
        calls: &[
            calls::ORDINARY,
            calls::STREAM,
            calls::EVENTS,
            calls::ADDRESSES,
            calls::FILES,
            calls::THREADS,
            calls::SERVER,
            calls::PAIRS,
        ],
        refused: calls::NUMA,
    }
}

/// The first step, before the first thread.
pub(crate) fn give_up(settings: &Settings, config: &Path) -> Standing {
    service(&readable(settings, config)).give_up()
}

/// The last step, when sockets are open and threads run.
pub(crate) fn close(mut standing: Standing) {
    service(&[]).close(&mut standing);
    tracing::info!(%standing, "web server is confined");
}
