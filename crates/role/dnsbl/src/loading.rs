//! Files become zones: at the start, at SIGHUP, and when a file changes.
//!
//! A thread of its own reads, and puts the zones in force in one step. A zone with a wrong file keeps its old data; the log
//! has file, line and reason. Zones whose files have not changed are not read again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::fcntl::OFlag;
use vere_dns::Name;
use vere_dnsbl::data::{Kind, ZoneData};
use vere_dnsbl::zone::{Defaults, Zone, Zones};
use vere_settings::{Dnsbl, DnsblZone, Settings};
use vere_telemetry::metrics::{DnsblMetrics, ZoneName};

use crate::confined::Reach;
use crate::error::DnsblError;
use crate::shared::Shared;

/// Octets that are read from a file at a time.
const READ: usize = 256 << 10;

/// An order to the loader.
pub(crate) enum Order {
    /// Read all files again.
    Read,
    /// Read all files again, of these settings.
    Apply(Box<Settings>),
}

/// The file as it was when it was read: another one has another number, time or size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &fs::Metadata) -> Self {
        Self {
            inode: file.ino(),
            size: file.size(),
            changed: (file.mtime(), file.mtime_nsec()),
        }
    }
}

/// A zone that was read.
struct Read {
    zone: Option<Arc<Zone>>,
    /// The states of the files at the last attempt, failed attempts included; `None` for a missing file.
    stamps: BTreeMap<PathBuf, Option<Stamp>>,
}

/// Reads zones.
pub(crate) struct Loader {
    dnsbl: Dnsbl,
    hostname: String,
    shared: Arc<Shared>,
    metrics: DnsblMetrics,
    reach: Reach,
    read: BTreeMap<String, Read>,
}

impl Loader {
    /// Reads all zones, puts them in force, and starts the thread that follows changes.
    ///
    /// # Errors
    /// When no zone can be read.
    pub(crate) fn start(
        settings: &Settings,
        dnsbl: &Dnsbl,
        shared: &Arc<Shared>,
        metrics: &DnsblMetrics,
        reach: Reach,
    ) -> Result<Sender<Order>, DnsblError> {
        let mut loader = Self {
            dnsbl: dnsbl.clone(),
            hostname: settings.hostname.clone(),
            shared: Arc::clone(shared),
            metrics: metrics.clone(),
            reach,
            read: BTreeMap::new(),
        };
        loader.read(true);
        if loader.read.values().all(|read| read.zone.is_none()) {
            return Err(DnsblError::NoZone);
        }
        let (orders, coming) = channel();
        let follow = move || loader.follow(&coming);
        Builder::new().name("loader".to_owned()).spawn(follow)?;
        Ok(orders)
    }

    /// Carries out orders, and looks for changes in between.
    fn follow(mut self, orders: &Receiver<Order>) {
        loop {
            let interval = Duration::from_millis(self.dnsbl.check_interval.as_millis());
            match orders.recv_timeout(interval) {
                Ok(Order::Read) => self.read(true),
                Ok(Order::Apply(settings)) => {
                    if let Some(dnsbl) = settings.dnsbl {
                        self.dnsbl = dnsbl;
                        self.hostname = settings.hostname;
                    }
                    self.read(true);
                }
                Err(RecvTimeoutError::Timeout) => self.read(false),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Reads the zones whose files have changed, or all, and puts the result in force.
    fn read(&mut self, all: bool) {
        let zones = self.dnsbl.zones.clone();
        let mut changed = false;
        for zone in &zones {
            let known = self.read.get(&zone.name);
            let is_due = all || known.is_none_or(|known| stamps(zone) != known.stamps);
            if is_due {
                changed = true;
                self.read_zone(zone);
            }
        }
        let before = self.read.len();
        self.read
            .retain(|name, _| zones.iter().any(|zone| zone.name == *name));
        if !changed && before == self.read.len() {
            return;
        }
        let in_order = zones.iter().filter_map(|zone| {
            let read = self.read.get(&zone.name)?;
            read.zone.clone()
        });
        self.shared.replace(Zones::new(in_order.collect()));
    }

    fn read_zone(&mut self, settings: &DnsblZone) {
        let start = Instant::now();
        let stamps = stamps(settings);
        let label = ZoneName(settings.name.clone());
        let zone = match self.zone(settings) {
            Ok(zone) => {
                let millis = start.elapsed().as_millis();
                let (entries, memory) = (zone.data().entries(), zone.data().memory());
                let seconds = seconds_since_1970();
                tracing::info!(zone = settings.name, entries, memory, millis, "zone loaded");
                let set = |gauge: &vere_telemetry::metrics::Gauge, value: u128| {
                    gauge.set(i64::try_from(value).unwrap_or(i64::MAX))
                };
                set(
                    &self.metrics.zone_entries.get_or_create(&label),
                    entries as u128,
                );
                set(
                    &self.metrics.zone_memory.get_or_create(&label),
                    memory as u128,
                );
                set(&self.metrics.zone_load.get_or_create(&label), millis);
                set(
                    &self.metrics.zone_loaded.get_or_create(&label),
                    seconds.into(),
                );
                Some(Arc::new(zone))
            }
            Err(error) => {
                self.metrics.load_failures.get_or_create(&label).inc();
                let old = self.read.remove(&settings.name).and_then(|read| read.zone);
                let remains = if old.is_some() {
                    "old data remain"
                } else {
                    "zone is not served"
                };
                tracing::error!(zone = settings.name, %error, "zone not loaded, {remains}");
                old
            }
        };
        self.read
            .insert(settings.name.clone(), Read { zone, stamps });
    }

    fn zone(&self, settings: &DnsblZone) -> io::Result<Zone> {
        let apex = Name::parse(&settings.name).map_err(io::Error::other)?;
        let mut builder = ZoneData::build();
        let mut newest = 0;
        for data in &settings.data {
            let kind: Kind = data.format.parse().map_err(io::Error::other)?;
            builder.next_dataset();
            for path in &data.files {
                let opened = open(path);
                let (file, written) = opened.map_err(|error| self.unreadable(path, &error))?;
                newest = newest.max(written);
                let input = BufReader::with_capacity(READ, file);
                let name = path.to_string_lossy();
                builder.add(kind, &name, input).map_err(io::Error::other)?;
            }
        }
        let serial = u32::try_from(newest).unwrap_or_default();
        let defaults = self.defaults()?;
        Ok(Zone::new(apex, builder.finish(), &defaults, serial))
    }

    /// Says which file cannot be read, and whether that needs a restart.
    fn unreadable(&self, path: &Path, error: &io::Error) -> io::Error {
        let file = path.display();
        io::Error::other(match self.reach.beyond(path) {
            None => format!("cannot read {file}: {error}"),
            Some(folder) => format!(
                "cannot read {file}: {error}; the server reads in folders of its start alone, and {} was none of them: \
                 restart to read it",
                folder.display()
            ),
        })
    }

    fn defaults(&self) -> io::Result<Defaults> {
        let name = |text: &str| Name::parse(text).map_err(io::Error::other);
        let servers = match self.dnsbl.name_servers.as_slice() {
            [] => vec![name(&self.hostname)?],
            servers => servers
                .iter()
                .map(|server| name(server))
                .collect::<io::Result<_>>()?,
        };
        let seconds =
            |span: vere_units::Span| u32::try_from(span.as_millis() / 1_000).unwrap_or(u32::MAX);
        Ok(Defaults {
            ttl: seconds(self.dnsbl.ttl),
            negative_ttl: seconds(self.dnsbl.negative_ttl),
            servers,
            mailbox: name(&format!("postmaster.{}", self.hostname))?,
            test_entries: self.dnsbl.test_entries,
        })
    }
}

/// Opens a file; returns also the time of its last change in seconds since 1970. The open of a pipe waits for a writer and
/// a device has no end: both would keep the loader for ever, and are refused.
fn open(path: &Path) -> io::Result<(File, i64)> {
    let mut options = File::options();
    let file = options
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other(
            "expected a regular file; found a folder, pipe or device",
        ));
    }
    Ok((file, found.mtime()))
}

/// The files of a zone as they are now.
fn stamps(zone: &DnsblZone) -> BTreeMap<PathBuf, Option<Stamp>> {
    let files = zone.data.iter().flat_map(|data| &data.files);
    let stamp = |file: &PathBuf| {
        let found = fs::metadata(file).ok();
        (file.clone(), found.as_ref().map(Stamp::of))
    };
    files.map(stamp).collect()
}

fn seconds_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings know the formats by name alone.
    #[test]
    fn the_settings_and_the_data_have_the_same_formats() {
        assert!(
            vere_settings::DATA_FORMATS
                .iter()
                .eq(Kind::ALL.map(Kind::name).iter())
        );
    }

    /// Neither waits for a writer, and neither is read to its end.
    #[test]
    fn what_is_no_regular_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [&pipe, Path::new("/dev/zero"), folder.path()] {
            let error = open(path).expect_err("no data").to_string();
            assert!(error.contains("expected a regular file"), "{error}");
        }
        let file = folder.path().join("file");
        fs::write(&file, "192.0.2.1\n").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open(&link).is_ok());
    }
}
