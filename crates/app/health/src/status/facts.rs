//! Everything that the command asks and looks at.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use vere_control::supervision::{
    SupervisorRequest, SystemState, ask_supervisor, supervisor_socket,
};
use vere_control::{AskError, Request, TopOrder, TopSample, ask};
use vere_net::tls::Leaf;
use vere_process::failure::Failure;
use vere_process::last_backup::LastBackup;
use vere_process::{clock, kept::Kept, web_names};
use vere_settings::Settings;

use super::orders::{self, Ordered};
use crate::nodes::{self, NodeHere};

/// How long the supervisor may take, which answers at once or stands still.
const PATIENCE: Duration = Duration::from_secs(10);
/// Settings in force, below the data directory.
const ACCEPTED: &str = "accepted.toml";
/// Seconds to the end of a certificate for the web names of a domain from which on it is listed: ACME renews earlier.
const SOON: u64 = 20 * 86_400;

/// The state of a system and its surroundings.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    /// Version of this program.
    pub(super) version: &'static str,
    /// The supervisor's answer; `None` without a running system.
    pub(super) system: Option<SystemState>,
    /// The file of the settings, if the caller knows it.
    #[serde(skip)]
    pub(super) file: Option<PathBuf>,
    /// The nodes of a machine without a mail system; empty on other machines, and beside a running system.
    pub(super) nodes: Vec<NodeHere>,
    /// Edited settings that are not in force.
    pub(super) edited: Edited,
    /// The gateway's answer; `None` when nobody listens.
    pub(super) queues: Option<TopSample>,
    /// Why the gateway's answer is missing although somebody listens.
    pub(super) queues_error: Option<String>,
    /// Destinations that operators hold, refuse or reroute.
    pub(super) orders: Vec<Ordered>,
    /// Certificates that the settings name.
    pub(super) certificates: Vec<Certificate>,
    /// File systems of the data directories.
    pub(super) disks: Vec<Disk>,
    /// The last good backup; `None` without any, or without read access to the record.
    pub(super) backup: Option<Backup>,
}

/// A good backup.
#[derive(Debug, Serialize)]
pub(super) struct Backup {
    pub(super) place: String,
    /// The number within the place.
    pub(super) number: u64,
    pub(super) age_seconds: u64,
    /// `backup.warn_after`; `None` for never.
    pub(super) warn_after_seconds: Option<u64>,
}

/// Keys of settings whose values in the file are not in force.
#[derive(Debug, Default, Serialize)]
pub(super) struct Edited {
    /// A reload puts them in force.
    pub(super) reload: Vec<String>,
    /// A restart puts them in force.
    pub(super) restart: Vec<String>,
}

/// A certificate file.
#[derive(Debug, Serialize)]
pub(super) struct Certificate {
    pub(super) file: PathBuf,
    /// Seconds to the end of validity; 0 behind the end.
    pub(super) remaining_seconds: Option<u64>,
    /// Why it cannot be read.
    pub(super) error: Option<String>,
}

/// The file system of directories.
#[derive(Debug, Serialize)]
pub(super) struct Disk {
    /// The first of the directories.
    pub(super) directory: PathBuf,
    pub(super) free_bytes: u64,
    pub(super) size_bytes: u64,
}

/// Asks the supervisor and the gateway, and looks at files. `file` has the settings.
///
/// # Errors
/// When the supervisor is there and gives no usable answer.
pub(super) fn gather(settings: &Settings, file: Option<&Path>) -> Result<Facts, Failure> {
    let socket = supervisor_socket(settings);
    let system = ask_supervisor(&socket, SupervisorRequest::Status, PATIENCE)?;
    let (queues, queues_error) = match queues(&settings.control.socket) {
        Ok(sample) => (Some(sample), None),
        Err(AskError::NoGateway { .. }) => (None, None),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(Facts {
        version: env!("CARGO_PKG_VERSION"),
        file: file.map(Path::to_owned),
        nodes: match &system {
            Some(_) => Vec::new(),
            None => nodes::asked(settings),
        },
        edited: match &system {
            Some(_) => edited(settings),
            None => Edited::default(),
        },
        system,
        orders: match &queues {
            Some(_) => orders::of(&settings.control.socket),
            None => Vec::new(),
        },
        queues,
        queues_error,
        certificates: certificates(settings),
        disks: disks(settings),
        backup: backup(settings),
    })
}

fn backup(settings: &Settings) -> Option<Backup> {
    let last = LastBackup::read(&settings.data).ok()??;
    let warn_after = settings.backup.warn_after.duration().as_secs();
    Some(Backup {
        place: last.place,
        number: last.number,
        age_seconds: clock::now().saturating_since(last.made).as_secs(),
        warn_after_seconds: Some(warn_after).filter(|seconds| *seconds > 0),
    })
}

fn queues(socket: &Path) -> Result<TopSample, AskError> {
    let request = Request::QueueTop {
        order: TopOrder::Oldest,
        filter: String::new(),
        limit: 1,
    };
    serde_json::from_value(ask(socket, &request)?).map_err(AskError::Form)
}

/// Compares the file with the settings in force. Without read access to the latter the result is empty.
fn edited(settings: &Settings) -> Edited {
    let path = settings.data.join(ACCEPTED);
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Edited::default();
    };
    let Ok(accepted) = Settings::parse(&text, &path.to_string_lossy()) else {
        return Edited::default();
    };
    let changes = accepted.changes(settings);
    Edited {
        reload: changes.live,
        restart: changes.restart,
    }
}

fn certificates(settings: &Settings) -> Vec<Certificate> {
    let mut found: Vec<Certificate> = Vec::new();
    for (_, files) in Kept::all(settings).filter_map(|kept| kept.files(settings)) {
        if found.iter().all(|known| known.file != files.certificate) {
            found.push(certificate(&files.certificate));
        }
    }
    if settings.acme.is_some() {
        // Before the first order there is no file.
        let own = settings.data.join("acme/certificate.pem");
        found.extend(own.exists().then(|| certificate(&own)));
    }
    // A domain more is a line more: of many domains those that need somebody are enough.
    let names = web_names::listing(settings).into_iter();
    let names = names.map(|(file, _)| certificate(&file));
    found.extend(names.filter(|one| one.remaining_seconds.is_none_or(|left| left < SOON)));
    found
}

fn certificate(file: &Path) -> Certificate {
    let leaf = Leaf::of_file(file);
    let end = leaf.as_ref().ok().map(|leaf| leaf.validity.not_after);
    Certificate {
        file: file.to_owned(),
        remaining_seconds: end.map(|end| end.saturating_since(clock::now()).as_secs()),
        error: leaf.err().map(|error| error.to_string()),
    }
}

/// The file systems of the data directory and of the nodes here, each once.
fn disks(settings: &Settings) -> Vec<Disk> {
    let nodes = settings.spool.nodes.iter().filter(|node| !node.remote);
    let directories = nodes.map(|node| &node.data);
    let mut found: Vec<Disk> = Vec::new();
    for directory in std::iter::once(&settings.data).chain(directories) {
        let Ok(room) = vere_disk::room(directory) else {
            continue;
        };
        let is_known = |known: &Disk| (known.free_bytes, known.size_bytes) == (room.free, room.all);
        if !found.iter().any(is_known) {
            found.push(Disk {
                directory: directory.clone(),
                free_bytes: room.free,
                size_bytes: room.all,
            });
        }
    }
    found
}
