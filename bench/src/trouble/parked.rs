//! Associations of X.400 that begin a unit and do not go on.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::counts::Counts;
use super::mta::{PATIENCE, USER, mta, open, runtime};
use crate::x400::{Template, content, now};

/// Octets of a unit that is begun.
const BEGUN: usize = 4 << 20;
/// How long a unit is sent before it stands still.
const BEGINNING: Duration = Duration::from_millis(200);
/// Clients that bind at once.
const UNDER_WAY_MAX: usize = 100;

/// A crowd of associations.
#[derive(Debug)]
pub(super) struct Parked {
    counts: Arc<Mutex<Counts>>,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Parked {
    /// Begins to gather a crowd.
    pub(super) fn gather(to: SocketAddr, clients: usize) -> io::Result<Self> {
        let counts = Arc::new(Mutex::new(Counts {
            under_way: clients,
            ..Counts::default()
        }));
        let (stop, stopped) = watch::channel(false);
        let runtime = runtime()?;
        let tally = Arc::clone(&counts);
        let gather = move || {
            runtime.block_on(async {
                let turns = Arc::new(Semaphore::new(UNDER_WAY_MAX));
                let octets = content(BEGUN);
                for number in 0..clients {
                    let client = Client {
                        number,
                        to,
                        turns: Arc::clone(&turns),
                        counts: Arc::clone(&tally),
                    };
                    let template = Template::new(&mta(number), USER, octets.clone(), now());
                    if let Ok(template) = template {
                        tokio::spawn(client.run(template, stopped.clone()));
                    }
                }
                let mut stopped = stopped;
                // An error is the end as well.
                let _ = stopped.wait_for(|stop| *stop).await;
            });
        };
        Ok(Self {
            counts,
            stop,
            thread: std::thread::Builder::new()
                .name("parked".to_owned())
                .spawn(gather)?,
        })
    }

    pub(super) fn counts(&self) -> Counts {
        locked(&self.counts).clone()
    }

    /// Ends all associations.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Ends all associations; the counts before.
    pub(super) fn end(self) -> Counts {
        let counts = self.counts();
        self.stop();
        // A panic there is in the output already.
        let _ = self.thread.join();
        counts
    }
}

fn locked(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Client {
    number: usize,
    to: SocketAddr,
    turns: Arc<Semaphore>,
    counts: Arc<Mutex<Counts>>,
}

impl Client {
    /// Begins a unit, and holds it until the end of the crowd.
    async fn run(self, template: Template, mut stopped: watch::Receiver<bool>) {
        let turn = self.turns.acquire().await;
        let opened = timeout(PATIENCE, open(self.to, &mta(self.number))).await;
        let number = u64::try_from(self.number).unwrap_or_default();
        let (mut open, unit) = match opened {
            Ok(Ok(open)) => (open, template.message(number)),
            Ok(Err(error)) => return self.ended(&error),
            Err(_) => return self.ended("no answer"),
        };
        let mut sending = Box::pin(async move { open.transfer(&unit).await });
        if let Ok(outcome) = timeout(BEGINNING, &mut sending).await {
            return self.ended(if outcome.is_transferred() {
                "transferred"
            } else {
                "refused"
            });
        }
        drop(turn);
        self.count(|counts| counts.holding += 1);
        // Nobody drives the association from here on, as of a peer that stands still.
        let _ = stopped.wait_for(|stop| *stop).await;
        drop(sending);
    }

    fn ended(&self, why: &str) {
        self.count(|counts| *counts.ended.entry(why.to_owned()).or_default() += 1);
    }

    fn count(&self, add: impl FnOnce(&mut Counts)) {
        let mut counts = locked(&self.counts);
        counts.under_way = counts.under_way.saturating_sub(1);
        add(&mut counts);
    }
}
