//! The whole crate over real files.

mod crash;
mod finding;
mod measured;

use std::fs;
use std::path::Path;

use bytes::Bytes;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use vere_units::{Timestamp, TraceId};

use crate::{
    Archive, ArchiveError, ArchiveOptions, Entry, EntryId, Kind, Page, Query, copy_content, find,
};

/// 2026-11-29T13:05:00Z.
pub(crate) const MINUTE: u64 = 1_795_957_500_000;

/// A directory in memory, if the machine has one: thousands of openings sync.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

pub(crate) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(MINUTE + millis)
}

/// The octets of the entry with this number.
pub(crate) fn octets(number: u64) -> Vec<u8> {
    (0..number % 40)
        .map(|place| (number * 7 + place) as u8)
        .collect()
}

/// An entry with this number, a second behind the entry before.
pub(crate) fn entry(number: u64) -> Entry {
    let octets = octets(number);
    let cut = octets.len() / 2;
    let kind = Kind::ALL[number as usize % 3];
    Entry {
        identifier: format!("id{number}"),
        about: (kind == Kind::Report).then(|| format!("id{}", number / 2)),
        originator: (kind != Kind::Report).then(|| format!("C=GB;S=From{number}")),
        recipients: (0..=number % 3)
            .map(|place| format!("C=GB;S=To{number};G=N{place}"))
            .collect(),
        source: format!("peer:mta{}", number % 2),
        destinations: vec![format!("file:user{}", number % 5)],
        content_type: Some("22".to_owned()),
        octets: vec![
            Bytes::copy_from_slice(&octets[..cut]),
            Bytes::new(),
            Bytes::copy_from_slice(&octets[cut..]),
        ],
        ..Entry::new(
            at(number * 1_000),
            TraceId::new((MINUTE + number) << 20 | number),
            kind,
        )
    }
}

/// Adds entries, all at once.
pub(crate) fn add(
    archive: &Archive,
    entries: impl IntoIterator<Item = Entry>,
) -> Vec<Result<(), ArchiveError>> {
    runtime().block_on(async {
        let futures: Vec<_> = entries
            .into_iter()
            .map(|entry| Box::pin(archive.add(entry)))
            .collect();
        joined(futures).await
    })
}

/// Polls all futures until all are ready.
pub(crate) async fn joined<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut done: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(output) = std::pin::Pin::new(future).poll(context)
            {
                *done = Some(output);
            }
        }
        match done.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// An archive with entries of these numbers, closed.
pub(crate) fn written(folder: &Path, numbers: impl IntoIterator<Item = u64>) {
    let archive = Archive::open(folder, ArchiveOptions::default()).unwrap();
    let results = add(&archive, numbers.into_iter().map(entry));
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

/// The numbers of the entries that a search finds, with their ids. Everything found is as it was written.
pub(crate) fn found(folder: &Path, query: &Query, page: &Page) -> Vec<(u64, EntryId)> {
    let mut numbers = Vec::new();
    find(folder, query, page, |found| {
        let number: u64 = found.fields.identifier[2..].parse().unwrap();
        let expected = entry(number);
        let fields = &found.fields;
        assert_eq!(
            (fields.at, fields.trace, fields.kind),
            (expected.at, expected.trace, expected.kind)
        );
        assert_eq!(fields.about, expected.about.unwrap_or_default());
        assert_eq!(fields.originator, expected.originator.unwrap_or_default());
        assert_eq!(
            fields.recipients.iter().collect::<Vec<_>>(),
            expected.recipients
        );
        assert_eq!(
            fields.destinations.iter().collect::<Vec<_>>(),
            expected.destinations
        );
        assert_eq!(
            (fields.source, fields.content_type),
            (&expected.source[..], "22")
        );
        assert_eq!(found.octets, octets(number).len() as u64);
        numbers.push((number, found.id));
        Ok(())
    })
    .unwrap();
    numbers
}

/// The numbers of all entries.
pub(crate) fn numbers(folder: &Path) -> Vec<u64> {
    let all = found(folder, &Query::default(), &Page::default());
    all.into_iter().map(|(number, _)| number).collect()
}

/// The content of an entry.
pub(crate) fn content(folder: &Path, id: EntryId) -> Result<Vec<u8>, crate::ReadError> {
    let mut content = Vec::new();
    let octets = copy_content(folder, id, &mut content)?;
    assert_eq!(octets, content.len() as u64);
    Ok(content)
}

/// The names of the files of a day, in order.
pub(crate) fn files(folder: &Path, day: &str) -> String {
    let mut names: Vec<String> = fs::read_dir(folder.join(day))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names.join(" ")
}
