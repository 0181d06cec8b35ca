//! Counters of the threads, and the endpoint that shows them.
//!
//! A thread counts in memory of its own, because one counter for all threads would be the dearest part of a query. A task
//! adds the counts to the metrics every second.

use std::io;
use std::net::TcpListener as StdListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::sleep;
use vere_dnsbl::limit::AnswerKind;
use vere_telemetry::metrics::{
    DnsAnswer, DnsLimited, DnsQuery, DnsQuestion, DnsblMetrics, Health, Metrics, ZoneName, serve,
};
pub(crate) use vere_telemetry::metrics::{DnsQuestion as Kind, DnsTransport as Transport};

use crate::shared::{SLOTS, Shared};

/// The interval between two additions to the metrics.
const INTERVAL: Duration = Duration::from_secs(1);
const KINDS: [DnsQuestion; 4] = [
    DnsQuestion::A,
    DnsQuestion::Aaaa,
    DnsQuestion::Txt,
    DnsQuestion::Other,
];
const ANSWERS: [DnsAnswer; 3] = [DnsAnswer::Positive, DnsAnswer::Negative, DnsAnswer::Error];
/// Cells of a zone, and of names outside all zones.
const CELLS: usize = KINDS.len() * ANSWERS.len();
/// Cells behind those of the zones.
const DROPPED: usize = CELLS * (SLOTS + 1);
const SLIPPED: usize = DROPPED + 1;
const TRUNCATED: usize = DROPPED + 2;
const IGNORED: usize = DROPPED + 3;
const ALL: usize = DROPPED + 4;

/// The counts of one thread.
#[derive(Debug)]
pub(crate) struct Counts {
    transport: Transport,
    cells: Box<[AtomicU64]>,
}

impl Counts {
    fn new(transport: Transport) -> Self {
        Self {
            transport,
            cells: (0..ALL).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// One thread alone writes, so that no addition has to be atomic.
    fn add(&self, cell: usize) {
        if let Some(cell) = self.cells.get(cell) {
            cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    pub(crate) fn query(&self, slot: usize, kind: Kind, answer: AnswerKind) {
        self.add(slot * CELLS + kind as usize * ANSWERS.len() + answer as usize);
    }

    pub(crate) fn dropped(&self) {
        self.add(DROPPED);
    }

    pub(crate) fn slipped(&self) {
        self.add(SLIPPED);
    }

    pub(crate) fn truncated(&self) {
        self.add(TRUNCATED);
    }

    pub(crate) fn ignored(&self) {
        self.add(IGNORED);
    }
}

/// The counts of all threads, and the metrics.
#[derive(Debug)]
pub(crate) struct Figures {
    all: Metrics,
    shared: Arc<Shared>,
    threads: Mutex<Vec<(Arc<Counts>, Vec<u64>)>>,
}

impl Figures {
    pub(crate) fn new(shared: &Arc<Shared>, all: &Metrics) -> Self {
        Self {
            all: all.clone(),
            shared: Arc::clone(shared),
            threads: Mutex::default(),
        }
    }

    /// The counts for a thread.
    pub(crate) fn counts(&self, transport: Transport) -> Arc<Counts> {
        let counts = Arc::new(Counts::new(transport));
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push((Arc::clone(&counts), vec![0; ALL]));
        counts
    }

    /// Serves the endpoint on these sockets from now on.
    pub(crate) fn serve(
        self,
        listeners: Vec<StdListener>,
        health: &watch::Sender<Health>,
    ) -> io::Result<()> {
        for listener in listeners {
            let listener = TcpListener::from_std(listener)?;
            spawn_local(serve(listener, self.all.clone(), health.subscribe()));
        }
        spawn_local(async move {
            loop {
                self.collect();
                sleep(INTERVAL).await;
            }
        });
        Ok(())
    }

    /// Adds what the threads have counted since the last time.
    fn collect(&self) {
        let mut names = vec![String::new(); SLOTS + 1];
        for (name, slot) in self.shared.names() {
            names[slot] = name;
        }
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for (counts, before) in threads.iter_mut() {
            for (cell, (count, before)) in counts.cells.iter().zip(before).enumerate() {
                let count = count.load(Ordering::Relaxed);
                if count != *before {
                    add(
                        &self.all.dnsbl,
                        counts.transport,
                        &names,
                        cell,
                        count - *before,
                    );
                    *before = count;
                }
            }
        }
    }
}

fn add(to: &DnsblMetrics, transport: Transport, names: &[String], cell: usize, count: u64) {
    match cell {
        DROPPED => to.limited.get_or_create(&DnsLimited::Dropped).inc_by(count),
        SLIPPED => to.limited.get_or_create(&DnsLimited::Slipped).inc_by(count),
        TRUNCATED => to.truncated.inc_by(count),
        IGNORED => to.ignored.inc_by(count),
        cell => {
            let query = DnsQuery {
                transport,
                zone: ZoneName(names[cell / CELLS].clone()),
                question: KINDS[cell % CELLS / ANSWERS.len()],
                answer: ANSWERS[cell % ANSWERS.len()],
            };
            to.queries.get_or_create(&query).inc_by(count)
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_is_shown_under_its_own_labels() {
        let shared = Arc::new(Shared::default());
        let all = Metrics::new();
        let figures = Figures::new(&shared, &all);
        let counts = figures.counts(Transport::Tcp);
        counts.query(SLOTS, Kind::Aaaa, AnswerKind::Error);
        counts.query(SLOTS, Kind::Other, AnswerKind::Positive);
        counts.query(SLOTS, Kind::Other, AnswerKind::Positive);
        counts.slipped();
        figures.collect();
        figures.collect();
        let text = all.encode();
        let query = |question: &str, answer: &str| {
            format!(
                "vere_dnsbl_queries_total{{transport=\"tcp\",zone=\"\",type=\"{question}\",answer=\"{answer}\"}}"
            )
        };
        assert!(
            text.contains(&format!("{} 1\n", query("aaaa", "error"))),
            "{text}"
        );
        assert!(text.contains(&format!("{} 2\n", query("other", "positive"))));
        assert!(text.contains("vere_dnsbl_limited_total{result=\"slipped\"} 1\n"));
    }
}
