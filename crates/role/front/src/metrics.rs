//! Counters of the front, and the endpoint that shows them.

use std::io;
use std::net::TcpListener as StdListener;
use std::thread;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use vere_screen::{Reason, Screen};
use vere_telemetry::metrics::{
    BrokerAnswer, BrokerAnswered, BrokerQuestion, FrontMetrics, FrontReason, FrontTable, Health,
    Metrics, WorkerLoss, WorkerSessionEnd, serve,
};

/// Numbers of workers and their sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Occupancy {
    /// Workers with further sessions to come.
    pub(crate) workers: i64,
    /// Sessions of workers.
    pub(crate) sessions: i64,
    /// Sessions of the worker with the most.
    pub(crate) most: i64,
    /// Layers of the sandbox of the worker with the fewest.
    pub(crate) layers: i64,
    /// Sessions in wait of a worker.
    pub(crate) waiting: i64,
}

/// Counters of the front. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    all: Metrics,
    of: FrontMetrics,
}

impl Default for Figures {
    fn default() -> Self {
        let all = Metrics::new();
        let of = all.front.clone();
        Self { all, of }
    }
}

impl Figures {
    /// Serves the endpoint on these sockets, in a thread of its own: the loop of the front has no runtime.
    ///
    /// # Errors
    /// When a socket cannot be used, or the system gives no thread.
    pub(crate) fn serve(
        &self,
        listeners: Vec<StdListener>,
        health: watch::Receiver<Health>,
    ) -> io::Result<()> {
        if listeners.is_empty() {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let all = self.all.clone();
        let listeners = {
            let _within = runtime.enter();
            let listeners = listeners.into_iter().map(TcpListener::from_std);
            listeners.collect::<io::Result<Vec<_>>>()?
        };
        let serving = move || {
            runtime.block_on(async {
                let mut tasks = tokio::task::JoinSet::new();
                for listener in listeners {
                    tasks.spawn(serve(listener, all.clone(), health.clone()));
                }
                tasks.join_all().await
            });
        };
        thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(serving)?;
        Ok(())
    }

    /// Adds the decisions since the last call, and shows the present state.
    pub(crate) fn look(&self, screen: &mut Screen, workers: Occupancy) {
        let of = &self.of;
        let tally = screen.take_tally();
        of.connections_arrived.inc_by(tally.arrived);
        of.recipients_accepted.inc_by(tally.accepted);
        of.sessions_handed_over.inc_by(tally.trusted);
        for reason in Reason::ALL {
            let label = FrontReason(reason.name());
            let away = tally.turned_away(*reason);
            if away > 0 {
                let counter = of.connections_turned_away.get_or_create(&label);
                counter.inc_by(away);
            }
            if tally.of(*reason) > 0 {
                of.decisions.get_or_create(&label).inc_by(tally.of(*reason));
            }
        }
        of.connections.set(screen.open().into());
        let (addresses, networks, greylist) = screen.remembered();
        for (table, entries) in [
            (FrontTable::Addresses, addresses),
            (FrontTable::Networks, networks),
            (FrontTable::Greylist, greylist),
        ] {
            let gauge = of.table_entries.get_or_create(&table);
            gauge.set(i64::try_from(entries).unwrap_or(i64::MAX));
        }
        of.workers.set(workers.workers);
        of.worker_sessions.set(workers.sessions);
        of.worker_sessions_most.set(workers.most);
        of.worker_layers.set(workers.layers);
        of.sessions_waiting.set(workers.waiting);
    }

    /// A connection got no greeting because the gateway takes no mail.
    pub(crate) fn closed(&self) {
        self.of.connections_arrived.inc();
        let label = FrontReason("gateway");
        self.of.connections_turned_away.get_or_create(&label).inc();
    }

    /// A session of a worker has ended.
    pub(crate) fn ended(&self, end: WorkerSessionEnd) {
        self.of.sessions_ended.get_or_create(&end).inc();
    }

    /// A worker has begun a session, so long after the command with the recipient.
    pub(crate) fn begun(&self, after: Duration) {
        self.of.begin_seconds.observe(after.as_secs_f64());
    }

    /// A worker is lost.
    pub(crate) fn worker_lost(&self, loss: WorkerLoss) {
        self.of.workers_lost.get_or_create(&loss).inc();
    }

    /// The broker has answered.
    pub(crate) fn answered(&self, kind: BrokerQuestion, result: BrokerAnswer, took: Duration) {
        self.count_question(kind, result);
        self.of.question_seconds.observe(took.as_secs_f64());
    }

    /// A question has no answer because the connection to the broker is lost.
    pub(crate) fn unanswered(&self, kind: BrokerQuestion) {
        self.count_question(kind, BrokerAnswer::Lost);
    }

    fn count_question(&self, kind: BrokerQuestion, result: BrokerAnswer) {
        let label = BrokerAnswered { kind, result };
        self.of.questions.get_or_create(&label).inc();
    }
}

#[cfg(test)]
mod tests {
    use vere_screen::{Terms, TurnedAway};
    use vere_units::Timestamp;

    use super::*;

    #[test]
    fn every_reason_has_a_name_among_the_labels() {
        for reason in Reason::ALL {
            assert!(FrontReason::NAMES.contains(&reason.name()), "{reason:?}");
        }
        assert_eq!(FrontReason::NAMES.len(), Reason::ALL.len() + 1);
    }

    #[test]
    fn who_is_turned_away_is_no_decision() {
        let mut terms = Terms::default();
        terms.limits.connections_per_address_max = 1;
        let mut screen = Screen::new(terms, [7; 32]);
        let client = "192.0.2.1".parse().unwrap();
        let now = Timestamp::from_millis(1_000_000);
        let ticket = screen.arrive(now, client).unwrap().ticket;
        let away = screen.arrive(now, client);
        assert_eq!(away.unwrap_err(), TurnedAway(Reason::ConnectionsOfAddress));
        screen.spoke_early(ticket).unwrap();
        let figures = Figures::default();
        figures.look(&mut screen, Occupancy::default());
        let text = figures.all.encode();
        for line in [
            "vere_front_connections_arrived_total 2",
            "vere_front_connections_turned_away_total{reason=\"address_connections\"} 1",
            "vere_front_decisions_total{reason=\"early_talk\"} 1",
            "vere_front_connections 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{text}");
        }
        let counted = text.matches("reason=\"address_connections\"").count();
        assert_eq!(counted, 1, "{text}");
        // A second look adds nothing.
        figures.look(&mut screen, Occupancy::default());
        let again = "vere_front_connections_arrived_total 2\n";
        assert!(figures.all.encode().contains(again));
    }
}
