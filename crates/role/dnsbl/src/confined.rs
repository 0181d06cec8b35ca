//! What the server gives up before it answers strangers (`docs/internals/sandbox.md`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use vere_process::settings::ACCEPTED_SETTINGS;
use vere_sandbox::{Service, Standing, calls};
use vere_settings::Dnsbl;

/// The folders of the files that are read again: data, and settings. Of a link the folder of its target counts too.
pub(crate) fn readable(dnsbl: &Dnsbl, config: Option<&Path>) -> Vec<PathBuf> {
    let data = dnsbl.zones.iter().flat_map(|zone| &zone.data);
    let data = data.flat_map(|data| &data.files).map(PathBuf::as_path);
    let accepted = std::env::var_os(ACCEPTED_SETTINGS).map(PathBuf::from);
    let files = data.chain(config).chain(accepted.as_deref());
    let folders = files.flat_map(|file| {
        let real = file.canonicalize().ok();
        let folder = |file: &Path| file.parent().map(Path::to_owned);
        [folder(file), real.as_deref().and_then(folder)]
    });
    // The parent of a bare name is the empty path.
    let folders = folders
        .flatten()
        .map(|folder| match folder.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => folder,
        });
    folders.collect::<BTreeSet<_>>().into_iter().collect()
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
        ],
        refused: calls::NUMA,
    }
}

/// The first step, before the first thread.
pub(crate) fn give_up(readable: &[PathBuf]) -> Standing {
    service(readable).give_up()
}

/// The last step, when sockets are open and threads run.
pub(crate) fn close(mut standing: Standing) {
    service(&[]).close(&mut standing);
    tracing::info!(%standing, "server of block lists is confined");
}
