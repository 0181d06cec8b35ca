//! Searches, and readers beside a writer.

use std::sync::atomic::{AtomicBool, Ordering};

use vere_units::TraceId;

use super::{MINUTE, add, at, content, entry, folder, found, numbers, octets, runtime, written};
use crate::{Archive, ArchiveOptions, EntryId, Kind, Page, Query, ReadError, describe, find};

/// Numbers of the entries that meet a condition, of 200 in four minutes.
fn matching(query: &Query) -> Vec<u64> {
    let folder = folder();
    written(folder.path(), 0..200);
    let all = found(folder.path(), query, &Page::default());
    all.into_iter().map(|(number, _)| number).collect()
}

fn those(condition: impl Fn(u64) -> bool) -> Vec<u64> {
    (0..200).filter(|number| condition(*number)).collect()
}

/// A query with some conditions.
fn with(change: impl FnOnce(&mut Query)) -> Query {
    let mut query = Query::default();
    change(&mut query);
    query
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn every_condition_selects() {
    let from_19 = |number| number % 3 != 2 && (number == 19 || number >= 190);
    let cases: [(Query, Vec<u64>); 14] = [
        (Query::default(), those(|_| true)),
        (
            with(|query| query.since = Some(at(150_000))),
            those(|number| number >= 150),
        ),
        (
            with(|query| query.until = Some(at(61_000))),
            those(|number| number < 61),
        ),
        (
            with(|query| (query.since, query.until) = (Some(at(59_000)), Some(at(60_000)))),
            vec![59],
        ),
        (with(|query| query.trace = Some(entry(77).trace)), vec![77]),
        // Entry 70, and the report about it.
        (with(|query| query.identifier = text("id70")), vec![70, 140]),
        (
            with(|query| query.originator = text("s=from19")),
            those(from_19),
        ),
        (
            with(|query| query.recipient = text("TO150;g=n0")),
            vec![150],
        ),
        (
            with(|query| query.recipient = text("g=N2")),
            those(|number| number % 3 == 2),
        ),
        (
            with(|query| query.kind = Some(Kind::Probe)),
            those(|number| number % 3 == 1),
        ),
        (
            with(|query| query.source = text("peer:mta1")),
            those(|number| number % 2 == 1),
        ),
        (
            with(|query| query.destination = text("file:user4")),
            those(|number| number % 5 == 4),
        ),
        (with(|query| query.content_type = text("23")), vec![]),
        // All conditions hold.
        (
            with(|query| {
                (query.kind, query.source, query.since) =
                    (Some(Kind::Probe), text("peer:mta1"), Some(at(100_000)))
            }),
            those(|number| number % 6 == 1 && number >= 100),
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(matching(&query), expected, "{query:?}");
    }
}

#[test]
fn pages_join_to_the_whole() {
    let folder = folder();
    written(folder.path(), 0..200);
    let query = Query {
        kind: Some(Kind::Message),
        ..Query::default()
    };
    let (mut after, mut all) = (None, Vec::new());
    loop {
        let page = Page {
            limit: 7,
            after,
            newest: false,
        };
        let mut some = Vec::new();
        let summary = find(folder.path(), &query, &page, |found| {
            some.push(found.id);
            Ok(())
        });
        let summary = summary.unwrap();
        assert_eq!(summary.found, some.len() as u64);
        assert_eq!(summary.more, summary.more.and(some.last().copied()));
        all.extend(some);
        after = summary.more;
        if after.is_none() {
            break;
        }
    }
    let whole = found(folder.path(), &query, &Page::default());
    assert_eq!(all, whole.iter().map(|(_, id)| *id).collect::<Vec<_>>());
    assert_eq!(all.len(), 67);
    // Exactly the rest.
    let page = Page {
        limit: 67,
        after: None,
        newest: false,
    };
    assert_eq!(
        find(folder.path(), &query, &page, |_| Ok(())).unwrap().more,
        None
    );
    let none = Page {
        limit: 0,
        after: None,
        newest: false,
    };
    assert_eq!(
        find(folder.path(), &query, &none, |_| Ok(()))
            .unwrap()
            .found,
        0
    );
}

#[test]
fn the_newest_come_in_the_order_of_the_archive() {
    let folder = folder();
    written(folder.path(), 0..200);
    let newest = |limit| {
        let page = Page {
            limit,
            after: None,
            newest: true,
        };
        let all = found(
            folder.path(),
            &Query {
                kind: Some(Kind::Probe),
                ..Query::default()
            },
            &page,
        );
        all.into_iter()
            .map(|(number, _)| number)
            .collect::<Vec<_>>()
    };
    let probes = those(|number| number % 3 == 1);
    for limit in [0, 1, 6, 7, 8, 66, 67, 1_000] {
        let from = probes.len().saturating_sub(limit as usize);
        assert_eq!(newest(limit), probes[from..], "{limit}");
    }
}

/// The clock went back by three minutes behind entry 190: the entries are in the newest segment, and found by their times.
#[test]
fn entries_of_a_clock_that_went_back_are_found() {
    let folder = folder();
    written(folder.path(), [190, 10, 11]);
    let query = Query {
        until: Some(at(11_000)),
        ..Query::default()
    };
    let all = found(folder.path(), &query, &Page::default());
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].0, 10);
    assert_eq!(all[0].1.segment.to_string(), "2026-11-29/1308");
}

/// A trace id whose time is wrong is found by the second pass.
#[test]
fn a_trace_id_of_any_time_is_found() {
    let folder = folder();
    let archive = Archive::open(folder.path(), ArchiveOptions::default()).unwrap();
    for (number, trace) in [(1, 7), (2, (MINUTE + 90_000_000) << 20), (3, u64::MAX)] {
        let mut entry = entry(number);
        entry.trace = TraceId::new(trace);
        assert_eq!(add(&archive, [entry]), [Ok(())]);
        let query = Query {
            trace: Some(TraceId::new(trace)),
            ..Query::default()
        };
        let mut count = 0;
        find(folder.path(), &query, &Page::default(), |found| {
            assert_eq!(found.fields.identifier, format!("id{number}"));
            count += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(count, 1);
    }
}

#[test]
fn contents_are_as_they_came() {
    let folder = folder();
    written(folder.path(), 0..100);
    for (number, id) in found(folder.path(), &Query::default(), &Page::default()) {
        assert_eq!(content(folder.path(), id).unwrap(), octets(number));
        let mut identifier = String::new();
        describe(folder.path(), id, |found| {
            identifier = found.fields.identifier.to_owned()
        })
        .unwrap();
        assert_eq!(identifier, format!("id{number}"));
        let beside = EntryId {
            offset: id.offset + 1,
            ..id
        };
        assert!(matches!(
            content(folder.path(), beside),
            Err(ReadError::Missing(_))
        ));
    }
    let other: EntryId = "2026-11-28/1305@64".parse().unwrap();
    assert!(matches!(
        content(folder.path(), other),
        Err(ReadError::Missing(_))
    ));
}

#[test]
fn a_refusing_taker_ends_the_search_with_its_error() {
    let folder = folder();
    written(folder.path(), 0..10);
    for newest in [false, true] {
        let page = Page {
            newest,
            ..Page {
                limit: 5,
                ..Page::default()
            }
        };
        let refused = find(folder.path(), &Query::default(), &page, |_| {
            Err(std::io::ErrorKind::BrokenPipe.into())
        });
        assert!(matches!(refused, Err(ReadError::Output(_))), "{refused:?}");
    }
    assert!(numbers(&folder.path().join("missing")).is_empty());
}

/// A reader sees whole entries only, in order, and no issue but an unfinished end.
#[test]
fn readers_work_beside_the_writer() {
    let folder = folder();
    let archive = Archive::open(folder.path(), ArchiveOptions::default()).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut most = 0;
            while !ended.load(Ordering::Acquire) {
                let all = numbers(folder.path());
                assert!(all.iter().copied().eq(0..all.len() as u64), "{all:?}");
                assert!(all.len() >= most);
                most = all.len();
                let issues = crate::verify(folder.path(), |_, _| {}).unwrap().issues;
                assert!(
                    !issues.list.iter().any(|(_, issue)| issue.is_loss()),
                    "{issues:?}"
                );
            }
        });
        runtime().block_on(async {
            for number in 0..400 {
                archive.add(entry(number)).await.unwrap();
            }
        });
        ended.store(true, Ordering::Release);
        reader.join().unwrap();
    });
    assert_eq!(numbers(folder.path()).len(), 400);
}
