//! The parts of this crate without the product's binary: `sink`, `gateway`, `spool` and `store` with `--vere PATH`, and `kill`,
//! which kills random processes of a system while mail goes through it.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser};
use vere_bench::Corpus;
use vere_bench::gateway::{self, GatewayArgs};
use vere_bench::kill::{self, KillPlan};
use vere_bench::load::{LoadEnd, LoadOptions, Messages};
use vere_bench::peer::{Peer, PostfixSetup};
use vere_bench::sink::{self, RunningSink, SinkArgs, SinkOptions};
use vere_bench::spool::{self, SpoolArgs};
use vere_bench::store::{self, StoreArgs};

#[derive(Debug, Parser)]
enum Command {
    /// Receive mail.
    Sink(SinkArgs),
    /// Measure a gateway.
    Gateway(GatewayArgs),
    /// Measure a spool node.
    Spool(SpoolArgs),
    /// Measure a mail store.
    Store(StoreArgs),
    /// Kill processes of a system under load.
    Kill(KillArgs),
}

#[derive(Debug, Args)]
struct KillArgs {
    /// The program whose system is attacked; Postfix without it.
    #[arg(long)]
    vere: Option<PathBuf>,
    /// Kill only processes whose command line contains one of these.
    #[arg(long, required = true)]
    victim: Vec<String>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 10_000)]
    count: u32,
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Give missing messages up after so many seconds without any.
    #[arg(long, default_value_t = 90)]
    stall: u64,
}

fn attack(args: &KillArgs) -> Result<(), Box<dyn Error>> {
    let sink = RunningSink::start(SinkOptions {
        remember: true,
        ..SinkOptions::default()
    })?;
    let next_hop = sink.handle().address();
    let base = std::env::temp_dir();
    let peer = match &args.vere {
        Some(vere) => Peer::vere(vere, next_hop, &base)?,
        None => Peer::postfix(PostfixSetup::Tuned, next_hop, &base)?,
    };
    let mut load = LoadOptions::new(peer.address(), LoadEnd::Count(0));
    match Corpus::locate() {
        Some(path) => {
            let corpus = Corpus::read(&path, args.count as usize)?;
            load.messages = Messages::Corpus(Arc::new(corpus));
        }
        None => eprintln!("no corpus: sending the mix instead"),
    }
    let plan = KillPlan {
        count: args.count,
        kills: args.kills,
        stall: Duration::from_secs(args.stall),
        ..KillPlan::new(load, args.seed)
    };
    eprintln!(
        "{} messages, {} kills, stall {:?}",
        plan.count, plan.kills, plan.stall
    );
    let report = kill::run(&plan, sink.handle(), |moment| {
        let mut victims = peer.processes().unwrap_or_default();
        victims.retain(|process| {
            args.victim
                .iter()
                .any(|part| process.command.contains(part))
        });
        if victims.is_empty() {
            return eprintln!("kill {}: nobody there", moment.number);
        }
        let victim = &victims[(moment.random % victims.len() as u64) as usize];
        let done = victim.kill();
        let (number, acked, command) = (moment.number, moment.acked, &victim.command);
        eprintln!(
            "kill {number} after {acked}: {} {command} ({done})",
            victim.id
        );
    })?;
    eprintln!("{}", report.line());
    for id in report.missing.iter().take(10) {
        eprintln!("missing: {id}");
    }
    if report.is_clean(&plan) {
        Ok(())
    } else {
        Err("a promise was broken".into())
    }
}

fn main() -> ExitCode {
    let done: Result<(), Box<dyn Error>> = match Command::parse() {
        Command::Sink(args) => sink::run(&args).map_err(Into::into),
        Command::Gateway(args) => gateway::run(&args).map_err(Into::into),
        Command::Spool(args) => spool::run(&args).map_err(Into::into),
        Command::Store(args) => store::run(&args).map_err(Into::into),
        Command::Kill(args) => attack(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
