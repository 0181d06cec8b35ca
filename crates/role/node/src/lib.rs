//! The spool node: a process that holds records of queues in memory, and in a synced log.
//!
//! The engine is in `vere-spool`; the [`server`] moves its octets, reads the clock and syncs the log.

mod complaints;
mod error;
mod renewals;
mod restore;
pub mod server;
mod socket;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use nix::sys::signal::{SigSet, Signal};
use vere_disk::log::LogOptions;
use vere_disk::spill::SpillOptions;
use vere_net::listen::{Inherited, ListenOptions};
use vere_process::encryption::{self, Encryption};
use vere_process::failure::Failure;
use vere_process::log::Level;
use vere_process::secret::{self, SecretError};
use vere_process::{entry, life};
use vere_settings::Settings;
use vere_spool::node::{Account, NodeConfig, OUTLINER};

use error::NodeError;
use server::{Durability, NodeOptions, Stop};

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
pub fn run(
    settings: &Settings,
    name: &str,
    reload: Option<(PathBuf, Level)>,
) -> Result<(), Failure> {
    let node = settings
        .spool
        .nodes
        .iter()
        .find(|node| node.name == name)
        .ok_or_else(|| NodeError::Unknown {
            name: name.to_owned(),
        })?;
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
    server::serve(options, listeners, stop, entry::notify_ready)?;
    Ok(())
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
fn take_signals(stop: Stop, reload: Option<(PathBuf, Level)>) -> Result<(), NodeError> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    // Blocked before any other thread starts, so that only the thread below takes them.
    signals.thread_block().map_err(NodeError::Signals)?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            loop {
                match (signals.wait(), &reload) {
                    (Ok(Signal::SIGTERM), _) => return stop.stop(),
                    (Ok(Signal::SIGHUP), Some((config, level))) => {
                        life::reload(config, level, |_| Ok::<_, Infallible>(()));
                    }
                    _ => {}
                }
            }
        })
        .map_err(NodeError::SignalThread)?;
    Ok(())
}
