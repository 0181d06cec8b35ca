//! Everything found so far.

use std::time::Duration;

use crate::figures::Figures;
use crate::output::{Header, note};

/// Everything found so far.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) header: Header,
    pub(super) figures: Figures,
    /// Rates over time, of the long queue.
    pub(super) courses: Vec<Course>,
    /// Lost messages and broken associations, a line each.
    pub(super) troubles: Vec<String>,
}

/// A rate over time.
#[derive(Debug, Clone)]
pub(super) struct Course {
    pub(super) name: String,
    /// Time since the beginning, and messages of a second.
    pub(super) rates: Vec<(Duration, f64)>,
}

impl Results {
    /// Reports a trouble at once and in the results.
    pub(super) fn trouble(&mut self, text: String) {
        note(&text);
        self.troubles.push(text);
    }

    /// Reports what cannot be measured, once.
    pub(super) fn skip(&mut self, text: String) {
        if !self.header.skipped.contains(&text) {
            self.header.skip(text);
        }
    }

    /// Adds a figure, and reports it at once.
    pub(super) fn add(
        &mut self,
        system: &'static str,
        name: String,
        value: f64,
        unit: &'static str,
    ) {
        note(&format!(
            "{system}: {name}: {} {unit}",
            crate::page::short(value)
        ));
        self.figures.add(system, name, value, unit);
    }
}
