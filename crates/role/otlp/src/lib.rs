//! The process that sends the log to a collector of OpenTelemetry, by OTLP/HTTP in JSON (`docs/internals/otlp.md`).
//!
//! Every process of the system writes its log to standard error, and with `log.otlp` each line as a packet to a socket whose ends the
//! supervisor keeps. The socket never holds a process back: a packet without space is lost and counted. This process alone knows the
//! collector, so that no sandbox gets a hole.
//!
//! Reading order: `queue` (records that wait), `body` (their encoding), `collector` (requests), `lib` (who waits for whom).

mod body;
mod collector;
mod error;
mod queue;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::net::TcpListener as StdListener;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout};
use vere_net::listen::{Inherited, ListenOptions};
use vere_net::packets::PacketSocket;
use vere_net::quiet::{Halves, Reading};
use vere_process::entry;
use vere_process::failure::Failure;
use vere_process::life::{self, Signals};
use vere_process::log::Level;
use vere_settings::Settings;
use vere_telemetry::log::PACKET_OCTETS_MAX;
use vere_telemetry::metrics::{Health, Metrics, OtlpResult, serve};

use body::Origin;
use collector::{Answer, Collector};
pub use error::OtlpError;
use queue::Queue;

/// How long records wait for others before they are sent.
const GATHER: Duration = Duration::from_secs(1);
/// The wait behind the first failed request, which doubles.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// The least time between two lines about lost records.
const TELL: Duration = Duration::from_secs(60);
/// How long the last records are sent at the end of the process.
const LAST: Duration = Duration::from_secs(2);
/// The pause after a failed read.
const READ_PAUSE: Duration = Duration::from_millis(100);

/// Runs the role until it is told to stop.
///
/// # Errors
/// When the process cannot start: no collector, its roots or header fields, a socket.
pub fn run(settings: &Arc<Settings>, config: &Path, level: &Level) -> Result<(), Failure> {
    life::run(start(settings, config, level))
}

async fn start(settings: &Settings, config: &Path, level: &Level) -> Result<(), OtlpError> {
    let mut inherited = Inherited::from_env()?;
    let listeners = inherited.take_or_bind(
        "metrics-otlp",
        settings.metrics.otlp.as_slice(),
        ListenOptions::default(),
    )?;
    let channel = inherited.take_channel("log").ok_or(OtlpError::NoChannel)?;
    let (reading, _) = Halves::of(channel)?.watch()?;
    let metrics = Metrics::new();
    let sender = Rc::new(Sender::new(settings, &metrics)?);
    let health = watch::Sender::new(Health::Ready);
    endpoint(listeners, &metrics, &health)?;
    spawn_local(life::beat());
    spawn_local(receive(reading, Rc::clone(&sender)));
    let sending = spawn_local({
        let sender = Rc::clone(&sender);
        async move { sender.run().await }
    });
    let mut signals = Signals::new()?;
    entry::notify_ready();
    tracing::info!(collector = settings.log.otlp, "log is sent to a collector");
    let apply = |settings: Settings| sender.set_settings(&settings);
    signals.wait_for_stop(config, level, apply).await;
    health.send_replace(Health::Stopping);
    sending.abort();
    // Roles end before this process: their last lines are in the queue or in the socket.
    let _ = timeout(LAST, sender.flush()).await;
    Ok(())
}

fn endpoint(
    listeners: Vec<StdListener>,
    metrics: &Metrics,
    health: &watch::Sender<Health>,
) -> Result<(), OtlpError> {
    for listener in listeners {
        let listener = TcpListener::from_std(listener)?;
        spawn_local(serve(listener, metrics.clone(), health.subscribe()));
    }
    Ok(())
}

/// Takes packets into the queue for ever.
async fn receive(reading: Reading<PacketSocket>, sender: Rc<Sender>) {
    let mut packet = vec![0; PACKET_OCTETS_MAX];
    loop {
        match reading.with(|socket| socket.receive(&mut packet)).await {
            // Descriptors beside a packet are closed.
            Ok(Some((length, _))) => sender.queue.take(packet.get(..length).unwrap_or_default()),
            // The supervisor keeps the other end as long as this process lives.
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "record of the log not received");
                sleep(READ_PAUSE).await;
            }
        }
    }
}

/// Sends the records of the queue.
#[derive(Debug)]
struct Sender {
    queue: Queue,
    origin: Origin,
    collector: RefCell<Rc<Collector>>,
    /// The records of a request under way.
    batch: RefCell<Vec<vere_telemetry::log::LogRecord>>,
    told: RefCell<Option<Instant>>,
}

impl Sender {
    fn new(settings: &Settings, metrics: &Metrics) -> Result<Self, OtlpError> {
        Ok(Self {
            queue: Queue::new(&metrics.otlp),
            origin: Origin {
                host: settings.hostname.clone(),
            },
            collector: RefCell::new(Rc::new(Collector::new(settings)?)),
            batch: RefCell::default(),
            told: RefCell::default(),
        })
    }

    /// Applies other settings, from the next request on.
    fn set_settings(&self, settings: &Settings) -> Result<(), OtlpError> {
        *self.collector.borrow_mut() = Rc::new(Collector::new(settings)?);
        Ok(())
    }

    async fn run(&self) {
        loop {
            self.queue.wait().await;
            if !self.queue.is_full_batch() {
                sleep(GATHER).await;
            }
            self.send_next().await;
        }
    }

    /// Sends all records that wait, without a pause between requests.
    async fn flush(&self) {
        loop {
            // Packets in the socket are taken meanwhile.
            tokio::task::yield_now().await;
            if self.batch.borrow().is_empty() {
                *self.batch.borrow_mut() = self.queue.batch();
            }
            if self.batch.borrow().is_empty() {
                return;
            }
            self.send_batch().await;
        }
    }

    async fn send_next(&self) {
        *self.batch.borrow_mut() = self.queue.batch();
        self.send_batch().await;
    }

    /// Sends a batch until the collector has taken or refused it.
    async fn send_batch(&self) {
        let (body, count) = {
            let batch = self.batch.borrow();
            let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
            (Bytes::from(body::body(&self.origin, &batch)), count)
        };
        let mut failures = 0;
        loop {
            let collector = Rc::clone(&self.collector.borrow());
            match collector.post(body.clone()).await {
                Answer::Taken(rejected) => {
                    let rejected = rejected.min(count);
                    self.queue
                        .count(OtlpResult::Sent, count.saturating_sub(rejected));
                    self.queue.count(OtlpResult::Refused, rejected);
                    let problem = (rejected > 0).then_some("the collector rejects some of them");
                    self.tell(rejected, problem);
                    break;
                }
                Answer::Refused(problem) => {
                    self.queue.count(OtlpResult::Refused, count);
                    self.tell(count, Some(&problem));
                    break;
                }
                Answer::Later(problem, wait) => {
                    self.tell(0, Some(&problem));
                    sleep(wait.unwrap_or_else(|| pause(failures))).await;
                    failures = failures.saturating_add(1);
                }
            }
        }
        self.batch.borrow_mut().clear();
    }

    /// Says at times what is lost, and why: each line about the log would be another record for other collectors.
    fn tell(&self, refused: u64, problem: Option<&str>) {
        let is_early = self.told.borrow().is_some_and(|told| told.elapsed() < TELL);
        if is_early {
            return;
        }
        let dropped = self.queue.dropped();
        if dropped == 0 && problem.is_none() {
            return;
        }
        *self.told.borrow_mut() = Some(Instant::now());
        tracing::warn!(
            refused,
            dropped,
            problem,
            "records of the log are not at the collector"
        );
    }
}

/// The wait after so many failures, and up to a quarter more, so that several systems do not come back at once.
fn pause(failures: u32) -> Duration {
    let doubled = RETRY_FIRST.saturating_mul(2_u32.saturating_pow(failures.min(16)));
    let pause = doubled.min(RETRY_MAX);
    let mut octets = [0];
    // Without randomness the pause is the shortest.
    let _ = getrandom::fill(&mut octets);
    let [octet] = octets;
    pause.saturating_add(pause.saturating_mul(u32::from(octet)) / 1_024)
}
