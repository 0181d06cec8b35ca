//! Everything found so far.

use std::time::Duration;

use crate::figures::Figures;
use crate::output::{Header, note};

/// Everything found so far.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) header: Header,
    pub(super) figures: Figures,
    /// The options of the systems, a line each.
    pub(super) options: Vec<String>,
    /// Wrong content and failed calls, a line each.
    pub(super) troubles: Vec<String>,
}

impl Results {
    /// Reports a trouble at once and in the results.
    pub(super) fn trouble(&mut self, text: String) {
        note(&text);
        self.troubles.push(text);
    }

    /// Reports a system left out, once for all distances.
    pub(super) fn skip(&mut self, text: String) {
        if !self.header.skipped.contains(&text) {
            self.header.skip(text);
        }
    }

    /// Adds the options of a system once.
    pub(super) fn option(&mut self, text: String) {
        if !self.options.contains(&text) {
            note(&text);
            self.options.push(text);
        }
    }

    /// Adds a time in milliseconds.
    pub(super) fn time(&mut self, system: &'static str, name: String, took: Duration) {
        self.figures.add(system, name, milliseconds(took), "ms");
    }

    /// Adds a rate of octets.
    pub(super) fn rate(&mut self, system: &'static str, name: String, octets: u64, took: Duration) {
        let rate = octets as f64 / took.as_secs_f64().max(1e-9) / 1e6;
        self.figures.add(system, name, rate, "MB/s");
    }
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The name of a figure at a distance.
pub(super) fn at(round_trip: u64, what: impl std::fmt::Display) -> String {
    format!("{round_trip} ms: {what}")
}
