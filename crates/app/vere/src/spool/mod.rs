//! The spool's two hosts: a node as a process of its own, and the owner's link in the gateway.
//!
//! The engines are in `vere-spool`; what is here moves their octets, reads the clock and wakes
//! whoever waits.

mod clock;
mod complaints;
pub(crate) mod encryption;
mod error;
pub(crate) mod link;
pub(crate) mod mark;
pub(crate) mod namesake;
pub(crate) mod node;
pub(crate) mod reader;
mod restore;
mod socket;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::sys::signal::{SigSet, Signal};
use vere_cluster::Register;
use vere_disk::log::LogOptions;
use vere_disk::spill::SpillOptions;
use vere_net::listen::{Inherited, ListenOptions};
use vere_settings::{Settings, SpoolNode};
use vere_spool::lease::LeaseTerms;
use vere_spool::node::{Account, NodeConfig, OUTLINER};
use vere_spool::owner::Membership;
use vere_spoolwire::{Grants, KeptGrants, Right, SharedSecret};

pub(crate) use error::SetupError;

use crate::failure::Failure;
use crate::role::log::Level;
use crate::role::{entry, life};
use crate::secret::{self, SecretError};
use encryption::Encryption;
use mark::OwnerMark;
use node::{Durability, NodeOptions, Stop};
use reader::Admission;

/// What a record takes beside its message: envelope, headers of ours, frame.
const FRAME_SPARE: u64 = 14 << 20;
/// The most that `limits.message_size_max` can be.
const MESSAGE_SIZE_MAX: u64 = 2 << 30;

/// Disk that is left to others, above all to the logs.
const SPILL_SPARE: u64 = 1 << 30;

/// Runs the node of that name until it is told to stop. A reload changes nothing of it but the log's level, where
/// it is known which file says so.
///
/// # Errors
/// When the settings know no such node, its port or log cannot be opened, or it cannot go on.
pub(crate) fn run(
    settings: &Settings,
    name: &str,
    reload: Option<(PathBuf, Level)>,
) -> Result<(), Failure> {
    let node = settings
        .spool
        .nodes
        .iter()
        .find(|node| node.name == name)
        .ok_or_else(|| Failure::new(format!("the settings know no spool node {name}")))?;
    let mut inherited = Inherited::from_env()?;
    let addresses: Vec<SocketAddr> = node.addresses().collect();
    let listeners = inherited.take_or_bind("spool", &addresses, ListenOptions::default())?;
    let config = config(settings)?;
    let options = NodeOptions {
        spill: spill(settings, &config).map(|spill| (node.data.clone(), spill)),
        config,
        durability: durability(settings, &node.data),
        encryption: Encryption::of(encryption::certificates(settings)?.as_ref(), node),
        alive: entry::notify_watchdog,
    };
    let stop = Stop::default();
    take_signals(stop.clone(), reload)?;
    node::serve(options, listeners, stop, entry::notify_ready)?;
    Ok(())
}

/// The register that says which nodes hold a group.
///
/// # Errors
/// When it cannot be used.
pub(crate) fn register(settings: &Settings) -> Result<Register, SetupError> {
    Register::open(&settings.cluster).map_err(SetupError::Register)
}

/// How long a delivery lease lasts.
pub(crate) fn lease_terms(settings: &Settings) -> LeaseTerms {
    LeaseTerms {
        lease: settings.cluster.lease.duration(),
        skew: settings.cluster.skew.duration(),
    }
}

/// Marks on this machine that the owner of this life lives.
///
/// # Errors
/// When the file cannot be used, or the group's name, which may come from the register, can be none.
pub(crate) fn mark(settings: &Settings, group: &str, life: u64) -> Result<OwnerMark, SetupError> {
    vere_settings::checked_name(group).map_err(|problem| SetupError::GroupName {
        group: group.to_owned(),
        problem,
    })?;
    let local = matches!(settings.cluster.register, vere_settings::Register::File(_));
    let folder = settings.data.join("owner");
    OwnerMark::take(&folder, group, life, local)
        .map_err(|source| SetupError::Mark { folder, source })
}

/// As whom this machine speaks to nodes, and by which key; made when it is absent.
///
/// # Errors
/// When the file of the key cannot be used.
pub(crate) fn account(settings: &Settings) -> Result<Credentials, SecretError> {
    let spool = &settings.spool;
    let file = spool.secret_of(&spool.speaks_as).unwrap_or(&spool.secret);
    Ok(Credentials {
        account: spool.speaks_as.clone(),
        secret: secret::load_or_make(file)?,
    })
}

/// An account and what proves it.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    pub(crate) account: String,
    pub(crate) secret: SharedSecret,
}

/// Whether this machine's account may own a group, as the first of its members says that says something.
/// Who claims a group in the register and is turned away by its nodes has fenced its owner for nothing.
///
/// # Errors
/// When key or certificates cannot be used, or none of the members is a node of the settings.
pub(crate) async fn admission(
    settings: &Arc<Settings>,
    group: &str,
    record: &Membership,
) -> Result<Admission, SetupError> {
    if record.members.is_empty() {
        // Nobody holds anything of it yet.
        return Ok(Admission::Granted);
    }
    let key = account(settings)?;
    let tls = encryption::certificates(settings)?;
    let is_member = |node: &&SpoolNode| record.member(&node.name).is_some();
    let nodes = settings.spool.nodes.iter();
    let members: Vec<SpoolNode> = nodes.filter(is_member).cloned().collect();
    if members.is_empty() {
        let nodes = record.members.iter().map(|one| one.node.clone());
        return Err(SetupError::NoMember {
            group: group.to_owned(),
            nodes: nodes.collect(),
        });
    }
    let group = group.to_owned();
    let ask = move || {
        let mut unknown = Vec::new();
        for node in &members {
            match Admission::ask(node, tls.as_ref(), &key, &group) {
                Admission::Unknown(error) => unknown.push(format!("{}: {error}", node.name)),
                known => return known,
            }
        }
        Admission::Unknown(unknown.join("; "))
    };
    let asked = tokio::task::spawn_blocking(ask).await;
    Ok(asked.unwrap_or_else(|error| Admission::Unknown(error.to_string())))
}

/// Everybody who may connect to a node.
fn accounts(settings: &Settings) -> Result<Vec<Account>, SecretError> {
    let spool = &settings.spool;
    let first = Account::default_with(secret::load_or_make(&spool.secret)?);
    let others = spool.accounts.iter().map(|account| {
        Ok(Account {
            name: account.name.clone(),
            secret: secret::load_or_make(&account.secret)?,
            makes_groups: account.makes_groups,
        })
    });
    std::iter::once(Ok(first)).chain(others).collect()
}

/// What this machine's gateway lets other accounts do with its queues.
pub(crate) fn grants(settings: &Settings) -> Vec<u8> {
    let spool = &settings.spool;
    let adopters = spool.adopters.iter().map(|name| (name, Right::Adopt));
    let readers = spool.readers.iter().map(|name| (name, Right::Read));
    let all = adopters.chain(readers);
    // The settings were checked for what cannot be written down.
    Grants::encode(all.map(|(name, right)| (name.as_str(), right))).unwrap_or_default()
}

/// Which accounts may read single queues of it.
pub(crate) fn queue_readers(settings: &Settings) -> BTreeMap<String, KeptGrants> {
    let queues = settings.spool.queues.iter();
    let readers = queues.map(|queue| {
        let named = queue
            .readers
            .iter()
            .map(|name| (name.as_str(), Right::Read));
        // The settings were checked for what cannot be written down.
        let octets = Grants::encode(named).unwrap_or_default();
        let grants = Grants::read(&octets).unwrap_or_default();
        (queue.name.clone(), grants.into())
    });
    readers.collect()
}

fn config(settings: &Settings) -> Result<NodeConfig, SecretError> {
    let key = secret::load_or_make(&settings.spool.secret)?;
    Ok(NodeConfig {
        accounts: accounts(settings)?,
        memory_max: settings.spool.memory_max.as_u64(),
        queues_max: settings.spool.queues_max as usize,
        groups_max: settings.spool.groups_max as usize,
        frame_max: frame_max(settings),
        ..NodeConfig::new(key)
    })
}

fn spill(settings: &Settings, config: &NodeConfig) -> Option<SpillOptions> {
    let room = settings.spool.spill_max.as_u64();
    (room > 0).then_some(SpillOptions {
        room,
        spare: SPILL_SPARE,
        block_len: config.segment_len,
    })
}

/// The longest frame. The largest message may become larger by a reload while the node runs, so whatever that can
/// be and the node could hold goes through.
fn frame_max(settings: &Settings) -> u32 {
    let most = settings.spool.memory_max.as_u64().min(MESSAGE_SIZE_MAX);
    let message = settings.limits.message_size_max.as_u64().max(most);
    u32::try_from(message.saturating_add(FRAME_SPARE)).unwrap_or(u32::MAX)
}

fn durability(settings: &Settings, directory: &Path) -> Durability {
    match settings.spool.durability {
        vere_settings::Durability::Synced => Durability::Synced {
            directory: directory.to_owned(),
            log: LogOptions {
                segment_len: settings.spool.segment_size.as_u64(),
                // What a restart leaves in the log is read back as what was spilled is.
                outliner: (settings.spool.spill_max.as_u64() > 0).then_some(OUTLINER),
                kept_max: usize::try_from(settings.spool.kept_max).unwrap_or(usize::MAX),
                ..LogOptions::default()
            },
        },
        vere_settings::Durability::Replicated => Durability::Memory,
    }
}

/// Ends the node at SIGTERM, and changes the log's level at SIGHUP. SIGINT reaches the whole foreground group at Ctrl-C: there the supervisor
/// decides, and its SIGTERM follows.
fn take_signals(stop: Stop, reload: Option<(PathBuf, Level)>) -> Result<(), Failure> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    // Blocked before any other thread starts, so that only the thread below takes them.
    signals.thread_block()?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            loop {
                match (signals.wait(), &reload) {
                    (Ok(Signal::SIGTERM), _) => return stop.stop(),
                    (Ok(Signal::SIGHUP), Some((config, level))) => {
                        life::reload(config, level, |_| Ok(()));
                    }
                    _ => {}
                }
            }
        })?;
    Ok(())
}
