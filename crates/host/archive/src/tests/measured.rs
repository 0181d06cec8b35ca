//! Figures, on request.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use vere_units::{Timestamp, TraceId};

use super::MINUTE;
use crate::{Archive, ArchiveOptions, Entry, Kind, Page, Query, find, verify};

/// The directory for files on a real disk.
fn place() -> tempfile::TempDir {
    let place = std::env::var_os("ARCHIVE_AT").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::tempdir_in(place).unwrap()
}

fn typical(number: u64, at: u64, octets: &Bytes) -> Entry {
    let head = octets.slice(..octets.len().min(600));
    let rest = octets.slice(head.len()..);
    Entry {
        identifier: format!("[C=GB;A=Carrier;P=Acme;{number:016x}]"),
        originator: Some(format!(
            "C=GB;A=Carrier;P=Acme;O=Sales;S=Sender{};G=Anna",
            number % 1_000
        )),
        recipients: vec![format!(
            "C=DE;A=Dbp;P=Beta;O=Kauf;S=Empfaenger{};G=Otto",
            number % 5_000
        )],
        source: "peer:source1".to_owned(),
        destinations: vec!["peer:sink1".to_owned()],
        content_type: Some("22".to_owned()),
        octets: vec![head, rest],
        ..Entry::new(
            Timestamp::from_millis(at),
            TraceId::new(at << 20 | number & 0xFF),
            Kind::Message,
        )
    }
}

/// Entries a second by size and callers that wait, and the time of an entry.
#[test]
#[ignore = "a measurement"]
fn rates() {
    for sync_within in [Duration::ZERO, Duration::from_millis(100)] {
        for (size, callers, count) in [
            (1 << 10, 1, 1_000),
            (1 << 10, 40, 40_000),
            (10 << 10, 40, 40_000),
            (1 << 20, 40, 1_000),
            (10 << 20, 8, 100),
        ] {
            let folder = place();
            let options = ArchiveOptions {
                sync_within,
                ..ArchiveOptions::default()
            };
            let archive = Archive::open(folder.path(), options).unwrap();
            let octets = Bytes::from(vec![b'x'; size]);
            let begun = Instant::now();
            let runtime = super::runtime();
            let each = count / callers;
            runtime.block_on(async {
                let callers = (0..callers).map(|caller| {
                    let (archive, octets) = (&archive, &octets);
                    Box::pin(async move {
                        for number in 0..each {
                            let at = MINUTE + begun.elapsed().as_millis() as u64;
                            archive
                                .add(typical(caller * each + number, at, octets))
                                .await
                                .unwrap();
                        }
                    })
                });
                super::joined(callers.collect()).await;
            });
            let took = begun.elapsed();
            let figures = archive.figures();
            println!(
                "sync within {sync_within:?}: {size:>9} octets, {callers:>2} callers: {:>7.0}/s, {:>6.1} MB/s, {:>6} syncs of {:>5.2} ms, {:>5.2} ms an entry",
                count as f64 / took.as_secs_f64(),
                figures.octets as f64 / took.as_secs_f64() / 1e6,
                figures.syncs,
                figures.sync_micros as f64 / 1e3 / figures.syncs.max(1) as f64,
                took.as_secs_f64() * 1e3 * callers as f64 / count as f64,
            );
        }
    }
}

/// Searches among a million entries of 1 KB in 17 hours.
#[test]
#[ignore = "a measurement"]
fn a_million() {
    let folder = place();
    let octets = Bytes::from(vec![b'x'; 1 << 10]);
    let options = ArchiveOptions {
        sync_within: Duration::from_secs(1),
        ..ArchiveOptions::default()
    };
    let archive = Archive::open(folder.path(), options).unwrap();
    let begun = Instant::now();
    super::runtime().block_on(async {
        for thousand in 0..1_000_u64 {
            let entries = (0..1_000_u64).map(|number| {
                let number = thousand * 1_000 + number;
                Box::pin(archive.add(typical(number, MINUTE + number * 60, &octets)))
            });
            let results = super::joined(entries.collect()).await;
            assert!(results.iter().all(Result::is_ok));
        }
    });
    archive.close();
    println!("written in {:?}", begun.elapsed());
    let base = Query::default;
    let text = |text: &str| Some(text.to_owned());
    let at = |number: u64| Some(Timestamp::from_millis(MINUTE + number * 60));
    let mut queries: Vec<(&str, Query)> = [
        "all",
        "no recipient",
        "200 recipients",
        "1000 originators",
        "identifier",
        "trace",
        "an hour",
    ]
    .map(|name| (name, base()))
    .into();
    queries[1].1.recipient = text("S=Nobody");
    queries[2].1.recipient = text("s=empfaenger4711;");
    queries[3].1.originator = text("S=Sender500;");
    queries[4].1.identifier = text("[C=GB;A=Carrier;P=Acme;00000000000f0000]");
    queries[5].1.trace = Some(typical(777_777, MINUTE + 777_777 * 60, &octets).trace);
    (queries[6].1.since, queries[6].1.until) = (at(300_000), at(360_000));
    for (name, query) in queries {
        let begun = Instant::now();
        let summary = find(folder.path(), &query, &Page::default(), |_| Ok(())).unwrap();
        println!(
            "{name:<18} {:>8} found in {:?}",
            summary.found,
            begun.elapsed()
        );
    }
    let begun = Instant::now();
    let page = Page {
        limit: 100,
        after: None,
        newest: true,
    };
    find(folder.path(), &Query::default(), &page, |_| Ok(())).unwrap();
    println!("newest 100 in {:?}", begun.elapsed());
    let begun = Instant::now();
    let verified = verify(folder.path(), |_, _| {}).unwrap();
    assert_eq!(
        (verified.entries, verified.issues.list.len()),
        (1_000_000, 0)
    );
    println!("verified in {:?}", begun.elapsed());
    let begun = Instant::now();
    drop(Archive::open(folder.path(), ArchiveOptions::default()).unwrap());
    println!("opened in {:?}", begun.elapsed());
}
