//! A row of results: a figure, its peer, and its bar; alike for every benchmark.

use serde_json::{Value, json};

use crate::page::short;
use crate::table::Table;

/// The limit of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bar {
    /// At most this part of the peer's figure.
    RatioMax(f64),
    /// At least this multiple of the peer's figure.
    RatioMin(f64),
    /// At most so much, whatever peers do.
    ValueMax(f64),
    /// At least so much, whatever peers do.
    ValueMin(f64),
}

impl Bar {
    /// The text of the bar in results.
    pub(crate) fn text(self) -> String {
        match self {
            Self::RatioMax(limit) => format!("ratio <= {limit}"),
            Self::RatioMin(limit) => format!("ratio >= {limit}"),
            Self::ValueMax(limit) => format!("value <= {limit}"),
            Self::ValueMin(limit) => format!("value >= {limit}"),
        }
    }

    /// Whether the figure meets the bar; `None` for a ratio without a peer.
    fn holds(self, value: f64, ratio: Option<f64>) -> Option<bool> {
        match self {
            Self::RatioMax(limit) => ratio.map(|ratio| ratio <= limit),
            Self::RatioMin(limit) => ratio.map(|ratio| ratio >= limit),
            Self::ValueMax(limit) => Some(value <= limit),
            Self::ValueMin(limit) => Some(value >= limit),
        }
    }
}

/// A figure of a system.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    /// `SYSTEM: FIGURE`, and the peer where the figure has several rows.
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The peer, and its figure.
    pub(crate) peer: Option<(String, f64)>,
    pub(crate) bar: Option<Bar>,
    /// The peer's figure is not a fair comparison: the bar counts as missed, whatever the figures say.
    pub(crate) flattered: bool,
}

impl Row {
    /// A figure without a peer and without a bar.
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        let name = name.into();
        Self {
            name,
            value,
            unit,
            ..Self::default()
        }
    }

    /// The figure beside that of a peer.
    pub(crate) fn beside(mut self, peer: impl Into<Option<(String, f64)>>) -> Self {
        self.peer = peer.into();
        self
    }

    /// The figure with a bar.
    pub(crate) fn bar(mut self, bar: impl Into<Option<Bar>>) -> Self {
        self.bar = bar.into();
        self
    }

    /// The figure divided by the peer's figure.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (_, peer) = self.peer.as_ref()?;
        (*peer > 0.0).then(|| self.value / peer)
    }

    /// Whether the figure meets the bar; `None` without a bar, or without a peer that the bar needs.
    pub(crate) fn ok(&self) -> Option<bool> {
        let holds = self.bar?.holds(self.value, self.ratio());
        holds.map(|holds| holds && !self.flattered)
    }

    /// The bar and its verdict as text.
    pub(crate) fn verdict(&self) -> String {
        let Some(bar) = self.bar else {
            return String::new();
        };
        let verdict = match self.ok() {
            Some(true) => "ok",
            Some(false) => "MISSED",
            None => "nothing to compare with",
        };
        format!("{}: {verdict}", bar.text())
    }

    /// The row as a line of text.
    pub(crate) fn line(&self) -> String {
        let (name, value, unit) = (&self.name, short(self.value), self.unit);
        let mut line = format!("{name}: {value} {unit}");
        if let Some(ratio) = self.ratio() {
            line.push_str(&format!(", ratio {ratio:.3}"));
        }
        if self.bar.is_some() {
            line.push_str(&format!(" ({})", self.verdict()));
        }
        line
    }

    /// The row in the JSON of DESIGN section 7.
    pub(crate) fn json(&self) -> Value {
        json!({
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "peer": self.peer.as_ref().map(|(name, _)| name),
            "peer_value": self.peer.as_ref().map(|(_, value)| value),
            "ratio": self.ratio(),
            "bar": self.bar.map(Bar::text),
            "ok": self.ok(),
        })
    }
}

/// Rows as a table.
pub(crate) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(["figure", "value", "unit", "ratio", "bar"]);
    for row in rows {
        let ratio = row.ratio().map(|ratio| format!("{ratio:.2}"));
        table.push(vec![
            row.name.clone(),
            short(row.value),
            row.unit.to_owned(),
            ratio.unwrap_or_default(),
            row.verdict(),
        ]);
    }
    table
}

/// The value in the middle.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::{Bar, Row, median};

    #[test]
    fn a_ratio_needs_a_peer_and_a_value_does_not() {
        let row = |value, peer: Option<f64>, bar| Row {
            name: "vere: x".to_owned(),
            value,
            unit: "ms",
            peer: peer.map(|value| ("other".to_owned(), value)),
            bar,
            flattered: false,
        };
        let ratio = row(9.0, Some(10.0), Some(Bar::RatioMin(0.95)));
        assert_eq!((ratio.ratio(), ratio.ok()), (Some(0.9), Some(false)));
        assert_eq!(ratio.json()["bar"], "ratio >= 0.95");
        assert_eq!(ratio.json()["peer"], "other");
        assert_eq!(
            row(9.0, Some(10.0), Some(Bar::RatioMax(0.9))).ok(),
            Some(true)
        );
        assert_eq!(row(9.0, None, Some(Bar::RatioMax(0.9))).ok(), None);
        let value = row(9.0, Some(1.0), Some(Bar::ValueMax(9.0)));
        assert_eq!(value.verdict(), "value <= 9: ok");
        assert_eq!(row(1.0, None, None).ok(), None);
        let flattered = Row {
            flattered: true,
            ..ratio
        };
        let better = Row {
            value: 99.0,
            ..flattered
        };
        assert_eq!(better.ok(), Some(false));
        let line = "vere: x: 99.0 ms, ratio 9.900 (ratio >= 0.95: MISSED)";
        assert_eq!(better.line(), line);
        assert_eq!(row(1.0, None, None).line(), "vere: x: 1.0 ms");
        let least = row(9.0, None, Some(Bar::ValueMin(10.0)));
        assert_eq!(least.verdict(), "value >= 10: MISSED");
    }

    #[test]
    fn medians() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0]), Some(2.5));
    }
}
