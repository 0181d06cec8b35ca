//! Arrivals at the sink, compared with the acknowledgements.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::ids::MessageId;
use crate::load::Ack;
use crate::sink::{Delivery, SinkHandle};

/// One message at the sink.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) first: Instant,
    pub(crate) count: u32,
}

/// The messages of a run at the sink.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    pub(crate) by_id: HashMap<MessageId, Arrival>,
    /// Arrival time of the last message.
    pub(crate) last: Option<Instant>,
}

impl Arrivals {
    /// Takes the deliveries of `run` from `sink` until every message of `acked` has come, or
    /// nothing of the run came for `stall`.
    pub(crate) fn await_all(sink: &SinkHandle, run: u32, acked: &[Ack], stall: Duration) -> Self {
        let mut arrivals = Self::default();
        let mut missing: HashSet<MessageId> = acked.iter().map(|ack| ack.id).collect();
        let mut progress = Instant::now();
        loop {
            for delivery in sink.take_deliveries() {
                if arrivals.add(run, delivery) {
                    progress = Instant::now();
                    missing.remove(&delivery.id);
                }
            }
            if missing.is_empty() || progress.elapsed() > stall {
                return arrivals;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Accepts deliveries until no message of the run arrives for `quiet`.
    pub(crate) fn await_quiet(&mut self, sink: &SinkHandle, run: u32, quiet: Duration) {
        let mut progress = Instant::now();
        while progress.elapsed() < quiet {
            for delivery in sink.take_deliveries() {
                if self.add(run, delivery) {
                    progress = Instant::now();
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the delivery belongs to `run`.
    fn add(&mut self, run: u32, Delivery { id, at }: Delivery) -> bool {
        if id.run() != run {
            return false;
        }
        self.by_id
            .entry(id)
            .or_insert(Arrival {
                first: at,
                count: 0,
            })
            .count += 1;
        self.last = Some(at);
        true
    }

    /// Acknowledged messages without an arrival, in the order of their acknowledgement.
    pub(crate) fn missing(&self, acked: &[Ack]) -> Vec<MessageId> {
        acked
            .iter()
            .map(|ack| ack.id)
            .filter(|id| !self.by_id.contains_key(id))
            .collect()
    }

    /// Messages with more than one arrival.
    pub(crate) fn doubled(&self) -> Vec<MessageId> {
        let mut doubled: Vec<MessageId> = self
            .by_id
            .iter()
            .filter(|(_, arrival)| arrival.count > 1)
            .map(|(id, _)| *id)
            .collect();
        doubled.sort_unstable();
        doubled
    }
}
