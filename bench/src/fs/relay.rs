//! The bundled relay itself: its delay, and its throughput.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::distance::Distance;
use super::results::{Results, at, milliseconds};
use crate::error::BenchError;
use crate::row::median;

/// The name of the relay among the systems.
pub(super) const RELAY: &str = "relay";

pub(super) const ROUND_TRIP: &str = "round trip";
pub(super) const THROUGHPUT: &str = "throughput";

/// Round trips of a measurement.
const PINGS: usize = 15;

/// Octets of a measurement of throughput.
const OCTETS: usize = 256_000_000;

const WRITE_OCTETS: usize = 1_000_000;

/// Measures the relay at a distance.
pub(super) fn measure(round_trip: u64, results: &mut Results) -> Result<(), BenchError> {
    let failed = || BenchError::io("use the relay");
    let target = echo().map_err(failed())?;
    let far = Distance::to(target, Duration::from_millis(round_trip)).map_err(failed())?;
    let pings = pings(far.address()).map_err(failed())?;
    if let Some(ping) = median(pings) {
        let name = at(round_trip, ROUND_TRIP);
        results.figures.add(RELAY, name, ping, "ms");
    }
    let took = stream(far.address()).map_err(failed())?;
    results.rate(RELAY, at(round_trip, THROUGHPUT), OCTETS as u64, took);
    Ok(())
}

/// A server that answers each first octet of a connection: 0 with an echo, 1 with an octet at the end of the stream.
fn echo() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        // One connection for pings, one for the stream.
        for stream in listener.incoming().take(2) {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let _ = stream.set_nodelay(true);
                answer(&mut stream)
            });
        }
    });
    Ok(address)
}

fn answer(stream: &mut TcpStream) -> io::Result<()> {
    let mut first = [0; 1];
    stream.read_exact(&mut first)?;
    if first == [0] {
        let mut octet = [0; 1];
        while stream.read(&mut octet)? > 0 {
            stream.write_all(&octet)?;
        }
        return Ok(());
    }
    let mut buffer = vec![0; WRITE_OCTETS];
    let mut left = OCTETS;
    while left > 0 {
        left = left.saturating_sub(stream.read(&mut buffer)?.max(1));
    }
    stream.write_all(&first)
}

fn pings(address: SocketAddr) -> io::Result<Vec<f64>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.write_all(&[0])?;
    let mut times = Vec::new();
    for number in 0..=PINGS {
        let begun = Instant::now();
        stream.write_all(&[7])?;
        stream.read_exact(&mut [0; 1])?;
        // The first waits for the beginning of the connection as well.
        if number > 0 {
            times.push(milliseconds(begun.elapsed()));
        }
    }
    Ok(times)
}

/// The time of a stream, without the round trip of its answer.
fn stream(address: SocketAddr) -> io::Result<Duration> {
    let mut stream = TcpStream::connect(address)?;
    let buffer = vec![0; WRITE_OCTETS];
    let begun = Instant::now();
    stream.write_all(&[1])?;
    for _ in 0..OCTETS / WRITE_OCTETS {
        stream.write_all(&buffer)?;
    }
    stream.read_exact(&mut [0; 1])?;
    Ok(begun.elapsed())
}
