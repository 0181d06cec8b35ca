//! A process of the benchmark, seen from inside: its counts, and the words of the benchmark.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::control::{Counts, GO, PERIOD};

/// Counts of all tasks.
#[derive(Debug, Default)]
pub(super) struct Tally {
    messages: AtomicU64,
    octets: AtomicU64,
    troubles: AtomicU64,
}

impl Tally {
    /// A message with so many octets was confirmed.
    pub(super) fn message(&self, octets: u64) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.octets.fetch_add(octets, Ordering::Relaxed);
    }

    /// Octets came that are no message.
    pub(super) fn octets(&self, octets: u64) {
        self.octets.fetch_add(octets, Ordering::Relaxed);
    }

    pub(super) fn trouble(&self) {
        self.troubles.fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self, begun: Instant) -> Counts {
        Counts {
            at: begun.elapsed(),
            messages: self.messages.load(Ordering::Relaxed),
            octets: self.octets.load(Ordering::Relaxed),
            troubles: self.troubles.load(Ordering::Relaxed),
        }
    }
}

/// Runs the tasks of a process in one thread, until the benchmark closes the connection. `work` begins the tasks; its
/// channel says whether to go on.
pub(super) fn run<F: Future<Output = io::Result<()>>>(
    control: SocketAddr,
    work: impl FnOnce(Arc<Tally>, watch::Receiver<bool>) -> F,
) -> io::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build()?;
    runtime.block_on(async {
        let (tally, (tell, told)) = (Arc::new(Tally::default()), watch::channel(false));
        // A process listens before its counts begin, which the benchmark waits for.
        work(Arc::clone(&tally), told).await?;
        follow(control, &tally, &tell).await
    })
}

/// Tells counts and hears words until the benchmark ends the connection.
async fn follow(control: SocketAddr, tally: &Tally, tell: &watch::Sender<bool>) -> io::Result<()> {
    let begun = Instant::now();
    let stream = TcpStream::connect(control).await?;
    stream.set_nodelay(true)?;
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let mut period = tokio::time::interval(PERIOD);
    loop {
        tokio::select! {
            line = lines.next_line() => match line {
                // Nobody listens where all tasks have ended.
                Ok(Some(word)) => drop(tell.send(word == GO)),
                Ok(None) | Err(_) => return Ok(()),
            },
            _ = period.tick() => {
                let line = tally.counts(begun).line();
                if write.write_all(line.as_bytes()).await.is_err() {
                    return Ok(());
                }
            }
        }
    }
}
