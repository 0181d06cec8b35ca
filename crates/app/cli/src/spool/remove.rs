//! `vere spool remove-group`: removes a group of queues that no gateway needs any more. First the register forgets
//! the members, under an epoch later than the epoch of every owner, so that no owner goes on; then each node gives
//! the group up.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use tokio::runtime::Runtime;
use vere_cluster::{Register, Swap, Versioned};
use vere_net::tls::MutualTls;
use vere_owner::Membership;
use vere_owner::lease::LeaseRecord;
use vere_settings::{Settings, SpoolNode};

use super::nodes::key;
use vere_link::Credentials;
use vere_link::reader::{end_group, look_for};
use vere_process::encryption;
use vere_process::failure::Failure;
use vere_process::wording::counted;

/// Remove the queues of a permanently gone gateway from all nodes.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The name of the gateway.
    #[arg(value_name = "NAME")]
    group: String,
    /// Remove the group although mail is lost, or although a node does not answer.
    #[arg(long)]
    force: bool,
}

/// The answer of a node: its content of the group, if any.
struct Holder<'a> {
    node: &'a SpoolNode,
    records: u64,
    epoch: u64,
}

pub(super) fn run(args: &RemoveArgs, settings: &Settings) -> Result<String, Failure> {
    let key = key(settings)?;
    let tls = encryption::certificates(settings)?;
    let register = vere_link::register(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let group = args.group.as_str();
    await_end(&runtime, &register, settings, group)?;
    let name = format!("group/{group}");
    let known = read(&runtime, &register, &name)?;
    let record = known.as_ref().map(|known| {
        Membership::decode(&known.value).map_err(|error| {
            Failure::new(format!(
                "the register's record of {group} is unreadable: {error}"
            ))
        })
    });
    let record = record.transpose()?;
    let mut out = String::new();
    let holders = look(&mut out, args, settings, tls.as_ref(), &key)?;
    if holders.is_empty()
        && record
            .as_ref()
            .is_none_or(|record| record.members.is_empty())
    {
        return Err(Failure::new(format!(
            "{out}no node and no record has a group {group}"
        )));
    }
    let epochs = holders.iter().map(|holder| holder.epoch);
    let epoch = epochs.chain(record.map(|record| record.epoch)).max();
    let epoch = epoch.unwrap_or_default().saturating_add(1);
    if let Some(known) = known {
        forget(&runtime, &register, &name, &known, epoch)?;
    }
    let mut failed = 0;
    for Holder { node, .. } in holders {
        let ended = end_group(node, tls.as_ref(), (&key, group), (epoch, args.force));
        let line = match ended {
            Ok(()) => "removed".to_owned(),
            Err(error) => {
                failed += 1;
                error.to_string()
            }
        };
        let _ = writeln!(out, "node {}: {line}", node.name);
    }
    if failed > 0 {
        return Err(Failure::new(format!(
            "{out}do the same again when these nodes answer"
        )));
    }
    Ok(out)
}

fn read(runtime: &Runtime, register: &Register, key: &str) -> Result<Option<Versioned>, Failure> {
    let read = runtime.block_on(register.read(key));
    read.map_err(|error| Failure::new(format!("cannot read the register: {error}")))
}

/// Waits until an unreleased lease has expired.
///
/// # Errors
/// When the lease is renewed meanwhile.
fn await_end(
    runtime: &Runtime,
    register: &Register,
    settings: &Settings,
    group: &str,
) -> Result<(), Failure> {
    let name = format!("lease/{group}");
    let holder = |lease: &Versioned| LeaseRecord::decode(&lease.value).map(|lease| lease.holder);
    let Some(lease) = read(runtime, register, &name)?.filter(|lease| holder(lease) != Some(0))
    else {
        return Ok(());
    };
    let terms = vere_link::lease_terms(settings);
    std::thread::sleep(terms.lease + terms.skew + Duration::from_millis(1));
    let after = read(runtime, register, &name)?;
    if after.is_some_and(|after| after.version != lease.version && holder(&after) != Some(0)) {
        return Err(Failure::new(format!(
            "a gateway delivers the mail of {group}: stop it first; nothing was changed"
        )));
    }
    Ok(())
}

/// The nodes' content of the group; a node that does not answer may hold the rest.
fn look<'a>(
    out: &mut String,
    args: &RemoveArgs,
    settings: &'a Settings,
    tls: Option<&MutualTls>,
    key: &Credentials,
) -> Result<Vec<Holder<'a>>, Failure> {
    let group = args.group.as_str();
    let mut holders = Vec::new();
    for node in &settings.spool.nodes {
        match look_for(node, tls, (key, group)) {
            Ok(None) => {}
            Ok(Some(stat)) => holders.push(Holder {
                node,
                records: stat.records,
                epoch: stat.epoch,
            }),
            Err(error) => {
                let _ = writeln!(out, "node {}: {error}", node.name);
            }
        }
    }
    if args.force {
        return Ok(holders);
    }
    if !out.is_empty() {
        return Err(Failure::new(format!(
            "{out}expected an answer from every node; nothing was changed (--force removes the group from the others)"
        )));
    }
    if let Some(full) = holders.iter().find(|holder| holder.records > 0) {
        return Err(Failure::new(format!(
            "{group}: {} on node {}; deliver them first (vere queue drain --here --group {group}), or lose \
             them (--force); nothing was changed",
            counted(full.records, "record", "records"),
            full.node.name
        )));
    }
    Ok(holders)
}

/// From here on no earlier owner goes on with the group, and the next owner begins a new group.
fn forget(
    runtime: &Runtime,
    register: &Register,
    name: &str,
    known: &Versioned,
    epoch: u64,
) -> Result<(), Failure> {
    let record = Membership::new(epoch, 0).encode();
    match runtime.block_on(register.swap(name, Some(known.version), &record)) {
        Ok(Swap::Done(_)) => Ok(()),
        Ok(Swap::Conflict(_)) => Err(Failure::new(
            "a gateway changed the register meanwhile; nothing was changed here",
        )),
        Err(error) => Err(Failure::new(format!("cannot write the register: {error}"))),
    }
}
