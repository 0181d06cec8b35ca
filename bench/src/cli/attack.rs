//! `vere-bench kill`: random processes of a system are killed while mail goes through the system.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::corpus::Corpus;
use crate::kill::{self, KillMoment, KillPlan};
use crate::load::{LoadEnd, LoadOptions, Messages};
use crate::output::note;
use crate::peer::{Peer, PostfixSetup};
use crate::sink::{RunningSink, SinkOptions};

/// Kills processes of a system under load.
#[derive(Debug, Args)]
pub(super) struct AttackArgs {
    /// Attack a system of this `vere` program; without the option, Postfix.
    #[arg(long)]
    vere: Option<PathBuf>,
    /// Kill only processes whose command line contains one of these texts.
    #[arg(long, required = true)]
    victim: Vec<String>,
    /// Seed of the times and victims of kills.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Messages to get acknowledged.
    #[arg(long, default_value_t = 10_000)]
    count: u32,
    /// Kills, spread over the load.
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Give missing messages up after this many seconds without an arrival.
    #[arg(long, default_value_t = 90)]
    stall: u64,
}

/// Attacks a system and prints the numbers of lost and doubled messages.
///
/// # Errors
/// When a part cannot be started, or an acknowledged message is missing or doubled without a cause.
pub(super) fn run(args: &AttackArgs) -> Result<(), Box<dyn Error>> {
    let sink = RunningSink::start(SinkOptions::remembering())?;
    let next_hop = sink.handle().address();
    let base = std::env::temp_dir();
    let peer = match &args.vere {
        Some(vere) => Peer::vere(vere, next_hop, &base)?,
        None => Peer::postfix(PostfixSetup::Tuned, next_hop, &base)?,
    };
    let plan = plan(args, &peer)?;
    note(&format!(
        "{} messages, {} kills, stall {:?}",
        plan.count, plan.kills, plan.stall
    ));
    let report = kill::run(&plan, sink.handle(), |moment| {
        strike(args, &peer, moment);
    })?;
    note(&report.line());
    for id in report.missing.iter().take(10) {
        note(&format!("missing: {id}"));
    }
    match report.is_clean(&plan) {
        true => Ok(()),
        false => Err("a promise was broken".into()),
    }
}

fn plan(args: &AttackArgs, peer: &Peer) -> Result<KillPlan, Box<dyn Error>> {
    let mut load = LoadOptions::new(peer.address(), LoadEnd::Count(0));
    match Corpus::locate() {
        Some(path) => {
            let corpus = Corpus::read(&path, args.count as usize)?;
            load.messages = Messages::Corpus(Arc::new(corpus));
        }
        None => note("no corpus: sending the mix instead"),
    }
    Ok(KillPlan {
        count: args.count,
        kills: args.kills,
        stall: Duration::from_secs(args.stall),
        ..KillPlan::new(load, args.seed)
    })
}

/// Kills a process of the system.
fn strike(args: &AttackArgs, peer: &Peer, moment: KillMoment) {
    let is_meant = |command: &str| args.victim.iter().any(|part| command.contains(part));
    let mut victims = peer.processes().unwrap_or_default();
    victims.retain(|process| is_meant(&process.command));
    if victims.is_empty() {
        return note(&format!("kill {}: nobody there", moment.number));
    }
    let victim = &victims[(moment.random % victims.len() as u64) as usize];
    let done = victim.kill();
    let (number, acked, command) = (moment.number, moment.acked, &victim.command);
    note(&format!(
        "kill {number} after {acked}: {} {command} ({done})",
        victim.id
    ));
}
