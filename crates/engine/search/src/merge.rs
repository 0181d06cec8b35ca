//! Joins segments, and leaves out removed messages.

use vere_mime::Zone;
use vere_ports::storage::StorageFile;

use crate::SearchError;
use crate::crossings;
use crate::document::Document;
use crate::format::Origin;
use crate::segment::{Runs, RunsWalk, Segment};
use crate::summary::SummaryWriter;
use crate::write::{ZoneWriter, segment};

/// Joins several segments of a mailbox, in the order of their UIDs, into a segment with the wanted messages; `None`
/// without wanted messages. The result equals a segment built from these messages.
///
/// # Errors
///
/// [`SearchError`].
pub fn merge<F: StorageFile>(
    segments: &[&Segment<F>],
    wanted: impl Fn(&Document) -> bool,
) -> Result<Option<Vec<u8>>, SearchError> {
    let mut documents: Vec<Document> = Vec::new();
    let mut numbers: Vec<Vec<Option<u32>>> = Vec::with_capacity(segments.len());
    for segment in segments {
        let mut number = |document: &Document| {
            let later = documents.last().is_none_or(|last| last.uid < document.uid);
            let number = documents.len() as u32;
            (later && wanted(document)).then(|| {
                documents.push(*document);
                number
            })
        };
        numbers.push(segment.documents().iter().map(&mut number).collect());
    }
    let (Some(first), false) = (segments.first(), documents.is_empty()) else {
        return Ok(None);
    };
    let owner: Origin = first.owner();
    let mut zones = Vec::with_capacity(Zone::ALL.len());
    for zone in Zone::ALL {
        zones.push(merge_zone(segments, zone, &numbers)?);
    }
    let summaries = merge_summaries(segments, &numbers)?;
    Ok(Some(segment(owner, &documents, zones, summaries)))
}

fn merge_summaries<F: StorageFile>(
    segments: &[&Segment<F>],
    numbers: &[Vec<Option<u32>>],
) -> Result<SummaryWriter, SearchError> {
    let mut writer = SummaryWriter::default();
    for (segment, numbers) in segments.iter().zip(numbers) {
        let mut summaries = segment.summaries()?;
        let kept = numbers
            .iter()
            .enumerate()
            .filter(|(_, kept)| kept.is_some());
        for (number, _) in kept {
            writer.put(summaries.get(number)?);
        }
    }
    Ok(writer)
}

fn merge_zone<F: StorageFile>(
    segments: &[&Segment<F>],
    zone: Zone,
    numbers: &[Vec<Option<u32>>],
) -> Result<ZoneWriter, SearchError> {
    let mut writer = ZoneWriter::default();
    let read: Result<Vec<Runs>, SearchError> =
        segments.iter().map(|segment| segment.runs(zone)).collect();
    let read = read?;
    if !read.iter().all(Runs::groups_fit) {
        return Err(SearchError::Damaged);
    }
    let mut walks: Vec<RunsWalk<'_>> = read.iter().map(Runs::walk).collect();
    walks.iter_mut().try_for_each(RunsWalk::step)?;
    let mut ordinals = Vec::new();
    while let Some(run) = walks.iter().filter_map(RunsWalk::run).min() {
        ordinals.clear();
        for (walk, numbers) in walks.iter_mut().zip(numbers) {
            if walk.run() != Some(run) {
                continue;
            }
            let kept = |at: u32| numbers.get(at as usize).copied().flatten();
            walk.each(|at| ordinals.extend(kept(at)))?;
            walk.step()?;
        }
        if !ordinals.is_empty() {
            writer.run(run, &ordinals);
        }
    }
    for (segment, numbers) in segments.iter().zip(numbers) {
        for (ordinal, signature) in segment.long(zone)? {
            if let Some(number) = numbers.get(ordinal as usize).copied().flatten() {
                writer.long(number, &signature);
            }
        }
    }
    if crossings::are_kept(zone) {
        merge_crossings(segments, zone, numbers, &mut writer)?;
    }
    Ok(writer)
}

fn merge_crossings<F: StorageFile>(
    segments: &[&Segment<F>],
    zone: Zone,
    numbers: &[Vec<Option<u32>>],
    writer: &mut ZoneWriter,
) -> Result<(), SearchError> {
    for (segment, numbers) in segments.iter().zip(numbers) {
        let (crossed, ends) = segment.crossed(zone)?;
        for (at, _) in numbers
            .iter()
            .enumerate()
            .filter(|(_, kept)| kept.is_some())
        {
            let end = |at: usize| ends.get(at).copied().unwrap_or_default();
            let start = at.checked_sub(1).map_or(0, end);
            let signature = crossed.get(start..end(at));
            writer.crossed(signature.ok_or(SearchError::Damaged)?);
        }
    }
    Ok(())
}
