//! Counters of the front, and the endpoint that shows them.

use std::io;
use std::net::TcpListener as StdListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use vere_handoff::question::{Figures as BrokerFigures, ListFigures};
use vere_net::tls::{Carrier, Handshakes};
use vere_screen::{Reason, Screen};
use vere_telemetry::metrics::{
    BrokerAnswer, BrokerAnswered, BrokerQuestion, CallAnswer, CallResult, Counter, FrontHandshake,
    FrontLoop, FrontMetrics, FrontReason, FrontTable, Health, ListAnswered, ListName, ListWithin,
    Metrics, TlsCarrier, WorkerLoss, WorkerSessionEnd, serve,
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

/// The present state of a loop.
#[derive(Debug, Clone, Copy, Default)]
struct Sight {
    connections: i64,
    addresses: usize,
    networks: usize,
    greylist: usize,
    workers: Occupancy,
}

impl Sight {
    /// Both together.
    fn and(self, other: Self) -> Self {
        Self {
            connections: self.connections.saturating_add(other.connections),
            addresses: self.addresses.saturating_add(other.addresses),
            networks: self.networks.saturating_add(other.networks),
            greylist: self.greylist.saturating_add(other.greylist),
            workers: self.workers.and(other.workers),
        }
    }
}

impl Occupancy {
    fn and(self, other: Self) -> Self {
        Self {
            workers: self.workers.saturating_add(other.workers),
            sessions: self.sessions.saturating_add(other.sessions),
            most: self.most.max(other.most),
            // A loop without a worker knows of no layers.
            layers: match (self.layers, other.layers) {
                (0, layers) | (layers, 0) => layers,
                (one, two) => one.min(two),
            },
            waiting: self.waiting.saturating_add(other.waiting),
        }
    }
}

/// Counters of the front, shared by clones and by the figures of all loops.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    all: Metrics,
    of: FrontMetrics,
    /// The last state of each loop.
    sights: Arc<Mutex<Vec<Sight>>>,
    /// The loop of these figures.
    number: usize,
}

impl Default for Figures {
    fn default() -> Self {
        let all = Metrics::new();
        let of = all.front.clone();
        Self {
            all,
            of,
            sights: Arc::default(),
            number: 0,
        }
    }
}

impl Figures {
    /// The figures for a loop.
    pub(crate) fn of_loop(&self, number: usize) -> Self {
        Self {
            number,
            ..self.clone()
        }
    }

    /// Serves the endpoint on these sockets, in a separate thread: the loop of the front has no runtime.
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
        let label = FrontLoop(self.number);
        let by_loop = of.loop_connections_arrived.get_or_create(&label);
        by_loop.inc_by(tally.arrived);
        let (addresses, networks, greylist) = screen.remembered();
        self.show(Sight {
            connections: screen.open().into(),
            addresses,
            networks,
            greylist,
            workers,
        });
    }

    /// Shows the sum of the loop's state and the last state of every other loop.
    fn show(&self, sight: Sight) {
        let of = &self.of;
        let all = self.sum(|own| *own = sight);
        of.connections.set(all.connections);
        for (table, entries) in [
            (FrontTable::Addresses, all.addresses),
            (FrontTable::Networks, all.networks),
            (FrontTable::Greylist, all.greylist),
        ] {
            let gauge = of.table_entries.get_or_create(&table);
            gauge.set(i64::try_from(entries).unwrap_or(i64::MAX));
        }
        self.show_workers(all.workers);
    }

    /// The sum of all loops' states, after a change of the loop's own.
    fn sum(&self, change: impl FnOnce(&mut Sight)) -> Sight {
        let mut sights = self.sights.lock().unwrap_or_else(PoisonError::into_inner);
        if sights.len() <= self.number {
            sights.resize_with(self.number.saturating_add(1), Sight::default);
        }
        if let Some(own) = sights.get_mut(self.number) {
            change(own);
        }
        sights.iter().copied().fold(Sight::default(), Sight::and)
    }

    fn show_workers(&self, all: Occupancy) {
        let of = &self.of;
        of.workers.set(all.workers);
        of.worker_sessions.set(all.sessions);
        of.worker_sessions_most.set(all.most);
        of.worker_layers.set(all.layers);
        of.sessions_waiting.set(all.waiting);
    }

    /// A connection got no greeting because too many connections wait for the loop.
    pub(crate) fn shed(&self) {
        self.of.connections_arrived.inc();
        let label = FrontReason(Reason::ConnectionsInAll.name());
        self.of.connections_turned_away.get_or_create(&label).inc();
    }

    /// A connection got no greeting because the gateway takes no mail.
    pub(crate) fn closed(&self) {
        self.turned_away("gateway", 1);
    }

    /// Connections of load balancers brought no PROXY header.
    pub(crate) fn without_header(&self, connections: u64) {
        if connections > 0 {
            self.turned_away("proxy", connections);
        }
    }

    /// Counts connections of which the engine does not know.
    fn turned_away(&self, reason: &'static str, connections: u64) {
        self.of.connections_arrived.inc_by(connections);
        let counter = self
            .of
            .connections_turned_away
            .get_or_create(&FrontReason(reason));
        counter.inc_by(connections);
    }

    /// A session of a worker has ended.
    pub(crate) fn ended(&self, end: WorkerSessionEnd) {
        self.of.sessions_ended.get_or_create(&end).inc();
    }

    /// A worker has begun a session, so long after the command with the recipient.
    pub(crate) fn begun(&self, after: Duration) {
        self.of.begin_seconds.observe(after.as_secs_f64());
    }

    /// A handshake is done.
    pub(crate) fn secured(&self, carrier: &Carrier) {
        let label = match carrier {
            Carrier::Thread => TlsCarrier::Thread,
            Carrier::Kernel { .. } => TlsCarrier::Kernel,
        };
        self.of.tls.connections.get_or_create(&label).inc();
    }

    /// A worker is lost, and these are left. The gauges change before the counter does, so that whoever sees the loss counted sees
    /// no worker too many.
    pub(crate) fn worker_lost(&self, loss: WorkerLoss, left: Occupancy) {
        self.show_workers(self.sum(|own| own.workers = left).workers);
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

    /// Shows the counts of the broker, which begin anew with each broker. The loops of the front show the same ones.
    pub(crate) fn broker(&self, figures: &BrokerFigures) {
        let of = &self.all.broker;
        for (result, count) in [
            (CallResult::Accepted, figures.calls_accepted),
            (CallResult::Refused, figures.calls_refused),
            (CallResult::Unavailable, figures.calls_unavailable),
        ] {
            show(&of.calls.get_or_create(&result), count);
        }
        for (source, count) in [
            (CallAnswer::Kept, figures.answers_kept),
            (CallAnswer::Shared, figures.answers_shared),
            (CallAnswer::Called, figures.answers_called),
            (CallAnswer::Denied, figures.answers_denied),
        ] {
            show(&of.call_answers.get_or_create(&source), count);
        }
        show(&of.call_connections, figures.connections);
    }

    /// Shows the counts of a list and of the cache of all lists, as those of the broker.
    pub(crate) fn list(&self, figures: &ListFigures) {
        let of = &self.all.lists;
        let list = || ListName(figures.name.clone());
        for (family, count) in [
            (&of.queries, figures.queries),
            (&of.hits, figures.hits),
            (&of.shared, figures.shared),
            (&of.listed, figures.listed),
            (&of.failures, figures.failures),
            (&of.skipped, figures.skipped),
            (&of.untrusted, figures.untrusted),
        ] {
            show(&family.get_or_create(&list()), count);
        }
        for (within, count) in ListWithin::ALL.iter().zip(figures.within) {
            let label = ListAnswered {
                list: list(),
                within: *within,
            };
            show(&of.answers.get_or_create(&label), count);
        }
        show(&of.cache_hits, figures.cache_hits);
        show(&of.cache_misses, figures.cache_misses);
        show(&of.cache_evicted, figures.cache_evicted);
        let gauge = |count| i64::try_from(count).unwrap_or(i64::MAX);
        of.cache_entries.set(gauge(figures.cache_entries));
        of.cache_octets.set(gauge(figures.cache_octets));
    }

    /// Shows the counts of the threads of TLS, which serve all loops: one loop shows them.
    pub(crate) fn handshakes(&self, counts: Handshakes) {
        for (result, count) in [
            (FrontHandshake::Done, counts.full),
            (FrontHandshake::Resumed, counts.resumed),
            (FrontHandshake::Failed, counts.failed),
        ] {
            show(&self.of.tls.handshakes.get_or_create(&result), count);
        }
    }

    fn count_question(&self, kind: BrokerQuestion, result: BrokerAnswer) {
        let label = BrokerAnswered { kind, result };
        self.of.questions.get_or_create(&label).inc();
    }
}

fn show(counter: &Counter, count: u64) {
    counter.inner().store(count, Ordering::Relaxed);
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
        assert_eq!(FrontReason::NAMES.len(), Reason::ALL.len() + 2);
    }

    #[test]
    fn counts_of_a_broker_replace_those_before() {
        let figures = Figures::default();
        for (calls_refused, answers_kept) in [(5, 2), (5, 2), (7, 3), (1, 0)] {
            figures.broker(&BrokerFigures {
                calls_refused,
                answers_kept,
                ..BrokerFigures::default()
            });
            let text = figures.all.encode();
            for line in [
                format!("vere_broker_calls_total{{result=\"refused\"}} {calls_refused}"),
                format!("vere_broker_call_answers_total{{source=\"kept\"}} {answers_kept}"),
                "vere_broker_call_connections_total 0".to_owned(),
            ] {
                assert!(text.lines().any(|found| found == line), "{text}");
            }
        }
    }

    #[test]
    fn counts_of_a_list_replace_those_before() {
        let figures = Figures::default();
        for (queries, late) in [(5, 2), (1, 0)] {
            let mut within = [0; 8];
            (within[0], within[7]) = (1, late);
            figures.list(&ListFigures {
                name: "bl.example".to_owned(),
                within,
                queries,
                cache_octets: 7,
                ..ListFigures::default()
            });
            let text = figures.all.encode();
            for line in [
                format!("vere_list_queries_total{{list=\"bl.example\"}} {queries}"),
                "vere_list_answers_total{list=\"bl.example\",within=\"1ms\"} 1".to_owned(),
                format!("vere_list_answers_total{{list=\"bl.example\",within=\"more\"}} {late}"),
                "vere_list_cache_bytes 7".to_owned(),
            ] {
                assert!(text.lines().any(|found| found == line), "{line}: {text}");
            }
        }
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

    #[test]
    fn the_loops_are_shown_together() {
        let figures = Figures::default();
        let mut screens = [(), (), ()].map(|()| Screen::new(Terms::default(), [7; 32]));
        let now = Timestamp::from_millis(1_000_000);
        let occupancies = [
            (1, 5, 5, 7, 0),
            (2, 9, 6, 6, 4),
            // A loop whose worker is starting.
            (0, 0, 0, 0, 1),
        ];
        for _ in 0..2 {
            for (number, (screen, of)) in screens.iter_mut().zip(occupancies).enumerate() {
                let client = std::net::Ipv4Addr::new(192, 0, 2, number as u8);
                screen.arrive(now, client.into()).unwrap();
                let (workers, sessions, most, layers, waiting) = of;
                let occupancy = Occupancy {
                    workers,
                    sessions,
                    most,
                    layers,
                    waiting,
                };
                figures.of_loop(number).look(screen, occupancy);
            }
        }
        let text = figures.all.encode();
        for line in [
            "vere_front_connections 6",
            "vere_front_connections_arrived_total 6",
            "vere_front_loop_connections_arrived_total{front_loop=\"1\"} 2",
            "vere_front_table_entries{table=\"addresses\"} 3",
            "vere_front_workers 3",
            "vere_front_worker_sessions 14",
            "vere_front_worker_sessions_most 6",
            "vere_front_worker_layers 6",
            "vere_front_sessions_waiting 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
