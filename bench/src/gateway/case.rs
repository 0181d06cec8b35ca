//! The loads of every system.

use std::ops::Range;

use crate::load::Messages;

/// A load.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The label of the load in a report, unique among the loads.
    pub(crate) label: String,
    pub(crate) sessions: usize,
    pub(crate) messages: Messages,
    /// Messages a second; `None` for as many as the system accepts.
    pub(crate) rate: Option<f64>,
    /// The numbers of the domains of the recipients.
    pub(crate) domains: Range<u32>,
}

impl Case {
    /// The mix of Figure 5 of the gateway paper.
    pub(crate) fn mix(sessions: usize) -> Self {
        let plural = if sessions == 1 { "" } else { "s" };
        Self {
            label: format!("{sessions} session{plural}"),
            sessions,
            messages: Messages::mix(),
            rate: None,
            domains: 0..10,
        }
    }

    /// Messages of 1 KB.
    pub(crate) fn small(sessions: usize) -> Self {
        let mix = Self::mix(sessions);
        Self {
            label: format!("1 KB, {}", mix.label),
            messages: Messages::small(),
            ..mix
        }
    }

    /// The mix at a rate that a system can sustain.
    pub(crate) fn at_rate(sessions: usize, rate: f64) -> Self {
        let mix = Self::mix(sessions);
        Self {
            label: format!("half load, {}", mix.label),
            rate: Some(rate),
            ..mix
        }
    }
}
