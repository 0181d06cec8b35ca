//! `vere-bench spool`: the paper's Figures 4 and 6 against memcached, Redis and the limits of the machine, and the
//! cost of durability.
//!
//! All servers run side by side and take turns, A B A B; every figure is the median of the rounds. A single client
//! loop drives all servers, with equal octets in flight.

mod cores;
mod drive;
mod durable;
mod fixed;
mod floor;
mod floor_wire;
mod limit;
mod plan;
mod recover;
mod report;
mod systems;
mod throughput;
mod trouble;
mod vere_wire;
mod writer;

use std::ffi::OsString;
use std::iter;
use std::net::TcpListener;

use crate::error::BenchError;
use crate::output::{Header, note};
use crate::peer;

pub use plan::{Part, SpoolArgs};
use plan::{Placement, Plan, Setting};
use report::Report;

/// Runs the benchmark, prints its tables, and writes the requested files.
///
/// A peer that is not installed is skipped, with a note on standard error and in the results.
///
/// # Errors
///
/// [`BenchError`] when a part of the benchmark itself fails. Figures beyond their bars are not an error.
pub fn run(args: &SpoolArgs) -> Result<(), BenchError> {
    if let Some(address) = args.serve_floor {
        let served = TcpListener::bind(address).and_then(floor::serve);
        return served.map_err(BenchError::io("be the floor"));
    }
    let plan = Plan::of(args);
    let base = args.common.base();
    let own = std::env::current_exe().map_err(BenchError::io("find this program"))?;
    let vere = peer::program(args.common.vere.as_deref())?;
    let arguments = std::env::args_os().skip(1);
    let again: Vec<OsString> = iter::once(own.into()).chain(arguments).collect();
    let setting = Setting {
        plan: &plan,
        vere: &vere,
        own: Some(&again),
        base: &base,
        placement: Placement::OneCore,
    };
    let report = measure_all(setting)?;
    args.common
        .publish(&report.table(), &report.json(), &report.page())?;
    Ok(())
}

fn measure_all(mut setting: Setting<'_>) -> Result<Report, BenchError> {
    let plan = setting.plan;
    let mut report = Report::new(Header::new("spool", plan.quick, setting.base));
    setting.placement = cores::choose(&setting, throughput::WINDOW, &mut report)?;
    note(setting.placement.text());
    report.placement = Some(setting.placement.text());
    let parts: [(Part, Measure); 5] = [
        (Part::Throughput, throughput::measure),
        (Part::Recovery, recover::measure),
        (Part::Durability, durable::measure),
        (Part::Limit, limit::measure),
        (Part::Trouble, trouble::measure),
    ];
    for (part, measure) in parts {
        if plan.parts.contains(&part) {
            measure(&setting, &mut report)?;
            note(&format!(
                "{part:?}: done after {:.1} s",
                report.header.began.elapsed().as_secs_f64()
            ));
        }
    }
    report.header.end();
    Ok(report)
}

type Measure = fn(&Setting<'_>, &mut Report) -> Result<(), BenchError>;

#[cfg(test)]
mod tests {
    use super::{Placement, Plan, Setting, measure_all};
    use std::time::Duration;

    #[test]
    fn a_tiny_plan_gives_every_figure_of_the_floor() {
        let base = tempfile::tempdir().unwrap();
        let plan = Plan {
            sizes: vec![400, 1_000, 20_000],
            rounds: 1,
            warm: Duration::ZERO,
            time: Duration::from_millis(20),
            recovered: 2_000,
            recovery_max: Duration::from_secs(60),
            connections: &[1, 3],
            ..Plan::quick()
        };
        let setting = Setting {
            plan: &plan,
            vere: "/bin/false".as_ref(),
            own: None,
            base: base.path(),
            placement: Placement::OneCore,
        };
        let report = measure_all(setting).unwrap();
        assert!(
            report
                .header
                .skipped
                .iter()
                .any(|text| text.starts_with("vere "))
        );
        let json = report.json();
        assert_eq!(json["bench"], "spool");
        let rows = json["rows"].as_array().unwrap();
        for name in [
            "floor: store and delete, 1 KB, 1 connection",
            "floor: store and delete, 20 KB, 3 connections",
            "floor: store and delete, 20 KB, best window",
            "floor: recovery of 2000 x 1 KB in blocks of 1",
            "floor: recovery of 2000 x 1 KB in blocks of 1000",
            "loopback: recovery of 2000 x 1 KB in blocks of 1000",
        ] {
            let named = |row: &&serde_json::Value| {
                row["name"]
                    .as_str()
                    .is_some_and(|found| found.starts_with(name))
            };
            let row = rows.iter().find(named).unwrap();
            // On a starved machine possibly no message gets through in so short a time.
            assert!(row["value"].as_f64().unwrap() >= 0.0, "{row}");
        }
        let page = report.page();
        assert!(page.contains("<svg") && page.contains("Figure 6"));
        assert!(report.table().contains("Figure 4"));
    }
}
