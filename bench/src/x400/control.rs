//! The wire between the benchmark and its processes: sources and sinks connect to the benchmark, tell their counts every
//! few milliseconds, and are told to go on, to pause, and by the end of the connection to end.
//!
//! ```text
//! process:   NANOSECONDS MESSAGES OCTETS TROUBLES LF     since the start of the process
//! benchmark: go LF | pause LF
//! ```

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two counts of a process.
pub(super) const PERIOD: Duration = Duration::from_millis(20);

/// Longest time from the start of a process to its connection.
const START_MAX: Duration = Duration::from_secs(10);

/// The words of the benchmark.
pub(super) const GO: &str = "go";
pub(super) const PAUSE: &str = "pause";

/// The counts of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Time since the start of the process.
    pub(super) at: Duration,
    /// Confirmed messages.
    pub(super) messages: u64,
    /// Octets of their contents.
    pub(super) octets: u64,
    /// Associations that were refused or broke off, and refused messages.
    pub(super) troubles: u64,
}

impl Counts {
    /// The line of the process.
    pub(super) fn line(self) -> String {
        let Self {
            at,
            messages,
            octets,
            troubles,
        } = self;
        format!("{} {messages} {octets} {troubles}\n", at.as_nanos())
    }

    /// Messages of a second since earlier counts.
    pub(super) fn rate_since(self, before: Self) -> f64 {
        let messages = self.messages.saturating_sub(before.messages);
        messages as f64 / self.seconds_since(before)
    }

    /// Megabytes of a second since earlier counts.
    pub(super) fn megabytes_since(self, before: Self) -> f64 {
        let octets = self.octets.saturating_sub(before.octets);
        octets as f64 / 1e6 / self.seconds_since(before)
    }

    fn seconds_since(self, before: Self) -> f64 {
        self.at.saturating_sub(before.at).as_secs_f64().max(1e-9)
    }
}

impl FromStr for Counts {
    type Err = io::Error;

    fn from_str(line: &str) -> io::Result<Self> {
        let numbers: Vec<u64> = line
            .split_ascii_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        match numbers[..] {
            [at, messages, octets, troubles] => Ok(Self {
                at: Duration::from_nanos(at),
                messages,
                octets,
                troubles,
            }),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("expected four numbers; found {line:?}"),
            )),
        }
    }
}

/// Where processes connect to.
#[derive(Debug)]
pub(super) struct Control {
    listener: TcpListener,
    pub(super) address: SocketAddr,
}

impl Control {
    pub(super) fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Waits for the connection of a process that was started.
    pub(super) fn accept(&self) -> io::Result<Remote> {
        let until = Instant::now() + START_MAX;
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => return Remote::new(stream),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if Instant::now() > until => return Err(io::ErrorKind::TimedOut.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

/// The last counts of a process, and whether the process is still there.
#[derive(Debug, Default)]
struct Told {
    counts: Counts,
    is_gone: bool,
}

/// A process, as the benchmark sees it. A drop ends the process.
#[derive(Debug)]
pub(super) struct Remote {
    stream: TcpStream,
    told: Arc<Mutex<Told>>,
    is_going: bool,
}

impl Remote {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        let told = Arc::new(Mutex::new(Told::default()));
        let (reader, noted) = (BufReader::new(stream.try_clone()?), Arc::clone(&told));
        let listen = move || {
            for line in reader.lines() {
                let Some(counts) = line.ok().and_then(|line| line.parse().ok()) else {
                    break;
                };
                lock(&noted).counts = counts;
            }
            lock(&noted).is_gone = true;
        };
        let thread = std::thread::Builder::new().name("counts".to_owned());
        thread.spawn(listen)?;
        Ok(Self {
            stream,
            told,
            is_going: false,
        })
    }

    pub(super) fn counts(&self) -> Counts {
        lock(&self.told).counts
    }

    pub(super) fn is_gone(&self) -> bool {
        lock(&self.told).is_gone
    }

    /// Lets a source go on, or pause. Does nothing where the source does so already.
    pub(super) fn set_going(&mut self, go: bool) {
        if self.is_going == go {
            return;
        }
        self.is_going = go;
        let word = if go { GO } else { PAUSE };
        // The end of the process is seen by its counts.
        let _ = self.stream.write_all(format!("{word}\n").as_bytes());
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn lock(told: &Mutex<Told>) -> std::sync::MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_over_the_wire_and_words_go_back() {
        let control = Control::bind().unwrap();
        let mut process = TcpStream::connect(control.address).unwrap();
        let mut remote = control.accept().unwrap();
        let first = Counts {
            at: Duration::from_secs(1),
            messages: 100,
            octets: 1_000_000,
            troubles: 2,
        };
        process.write_all(first.line().as_bytes()).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while remote.counts() != first {
            assert!(Instant::now() < until);
            std::thread::yield_now();
        }
        let later = Counts {
            at: Duration::from_secs(3),
            messages: 300,
            octets: 5_000_000,
            troubles: 2,
        };
        assert_eq!(later.rate_since(first), 100.0);
        assert_eq!(later.megabytes_since(first), 2.0);
        for go in [true, true, false] {
            remote.set_going(go);
        }
        assert!(!remote.is_gone());
        drop(remote);
        let words = io::read_to_string(process).unwrap();
        assert_eq!(words, "go\npause\n");
        assert!("1 2 three 4".parse::<Counts>().is_err());
    }
}
