//! Two samples, and the changes between both.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use vere_control::{QueueRow, TopSample};

/// The identity of a queue: its dead gateway, if any, and its destination.
pub(super) type QueueKey = (Option<String>, String);

/// Messages a second that arrived, and that left.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(super) struct Rates {
    pub(super) came: f64,
    pub(super) left: f64,
}

/// A queue and its changes since the sample before.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) queue: QueueRow,
    /// Unknown for a queue that is missing in the sample before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rates: Option<Rates>,
}

impl Row {
    pub(super) fn key(&self) -> QueueKey {
        key(&self.queue)
    }

    /// Messages ready for delivery: neither deferred, nor held, nor under delivery.
    pub(super) const fn ready(&self) -> usize {
        let others = self.queue.deferred + self.queue.in_flight + self.queue.held;
        self.queue.messages.saturating_sub(others)
    }
}

/// A sample with the rates since the sample before.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Look {
    /// The queues are in `rows`.
    #[serde(flatten)]
    pub(super) sample: TopSample,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rates: Option<Rates>,
    #[serde(skip)]
    pub(super) rows: Vec<Row>,
}

impl Look {
    /// Compares with the sample before; without an earlier sample the rates are unknown.
    pub(super) fn new(mut sample: TopSample, before: Option<&Self>) -> Self {
        let since = before.map(|before| &before.sample);
        let seconds = since.map_or(0.0, |since| {
            sample.millis.saturating_sub(since.millis) as f64 / 1_000.0
        });
        let rates = |now: (u64, u64), then: (u64, u64)| {
            // Counters begin anew with the gateway's process.
            let went_on = seconds > 0.0 && now.0 >= then.0 && now.1 >= then.1;
            went_on.then(|| Rates {
                came: (now.0 - then.0) as f64 / seconds,
                left: (now.1 - then.1) as f64 / seconds,
            })
        };
        let known: HashMap<QueueKey, (u64, u64)> = before
            .into_iter()
            .flat_map(|before| &before.rows)
            .map(|row| (row.key(), (row.queue.came, row.queue.left)))
            .collect();
        let rows = std::mem::take(&mut sample.queues).into_iter();
        let rows = rows.map(|queue| Row {
            rates: known
                .get(&key(&queue))
                .and_then(|then| rates((queue.came, queue.left), *then)),
            queue,
        });
        let rows = rows.collect();
        let totals = &sample.totals;
        let then = since.map(|since| (since.totals.came, since.totals.left));
        Self {
            rates: then.and_then(|then| rates((totals.came, totals.left), then)),
            sample,
            rows,
        }
    }

    /// The sample as JSON.
    ///
    /// # Errors
    /// No error is possible for a sample.
    pub(super) fn to_json(&self) -> serde_json::Result<Value> {
        let mut all = serde_json::to_value(self)?;
        all["queues"] = serde_json::to_value(&self.rows)?;
        Ok(all)
    }
}

fn key(queue: &QueueRow) -> QueueKey {
    (queue.group.clone(), queue.destination.clone())
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use vere_control::{Budget, ReplicaLine, TopTotals};

    pub(in super::super) fn queue(destination: &str, came: u64, left: u64) -> QueueRow {
        QueueRow {
            destination: destination.to_owned(),
            group: None,
            messages: usize::try_from(came - left).unwrap(),
            octets: 1_000,
            came,
            left,
            priorities: BTreeMap::new(),
            deferred: 0,
            in_flight: 0,
            held: 0,
            quarantined: 0,
            connections: 0,
            connections_max: 10,
            in_order: false,
            site: None,
            latency_ms: None,
            paused_until: None,
            held_until: None,
            refused_until: None,
            way: None,
            unrouted: false,
            oldest: None,
            oldest_seconds: None,
            last_reply: None,
            last_answer: None,
        }
    }

    pub(in super::super) fn sample(millis: u64, queues: Vec<QueueRow>) -> TopSample {
        let sum = |of: fn(&QueueRow) -> u64| queues.iter().map(of).sum::<u64>();
        TopSample {
            gateway: "mx1".to_owned(),
            time: "2026-11-22T05:00:00.000Z".to_owned(),
            millis,
            closed: None,
            delivers: Some(true),
            totals: TopTotals {
                messages: queues.iter().map(|queue| queue.messages).sum(),
                came: sum(|queue| queue.came),
                left: sum(|queue| queue.left),
                destinations: queues.len(),
                oldest_seconds: Some(7_200),
                ..TopTotals::default()
            },
            budgets: vec![
                Budget {
                    name: "queued".to_owned(),
                    used: 50,
                    max: Some(100),
                    octets: false,
                },
                Budget {
                    name: "spool group".to_owned(),
                    used: 1 << 20,
                    max: None,
                    octets: true,
                },
            ],
            heaviest: None,
            heaviest_on_disk: None,
            replicas: vec![ReplicaLine {
                node: "a".to_owned(),
                active: "run".to_owned(),
                standby: "ready".to_owned(),
                sync: "sync".to_owned(),
                transactions: 17,
                in_flight: 2,
                alone: false,
                copied: None,
                trouble: None,
            }],
            matching: queues.len(),
            queues,
        }
    }

    #[test]
    fn rates_are_what_happened_between_two_looks() {
        let first = Look::new(sample(1_000, vec![queue("a.example", 10, 5)]), None);
        assert_eq!((first.rates, first.rows[0].rates), (None, None));
        let queues = vec![queue("a.example", 30, 6), queue("b.example", 4, 4)];
        let second = Look::new(sample(3_000, queues), Some(&first));
        let rates = Rates {
            came: 10.0,
            left: 0.5,
        };
        assert_eq!(second.rows[0].rates, Some(rates));
        assert_eq!(second.rows[1].rates, None, "not seen before");
    }

    #[test]
    fn a_gateway_that_began_anew_has_no_rates_at_first() {
        let first = Look::new(sample(1_000, vec![queue("a.example", 10, 5)]), None);
        let again = sample(2_000, vec![queue("a.example", 3, 0)]);
        let second = Look::new(again, Some(&first));
        assert_eq!((second.rates, second.rows[0].rates), (None, None));
        let same_time = sample(1_000, vec![queue("a.example", 20, 5)]);
        assert_eq!(Look::new(same_time, Some(&first)).rates, None);
    }
}
