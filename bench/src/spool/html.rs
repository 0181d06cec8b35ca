//! The figures as one page without outside parts.

use std::fmt::Write;

use super::report::{Plot, Report, short};
use crate::page::{COLOURS, STYLE, escape};

/// Size of a plot and the room around its lines, in its own units.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 28.0;

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>vere bench spool</title>\
         <style>{STYLE}</style><h1>vere bench spool</h1>\
         <p>Messages stored and deleted, pipelined by one client with equal octets in flight, and \
         queues read back in blocks; medians of the rounds, systems taking turns. With one connection: {}. {}.</p>",
        report.placement.unwrap_or("client and server anywhere"),
        escape(&report.machine.line())
    );
    for drawn in &report.plots {
        plot(report, drawn, &mut page);
    }
    page.push_str(
        "<table><tr><th>figure</th><th>value</th><th>unit</th><th>ratio</th><th>bar</th><th></th></tr>",
    );
    for row in report.rows() {
        let ratio = row
            .ratio
            .map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let verdict = match row.ok {
            Some(true) => "ok",
            Some(false) => "<b>missed</b>",
            None => "",
        };
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{ratio}</td><td>{}</td><td>{verdict}</td></tr>",
            escape(&row.name),
            short(row.value),
            row.unit,
            escape(row.bar.as_deref().unwrap_or_default()),
        );
    }
    page.push_str("</table><ul>");
    for skipped in &report.skipped {
        let _ = write!(page, "<li>skipped: {}</li>", escape(skipped));
    }
    page.push_str("</ul></html>\n");
    page
}

/// Where values and points of a plot go.
struct Scale {
    low: f64,
    high: f64,
    step: f64,
}

impl Scale {
    /// From the decade below the least value to the one above the greatest; `None` without values.
    fn new(values: &[f64], points: usize) -> Option<Self> {
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        (most > 0.0).then(|| Self {
            low: least.log10().floor(),
            high: most.log10().ceil().max(least.log10().floor() + 1.0),
            step: (WIDTH - LEFT - RIGHT) / points.saturating_sub(1).max(1) as f64,
        })
    }

    fn x(&self, index: usize) -> f64 {
        LEFT + self.step * index as f64
    }

    fn y(&self, value: f64) -> f64 {
        let part = (value.log10() - self.low) / (self.high - self.low);
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    }
}

/// A line for each system over the points, on a logarithmic scale.
fn plot(report: &Report, plot: &Plot, page: &mut String) {
    let value = |what: &str, system: &str| report.median(what, system).filter(|v| *v > 0.0);
    let systems = report.systems(plot);
    let lines: Vec<Vec<(usize, f64)>> = systems
        .iter()
        .map(|system| {
            let points = plot.points.iter().enumerate();
            points
                .filter_map(|(index, (_, what))| Some((index, value(what, system)?)))
                .collect()
        })
        .collect();
    let values: Vec<f64> = lines.iter().flatten().map(|(_, value)| *value).collect();
    let Some(scale) = Scale::new(&values, plot.points.len()) else {
        return;
    };
    let title = escape(&plot.title);
    let _ = write!(
        page,
        "<figure><figcaption><b>{title}</b> [{}]</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">",
        plot.unit
    );
    axes(plot, &scale, page);
    for ((points, system), colour) in lines.iter().zip(&systems).zip(COLOURS.iter().cycle()) {
        line(
            points,
            &scale,
            colour,
            &format!("{}: ", escape(system)),
            page,
        );
    }
    page.push_str("</svg><p>");
    for (system, colour) in systems.iter().zip(COLOURS.iter().cycle()) {
        let name = escape(system);
        let _ = write!(
            page,
            "<span style=\"color:{colour}\">&#9632;</span> {name} &ensp;"
        );
    }
    page.push_str("</p></figure>");
}

fn axes(plot: &Plot, scale: &Scale, page: &mut String) {
    for decade in scale.low as i32..=scale.high as i32 {
        let value = 10_f64.powi(decade);
        let y = scale.y(value);
        let _ = write!(
            page,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#8886\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            short(value),
        );
    }
    for (index, (label, _)) in plot.points.iter().enumerate() {
        let _ = write!(
            page,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            scale.x(index),
            HEIGHT - 8.0,
            escape(label)
        );
    }
}

fn line(points: &[(usize, f64)], scale: &Scale, colour: &str, name: &str, page: &mut String) {
    let place = |(index, value): &(usize, f64)| (scale.x(*index), scale.y(*value));
    let path: Vec<String> = points
        .iter()
        .map(|point| {
            let (x, y) = place(point);
            format!("{x:.1},{y:.1}")
        })
        .collect();
    let _ = write!(
        page,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        path.join(" ")
    );
    for point in points {
        let (x, y) = place(point);
        let _ = write!(
            page,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\">\
             <title>{name}{}</title></circle>",
            short(point.1),
        );
    }
}
