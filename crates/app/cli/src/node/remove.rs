//! `vere node remove`.

use std::path::Path;

use clap::Args;
use vere_control::ReplicaLine;
use vere_enrolment::{Machine, Owner};
use vere_process::failure::Failure;
use vere_settings::Settings;

use super::edit;
use crate::config_arg::ConfigArg;
use crate::difference::difference;
use crate::settings_file::SettingsFile;
use crate::spool::nodes::replicas;

/// The node to remove.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The name of the node.
    name: String,
    /// Remove the node although no other node is known to have every message: queued mail may be lost.
    #[arg(long)]
    force: bool,
    /// Print the change of the settings and do nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// When the settings have no such node elsewhere, or no other node is known to have every message.
pub(super) fn run(args: &RemoveArgs, config: &ConfigArg) -> Result<String, Failure> {
    let (path, settings) = config.load()?;
    let name = args.name.as_str();
    refuse_local(name, &path, &settings)?;
    let file = SettingsFile::read(&path)?;
    let changed = edit::remove(&file.text, name)?;
    file.parse(&changed)?;
    let lines = difference(&file.text, &changed);
    let path = path.display();
    if args.dry_run {
        return Ok(format!("{path} would change:\n\n{lines}"));
    }
    if !args.force {
        refuse_last(name, &replicas(&settings.control.socket))?;
    }
    // Before the change: killed in between, the note is one too many.
    Machine::below(&settings.data).note_removed(name, Owner::of(&settings.data)?)?;
    file.write(&changed)?;
    Ok(format!(
        "{path} changed:\n\n{lines}\nNext:\n  1. Restart this system: systemctl restart vere; until then the node counts.\n  \
         2. On the machine of {name}: systemctl disable --now vere-node@{name}, then remove its files, /etc/vere/vere.toml \
         and /var/lib/vere.\nOther nodes and gateways refuse the certificate of {name} from then on. The machine knows the key of the \
         account on the nodes (spool.key): if somebody else has the machine now, change the key on all machines.\n"
    ))
}

fn refuse_local(name: &str, path: &Path, settings: &Settings) -> Result<(), Failure> {
    let mut nodes = settings.spool.nodes.iter();
    match nodes.find(|node| node.name == name) {
        None => Err(Failure::new(format!(
            "{} has no node {name}",
            path.display()
        ))),
        Some(node) if !node.remote => Err(Failure::new(format!(
            "node {name} runs on this machine; this command removes nodes that run elsewhere"
        ))),
        Some(_) => Ok(()),
    }
}

/// Another node has to have every message.
fn refuse_last(name: &str, states: &Result<Vec<ReplicaLine>, String>) -> Result<(), Failure> {
    let states = states.as_ref().map_err(|error| {
        Failure::new(format!(
            "the gateway does not say which nodes have every message ({error}): start the system, or add --force"
        ))
    })?;
    let is_full = |state: &ReplicaLine| state.node != name && state.sync == "sync";
    match states.iter().any(is_full) {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "no node but {name} has every message: wait until another one has (vere node list), or add --force"
        ))),
    }
}
