//! The results, as rows with bars.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::AFTER_MAX;
use super::account::{Account, BACK_MAX};
use super::counts::Counts;
use super::flood::Flooded;
use super::honest::Times;
use super::judged::{FILTER_TIMEOUT, Judged};
use super::kinds::Kind;
use super::system::Memory;
use crate::output::Header;
use crate::page;
use crate::plot::Bars;
use crate::row::{self, Bar, Row};

/// Memory may be this multiple of its bounds: the allocator's part and the program itself.
const BOUNDS_MAX: f64 = 1.2;

/// Limit of the slowest of a hundred honest clients, as a multiple of the time on the quiet system.
const P99_MAX: f64 = 3.0;

/// The roles with a row for memory: the roles within reach of clients.
const ROLES: [&str; 7] = [
    "front", "workers", "broker", "gateway", "store", "dnsbl", "x400",
];

/// Milliseconds within which the slowest of a hundred honest clients of the block list has its answer. A quiet server needs a tenth of
/// one, of which a multiple says nothing; a mail server waits for seconds.
const LOOK_UP_MS_MAX: f64 = 20.0;

/// Seconds that an honest message may take beside a filter that fails, beyond the time of the filter.
const FILTER_SECONDS_MAX: f64 = 1.0;

const MIB_KIB: f64 = 1024.0;

/// The time in milliseconds that `percent` percent did not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Option<f64> {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).map(|time| time.as_secs_f64() * 1e3)
}

/// One kind of trouble.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) kind: Kind,
    /// Honest clients before, and meanwhile.
    pub(super) quiet: Times,
    pub(super) beside: Times,
    /// Memory before, the most meanwhile, and afterwards.
    pub(super) before: Memory,
    pub(super) most: Memory,
    pub(super) after: Memory,
    pub(super) bounds: Memory,
    /// Clients that held when the honest clients came.
    pub(super) held: usize,
    pub(super) counts: Counts,
    /// The load of a flood.
    pub(super) flooded: Option<Flooded>,
    /// What became of judged mail.
    pub(super) account: Option<Account>,
}

impl Trouble {
    /// All results in a line for a waiting person.
    pub(super) fn line(&self) -> String {
        let load = match self.flooded {
            Some(flooded) => format!("{:.0} queries/s", flooded.per_second(flooded.queries)),
            None => format!(
                "{} held, {} ended by the server",
                self.held,
                self.counts.all_ended()
            ),
        };
        format!(
            "{}: {load}, {} MiB of memory, {} afterwards, {} honest clients refused",
            self.kind.name(),
            self.most.total() / 1024,
            self.after.total() / 1024,
            self.beside.refused.len(),
        )
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = match self.flooded {
            None => vec![
                self.count("held", self.held),
                self.count("ended by the server", self.counts.all_ended()),
            ],
            Some(flooded) => {
                let rate =
                    |name, count| self.row(name, flooded.per_second(count), "1/s", None, None);
                vec![
                    rate("queries", flooded.queries),
                    rate("answers", flooded.answers),
                ]
            }
        };
        rows.push(self.memory("all roles", self.most.total(), self.bounds.total()));
        let runs = |role: &&str| self.bounds.of(role) > 0;
        for role in ROLES.into_iter().filter(runs) {
            rows.push(self.memory(role, self.most.of(role), self.bounds.of(role)));
        }
        rows.push(self.row(
            "memory afterwards",
            self.after.total() as f64 / MIB_KIB,
            "MiB",
            Some(("before", self.before.total() as f64 / MIB_KIB)),
            Some(Bar::RatioMax(AFTER_MAX)),
        ));
        rows.extend(self.account_rows());
        let smtp = (&self.beside.smtp, &self.quiet.smtp);
        let imap = (&self.beside.imap, &self.quiet.imap);
        let x400 = (&self.beside.x400, &self.quiet.x400);
        let usual = (None, Some(Bar::RatioMax(P99_MAX)));
        for (name, (beside, quiet), bars) in [
            ("greeting to 250", smtp, self.smtp_bars().unwrap_or(usual)),
            ("IMAP login to FETCH", imap, usual),
            ("X.400 bind to confirmation", x400, usual),
        ] {
            for (percent, bar) in [(50, bars.0), (99, bars.1)] {
                let Some(value) = percentile(beside, percent) else {
                    continue;
                };
                let peer = percentile(quiet, percent).map(|quiet| ("quiet", quiet));
                rows.push(self.row(&format!("{name} p{percent}"), value, "ms", peer, bar));
            }
        }
        let udp = (&self.beside.udp, &self.quiet.udp);
        let tcp = (&self.beside.tcp, &self.quiet.tcp);
        for (name, (beside, quiet)) in [("look-up by UDP", udp), ("look-up by TCP", tcp)] {
            for (percent, bar) in [(50, None), (99, Some(Bar::ValueMax(LOOK_UP_MS_MAX)))] {
                let Some(value) = percentile(beside, percent) else {
                    continue;
                };
                let peer = percentile(quiet, percent).map(|quiet| ("quiet", quiet));
                rows.push(self.row(&format!("{name} p{percent}"), value, "ms", peer, bar));
            }
        }
        let refused = self.beside.refused.len() as f64;
        let bar = Some(Bar::ValueMax(0.0));
        rows.push(self.row("honest clients refused", refused, "clients", None, bar));
        rows
    }

    /// Bars of the middle and the slowest honest message beside a filter that fails: the filter is left alone but for one message now and then, which waits for
    /// the whole time of the filter.
    fn smtp_bars(&self) -> Option<(Option<Bar>, Option<Bar>)> {
        let Some(Judged::Filter(_)) = self.kind.judged() else {
            return None;
        };
        let slowest = (FILTER_TIMEOUT.as_secs_f64() + FILTER_SECONDS_MAX) * 1e3;
        Some((Some(Bar::RatioMax(P99_MAX)), Some(Bar::ValueMax(slowest))))
    }

    /// What became of judged mail.
    fn account_rows(&self) -> Vec<Row> {
        let Some(account) = &self.account else {
            return Vec::new();
        };
        let messages = |name, count: u64, bar| self.row(name, count as f64, "messages", None, bar);
        let missing = account.acknowledged.saturating_sub(account.found);
        let mut rows = vec![
            messages("acknowledged", account.acknowledged, None),
            messages("missing", missing, Some(Bar::ValueMax(0.0))),
        ];
        if self.kind.judged() == Some(Judged::Quarantine) {
            rows.push(messages("in the quarantine", account.quarantined, None));
        }
        if let Some(back) = account.back {
            let bar = Some(Bar::ValueMax(BACK_MAX.as_secs_f64()));
            rows.push(self.row("filter asked again", back.as_secs_f64(), "s", None, bar));
        }
        rows
    }

    fn count(&self, name: &str, count: usize) -> Row {
        self.row(name, count as f64, "clients", None, None)
    }

    fn memory(&self, role: &str, kib: u64, bound: u64) -> Row {
        self.row(
            &format!("memory of {role}"),
            kib as f64 / MIB_KIB,
            "MiB",
            Some(("bounds", bound as f64 / MIB_KIB)),
            Some(Bar::RatioMax(BOUNDS_MAX)),
        )
    }

    fn row(
        &self,
        name: &str,
        value: f64,
        unit: &'static str,
        peer: Option<(&str, f64)>,
        bar: Option<Bar>,
    ) -> Row {
        let peer = peer.map(|(name, value)| (name.to_owned(), value));
        let name = format!("{}: {name}", self.kind.name());
        Row::new(name, value, unit).beside(peer).bar(bar)
    }

    /// Reasons for the end of clients, and the results of honest clients.
    fn json(&self) -> Value {
        json!({
            "kind": self.kind.name(),
            "held": self.held,
            "under_way": self.counts.under_way,
            "ended": self.counts.ended,
            "replies": self.counts.replies,
            "flood": self.flooded.map(|flooded| json!({
                "queries": flooded.queries,
                "answers": flooded.answers,
                "seconds": flooded.time.as_secs_f64(),
            })),
            "refused": self.beside.refused,
            "refused_quiet": self.quiet.refused,
        })
    }
}

/// All kinds.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) header: Header,
    pub(super) troubles: Vec<Trouble>,
    /// Sessions of each worker, with a front before the gateway.
    pub(super) front: Option<u32>,
}

impl Report {
    fn rows(&self) -> Vec<Row> {
        self.troubles.iter().flat_map(Trouble::rows).collect()
    }

    /// All results as a table.
    pub(super) fn table(&self) -> String {
        let mut text = format!("{}\n", self.header.machine.line());
        if let Some(tasks) = self.front {
            let _ = writeln!(
                text,
                "front and two workers at port 25, {tasks} sessions each"
            );
        }
        for trouble in &self.troubles {
            let _ = writeln!(text, "\n{}", trouble.kind.name());
            for row in trouble.rows() {
                let _ = writeln!(text, "  {}", row.line());
            }
            for (why, count) in &trouble.counts.ended {
                let _ = writeln!(text, "  ended with {why:?}: {count}");
            }
            for (reply, count) in &trouble.counts.replies {
                let _ = writeln!(text, "  messages of the crowd with {reply:?}: {count}");
            }
            for refused in trouble.beside.refused.iter().take(3) {
                let _ = writeln!(text, "  honest client refused: {refused}");
            }
        }
        for said in &self.header.skipped {
            let _ = writeln!(text, "\n{said}");
        }
        let _ = writeln!(text, "\n{:.0} s", self.header.seconds);
        text
    }

    pub(super) fn json(&self) -> Value {
        let rounds = self.troubles.iter().map(Trouble::json).collect();
        self.header.json(&self.rows(), rounds)
    }

    /// All results as a page without external resources.
    pub(super) fn page(&self) -> String {
        let mut page = page::begin(
            "vere bench trouble",
            &format!(
                "Clients that begin something and do not go on: memory of all roles beside the bounds of the \
                 settings, and what honest clients notice meanwhile. {}.",
                self.header.machine.line()
            ),
        );
        let mib = |kib: u64| Some(kib as f64 / MIB_KIB);
        let group = |trouble: &Trouble| {
            let memory = [
                &trouble.before,
                &trouble.most,
                &trouble.after,
                &trouble.bounds,
            ];
            let values = memory.map(|memory| mib(memory.total())).to_vec();
            (trouble.kind.name().to_owned(), values)
        };
        Bars {
            title: "Memory of all roles".to_owned(),
            unit: "MiB",
            systems: ["before", "most", "afterwards", "bounds"]
                .map(str::to_owned)
                .into(),
            groups: self.troubles.iter().map(group).collect(),
        }
        .draw(&mut page);
        row::table(&self.rows()).draw(&mut page);
        page::list(&self.header.skipped, &mut page);
        page + page::END
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_slowest() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 50), Some(100.0));
        assert_eq!(percentile(&times, 99), Some(198.0));
        assert_eq!(percentile(&times[..1], 99), Some(1.0));
        assert_eq!(percentile(&[], 99), None);
    }
}
