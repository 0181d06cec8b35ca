//! What our figures must reach, beside which others.

use serde_json::{Value, json};

use super::report::{Metric, OURS, Report, metric};

/// Postfix, whose queue is on a disk: the better one of these is compared with.
const RIVALS: [&str; 2] = ["postfix tuned", "postfix as shipped"];
/// What this machine can do.
const NOOP: &str = "no-op relay";

/// Beside what a figure of ours stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// The better durable Postfix.
    Rival,
    /// The relay without a queue.
    Noop,
    /// Nothing: the bar is the figure itself.
    Nothing,
}

/// A bar: a figure of ours, or its ratio to another one, must not be beyond `limit`.
#[derive(Debug, Clone, Copy)]
struct Bar {
    metric: &'static str,
    /// The end of the labels of the cases that it is for.
    case: &'static str,
    beside: Beside,
    limit: f64,
    /// More is better.
    at_least: bool,
}

const fn ratio(metric: &'static str, case: &'static str, beside: Beside, limit: f64) -> Bar {
    Bar {
        metric,
        case,
        beside,
        limit,
        at_least: false,
    }
}

const fn at_least(bar: Bar) -> Bar {
    Bar {
        at_least: true,
        ..bar
    }
}

const BARS: &[Bar] = &[
    ratio("CPU", "", Beside::Rival, 0.1),
    at_least(ratio("delivered", "50 sessions", Beside::Noop, 0.6)),
    at_least(ratio("delivered", "200 sessions", Beside::Noop, 0.6)),
    at_least(ratio("delivered", "50 sessions", Beside::Rival, 6.0)),
    at_least(ratio("delivered", "200 sessions", Beside::Rival, 6.0)),
    ratio("reply p99", "50 sessions", Beside::Rival, 0.1),
    ratio(
        "reply p99",
        "half load, 50 sessions",
        Beside::Nothing,
        10_000.0,
    ),
    // Five times 1,000 messages a second, and a fifth of 100 ms: Figure 5 of the gateway paper.
    at_least(ratio("delivered", "50 sessions", Beside::Nothing, 5_000.0)),
    ratio("reply p99", "50 sessions", Beside::Nothing, 20_000.0),
];

/// A bar in one case, and what came out.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    pub(crate) metric: &'static Metric,
    pub(crate) case: String,
    pub(crate) value: f64,
    /// The other's name and figure.
    pub(crate) peer: Option<(String, f64)>,
    pub(crate) bar: String,
    pub(crate) ok: bool,
}

impl Verdict {
    fn ratio(&self) -> Option<f64> {
        self.peer.as_ref().map(|(_, peer)| self.value / peer)
    }

    /// One line for a person.
    pub(crate) fn line(&self) -> String {
        let verdict = if self.ok { "ok" } else { "MISSED" };
        let found = match (&self.peer, self.ratio()) {
            (Some((peer, _)), Some(ratio)) => format!("{ratio:.3} of {peer}"),
            _ => format!("{:.0} {}", self.value, self.metric.unit),
        };
        let Self {
            metric, case, bar, ..
        } = self;
        format!("{}, {case}: {found} (bar: {bar}): {verdict}", metric.name)
    }

    /// A row of the results.
    pub(crate) fn row(&self) -> Value {
        let beside = self
            .peer
            .as_ref()
            .map(|(name, _)| format!(", beside {name}"));
        json!({
            "name": format!(
                "{OURS}: {}, {}{}", self.metric.name, self.case, beside.unwrap_or_default()
            ),
            "value": self.value,
            "unit": self.metric.unit,
            "peer": self.peer.as_ref().map(|(name, _)| name),
            "peer_value": self.peer.as_ref().map(|(_, value)| value),
            "ratio": self.ratio(),
            "bar": self.bar,
            "ok": self.ok,
        })
    }
}

/// All bars for which there are figures.
pub(crate) fn verdicts(report: &Report) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for bar in BARS {
        let Some(metric) = metric(bar.metric) else {
            continue;
        };
        for case in &report.cases {
            if bar.is_for(&case.label) {
                verdicts.extend(bar.judge(report, metric, &case.label));
            }
        }
    }
    verdicts
}

impl Bar {
    fn is_for(&self, label: &str) -> bool {
        let mix = label.strip_prefix("1 KB, ").unwrap_or(label);
        mix == self.case || self.case.is_empty() && !label.starts_with("half load")
    }

    fn judge(&self, report: &Report, metric: &'static Metric, case: &str) -> Option<Verdict> {
        let value = report.median(metric, OURS, case)?;
        let peer = match self.beside {
            Beside::Nothing => None,
            Beside::Noop => Some((NOOP.to_owned(), report.median(metric, NOOP, case)?)),
            Beside::Rival => Some(self.rival(report, metric, case)?),
        };
        let judged = match &peer {
            Some((_, peer)) if *peer > 0.0 => value / peer,
            Some(_) => return None,
            None => value,
        };
        let ok = if self.at_least {
            judged >= self.limit
        } else {
            judged <= self.limit
        };
        let sign = if self.at_least { ">=" } else { "<=" };
        let what = peer.as_ref().map_or(metric.unit, |_| "ratio");
        Some(Verdict {
            metric,
            case: case.to_owned(),
            value,
            peer,
            bar: format!("{what} {sign} {}", self.limit),
            ok,
        })
    }

    fn rival(&self, report: &Report, metric: &Metric, case: &str) -> Option<(String, f64)> {
        let figures = RIVALS.iter().filter_map(|name| {
            let value = report.median(metric, name, case)?;
            Some(((*name).to_owned(), value))
        });
        figures.min_by(|(_, a), (_, b)| {
            let order = a.total_cmp(b);
            if self.at_least {
                order.reverse()
            } else {
                order
            }
        })
    }
}
