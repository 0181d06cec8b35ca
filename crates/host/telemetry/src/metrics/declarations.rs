//! Declares metrics in the registry and in the reference at once.

use std::fmt::{Debug, Write as _};
use std::hash::Hash;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

/// The prefix of every name.
const PREFIX: &str = "vere";

/// Upper bounds of the buckets for times, in seconds: from a single store to a slow next hop.
const SECONDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0,
];

/// Upper bounds of the buckets for ages, in seconds: from at once to the usual expiry.
const AGES: [f64; 10] = [
    0.1, 1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 432_000.0,
];

const HEAD: &str = "\
# Metrics

Generated from the code: do not edit. `GET /metrics` on the address in `[metrics]` gives them in the
OpenMetrics text format. Counters count from the start of the process. Beside it there are
`/health/live` (the process answers) and `/health/ready` (it takes mail; 503 and the reason when it
does not).
";

/// A registry and the text of its reference.
#[derive(Debug)]
pub(super) struct Declarations {
    registry: Registry,
    reference: String,
}

impl Default for Declarations {
    fn default() -> Self {
        Self {
            registry: Registry::with_prefix(PREFIX),
            reference: HEAD.to_owned(),
        }
    }
}

/// Names come without the prefix and `_total`, with the unit last; help texts without a full stop,
/// which the library adds.
impl Declarations {
    /// Begins a section of the reference.
    pub(super) fn section(&mut self, title: &str) {
        let rule = "| metric | type | labels | meaning |\n|---|---|---|---|\n";
        let _ = write!(self.reference, "\n## {title}\n\n{rule}");
    }

    pub(super) fn counter(&mut self, name: &str, help: &str) -> Counter {
        self.add(name, help, "counter", "", Counter::default())
    }

    pub(super) fn counters<L: Label>(&mut self, name: &str, help: &str) -> Family<L, Counter> {
        self.add(name, help, "counter", &L::describe(), Family::default())
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str) -> Gauge {
        self.add(name, help, "gauge", "", Gauge::default())
    }

    pub(super) fn gauges<L: Label>(&mut self, name: &str, help: &str) -> Family<L, Gauge> {
        self.add(name, help, "gauge", &L::describe(), Family::default())
    }

    /// A histogram of durations in seconds.
    pub(super) fn times(&mut self, name: &str, help: &str) -> Histogram {
        self.add(name, help, "histogram", "", Histogram::new(SECONDS))
    }

    /// Histograms of durations in seconds, by label.
    pub(super) fn times_by<L: Label>(
        &mut self,
        name: &str,
        help: &str,
    ) -> Family<L, Histogram, fn() -> Histogram> {
        let family = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> _);
        self.add(name, help, "histogram", &L::describe(), family)
    }

    /// A histogram of ages in seconds, up to days.
    pub(super) fn ages(&mut self, name: &str, help: &str) -> Histogram {
        self.add(name, help, "histogram", "", Histogram::new(AGES))
    }

    /// Registers gauges (name and help) that are read on request.
    pub(super) fn collector(&mut self, gauges: &[(&str, &str)], collector: Box<dyn Collector>) {
        for (name, help) in gauges {
            self.describe(name, help, "gauge", "");
        }
        self.registry.register_collector(collector);
    }

    pub(super) fn finish(self) -> (Registry, String) {
        (self.registry, self.reference)
    }

    fn add<M>(&mut self, name: &str, help: &str, kind: &str, labels: &str, metric: M) -> M
    where
        M: Metric + Clone,
    {
        self.registry.register(name, help, metric.clone());
        self.describe(name, help, kind, labels);
        metric
    }

    fn describe(&mut self, name: &str, help: &str, kind: &str, labels: &str) {
        let total = if kind == "counter" { "_total" } else { "" };
        let _ = writeln!(
            self.reference,
            "| `{PREFIX}_{name}{total}` | {kind} | {labels} | {help} |"
        );
    }
}

/// A set of labels with a description.
pub(super) trait Label:
    EncodeLabelSet + Clone + Eq + Hash + Debug + Send + Sync + 'static
{
    /// Names and values in Markdown.
    fn describe() -> String;
}

/// Declares an enum as a label with its values.
macro_rules! label {
    ($(#[$doc:meta])* $name:ident($label:literal) {
        $($(#[$variant_doc:meta])* $variant:ident = $value:literal,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// The label's name.
            pub(super) const LABEL: &'static str = $label;

            /// The label's value.
            #[must_use]
            pub const fn value(self) -> &'static str {
                match self {
                    $(Self::$variant => $value,)+
                }
            }
        }

        impl prometheus_client::encoding::EncodeLabelSet for $name {
            fn encode(
                &self,
                encoder: &mut prometheus_client::encoding::LabelSetEncoder<'_>,
            ) -> Result<(), std::fmt::Error> {
                prometheus_client::encoding::EncodeLabelSet::encode(
                    &[(Self::LABEL, self.value())],
                    encoder,
                )
            }
        }

        impl crate::metrics::declarations::Label for $name {
            fn describe() -> String {
                let values: [&str; _] = [$($value),+];
                format!("`{}`: {}", Self::LABEL, values.join(", "))
            }
        }
    };
}
pub(super) use label;
