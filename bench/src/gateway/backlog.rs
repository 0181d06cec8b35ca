//! A million messages queued for a destination that accepts none: inspection of the queue, then its drain.

use std::path::Path;
use std::time::{Duration, Instant};

use super::look::{ask, looked};
use crate::error::BenchError;
use crate::load::{self, LoadEnd, LoadOptions, LoadProgress, Messages};
use crate::output::note;
use crate::peer::{OURS, Peer};
use crate::row::{Bar, Row};
use crate::sink::{RunningSink, SinkOptions};

const SESSIONS: usize = 50;
/// Number of parts of the backlog; the rates of the first parts and the last parts are compared.
const PARTS: usize = 10;
const COMPARED: usize = 3;
/// Least share of the first parts' rate in the last parts.
const KEPT_MIN: f64 = 0.8;
/// Time without an arrival after which the rest is given up.
const STALL: Duration = Duration::from_secs(60);

/// Fills and drains a queue of `messages` messages of 1 KB.
pub(super) fn run(messages: u32, vere: &Path, base: &Path) -> Result<Vec<Row>, BenchError> {
    let sink = RunningSink::start(SinkOptions::remembering())?;
    let next_hop = sink.handle().address();
    let peer = Peer::vere(vere, next_hop, base)?;
    let queue = format!("relay:{next_hop}");
    ask(&peer, vere, &["queue", "hold", &queue])?;
    let stored = store(messages, &peer)?;
    let mut rows = vec![rates("stored", messages, &stored)];
    for (name, arguments) in [
        ("queue list", vec!["queue", "list", "--json"]),
        ("queue show", vec!["queue", "show", &queue, "--json"]),
    ] {
        let name = format!("{name} with {messages} messages queued");
        rows.push(looked(name, &peer, vere, &arguments)?);
    }
    ask(&peer, vere, &["queue", "release", &queue])?;
    let drained = drain(stored.len(), &sink);
    rows.push(rates("drained", messages, &drained));
    let missing = stored.len() as f64 - drained.len() as f64;
    let name = format!("{OURS}: missing of {messages} messages");
    rows.push(Row::new(name, missing, "messages").bar(Bar::ValueMax(0.0)));
    Ok(rows)
}

/// When each message was acknowledged.
fn store(messages: u32, peer: &Peer) -> Result<Vec<Instant>, BenchError> {
    let options = LoadOptions {
        sessions: SESSIONS,
        messages: Messages::small(),
        tolerant: true,
        ..LoadOptions::new(peer.address(), LoadEnd::Count(messages))
    };
    let report = load::run(&options, &LoadProgress::default())?;
    note(&format!(
        "{} messages queued in {:.1} s",
        report.acked.len(),
        report.elapsed().as_secs_f64()
    ));
    Ok(report.acked.iter().map(|ack| ack.at).collect())
}

/// When each message arrived, the first time.
fn drain(messages: usize, sink: &RunningSink) -> Vec<Instant> {
    let mut seen = std::collections::HashSet::new();
    let mut times = Vec::with_capacity(messages);
    let mut progress = Instant::now();
    while times.len() < messages && progress.elapsed() < STALL {
        for delivery in sink.handle().take_deliveries() {
            if seen.insert(delivery.id) {
                times.push(delivery.at);
                progress = Instant::now();
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    times.sort_unstable();
    note(&format!("{} messages drained", times.len()));
    times
}

/// The rate of the last parts beside the rate of the first parts.
fn rates(what: &str, messages: u32, times: &[Instant]) -> Row {
    let part = times.len() / PARTS;
    let rate = |from: usize, to: usize| {
        let span = times
            .get(to.saturating_sub(1))
            .zip(times.get(from))
            .map_or(0.0, |(last, first)| (*last - *first).as_secs_f64());
        (to - from) as f64 / span.max(1e-9)
    };
    let compared = COMPARED * part;
    let name = format!("{OURS}: {what}, the last {COMPARED} tenths of {messages} messages");
    Row::new(
        name,
        rate(times.len() - compared, times.len()),
        "messages/s",
    )
    .beside(("the first 3".to_owned(), rate(0, compared)))
    .bar(Bar::RatioMin(KEPT_MIN))
}

#[cfg(test)]
mod tests {
    use super::rates;
    use std::time::{Duration, Instant};

    #[test]
    fn the_last_tenths_stand_beside_the_first() {
        let begin = Instant::now();
        // Half as fast in the second half.
        let at = |number: u64| begin + Duration::from_millis(number + number.saturating_sub(500));
        let times: Vec<_> = (0..1_000).map(at).collect();
        let row = rates("stored", 1_000, &times);
        let ratio = row.ratio().expect("the first ones");
        assert!((0.49..0.51).contains(&ratio), "{ratio}");
        assert_eq!(row.json()["ok"], false);
    }
}
