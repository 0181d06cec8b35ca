//! Mail under load, with everything that was acknowledged counted at the next hop.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use vere_bench::MessageId;
use vere_bench::load::{self, Ack, LoadEnd, LoadOptions, LoadProgress};
use vere_bench::sink::{RunningSink, SinkOptions};

use super::{Options, PATIENCE, Session, say, test_name, wait_for, wait_until};

/// Messages sent at a time.
const BURST: u32 = 50;
/// Messages acknowledged before, between and after faults.
const BETWEEN: u64 = 100;
/// Rest between bursts, which leaves the machine to other processes.
const REST: Duration = Duration::from_millis(50);

/// A next hop that remembers the arrivals.
pub(crate) struct Counted(RunningSink);

/// Ends the load, also when a fault panics.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Counted {
    /// Starts the next hop.
    pub(crate) fn start() -> Self {
        let options = SinkOptions {
            remember: true,
            ..SinkOptions::default()
        };
        Self(RunningSink::start(options).expect("a sink"))
    }

    /// Settings of a system that sends all mail to the next hop.
    pub(crate) fn options(&self) -> Options {
        Options::to(self.0.handle().address())
            .set("delivery.connections_per_destination_max", "20")
            .set("limits.connections_per_client_max", "1000")
            .set("limits.messages_per_connection_max", "100000")
    }

    /// Sends mail from eight clients without end, calls `fault` `faults` times meanwhile with its number, and checks
    /// that mail is acknowledged before, between and after, and that every acknowledged message arrives. Returns the
    /// number of messages that arrived twice though sent once.
    pub(crate) fn run(&self, smtp: SocketAddr, faults: u32, mut fault: impl FnMut(u32)) -> usize {
        let (ended, count) = (AtomicBool::new(false), AtomicU64::new(0));
        let acked = std::thread::scope(|scope| {
            let load = scope.spawn(|| send(smtp, &ended, &count));
            let end = End(&ended);
            for number in 0..faults {
                wait_more(&count);
                fault(number);
            }
            wait_more(&count);
            drop(end);
            load.join().expect("the load runs")
        });
        self.count(faults, &acked)
    }

    fn count(&self, faults: u32, acked: &[Ack]) -> usize {
        let mut arrived: HashMap<MessageId, u32> = HashMap::new();
        wait_until("every acknowledged message at the next hop", || {
            for delivery in self.0.handle().take_deliveries() {
                *arrived.entry(delivery.id).or_default() += 1;
            }
            let missing = acked.iter().any(|ack| !arrived.contains_key(&ack.id));
            !missing
        });
        let times = |ack: &Ack| arrived.get(&ack.id).copied().unwrap_or(0);
        let sure = acked.iter().filter(|ack| !ack.may_be_doubled);
        let doubled = sure.filter(|ack| times(ack) > 1).count();
        let twice = acked.iter().filter(|ack| times(ack) > 1).count();
        say(&format!(
            "{}: {faults} faults, {} acknowledged, none missing, {twice} came twice, of which {doubled} \
             were sent once",
            test_name(),
            acked.len(),
        ));
        doubled
    }
}

/// Sends until told to end; returns the acknowledged messages.
fn send(smtp: SocketAddr, ended: &AtomicBool, count: &AtomicU64) -> Vec<Ack> {
    let mut acked = Vec::new();
    while !ended.load(Ordering::Acquire) {
        let options = LoadOptions {
            sessions: 8,
            tolerant: true,
            reply_timeout: PATIENCE / 2,
            duration_max: PATIENCE,
            ..LoadOptions::new(smtp, LoadEnd::Count(BURST))
        };
        let report = load::run(&options, &LoadProgress::default()).expect("a load");
        assert_eq!(report.refused, [], "nothing was wrong with them");
        assert_eq!(report.unresolved, [], "they were not acknowledged in time");
        count.fetch_add(u64::from(BURST), Ordering::AcqRel);
        acked.extend(report.acked);
        std::thread::sleep(REST);
    }
    acked
}

/// Waits until more is acknowledged.
fn wait_more(count: &AtomicU64) {
    let goal = count.load(Ordering::Acquire) + BETWEEN;
    wait_until("more acknowledged mail", || {
        count.load(Ordering::Acquire) >= goal
    });
}

/// Waits until a message is acknowledged.
pub(crate) fn probe(smtp: SocketAddr) {
    wait_for("a message to be taken", || {
        let mut session = Session::try_connect(smtp).ok()?;
        let mut command = |line: &str| {
            session.try_send(format!("{line}\r\n").as_bytes()).ok()?;
            let reply = session.try_reply().ok()?;
            reply.starts_with(['2', '3']).then_some(())
        };
        command("EHLO client.example.net")?;
        command("MAIL FROM:<a@example.net>")?;
        command("RCPT TO:<x@example.com>")?;
        command("DATA")?;
        command("Subject: probe\r\n\r\nbody\r\n.")
    });
}

/// Waits until clients are greeted.
pub(crate) fn wait_greeting(smtp: SocketAddr) {
    wait_for("a greeting", || Session::try_connect(smtp).ok().map(drop));
}
