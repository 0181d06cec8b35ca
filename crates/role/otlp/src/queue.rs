//! Records that wait for the collector, within bounds.

use std::cell::RefCell;
use std::collections::VecDeque;

use tokio::sync::Notify;
use vere_telemetry::log::LogRecord;
use vere_telemetry::metrics::{OtlpMetrics, OtlpResult};

/// The most records that wait.
const RECORDS_MAX: usize = 20_000;
/// The most octets of packets whose records wait; a record in memory is up to twice as large.
const OCTETS_MAX: usize = 16 << 20;
/// The most records of a request.
pub(crate) const BATCH_MAX: usize = 512;
/// The most octets of packets whose records are in a request.
const BATCH_OCTETS_MAX: usize = 1 << 20;

/// The queue. Beyond a bound new records are dropped and counted.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: RefCell<Waiting>,
    arrived: Notify,
    metrics: OtlpMetrics,
}

#[derive(Debug, Default)]
struct Waiting {
    records: VecDeque<(LogRecord, usize)>,
    octets: usize,
    dropped: u64,
}

impl Queue {
    pub(crate) fn new(metrics: &OtlpMetrics) -> Self {
        Self {
            waiting: RefCell::default(),
            arrived: Notify::new(),
            metrics: metrics.clone(),
        }
    }

    /// Takes the record of a packet. A packet that is no record counts as dropped: a process that strangers have taken over may send
    /// anything.
    pub(crate) fn take(&self, packet: &[u8]) {
        let mut waiting = self.waiting.borrow_mut();
        let fits = waiting.records.len() < RECORDS_MAX
            && waiting.octets.saturating_add(packet.len()) <= OCTETS_MAX;
        let mut dropped = 1;
        if let Some(record) = LogRecord::decode(packet) {
            dropped = record.lost;
            if fits {
                waiting.octets = waiting.octets.saturating_add(packet.len());
                waiting.records.push_back((record, packet.len()));
            } else {
                dropped = dropped.saturating_add(1);
            }
        }
        waiting.dropped = waiting.dropped.saturating_add(dropped);
        let count = i64::try_from(waiting.records.len()).unwrap_or(i64::MAX);
        self.metrics.waiting.set(count);
        drop(waiting);
        self.count(OtlpResult::Dropped, dropped);
        self.arrived.notify_one();
    }

    /// Waits for a record.
    pub(crate) async fn wait(&self) {
        while self.waiting.borrow().records.is_empty() {
            self.arrived.notified().await;
        }
    }

    /// The first records, as many as a request has.
    pub(crate) fn batch(&self) -> Vec<LogRecord> {
        let mut waiting = self.waiting.borrow_mut();
        let (mut batch, mut octets) = (Vec::new(), 0_usize);
        while batch.len() < BATCH_MAX && octets < BATCH_OCTETS_MAX {
            let Some((record, length)) = waiting.records.pop_front() else {
                break;
            };
            octets = octets.saturating_add(length);
            waiting.octets = waiting.octets.saturating_sub(length);
            batch.push(record);
        }
        let count = i64::try_from(waiting.records.len()).unwrap_or(i64::MAX);
        self.metrics.waiting.set(count);
        batch
    }

    /// Whether a request would be full.
    pub(crate) fn is_full_batch(&self) -> bool {
        self.waiting.borrow().records.len() >= BATCH_MAX
    }

    /// The number of records dropped since the last call.
    pub(crate) fn dropped(&self) -> u64 {
        std::mem::take(&mut self.waiting.borrow_mut().dropped)
    }

    pub(crate) fn count(&self, result: OtlpResult, records: u64) {
        if records > 0 {
            let counter = self.metrics.records.get_or_create(&result);
            counter.inc_by(records);
        }
    }
}

#[cfg(test)]
mod tests {
    use vere_telemetry::log::LogLevel;
    use vere_telemetry::metrics::Metrics;

    use super::*;

    fn packet(message: &str, lost: u64) -> Vec<u8> {
        let record = LogRecord {
            time_ms: 1,
            severity: LogLevel::Info,
            role: "gateway".to_owned(),
            pid: 1,
            message: message.to_owned(),
            fields: Vec::new(),
            lost,
        };
        record.encode().unwrap()
    }

    #[test]
    fn records_beyond_the_bounds_are_dropped_and_counted() {
        let metrics = Metrics::new();
        let queue = Queue::new(&metrics.otlp);
        for _ in 0..RECORDS_MAX + 3 {
            queue.take(&packet("x", 0));
        }
        queue.take(b"no record");
        queue.take(b"");
        assert_eq!(queue.dropped(), 5);
        assert_eq!(queue.dropped(), 0);
        assert!(queue.is_full_batch());
        assert_eq!(queue.batch().len(), BATCH_MAX);
        // A process tells with the next record what its socket had no space for.
        queue.take(&packet("y", 4));
        assert_eq!(queue.dropped(), 4);
        let text = metrics.encode();
        assert!(
            text.contains("vere_otlp_records_total{result=\"dropped\"} 9\n"),
            "{text}"
        );
        while !queue.batch().is_empty() {}
        let long = packet(&"x".repeat(20_000), 0);
        for _ in 0..OCTETS_MAX / long.len() + 2 {
            queue.take(&long);
        }
        assert_eq!(queue.dropped(), 2);
        assert!(queue.batch().len() < 60, "a request has a bound");
    }
}
