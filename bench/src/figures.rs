//! The figures of all systems and rounds.

use serde_json::{Value, json};

use crate::page::short;
use crate::row::{Row, median};
use crate::table::Table;

/// A figure of a system in a round.
#[derive(Debug, Clone)]
struct Figure {
    system: &'static str,
    name: String,
    unit: &'static str,
    value: f64,
}

/// Figures in the order of their measurement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures(Vec<Figure>);

impl Figures {
    pub(crate) fn add(
        &mut self,
        system: &'static str,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
    ) {
        self.0.push(Figure {
            system,
            name: name.into(),
            unit,
            value,
        });
    }

    /// The median over the rounds.
    pub(crate) fn median(&self, system: &str, name: &str) -> Option<f64> {
        let own = self.0.iter();
        let own = own.filter(|figure| figure.system == system && figure.name == name);
        median(own.map(|figure| figure.value))
    }

    /// The unit of a figure.
    pub(crate) fn unit(&self, name: &str) -> Option<&'static str> {
        let figure = self.0.iter().find(|figure| figure.name == name);
        figure.map(|figure| figure.unit)
    }

    /// The names of figures and their units, each once.
    fn names(&self) -> Vec<(&str, &'static str)> {
        let mut names: Vec<(&str, &'static str)> = Vec::new();
        for figure in &self.0 {
            if !names.iter().any(|(name, _)| *name == figure.name) {
                names.push((&figure.name, figure.unit));
            }
        }
        names
    }

    /// The names of the systems, each once.
    pub(crate) fn systems(&self) -> Vec<&'static str> {
        let mut systems = Vec::new();
        for figure in &self.0 {
            if !systems.contains(&figure.system) {
                systems.push(figure.system);
            }
        }
        systems
    }

    /// A row for each figure of each system.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (name, unit) in self.names() {
            for system in self.systems() {
                if let Some(value) = self.median(system, name) {
                    rows.push(Row::new(format!("{system}: {name}"), value, unit));
                }
            }
        }
        rows
    }

    /// A line for each figure, a column for each system.
    pub(crate) fn table(&self) -> Table {
        let systems = self.systems();
        let head = ["figure", "unit"]
            .into_iter()
            .chain(systems.iter().copied());
        let mut table = Table::new(head);
        for (name, unit) in self.names() {
            let mut row = vec![name.to_owned(), unit.to_owned()];
            row.extend(systems.iter().map(|system| {
                let value = self.median(system, name);
                value.map_or_else(|| "-".to_owned(), short)
            }));
            table.push(row);
        }
        table
    }

    /// The figures of single rounds.
    pub(crate) fn rounds(&self) -> Vec<Value> {
        let round = |figure: &Figure| {
            json!({
                "system": figure.system,
                "name": figure.name,
                "value": figure.value,
                "unit": figure.unit,
            })
        };
        self.0.iter().map(round).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_become_medians_and_absent_figures_a_dash() {
        let mut figures = Figures::default();
        for value in [3.0, 1.0, 2.0] {
            figures.add("a", "CPU", value, "us");
        }
        figures.add("b", "memory", 7.0, "MB");
        assert_eq!(figures.median("a", "CPU"), Some(2.0));
        assert_eq!(figures.median("b", "CPU"), None);
        assert_eq!(figures.unit("memory"), Some("MB"));
        assert_eq!(figures.systems(), ["a", "b"]);
        let lines: Vec<String> = figures.rows().iter().map(Row::line).collect();
        assert_eq!(lines, ["a: CPU: 2.0 us", "b: memory: 7.0 MB"]);
        let text = figures.table().text();
        assert!(text.contains('-') && text.lines().count() == 3, "{text}");
        assert_eq!(figures.rounds().len(), 4);
    }
}
