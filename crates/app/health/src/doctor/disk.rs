//! The disks of the data directories: free space and inodes, the kind of file system, the time of a sync.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::statfs::{FsType, NFS_SUPER_MAGIC, TMPFS_MAGIC, statfs};
use vere_process::wording::size;
use vere_settings::Settings;

use crate::row::Row;

const CHECK: &str = "disk";
/// Number of timed syncs; the median counts.
const SYNCS: usize = 9;
/// A block, as an entry of a log has at least.
const BLOCK: usize = 4_096;
/// Longest wait for all syncs: a slower disk holds up all mail.
const PATIENCE: Duration = Duration::from_secs(5);
/// Every `250` behind DATA waits for a sync; disks with moving heads take 10 ms.
const SLOW: Duration = Duration::from_millis(25);
/// Free inodes, in percent.
const INODES_WARNING: u64 = 5;

/// The file systems of the data directory and of the nodes here, each directory once.
pub(super) fn rows(settings: &Settings) -> Vec<Row> {
    let mut rows = Vec::new();
    for directory in directories(settings) {
        rows.extend(one(&directory));
    }
    rows
}

fn directories(settings: &Settings) -> Vec<PathBuf> {
    let here = settings.spool.nodes.iter().filter(|node| !node.remote);
    let mut found = vec![settings.data.clone()];
    // Directories below the data directory are on the same disk, but for mounts.
    let apart = here.map(|node| node.data.clone());
    found.extend(apart.filter(|path| !path.starts_with(&settings.data) || is_mount(path)));
    found
}

/// Whether a directory is on another device than its parent.
fn is_mount(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let device = |path: &Path| path.metadata().map(|about| about.dev());
    match (device(path), path.parent().map(device)) {
        (Ok(own), Some(Ok(above))) => own != above,
        _ => false,
    }
}

fn one(directory: &Path) -> Vec<Row> {
    let name = directory.display();
    if !directory.exists() {
        let text = format!("{name} does not exist yet; the first start creates it");
        return vec![Row::ok(CHECK, text)];
    }
    let mut rows = Vec::new();
    if let Ok(room) = vere_disk::room(directory) {
        let text = format!("{name}: {} of {} free", size(room.free), size(room.all));
        rows.push(Row::ok(CHECK, text));
    }
    rows.extend(inodes(directory));
    if let Ok(about) = statfs(directory) {
        rows.extend(kind(directory, about.filesystem_type()));
    }
    rows.push(sync_row(directory, timed(directory.to_owned())));
    rows
}

fn inodes(directory: &Path) -> Option<Row> {
    let about = nix::sys::statvfs::statvfs(directory).ok()?;
    let percent = about
        .files_available()
        .saturating_mul(100)
        .checked_div(about.files())?;
    (percent < INODES_WARNING).then(|| {
        Row::warning(
            CHECK,
            format!(
                "{percent} % of the inodes are free below {}",
                directory.display()
            ),
            "remove small files, or make a file system with more inodes",
        )
    })
}

/// File systems in memory, or behind a network.
fn kind(directory: &Path, kind: FsType) -> Option<Row> {
    let name = directory.display();
    match kind {
        TMPFS_MAGIC => Some(Row::critical(
            CHECK,
            format!("{name} is in memory (tmpfs): a power failure loses all mail"),
            "choose a directory on a disk with: data = \"/var/lib/vere\"",
        )),
        NFS_SUPER_MAGIC => Some(Row::warning(
            CHECK,
            format!("{name} is on NFS: syncs and locks depend on the server"),
            "choose a directory on a local disk with: data = \"/var/lib/vere\"",
        )),
        _ => None,
    }
}

/// The result of the timed syncs.
enum Timed {
    Median(Duration),
    Silent,
    Failed(std::io::Error),
}

/// Times syncs of a file without a name, on a separate thread: a broken disk may take minutes.
fn timed(directory: PathBuf) -> Timed {
    let (to, from) = mpsc::channel();
    thread::spawn(move || {
        // The command may have given up waiting.
        let _gone = to.send(syncs(&directory));
    });
    match from.recv_timeout(PATIENCE) {
        Ok(Ok(median)) => Timed::Median(median),
        Ok(Err(error)) => Timed::Failed(error),
        Err(_) => Timed::Silent,
    }
}

fn syncs(directory: &Path) -> std::io::Result<Duration> {
    let mut file = tempfile::tempfile_in(directory)?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let start = Instant::now();
        file.write_all(&[7; BLOCK])?;
        file.sync_data()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(SYNCS / 2).copied().unwrap_or_default())
}

fn sync_row(directory: &Path, timed: Timed) -> Row {
    const CHECK: &str = "sync";
    let name = directory.display();
    match timed {
        Timed::Median(median) if median < SLOW => {
            Row::ok(CHECK, format!("{name}: {} ms", milliseconds(median)))
        }
        Timed::Median(median) => Row::warning(
            CHECK,
            format!(
                "{name}: {} ms, for which each message waits before it is accepted",
                milliseconds(median)
            ),
            "use a faster disk or a controller with a battery, or two machines with: gateway.durability = \"replicated\"",
        ),
        Timed::Silent => Row::critical(
            CHECK,
            format!("{name}: no sync within {} s", PATIENCE.as_secs()),
            "see the errors of the disk with: dmesg, and: smartctl -a",
        ),
        Timed::Failed(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Row::ok(
            CHECK,
            format!("{name}: not tried; only root and the system's user can"),
        ),
        Timed::Failed(error) => Row::critical(
            CHECK,
            format!("{name}: a test file cannot be written: {error}"),
            "free disk space, or see the errors of the disk with: dmesg",
        ),
    }
}

/// Milliseconds with two digits behind the point.
fn milliseconds(time: Duration) -> String {
    let hundredths = time.as_micros() / 10;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Level;

    #[test]
    fn slow_silent_and_broken_disks_have_remedies() {
        let at = Path::new("/data");
        let level = |timed| sync_row(at, timed).level;
        assert_eq!(
            level(Timed::Median(Duration::from_micros(1_234))),
            Level::Ok
        );
        let text = sync_row(at, Timed::Median(Duration::from_micros(40_560))).text;
        assert!(text.contains("40.56 ms"), "{text}");
        assert_eq!(level(Timed::Median(SLOW)), Level::Warning);
        assert_eq!(level(Timed::Silent), Level::Critical);
        let error = |kind: std::io::ErrorKind| Timed::Failed(kind.into());
        assert_eq!(
            level(error(std::io::ErrorKind::PermissionDenied)),
            Level::Ok
        );
        assert_eq!(
            level(error(std::io::ErrorKind::StorageFull)),
            Level::Critical
        );
    }

    #[test]
    fn file_systems_in_memory_are_critical() {
        let level = |of| kind(Path::new("/data"), of).map(|row| row.level);
        assert_eq!(level(TMPFS_MAGIC), Some(Level::Critical));
        assert_eq!(level(NFS_SUPER_MAGIC), Some(Level::Warning));
        assert_eq!(level(nix::sys::statfs::EXT4_SUPER_MAGIC), None);
    }

    #[test]
    fn a_directory_leaves_no_file_behind() {
        let folder = tempfile::tempdir().unwrap();
        let rows = one(folder.path());
        assert!(rows.iter().any(|row| row.check == "sync"), "{rows:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let missing = one(&folder.path().join("missing"));
        assert_eq!(missing[0].level, Level::Ok);
    }
}
