//! `vere-bench x400`: an MTA of X.400 that switches P1 between sources and sinks.
//!
//! Sources and sinks are processes of this program, with associations of `vere_associations`; the MTA is `vere serve`
//! with settings of the benchmark. A sink confirms at once and counts. The queue is kept between two lengths: sources
//! pause above, and go on below. The tests are those of the paper on a message switch: full transfers by the number of sources
//! and by size, with and without archive, and a million messages queued while the sink is away.

mod bare;
mod bars;
mod child;
mod control;
mod full;
mod load;
mod message;
pub(crate) mod names;
mod plan;
mod raw;
mod report;
mod results;
mod sink;
mod source;
mod system;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::BenchError;
use crate::figures::Figures;
use crate::output::{Common, Header};
use crate::peer::{self, OURS};
use crate::process::guard;

use load::Loads;
pub(crate) use message::{Template, content, now};
use plan::{Case, LONG, MIDDLE, Plan, SHORT};
pub use plan::{Durability, Part};
use results::Results;
pub use sink::{SinkArgs, run as receive};
pub use source::{SourceArgs, run as send};
use system::{Shape, System};

/// Measures an MTA of X.400.
#[derive(Debug, Clone, Args)]
pub struct X400Args {
    /// Arguments of all benchmarks.
    #[command(flatten)]
    pub common: Common,
    /// Measure only these rows, separated by commas.
    #[arg(long, value_enum, value_name = "ROW", value_delimiter = ',')]
    pub only: Vec<Part>,
    /// Measure only with this durability.
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    pub durability: Vec<Durability>,
    /// Queue so many messages while the sink is away.
    #[arg(long, value_name = "COUNT")]
    pub messages: Option<u64>,
}

/// Runs the benchmark, prints its table, and writes the requested files.
///
/// # Errors
///
/// [`BenchError`] when a part of the benchmark itself fails, or a signal ended it; the figures so far are printed.
/// Figures beyond their bars are not an error.
pub fn run(args: &X400Args) -> Result<(), BenchError> {
    guard::stop_on_signals();
    let (quick, base) = (args.common.quick, args.common.base());
    let plan = Plan::new(quick, &args.only, &args.durability, args.messages);
    let mut results = Results {
        header: Header::new("x400", quick, &base),
        figures: Figures::default(),
        courses: Vec::new(),
        troubles: Vec::new(),
    };
    let site = Site {
        vere: peer::program(args.common.vere.as_deref())?,
        base,
    };
    let measured = site.measure(&plan, &mut results);
    if let Err(error) = &measured {
        // The figures so far count: a whole run takes an hour.
        results.header.skip(format!("the rest: {error}"));
    }
    results.header.end();
    args.common.publish(
        &report::table(&plan, &results),
        &report::json(&plan, &results),
        &report::page(&plan, &results),
    )?;
    measured
}

/// The program, and the directory above all files.
struct Site {
    vere: PathBuf,
    base: PathBuf,
}

impl Site {
    fn measure(&self, plan: &Plan, results: &mut Results) -> Result<(), BenchError> {
        if plan.has(Part::Bare) {
            bare::measure(plan, &self.base, results)?;
        }
        for durability in &plan.durabilities {
            let shape = Shape::new(*durability);
            self.with(shape, 1, &plain(plan), plan, results)?;
            self.with(shape, 2, &two(plan), plan, results)?;
            self.with(shape.archived(), 1, &archived(plan), plan, results)?;
            if plan.has(Part::Full) {
                let measured = full::measure(plan, shape, &self.vere, &self.base, results);
                within(shape, measured, results)?;
            }
        }
        Ok(())
    }

    /// Loads an MTA of a shape with all cases.
    fn with(
        &self,
        shape: Shape,
        sinks: usize,
        cases: &[Case],
        plan: &Plan,
        results: &mut Results,
    ) -> Result<(), BenchError> {
        if cases.is_empty() {
            return Ok(());
        }
        let (vere, base): (&Path, &Path) = (&self.vere, &self.base);
        let started = System::start(vere, base, shape, sinks);
        let Some(system) = peer::or_skipped(OURS, started, &mut results.header) else {
            return Ok(());
        };
        let measured = Loads::new(&system, shape.name()).and_then(|loads| {
            for _ in 0..plan.rounds {
                for case in cases {
                    loads.measure(case, plan, results)?;
                }
            }
            Ok(())
        });
        within(shape, measured, results)
    }
}

/// The loads of an MTA without archive.
fn plain(plan: &Plan) -> Vec<Case> {
    let mut cases = Vec::new();
    let sizes = SHORT.into_iter();
    if plan.has(Part::Rates) {
        cases.extend(sizes.clone().flat_map(|size| {
            let sources = plan.sources.iter().copied();
            sources.map(move |sources| Case {
                sources,
                ..Case::of(size)
            })
        }));
    } else if plan.has(Part::Archive) {
        // The peers of the archive's rows.
        cases.extend(sizes.clone().map(Case::of));
    }
    if plan.has(Part::One) {
        cases.extend(sizes.map(|size| Case {
            sources: 1,
            associations: 1,
            ..Case::of(size)
        }));
    }
    if plan.has(Part::Large) || plan.has(Part::Archive) {
        cases.extend([MIDDLE].into_iter().chain(LONG).map(Case::of));
    }
    cases
}

/// The loads with two sinks.
fn two(plan: &Plan) -> Vec<Case> {
    let two = |size| Case {
        sinks: 2,
        ..Case::of(size)
    };
    match plan.has(Part::Sinks) {
        true => SHORT.map(two).to_vec(),
        false => Vec::new(),
    }
}

/// The loads with archive.
fn archived(plan: &Plan) -> Vec<Case> {
    match plan.has(Part::Archive) {
        true => SHORT.into_iter().chain(LONG).map(Case::of).collect(),
        false => Vec::new(),
    }
}

/// Turns a failure into a trouble of the results: the other shapes are still measured.
fn within(
    shape: Shape,
    measured: Result<(), BenchError>,
    results: &mut Results,
) -> Result<(), BenchError> {
    if guard::is_stopped() {
        return Err(BenchError::Stopped);
    }
    match measured {
        Ok(()) => {}
        Err(BenchError::Peer(error)) => results.skip(format!("{}: {error}", shape.name())),
        Err(error) => results.trouble(format!("{}: {error}", shape.name())),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::plan::ASSOCIATIONS;
    use super::*;

    #[test]
    fn the_archive_is_measured_beside_the_same_loads_without() {
        let plan = Plan::new(true, &[Part::Archive], &[], None);
        let names = |cases: Vec<Case>| cases.iter().map(Case::name).collect::<Vec<_>>();
        let plain = names(plain(&plan));
        assert!(
            names(archived(&plan))
                .iter()
                .all(|name| plain.contains(name))
        );
        assert!(two(&plan).is_empty());
        let one = Plan::new(true, &[Part::One], &[], None);
        assert_eq!(names(super::plain(&one)).len(), 2);
        assert_eq!(Case::of(1).associations, ASSOCIATIONS);
    }
}
