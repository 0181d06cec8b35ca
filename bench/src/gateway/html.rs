//! The figures as a page without external resources.

use super::case::Case;
use super::measure::{METRICS, Metric, Target};
use super::report::Report;
use crate::page;
use crate::plot::Bars;

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut page = page::begin(
        "vere bench gateway",
        &format!(
            "Messages of 1 KB (70 %) and 10 KB (30 %) relayed to a sink; medians of the rounds, \
             systems taking turns. CPU is user and system time of all processes of a system. {}.",
            report.header.machine.line()
        ),
    );
    page::list(report.verdicts(), &mut page);
    for metric in METRICS {
        plot(report, metric).draw(&mut page);
    }
    report.figures().draw(&mut page);
    page + page::END
}

/// Bars of a metric: a group for each load, a bar for each system.
fn plot(report: &Report, metric: &Metric) -> Bars {
    let group = |case: &Case| {
        let values = report.targets.iter();
        let values = values.map(|target| report.median(metric, &target.name, &case.label));
        (case.label.clone(), values.collect())
    };
    let system = |target: &Target| {
        let limit = if target.is_limit { " (limit)" } else { "" };
        format!("{}{limit}", target.name)
    };
    Bars {
        title: metric.name.to_owned(),
        unit: metric.unit,
        systems: report.targets.iter().map(system).collect(),
        groups: report.cases.iter().map(group).collect(),
    }
}
