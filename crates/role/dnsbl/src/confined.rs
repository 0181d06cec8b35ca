//! What the server gives up before it answers strangers (`docs/internals/sandbox.md`).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use vere_process::settings::ACCEPTED_SETTINGS;
use vere_sandbox::{Layer, Service, Standing, calls};
use vere_settings::Dnsbl;

/// The folders of the files that are read again: data, and settings. Of a link the folder of its target counts too.
pub(crate) fn readable(dnsbl: &Dnsbl, config: Option<&Path>) -> Vec<PathBuf> {
    let data = dnsbl.zones.iter().flat_map(|zone| &zone.data);
    let data = data.flat_map(|data| &data.files).map(PathBuf::as_path);
    let accepted = std::env::var_os(ACCEPTED_SETTINGS).map(PathBuf::from);
    // Under a supervisor the settings come from a directory of the role alone.
    let settings = accepted.as_deref().or(config);
    let files = data.chain(settings);
    let folders = files.flat_map(|file| {
        let real = file.canonicalize().ok();
        let folder = |file: &Path| file.parent().map(Path::to_owned);
        [folder(file), real.as_deref().and_then(folder)]
    });
    let folders = folders.flatten().map(|folder| named(&folder).to_owned());
    folders.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The parent of a bare name is the empty path.
fn named(folder: &Path) -> &Path {
    match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    }
}

/// The readable folders of the sandbox: the folders of the start. A folder that was removed
/// and made again is another one.
#[derive(Debug, Default)]
pub(crate) struct Reach(Option<BTreeSet<(u64, u64)>>);

impl Reach {
    pub(crate) fn new(readable: &[PathBuf], standing: &Standing) -> Self {
        let known = || readable.iter().filter_map(|folder| identity(folder));
        let is_bounded = standing.held.contains(Layer::Files);
        Self(is_bounded.then(|| known().collect()))
    }

    /// Returns the folder of a file if the server cannot read in it before a restart.
    pub(crate) fn beyond<'a>(&self, file: &'a Path) -> Option<&'a Path> {
        let known = self.0.as_ref()?;
        let mut above = file.ancestors().skip(1).map(named);
        let is_known = above.any(|folder| identity(folder).is_some_and(|id| known.contains(&id)));
        match is_known {
            true => None,
            false => file.parent().map(named),
        }
    }
}

fn identity(folder: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(folder).ok()?;
    Some((found.dev(), found.ino()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_start_and_those_below_can_be_read() {
        let base = tempfile::tempdir().unwrap();
        let folder = |name: &str| base.path().join(name);
        let (old, late) = (folder("old"), folder("late"));
        fs::create_dir(&old).unwrap();
        let mut standing = Standing::default();
        let readable = [old.clone(), late.clone()];
        let free = Reach::new(&readable, &standing);
        standing.held = vere_sandbox::Layers::of_octet(u8::MAX);
        let reach = Reach::new(&readable, &standing);
        assert_eq!(reach.beyond(&old.join("list")), None);
        assert_eq!(reach.beyond(&old.join("below/list")), None, "not there yet");
        assert_eq!(reach.beyond(&late.join("list")), Some(&*late));
        fs::create_dir(&late).unwrap();
        assert_eq!(reach.beyond(&late.join("list")), Some(&*late));
        assert_eq!(free.beyond(&late.join("list")), None, "without a sandbox");
        // The same name, but another folder.
        fs::rename(&old, folder("gone")).unwrap();
        fs::create_dir(&old).unwrap();
        assert_eq!(reach.beyond(&old.join("list")), Some(&*old));
        assert_eq!(reach.beyond(Path::new("list")), Some(Path::new(".")));
    }
}
