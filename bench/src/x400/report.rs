//! The results as a table, as JSON and as a page.

use serde_json::{Value, json};

use super::bare;
use super::bars;
use super::load::{FULL, THROUGHPUT, figure};
use super::plan::{ASSOCIATIONS, Case, Durability, LONG, Plan, SHORT, sized};
use super::results::{Course, Results};
use super::system::Shape;
use crate::page;
use crate::plot::{Bars, Lines};
use crate::row::Row;

/// Points of a course in a plot.
const POINTS_MAX: usize = 60;

/// A line for each bar, failure or skipped part.
fn verdicts(plan: &Plan, results: &Results) -> Vec<String> {
    let rows = bars::rows(plan, &results.figures);
    let mut lines: Vec<String> = rows.iter().map(Row::line).collect();
    let troubles = results.troubles.iter();
    lines.extend(troubles.map(|text| format!("trouble: {text}")));
    lines.extend(results.header.skipped_lines());
    lines
}

/// A table for a terminal.
pub(super) fn table(plan: &Plan, results: &Results) -> String {
    let machine = results.header.machine.line();
    let mut text = format!("x400, an MTA that switches P1\n{machine}\n");
    text.push_str(&results.figures.table().text());
    for line in verdicts(plan, results) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The JSON of DESIGN section 7.
pub(super) fn json(plan: &Plan, results: &Results) -> Value {
    let mut rows = results.figures.rows();
    rows.extend(bars::rows(plan, &results.figures));
    let mut json = results.header.json(&rows, results.figures.rounds());
    json["troubles"] = results.troubles.clone().into();
    json["courses"] = results.courses.iter().map(course_json).collect();
    json
}

fn course_json(course: &Course) -> Value {
    let rates = course.rates.iter();
    let rates: Vec<Value> = rates
        .map(|(at, rate)| json!({"seconds": at.as_secs_f64(), "rate": rate}))
        .collect();
    json!({"name": course.name, "unit": "messages/s", "rates": rates})
}

/// The figures as a page without external resources.
pub(super) fn page(plan: &Plan, results: &Results) -> String {
    let mut page = page::begin(
        "vere bench x400",
        &format!(
            "An MTA of X.400 that switches P1 from sources with {ASSOCIATIONS} associations each to sinks; medians of the \
             rounds. {}.",
            results.header.machine.line()
        ),
    );
    page::list(verdicts(plan, results), &mut page);
    by_sources(plan, results, &mut page);
    by_size(results, &mut page);
    for course in &results.courses {
        over_time(course).draw(&mut page);
    }
    results.figures.table().draw(&mut page);
    page + page::END
}

/// Full transfers by the number of sources.
fn by_sources(plan: &Plan, results: &Results, page: &mut String) {
    let systems = Durability::ALL.map(|durability| Shape::new(durability).name());
    for size in SHORT {
        let points = plan.sources.iter();
        let points = points.map(|sources| (*sources as f64, sources.to_string()));
        let value = |system: &str, place: usize| {
            let sources = *plan.sources.get(place)?;
            let case = Case {
                sources,
                ..Case::of(size)
            };
            results.figures.median(system, &figure(&case, FULL))
        };
        let title = format!("full transfers of {} by the number of sources", sized(size));
        Lines::of(&title, "messages/s", points.collect(), &systems, value).draw(page);
    }
}

/// The throughput of long messages.
fn by_size(results: &Results, page: &mut String) {
    let shapes = Durability::ALL.map(Shape::new);
    let mut systems = vec![bare::RAW, bare::DIRECT];
    systems.extend(shapes.iter().map(|shape| shape.name()));
    systems.extend(shapes.iter().map(|shape| shape.archived().name()));
    let group = |size: usize| {
        let name = figure(&Case::of(size), THROUGHPUT);
        let values = systems.iter();
        let values = values.map(|system| results.figures.median(system, &name));
        (sized(size), values.collect())
    };
    let bars = Bars {
        title: "throughput of long messages".to_owned(),
        unit: "MB/s",
        systems: systems.iter().map(|&system| system.to_owned()).collect(),
        groups: LONG.into_iter().map(group).collect(),
    };
    bars.draw(page);
}

/// The rates of a long queue over time; several seconds are one point where there are many.
fn over_time(course: &Course) -> Lines {
    let each = course.rates.len().div_ceil(POINTS_MAX).max(1);
    let point = |some: &[(std::time::Duration, f64)]| {
        let rates = some.iter().map(|(_, rate)| rate).sum::<f64>();
        let at = some.last().map_or(0.0, |(at, _)| at.as_secs_f64());
        (at, rates / some.len().max(1) as f64)
    };
    let line: Vec<(f64, f64)> = course.rates.chunks(each).map(point).collect();
    let labelled = line.len().div_ceil(10).max(1);
    let label = |(place, (at, _)): (usize, &(f64, f64))| {
        let shown = place % labelled == 0;
        (
            *at,
            if shown {
                format!("{at:.0} s")
            } else {
                String::new()
            },
        )
    };
    Lines {
        title: format!("{}: rate over time", course.name),
        unit: "messages/s",
        points: line.iter().enumerate().map(label).collect(),
        lines: vec![(course.name.clone(), line)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn long_courses_have_few_points() {
        let rates = (1..=600).map(|second| (Duration::from_secs(second), 100.0));
        let course = Course {
            name: "synced: fill".to_owned(),
            rates: rates.collect(),
        };
        let plot = over_time(&course);
        assert_eq!(plot.lines[0].1.len(), POINTS_MAX);
        assert_eq!(plot.lines[0].1[0], (10.0, 100.0));
        let labels = plot.points.iter().filter(|(_, label)| !label.is_empty());
        assert_eq!(labels.count(), 10);
        assert_eq!(
            course_json(&course)["rates"].as_array().map(Vec::len),
            Some(600)
        );
    }
}
