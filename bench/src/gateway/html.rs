//! The figures as one page without outside parts.

use std::fmt::Write;

use super::case::Case;
use super::measure::Target;
use super::report::{METRICS, Metric, Report};
use crate::page::{self, escape};
use crate::plot::Bars;

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut page = page::begin(
        "vere bench gateway",
        &format!(
            "Messages of 1 KB (70 %) and 10 KB (30 %) relayed to a sink; medians of the rounds, \
             systems taking turns. CPU is user and system time of all processes of a system. {}.",
            report.machine.line()
        ),
    );
    page.push_str("<ul>");
    for verdict in report.verdicts() {
        let _ = write!(page, "<li>{}</li>", escape(&verdict));
    }
    page.push_str("</ul>");
    for metric in METRICS {
        plot(report, metric).draw(&mut page);
    }
    table(report, &mut page);
    page.push_str("</html>\n");
    page
}

/// Bars of one metric: a group for each load, a bar for each system.
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

fn table(report: &Report, page: &mut String) {
    page.push_str("<table><tr><th>system</th><th>load</th>");
    for metric in METRICS {
        let _ = write!(page, "<th>{} [{}]</th>", metric.name, metric.unit);
    }
    page.push_str("</tr>");
    for target in &report.targets {
        for case in &report.cases {
            let _ = write!(
                page,
                "<tr><td>{}</td><td>{}</td>",
                escape(&target.name),
                case.label
            );
            for metric in METRICS {
                match report.median(metric, &target.name, &case.label) {
                    Some(value) => {
                        let _ = write!(page, "<td>{value:.0}</td>");
                    }
                    None => page.push_str("<td>-</td>"),
                }
            }
            page.push_str("</tr>");
        }
    }
    page.push_str("</table>");
}
