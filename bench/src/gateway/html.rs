//! The figures as one page without outside parts.

use std::fmt::Write;

use super::report::{METRICS, Metric, Report};
use crate::page::{self, COLOURS, escape};

/// Size of a plot and the room around its bars, in its own units.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 10.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 24.0;

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
    legend(report, &mut page);
    for metric in METRICS {
        plot(report, metric, &mut page);
    }
    table(report, &mut page);
    page.push_str("</html>\n");
    page
}

fn legend(report: &Report, page: &mut String) {
    page.push_str("<p>");
    for (target, colour) in report.targets.iter().zip(COLOURS.iter().cycle()) {
        let name = escape(&target.name);
        let limit = if target.is_limit { " (limit)" } else { "" };
        let _ = write!(
            page,
            "<span style=\"color:{colour}\">&#9632;</span> {name}{limit} &ensp;"
        );
    }
    page.push_str("</p>");
}

/// Bars of one metric: a group for each load, a bar for each system.
fn plot(report: &Report, metric: &Metric, page: &mut String) {
    let value = |target: &str, case| report.median(metric, target, case).unwrap_or(0.0);
    let all = report.targets.iter().flat_map(|target| {
        report
            .cases
            .iter()
            .map(|case| value(&target.name, &case.label))
    });
    let most = all.fold(1e-9, f64::max);
    let group = (WIDTH - LEFT) / report.cases.len().max(1) as f64;
    let bar = group * 0.85 / report.targets.len().max(1) as f64;
    let _ = write!(
        page,
        "<figure><figcaption><b>{}</b> [{}]</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        metric.name, metric.unit, metric.name
    );
    for (place, case) in report.cases.iter().enumerate() {
        let x = LEFT + group * place as f64;
        for (number, target) in report.targets.iter().enumerate() {
            let value = value(&target.name, &case.label);
            let height = (HEIGHT - TOP - BOTTOM) * value / most;
            let (x, y) = (x + bar * number as f64, HEIGHT - BOTTOM - height);
            let colour = COLOURS[number % COLOURS.len()];
            let _ = write!(
                page,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
                 fill=\"{colour}\"><title>{}: {value:.0} {}</title></rect>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value:.0}</text>",
                bar * 0.9,
                escape(&target.name),
                metric.unit,
                x + bar * 0.45,
                y - 4.0,
            );
        }
        let _ = write!(
            page,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x + group * 0.42,
            HEIGHT - 6.0,
            case.label
        );
    }
    page.push_str("</svg></figure>");
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
