//! `vere-bench front`: the cost of sessions without mail, and the fate of good mail among them, at the mail
//! exchangers of unknown clients.
//!
//! Most connections to port 25 end without mail. The benchmark has clients that are refused, clients that do not
//! finish, silent clients and clients with mail; Veredarius stands beside Postfix, Postfix with postscreen, and a bare
//! responder as the limit of the machine.

mod accepted;
mod bars;
mod bounces;
pub(crate) mod clients;
mod distance;
mod encrypted;
mod handover;
mod judged;
mod measure;
mod open;
mod plan;
mod report;
mod storm;
mod switches;
mod systems;
mod talk;
mod tls;
pub(crate) mod visit;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::BenchError;
use crate::figures::Figures;
use crate::output::{Common, Header};
use crate::peer;
use crate::process::guard;
use crate::sink::{RunningSink, SinkOptions};
use crate::trouble::possible;

use measure::{Results, Target};
pub use plan::Part;
use plan::Plan;
use systems::{Site, System};

/// Measures sessions of unknown clients, most of them without mail.
#[derive(Debug, Clone, Args)]
pub struct FrontArgs {
    /// Arguments of all benchmarks.
    #[command(flatten)]
    pub common: Common,
    /// Measure only these rows, separated by commas.
    #[arg(long, value_enum, value_name = "ROW", value_delimiter = ',')]
    pub only: Vec<Part>,
    /// Measure only these systems, separated by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = known_system)]
    pub system: Vec<String>,
    /// Send for this time in each measurement.
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// Silent connections; 15,000, with `--quick` 2,000.
    #[arg(long, value_name = "COUNT")]
    pub connections: Option<usize>,
    /// Folder with files of one message each, below folders with "spam" or "ham" in their names: rspamd has to give each the same
    /// verdict behind both systems (row `judged`).
    #[arg(long, value_name = "DIR")]
    pub labelled: Option<PathBuf>,
}

/// Accepts the word of a system.
fn known_system(word: &str) -> Result<String, String> {
    match System::of(word) {
        Some(_) => Ok(word.to_owned()),
        None => Err(format!("expected one of {}", System::words().join(", "))),
    }
}

/// Runs the benchmark, prints its table, and writes the requested files.
///
/// A system that does not start is skipped, with its reason on standard error and in the results.
///
/// # Errors
///
/// [`BenchError`] when a part of the benchmark itself fails, or a signal ended it. Figures beyond their bars are not an
/// error.
pub fn run(args: &FrontArgs) -> Result<(), BenchError> {
    guard::stop_on_signals();
    let quick = args.common.quick;
    let base = args.common.base();
    let vere = peer::program(args.common.vere.as_deref())?;
    let systems = match args.system.as_slice() {
        [] => System::all(),
        words => words.iter().filter_map(|word| System::of(word)).collect(),
    };
    let mut plan = Plan::new(quick, &args.only, systems);
    if let Some(seconds) = args.seconds {
        plan = plan.for_seconds(seconds);
    }
    plan.labelled.clone_from(&args.labelled);
    let mut header = Header::new("front", quick, &base);
    let wanted = args.connections.unwrap_or(plan.connections);
    // The systems inherit the limit, so the limit is raised before they start.
    plan.connections = possible(wanted);
    if plan.connections < wanted {
        header.skip(format!(
            "{wanted} connections were wanted; the limit of open files leaves {}",
            plan.connections
        ));
    }
    let mut results = Results {
        header,
        figures: Figures::default(),
        troubles: Vec::new(),
    };
    measure_all(&plan, &vere, &base, &mut results)?;
    results.header.end();
    args.common.publish(
        &report::table(&plan, &results),
        &report::json(&plan, &results),
        &report::page(&plan, &results),
    )?;
    Ok(())
}

fn measure_all(
    plan: &Plan,
    vere: &Path,
    base: &Path,
    results: &mut Results,
) -> Result<(), BenchError> {
    let sink = RunningSink::start(SinkOptions::remembering())?;
    let site = Site {
        vere,
        next_hop: sink.handle().address(),
        base,
        certificate: None,
    };
    let is_alone = |part: &&Part| matches!(part, Part::Open | Part::Encrypted | Part::Judged);
    let (alone, together): (Vec<Part>, Vec<Part>) = plan.parts.iter().partition(is_alone);
    if !together.is_empty() {
        let has_hand_over = together.contains(&Part::Handover);
        let systems = plan.systems.iter().copied();
        let systems = systems.filter(|system| has_hand_over || !system.hands_over_only());
        let targets = measure::start(systems, &site, &mut results.header);
        for part in together {
            side_by_side(part, plan, &targets, &sink, results)?;
        }
    }
    if alone.contains(&Part::Encrypted) {
        encrypted::measure(plan, site, &sink, results)?;
    }
    if alone.contains(&Part::Open) {
        open::measure(plan, &site, results)?;
    }
    if alone.contains(&Part::Judged) {
        judged::measure(plan, &site, results)?;
    }
    Ok(())
}

/// Measures a row on systems that all run.
fn side_by_side(
    part: Part,
    plan: &Plan,
    targets: &[Target],
    sink: &RunningSink,
    results: &mut Results,
) -> Result<(), BenchError> {
    match part {
        Part::Bounces => bounces::measure(plan, targets, sink, results),
        Part::Storm => storm::measure(plan, targets, sink, results),
        Part::Handover => handover::measure(plan, targets, sink, results),
        Part::Accepted => accepted::measure(plan, targets, sink, results),
        Part::Combined => accepted::combined(plan, targets, sink, results),
        // These have systems of their own.
        Part::Open | Part::Encrypted | Part::Judged => Ok(()),
    }
}
