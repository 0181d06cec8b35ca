//! Searches over all segments.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use vere_units::Timestamp;

use super::content::describe;
use super::folder::{days, segments};
use super::found::Found;
use super::issue::Issues;
use super::query::Query;
use super::row::Row;
use super::segment::Segment;
use crate::error::ReadError;
use crate::name::{Day, EntryId, MINUTE_MILLIS, SegmentName};

/// Bits of a trace id below its milliseconds since 1970.
const TRACE_TIME_SHIFT: u32 = 20;
/// How far the arrival may be from the time in a trace id, so that the search by a trace id is short.
const TRACE_SLACK: Duration = Duration::from_secs(3_600);

/// A part of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The most entries.
    pub limit: u64,
    /// Only entries behind this entry, in the order of the archive.
    pub after: Option<EntryId>,
    /// The last entries in place of the first. The order stays that of the archive. Needs memory for `limit` names of
    /// entries.
    pub newest: bool,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            limit: u64::MAX,
            after: None,
            newest: false,
        }
    }
}

/// What a search met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchSummary {
    /// Entries that were given.
    pub found: u64,
    /// The last entry that was given, if there are more behind it.
    pub more: Option<EntryId>,
    /// What is wrong with the segments that were read.
    pub issues: Issues,
}

/// Gives the entries that meet the conditions, in the order of the archive, within bounded memory.
///
/// Segments that cannot be read whole are in the summary; the entries that can be read are given.
///
/// # Errors
///
/// The directory or a file cannot be read; or the error of `take`, as [`ReadError::Output`].
pub fn find(
    folder: &Path,
    query: &Query,
    page: &Page,
    mut take: impl FnMut(&Found<'_>) -> io::Result<()>,
) -> Result<SearchSummary, ReadError> {
    if let Some(near) = near_trace(query) {
        let summary = search(folder, &near, page, &mut take)?;
        if summary.found > 0 {
            return Ok(summary);
        }
    }
    search(folder, query, page, &mut take)
}

/// A trace id contains the time when it was made, which is about that of the arrival.
fn near_trace(query: &Query) -> Option<Query> {
    let made = Timestamp::from_millis(query.trace?.as_u64() >> TRACE_TIME_SHIFT);
    let early = Timestamp::from_millis(
        made.as_millis()
            .saturating_sub(TRACE_SLACK.as_millis() as u64),
    );
    let free = query.since.is_none() && query.until.is_none();
    free.then(|| Query {
        since: Some(early),
        until: Some(made + TRACE_SLACK),
        ..query.clone()
    })
}

type Take<'a> = dyn FnMut(&Found<'_>) -> io::Result<()> + 'a;

fn search(
    folder: &Path,
    query: &Query,
    page: &Page,
    take: &mut Take<'_>,
) -> Result<SearchSummary, ReadError> {
    let mut search = Search {
        folder,
        query,
        after: page.after,
        summary: SearchSummary::default(),
    };
    match page.newest {
        true => search.newest(page.limit, take)?,
        false => search.first(page.limit, take)?,
    }
    Ok(search.summary)
}

struct Search<'a> {
    folder: &'a Path,
    query: &'a Query,
    after: Option<EntryId>,
    summary: SearchSummary,
}

impl Search<'_> {
    fn first(&mut self, limit: u64, take: &mut Take<'_>) -> Result<(), ReadError> {
        let (mut found, mut last, mut failed) = (0, None, None);
        for day in self.days()? {
            for name in self.segments(day)? {
                let flow = self.each(name, &mut |entry| {
                    if found >= limit {
                        return ControlFlow::Break(());
                    }
                    found += 1;
                    last = Some(entry.id);
                    match take(entry) {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(error) => {
                            failed = Some(error);
                            ControlFlow::Break(())
                        }
                    }
                })?;
                if let Some(error) = failed {
                    return Err(ReadError::Output(error));
                }
                self.summary.found = found;
                if flow.is_break() {
                    self.summary.more = last;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn newest(&mut self, limit: u64, take: &mut Take<'_>) -> Result<(), ReadError> {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut ids: VecDeque<EntryId> = VecDeque::new();
        'days: for day in self.days()?.into_iter().rev() {
            for name in self.segments(day)?.into_iter().rev() {
                if ids.len() >= most {
                    break 'days;
                }
                let room = most.saturating_sub(ids.len());
                let mut own = VecDeque::new();
                let _ = self.each(name, &mut |entry| {
                    own.push_back(entry.id);
                    if own.len() > room {
                        own.pop_front();
                    }
                    ControlFlow::Continue(())
                })?;
                own.into_iter().rev().for_each(|id| ids.push_front(id));
            }
        }
        for id in ids {
            let mut said = Ok(());
            match describe(self.folder, id, |entry| said = take(entry)) {
                // The day was removed meanwhile.
                Err(ReadError::Missing(_)) => continue,
                other => other?,
            }
            said.map_err(ReadError::Output)?;
            self.summary.found += 1;
        }
        Ok(())
    }

    /// The days that may have entries. The minute of a segment is never before the arrival of its entries, but may be
    /// behind: the clock may have gone back.
    fn days(&self) -> Result<Vec<Day>, ReadError> {
        let mut days = days(self.folder)?;
        days.retain(|day| self.query.since.is_none_or(|since| day.end() > since));
        days.retain(|day| self.after.is_none_or(|after| *day >= after.segment.day()));
        Ok(days)
    }

    fn segments(&self, day: Day) -> Result<Vec<SegmentName>, ReadError> {
        let mut names = segments(self.folder, day)?;
        let end = |name: &SegmentName| name.start() + Duration::from_millis(MINUTE_MILLIS);
        names.retain(|name| self.query.since.is_none_or(|since| end(name) > since));
        names.retain(|name| self.after.is_none_or(|after| *name >= after.segment));
        Ok(names)
    }

    /// Gives the entries of a segment that meet the conditions.
    fn each(
        &mut self,
        name: SegmentName,
        visit: &mut dyn FnMut(&Found<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ReadError> {
        let segment = match Segment::open(self.folder, name)? {
            Ok(segment) => segment,
            Err(issue) => {
                if let Some(issue) = issue {
                    self.summary.issues.add(name, issue);
                }
                return Ok(ControlFlow::Continue(()));
            }
        };
        let path = name.path(self.folder, "seg");
        self.rows(&segment, name, visit)
            .map_err(ReadError::at(&path))
    }

    fn rows(
        &mut self,
        segment: &Segment<File>,
        name: SegmentName,
        visit: &mut dyn FnMut(&Found<'_>) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let (query, after, issues) = (self.query, self.after, &mut self.summary.issues);
        if (query.since.is_some() || query.until.is_some())
            && let Some(summary) = segment.summary()?
            && !query.may_match(summary.first, summary.last)
        {
            return Ok(ControlFlow::Continue(()));
        }
        segment.walk(&mut |issue| issues.add(name, issue), &mut |row: &Row<
            '_,
        >| {
            let id = EntryId {
                segment: name,
                offset: row.offset,
            };
            if after.is_some_and(|after| id <= after) || !query.matches(&row.fields) {
                return ControlFlow::Continue(());
            }
            visit(&Found {
                id,
                octets: row.octets,
                fields: row.fields,
            })
        })
    }
}
