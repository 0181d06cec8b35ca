//! A figure of ours that has no counterpart in other systems.

use serde_json::{Value, json};

/// One figure, with the bar it must not be beyond, if it has one.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The same without what this is about, and its name.
    pub(crate) peer: Option<(&'static str, f64)>,
    pub(crate) bar: Option<RowBar>,
}

/// A bar for the ratio to the peer, or for the figure itself if there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RowBar {
    AtMost(f64),
    AtLeast(f64),
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.peer.map(|(_, peer)| self.value / peer)
    }

    fn ok(&self) -> Option<bool> {
        let judged = self.ratio().unwrap_or(self.value);
        self.bar.map(|bar| match bar {
            RowBar::AtMost(limit) => judged <= limit,
            RowBar::AtLeast(limit) => judged >= limit,
        })
    }

    fn bar(&self) -> Option<String> {
        let what = self.peer.map_or(self.unit, |_| "ratio");
        self.bar.map(|bar| match bar {
            RowBar::AtMost(limit) => format!("{what} <= {limit}"),
            RowBar::AtLeast(limit) => format!("{what} >= {limit}"),
        })
    }

    /// One line for a person.
    pub(crate) fn line(&self) -> String {
        let mut line = format!("{}: {:.1} {}", self.name, self.value, self.unit);
        if let (Some((peer, _)), Some(ratio)) = (self.peer, self.ratio()) {
            line.push_str(&format!(", {ratio:.3} of {peer}"));
        }
        if let (Some(bar), Some(ok)) = (self.bar(), self.ok()) {
            line.push_str(&format!(
                " (bar: {bar}): {}",
                if ok { "ok" } else { "MISSED" }
            ));
        }
        line
    }

    /// A row of the results.
    pub(crate) fn json(&self) -> Value {
        json!({
            "name": format!("vere: {}", self.name),
            "value": self.value,
            "unit": self.unit,
            "peer": self.peer.map(|(name, _)| name),
            "peer_value": self.peer.map(|(_, value)| value),
            "ratio": self.ratio(),
            "bar": self.bar(),
            "ok": self.ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, RowBar};

    #[test]
    fn a_ratio_is_judged_where_there_is_a_peer() {
        let row = |value, peer, bar| Row {
            name: "x".to_owned(),
            value,
            unit: "ms",
            peer,
            bar,
        };
        let ratio = row(9.0, Some(("all well", 10.0)), Some(RowBar::AtLeast(0.95)));
        assert_eq!(ratio.ok(), Some(false));
        assert_eq!(ratio.json()["bar"], "ratio >= 0.95");
        let plain = row(9.0, None, Some(RowBar::AtMost(50.0)));
        assert_eq!(plain.line(), "x: 9.0 ms (bar: ms <= 50): ok");
        assert_eq!(row(1.0, None, None).ok(), None);
    }
}
