//! `vere-bench dnsbl`: lists of addresses over the DNS, served and asked.
//!
//! The server stands beside rbldnsd on the same data. The cache of the front, with maps of 128 neighbours, stands beside
//! the same cache with single addresses, for traces in the shape of Pathak et al., "Spam-aware mail server architecture"
//! (Figures 5 and 12 to 15).

mod ask;
mod bare;
mod bars;
mod cached;
mod cpu;
mod delays;
mod flood;
mod list;
mod mail;
mod memory;
mod plan;
mod questions;

mod reload;
mod report;
mod resolver;
mod results;
mod servers;
mod tcp;
mod trace;

use clap::Args;

use crate::error::BenchError;
use crate::figures::Figures;
use crate::output::{Common, Header};
use crate::peer;
use crate::process::guard;
use crate::{dns_wire as wire, random};

pub use bare::{DnsResponderArgs, run as respond};
pub use plan::Part;
use plan::Plan;
use results::Results;
use servers::Site;

/// Measures DNS block lists.
#[derive(Debug, Clone, Args)]
pub struct DnsblArgs {
    /// Arguments of all benchmarks.
    #[command(flatten)]
    pub common: Common,
    /// Measure only these rows, separated by commas.
    #[arg(long, value_enum, value_name = "ROW", value_delimiter = ',')]
    pub only: Vec<Part>,
}

/// Runs the benchmark, prints its table, and writes the requested files.
///
/// A server that does not start is skipped, with its reason on standard error and in the results.
///
/// # Errors
///
/// [`BenchError`] when a part of the benchmark itself fails, or a signal ended it. Figures beyond their bars are not an
/// error.
pub fn run(args: &DnsblArgs) -> Result<(), BenchError> {
    guard::stop_on_signals();
    let quick = args.common.quick;
    let base = args.common.base();
    let vere = peer::program(args.common.vere.as_deref())?;
    let plan = Plan::new(quick, &args.only);
    let site = Site {
        vere: &vere,
        base: &base,
    };
    let mut results = Results {
        header: Header::new("dnsbl", quick, &base),
        figures: Figures::default(),
        troubles: Vec::new(),
    };
    for part in &plan.parts {
        measure(*part, &plan, &site, &mut results)?;
        if guard::is_stopped() {
            return Err(BenchError::Stopped);
        }
    }
    results.header.end();
    args.common.publish(
        &report::table(&results),
        &report::json(&results),
        &report::page(&results),
    )?;
    Ok(())
}

fn measure(
    part: Part,
    plan: &Plan,
    site: &Site<'_>,
    results: &mut Results,
) -> Result<(), BenchError> {
    match part {
        Part::Cache => cached::measure(results),
        Part::Lookup => cached::lookups(results),
        Part::Cpu => cpu::measure(plan, site, results)?,
        Part::Memory => memory::measure(plan, site, results)?,
        Part::Reload => reload::measure(plan, site, results)?,
        Part::Tcp => tcp::measure(plan, site, results)?,
        Part::Flood => flood::measure(plan, site, results)?,
        Part::Mail => mail::measure(plan, site, results)?,
    }
    Ok(())
}
