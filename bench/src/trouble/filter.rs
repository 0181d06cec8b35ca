//! A content filter of the benchmark with the protocol of rspamd: answers are good, or bad in several manners.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval between two octets of an answer that drips.
const DRIP: Duration = Duration::from_secs(1);

/// How often a connection looks for its end.
const TICK: Duration = Duration::from_millis(100);

/// Largest request that is read.
const REQUEST_MAX: usize = 16 << 20;

/// Stack of the thread of a connection.
const STACK_OCTETS: usize = 128 << 10;

const GOOD: &str =
    "{\"action\":\"no action\",\"score\":0.0,\"required_score\":15.0,\"symbols\":{}}";

/// How a filter answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// At once, that there is nothing wrong.
    Good = 0,
    /// Never.
    Hangs = 1,
    /// With another protocol, half a JSON, or symbols without end, in turns.
    Rubbish = 2,
    /// With a good answer, an octet a second.
    Drips = 3,
}

impl Manner {
    const fn of(code: u8) -> Self {
        match code {
            1 => Self::Hangs,
            2 => Self::Rubbish,
            3 => Self::Drips,
            _ => Self::Good,
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    manner: AtomicU8,
    asked: AtomicU64,
    is_over: AtomicBool,
}

/// A running filter, which ends when dropped.
#[derive(Debug)]
pub(super) struct Filter {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Filter {
    pub(super) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("filter".to_owned());
        let thread = thread.spawn(move || accept(&listener, &own))?;
        Ok(Self {
            address,
            shared,
            thread: Some(thread),
        })
    }

    /// Answers in this manner from now on, on new connections.
    pub(super) fn behave(&self, manner: Manner) {
        self.shared.manner.store(manner as u8, Ordering::SeqCst);
    }

    /// Connections so far: each message has one of its own.
    pub(super) fn asked(&self) -> u64 {
        self.shared.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread up.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let number = shared.asked.fetch_add(1, Ordering::SeqCst);
        let own = Arc::clone(shared);
        let thread = std::thread::Builder::new().stack_size(STACK_OCTETS);
        // A client may leave in the middle of everything; without a thread the connection is closed.
        let _ = thread.spawn(move || own.serve(stream, number));
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream, number: u64) -> io::Result<()> {
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(TICK))?;
        stream.set_nodelay(true)?;
        let manner = Manner::of(self.manner.load(Ordering::SeqCst));
        if manner == Manner::Hangs {
            return self.wait_for_end(&mut stream);
        }
        self.read_request(&mut stream)?;
        match manner {
            Manner::Good | Manner::Hangs => stream.write_all(answer(GOOD).as_bytes()),
            Manner::Drips => self.drip(&mut stream, answer(GOOD).as_bytes()),
            Manner::Rubbish => match number % 3 {
                0 => stream.write_all(b"220 filter.test ESMTP\r\n\0\xff\r\n"),
                1 => stream.write_all(answer("{\"action\":\"no ac").as_bytes()),
                _ => self.grow(&mut stream),
            },
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Reads until the client goes.
    fn wait_for_end(&self, stream: &mut TcpStream) -> io::Result<()> {
        let mut buffer = [0; 4096];
        while !self.is_over() {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Err(error) if !is_wait(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a request with its body.
    fn read_request(&self, stream: &mut TcpStream) -> io::Result<()> {
        let mut request = Vec::new();
        let mut buffer = [0; 8192];
        while !self.is_over() && !is_whole(&request) && request.len() < REQUEST_MAX {
            match stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(octets) => request.extend_from_slice(buffer.get(..octets).unwrap_or_default()),
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn drip(&self, stream: &mut TcpStream, text: &[u8]) -> io::Result<()> {
        for octet in text {
            if self.is_over() {
                break;
            }
            stream.write_all(std::slice::from_ref(octet))?;
            std::thread::sleep(DRIP);
        }
        Ok(())
    }

    /// Writes symbols until the client goes.
    fn grow(&self, stream: &mut TcpStream) -> io::Result<()> {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"symbols\":{\"A\":{\"score\":1}",
        )?;
        let more = b",\"B\":{\"score\":1,\"options\":[\"more and more\"]}".repeat(100);
        while !self.is_over() {
            stream.write_all(&more)?;
        }
        Ok(())
    }
}

fn answer(json: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{json}",
        GOOD.len()
    )
}

/// Whether a request has the head, and the body that the head announces.
fn is_whole(request: &[u8]) -> bool {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end else { return false };
    let head = String::from_utf8_lossy(request.get(..end).unwrap_or_default()).to_ascii_lowercase();
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse().ok());
    request.len() >= end.saturating_add(4).saturating_add(length.unwrap_or(0))
}

fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: &[u8] = b"POST /checkv2 HTTP/1.1\r\nContent-Length: 4\r\n\r\ntext";

    fn heard(filter: &Filter, octets: usize) -> Vec<u8> {
        let mut stream = TcpStream::connect(filter.address).unwrap();
        stream.write_all(ASKED).unwrap();
        let mut heard = Vec::new();
        let mut limited = stream.take(octets as u64);
        limited.read_to_end(&mut heard).unwrap();
        heard
    }

    #[test]
    fn a_filter_answers_well_badly_and_without_end() {
        let filter = Filter::start().unwrap();
        let good = heard(&filter, 10_000);
        assert!(good.ends_with(GOOD.as_bytes()), "{good:?}");
        filter.behave(Manner::Rubbish);
        let all: Vec<_> = (0..3).map(|_| heard(&filter, 10_000)).collect();
        assert!(all.iter().any(|heard| heard.starts_with(b"220 ")));
        assert!(all.iter().any(|heard| heard.len() == 10_000));
        filter.behave(Manner::Drips);
        assert_eq!(heard(&filter, 1), b"H");
        assert_eq!(filter.asked(), 5);
        filter.behave(Manner::Hangs);
        let mut stream = TcpStream::connect(filter.address).unwrap();
        stream.write_all(ASKED).unwrap();
        stream.set_read_timeout(Some(TICK)).unwrap();
        assert!(stream.read(&mut [0]).is_err_and(|error| is_wait(&error)));
    }

    #[test]
    fn a_request_is_whole_with_its_body() {
        assert!((0..ASKED.len()).all(|length| !is_whole(&ASKED[..length])));
        assert!(is_whole(ASKED));
    }
}
