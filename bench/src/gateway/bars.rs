//! The bars of our figures, and the peers of each comparison.

use super::measure::{Metric, metric};
use super::report::Report;
use crate::peer::OURS;
use crate::row::Bar::{self, RatioMax, RatioMin, ValueMax, ValueMin};
use crate::row::Row;
use Beside::{Noop, Nothing, Rival};

/// Postfix with its queue on a disk: the better of both is the peer.
const RIVALS: [&str; 2] = ["postfix tuned", "postfix as shipped"];
/// The limit of the machine.
const NOOP: &str = "no-op relay";

/// The peer of a figure of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// The better durable Postfix.
    Rival,
    /// The relay without a queue.
    Noop,
    /// No peer: the bar is the figure itself.
    Nothing,
}

/// A bar in some cases.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    metric: &'static str,
    /// The end of the labels of the bar's cases.
    case: &'static str,
    beside: Beside,
    bar: Bar,
}

const fn wanted(metric: &'static str, case: &'static str, beside: Beside, bar: Bar) -> Wanted {
    Wanted {
        metric,
        case,
        beside,
        bar,
    }
}

const BARS: &[Wanted] = &[
    wanted("CPU", "", Rival, RatioMax(0.1)),
    wanted("delivered", "50 sessions", Noop, RatioMin(0.6)),
    wanted("delivered", "200 sessions", Noop, RatioMin(0.6)),
    wanted("delivered", "50 sessions", Rival, RatioMin(6.0)),
    wanted("delivered", "200 sessions", Rival, RatioMin(6.0)),
    wanted("reply p99", "50 sessions", Rival, RatioMax(0.1)),
    wanted(
        "reply p99",
        "half load, 50 sessions",
        Nothing,
        ValueMax(10_000.0),
    ),
    // Five times 1,000 messages a second, and a fifth of 100 ms: Figure 5 of the gateway paper.
    wanted("delivered", "50 sessions", Nothing, ValueMin(5_000.0)),
    wanted("reply p99", "50 sessions", Nothing, ValueMax(20_000.0)),
];

/// A row for each bar with figures.
pub(crate) fn rows(report: &Report) -> Vec<Row> {
    let mut rows = Vec::new();
    for wanted in BARS {
        let Some(metric) = metric(wanted.metric) else {
            continue;
        };
        let cases = report.cases.iter().map(|case| &*case.label);
        let cases = cases.filter(|label| wanted.is_for(label));
        rows.extend(cases.filter_map(|case| wanted.row(report, metric, case)));
    }
    rows
}

impl Wanted {
    fn is_for(&self, label: &str) -> bool {
        let mix = label.strip_prefix("1 KB, ").unwrap_or(label);
        mix == self.case || self.case.is_empty() && !label.starts_with("half load")
    }

    fn row(&self, report: &Report, metric: &'static Metric, case: &str) -> Option<Row> {
        let peer = match self.beside {
            Nothing => None,
            Noop => Some((NOOP.to_owned(), report.median(metric, NOOP, case)?)),
            Rival => Some(self.rival(report, metric, case)?),
        };
        let beside = peer.as_ref().map(|(name, _)| format!(", beside {name}"));
        let beside = beside.unwrap_or_default();
        let name = format!("{OURS}: {}, {case}{beside}", metric.name);
        let row = Row::new(name, report.median(metric, OURS, case)?, metric.unit);
        Some(row.beside(peer).bar(self.bar))
    }

    fn rival(&self, report: &Report, metric: &Metric, case: &str) -> Option<(String, f64)> {
        let figures = RIVALS.iter().filter_map(|name| {
            let value = report.median(metric, name, case)?;
            Some(((*name).to_owned(), value))
        });
        match self.bar {
            RatioMin(_) | ValueMin(_) => figures.max_by(|(_, a), (_, b)| a.total_cmp(b)),
            RatioMax(_) | ValueMax(_) => figures.min_by(|(_, a), (_, b)| a.total_cmp(b)),
        }
    }
}
