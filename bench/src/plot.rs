//! Plots of the pages: lines and bars, drawn as SVG within the page.

use std::fmt::Write;

use crate::page::{COLOURS, escape, short};

/// Size of a plot and of its margins, in the units of the plot.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 28.0;

/// Used part of the width of a group of bars.
const GROUP_PART: f64 = 0.85;

/// Lines of systems over common points, values on a logarithmic scale.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) title: String,
    pub(crate) unit: &'static str,
    /// Positions of points, in any measure, and the label below each.
    pub(crate) points: Vec<(f64, String)>,
    /// The systems, each with a points: position and value.
    pub(crate) lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// Bars of systems side by side, in groups, on a logarithmic scale: what is far apart is seen together.
#[derive(Debug, Default)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) unit: &'static str,
    pub(crate) systems: Vec<String>,
    /// The label below a group, and the values of the systems.
    pub(crate) groups: Vec<(String, Vec<Option<f64>>)>,
}

/// The range of values: from a power of ten to another.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// From the decade below the least value to the decade above the greatest; `None` without values above 0.
    fn over(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let values = values.filter(|value| *value > 0.0);
        let least = values.clone().fold(f64::MAX, f64::min);
        let most = values.fold(0.0, f64::max);
        let low = least.log10().floor();
        (most > 0.0).then(|| Self {
            low,
            high: most.log10().ceil().max(low + 1.0),
        })
    }

    fn y(&self, value: f64) -> f64 {
        let part = (value.log10() - self.low) / (self.high - self.low);
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    }

    /// Draws a line with its value for each power of ten.
    fn draw(&self, page: &mut String) {
        for decade in self.low as i32..=self.high as i32 {
            let value = 10_f64.powi(decade);
            let y = self.y(value);
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
    }
}

impl Lines {
    /// Lines of the systems with values; `value` gives the value of a system at the point of a place.
    pub(crate) fn of(
        title: &str,
        unit: &'static str,
        points: Vec<(f64, String)>,
        systems: &[&str],
        value: impl Fn(&str, usize) -> Option<f64>,
    ) -> Self {
        let line = |system: &&str| {
            let places = points.iter().enumerate();
            let known = places.filter_map(|(place, (at, _))| Some((*at, value(system, place)?)));
            ((*system).to_owned(), known.collect::<Vec<_>>())
        };
        let mut lines: Vec<_> = systems.iter().map(line).collect();
        lines.retain(|(_, points)| !points.is_empty());
        Self {
            title: title.to_owned(),
            unit,
            points,
            lines,
        }
    }

    /// Draws the lines; an absent value leaves a gap.
    pub(crate) fn draw(&self, page: &mut String) {
        let values = self.lines.iter().flat_map(|(_, points)| points);
        let Some(scale) = Scale::over(values.map(|(_, value)| *value)) else {
            return;
        };
        begin(&self.title, self.unit, page);
        scale.draw(page);
        for (at, label) in &self.points {
            below(self.x(*at), label, page);
        }
        for ((system, points), colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            self.line(points, &scale, colour, &escape(system), page);
        }
        end(self.lines.iter().map(|(system, _)| &**system), page);
    }

    /// The horizontal position of a point between the first point and the last.
    fn x(&self, at: f64) -> f64 {
        let all = || self.points.iter().map(|(at, _)| *at);
        let (first, last) = (
            all().fold(f64::MAX, f64::min),
            all().fold(f64::MIN, f64::max),
        );
        let width = if last > first { last - first } else { 1.0 };
        LEFT + (WIDTH - LEFT - RIGHT) * (at - first) / width
    }

    fn line(
        &self,
        points: &[(f64, f64)],
        scale: &Scale,
        colour: &str,
        system: &str,
        page: &mut String,
    ) {
        let known = || points.iter().filter(|(_, value)| *value > 0.0);
        let path: Vec<String> = known()
            .map(|(at, value)| format!("{:.1},{:.1}", self.x(*at), scale.y(*value)))
            .collect();
        let _ = write!(
            page,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (at, value) in known() {
            let _ = write!(
                page,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\">\
                 <title>{system}: {}</title></circle>",
                self.x(*at),
                scale.y(*value),
                short(*value),
            );
        }
    }
}

impl Bars {
    /// Draws the bars; an absent value leaves a gap.
    pub(crate) fn draw(&self, page: &mut String) {
        let values = self.groups.iter().flat_map(|(_, values)| values);
        let Some(scale) = Scale::over(values.copied().flatten()) else {
            return;
        };
        begin(&self.title, self.unit, page);
        scale.draw(page);
        let group = (WIDTH - LEFT - RIGHT) / self.groups.len() as f64;
        let bar = group * GROUP_PART / self.systems.len().max(1) as f64;
        for (place, (label, values)) in self.groups.iter().enumerate() {
            let x = LEFT + group * place as f64;
            let systems = self.systems.iter().zip(COLOURS.iter().cycle());
            for (number, (value, (system, colour))) in values.iter().zip(systems).enumerate() {
                let Some(value) = value.filter(|value| *value > 0.0) else {
                    continue;
                };
                let y = scale.y(value);
                let _ = write!(
                    page,
                    "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                     fill=\"{colour}\"><title>{}: {} {}</title></rect>",
                    x + bar * number as f64,
                    bar * 0.9,
                    HEIGHT - BOTTOM - y,
                    escape(system),
                    short(value),
                    self.unit,
                );
            }
            below(x + group * GROUP_PART / 2.0, label, page);
        }
        end(self.systems.iter().map(String::as_str), page);
    }
}

fn begin(title: &str, unit: &str, page: &mut String) {
    let title = escape(title);
    let _ = write!(
        page,
        "<figure><figcaption><b>{title}</b> [{unit}]</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">",
    );
}

fn below(x: f64, label: &str, page: &mut String) {
    let _ = write!(
        page,
        "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        HEIGHT - 8.0,
        escape(label)
    );
}

/// The end of a plot, with the colours of the systems.
fn end<'a>(systems: impl Iterator<Item = &'a str>, page: &mut String) {
    page.push_str("</svg><p>");
    for (system, colour) in systems.zip(COLOURS.iter().cycle()) {
        let name = escape(system);
        let _ = write!(
            page,
            "<span style=\"color:{colour}\">&#9632;</span> {name} &ensp;"
        );
    }
    page.push_str("</p></figure>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lie_where_their_values_are() {
        let plot = Lines {
            title: "a < b".to_owned(),
            unit: "ms",
            points: vec![(0.0, "1".to_owned()), (2.0, "9".to_owned())],
            lines: vec![("x".to_owned(), vec![(0.0, 1.0), (1.0, 0.0), (2.0, 100.0)])],
        };
        let mut page = String::new();
        plot.draw(&mut page);
        // The left end at the bottom, the right end at the top; what is no figure is left out.
        assert!(page.contains("points=\"70.0,292.0 880.0,16.0\""), "{page}");
        assert!(
            page.contains("a &lt; b") && page.contains("</svg><p>"),
            "{page}"
        );
        let empty = Lines::default();
        page.clear();
        empty.draw(&mut page);
        assert_eq!(page, "");
    }

    #[test]
    fn bars_stand_in_groups() {
        let plot = Bars {
            title: "all".to_owned(),
            unit: "ms",
            systems: vec!["x".to_owned(), "y".to_owned()],
            groups: vec![
                ("one".to_owned(), vec![Some(1.0), Some(10.0)]),
                ("two".to_owned(), vec![None, Some(100.0)]),
            ],
        };
        let mut page = String::new();
        plot.draw(&mut page);
        assert_eq!(page.matches("<rect").count(), 3, "{page}");
        assert!(
            page.contains("y=\"16.0\"") && page.contains(">two</text>"),
            "{page}"
        );
    }
}
