//! Sends the reports of a kind about past days.
//!
//! A day is due [`SETTLE`] after its end, and the domains follow within [`SPREAD`], each at a time by the name of the domain: not all
//! systems of the world send in the same second. A report is noted as sent after the queue has taken the report, and a kill between gives the same
//! report with the same identifier once more.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use vere_observed::Files;
use vere_reports::{Day, Kind, WHOLE_DAY, day_of};
use vere_telemetry::metrics::ReportEnd;
use vere_units::Timestamp;

use super::making::{Made, Making, NotMade};
use crate::group::Groups;
use vere_process::clock;

/// Milliseconds of a day.
const DAY_MILLIS: u64 = 86_400_000;
/// The time from the end of a day to the first report. All counts of the day are written then.
const SETTLE: Duration = Duration::from_secs(15 * 60);
/// The time between the first and the last report of a day.
const SPREAD: Duration = Duration::from_secs(4 * 60 * 60);
/// Days whose counts stay.
const DAYS_KEPT: u64 = 7;
/// Reports about a day; further domains get none.
const REPORTS_MAX: usize = 1_000;
/// Domains at a look, all at the same time.
const AT_ONCE: usize = 16;
/// The time before a domain is tried again, and the number of attempts.
const AGAIN: Duration = Duration::from_secs(60 * 60);
const TRIES_MAX: u32 = 8;

/// Reports to send.
#[derive(Debug)]
pub(super) struct Sending {
    kind: Kind,
    due: Option<Due>,
    /// The last finished day; files of earlier days have nothing to send either.
    done: Option<u64>,
    /// The day of the last removal of old files.
    cleared: Option<u64>,
}

/// A past day.
#[derive(Debug)]
struct Due {
    day: u64,
    counts: Arc<Day>,
    /// The domains by their time.
    domains: VecDeque<Waiting>,
    handed_over: usize,
    /// Whether the file has no note yet about the end of the day.
    is_new: bool,
}

/// A domain without a report yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    from: Timestamp,
    domain: String,
    tries: u32,
    /// The parts that have their destination already.
    done: Vec<String>,
}

impl Due {
    fn of(kind: Kind, (day, counts): (u64, Day), hostname: &str) -> Self {
        let open = counts.open(kind).into_iter();
        let mut domains: Vec<_> = open
            .map(|domain| Waiting {
                from: time(day, hostname, &domain),
                domain,
                tries: 0,
                done: Vec::new(),
            })
            .collect();
        domains.sort();
        Self {
            day,
            handed_over: counts.handed_over(kind),
            counts: Arc::new(counts),
            is_new: !domains.is_empty(),
            domains: domains.into(),
        }
    }

    /// The next domain whose time has come.
    fn next(&mut self, now: Timestamp) -> Option<Waiting> {
        let is_next = self.domains.front().is_some_and(|first| first.from <= now);
        is_next.then(|| self.domains.pop_front()).flatten()
    }

    /// Has a domain tried again later; `false` after too many attempts.
    fn again(&mut self, waiting: Waiting, now: Timestamp) -> bool {
        let tries = waiting.tries.saturating_add(1);
        let is_tried = tries < TRIES_MAX;
        if is_tried {
            let waiting = Waiting {
                from: now + AGAIN,
                tries,
                ..waiting
            };
            let at = self.domains.partition_point(|other| *other < waiting);
            self.domains.insert(at, waiting);
        }
        is_tried
    }
}

/// When reports about a day may leave.
fn begin(day: u64) -> Timestamp {
    let end = day.saturating_add(1).saturating_mul(DAY_MILLIS);
    Timestamp::from_millis(end) + SETTLE
}

/// The time of the report to a domain, the same at each call.
fn time(day: u64, hostname: &str, domain: &str) -> Timestamp {
    let mut hasher = DefaultHasher::new();
    (hostname, domain).hash(&mut hasher);
    let spread = hasher.finish() % SPREAD.as_secs().max(1);
    begin(day) + Duration::from_secs(spread)
}

impl Sending {
    /// Nothing was looked at yet.
    pub(super) const fn of(kind: Kind) -> Self {
        Self {
            kind,
            due: None,
            done: None,
            cleared: None,
        }
    }

    /// Sends due reports.
    pub(super) async fn look(&mut self, groups: &Rc<Groups>, files: &Rc<Files>) {
        let now = clock::now();
        self.clear(files, now).await;
        if self.due.is_none() {
            self.due = self.find(groups, files, now).await;
        }
        let Some(due) = &mut self.due else {
            return;
        };
        if due.handed_over >= REPORTS_MAX && !due.domains.is_empty() {
            tracing::warn!(
                domains = due.domains.len(),
                "more domains than reports about a day; the others get none"
            );
            due.domains.clear();
        }
        let mut making = JoinSet::new();
        for _ in 0..AT_ONCE.min(REPORTS_MAX.saturating_sub(due.handed_over)) {
            let Some(waiting) = due.next(now) else {
                break;
            };
            let (groups, files) = (Rc::clone(groups), Rc::clone(files));
            let counts = (due.day, Arc::clone(&due.counts));
            making.spawn_local(make((groups, files), self.kind, counts, waiting, now));
        }
        while let Some(made) = making.join_next().await {
            // A panic in a report is one in the process.
            if let Ok((waiting, made)) = made {
                let end = ended(files, self.kind, due, waiting, made, now).await;
                if let Some(end) = end {
                    groups.process().metrics.report_ended(self.kind, end);
                }
            }
        }
        if due.domains.is_empty() {
            let (day, is_new) = (due.day, due.is_new);
            self.done = Some(day);
            self.due = None;
            if is_new {
                files.note_sent(day, self.kind, WHOLE_DAY).await;
            }
        }
    }

    /// Removes the files of old days, once a day.
    async fn clear(&mut self, files: &Files, now: Timestamp) {
        let today = day_of(now);
        if self.cleared == Some(today) {
            return;
        }
        self.cleared = Some(today);
        let oldest = today.saturating_sub(DAYS_KEPT);
        let removed = files.run(move |observed| observed.remove_before(oldest));
        if let Err(error) = removed.await {
            tracing::warn!(%error, "old counts for reports cannot be removed");
        }
    }

    /// Reads the first day with reports to send.
    async fn find(&mut self, groups: &Groups, files: &Files, now: Timestamp) -> Option<Due> {
        let done = self.done;
        let is_new = move |day: &u64| done.is_none_or(|done| *day > done) && begin(*day) <= now;
        let found = files.run(move |observed| {
            let first = observed.days()?.into_iter().find(is_new);
            first
                .map(|day| observed.day(day).map(|counts| (day, counts)))
                .transpose()
        });
        match found.await {
            Ok(found) => {
                let (day, counts) = found?;
                let hostname = &groups.process().settings().hostname;
                Some(Due::of(self.kind, (day, counts), hostname))
            }
            Err(error) => {
                tracing::warn!(%error, "counts for reports cannot be read");
                None
            }
        }
    }
}

/// Makes the report to a domain.
async fn make(
    (groups, files): (Rc<Groups>, Rc<Files>),
    kind: Kind,
    (day, counts): (u64, Arc<Day>),
    waiting: Waiting,
    now: Timestamp,
) -> (Waiting, Made) {
    let making = Making {
        groups: &groups,
        kind,
        domain: &waiting.domain,
        counts: &counts,
        files: &files,
        day,
        now,
        done: &waiting.done,
    };
    let made = making.send().await;
    (waiting, made)
}

/// Notes what was handed over; `None` for a report that is left to another attempt.
async fn ended(
    files: &Files,
    kind: Kind,
    due: &mut Due,
    mut waiting: Waiting,
    made: Made,
    now: Timestamp,
) -> Option<ReportEnd> {
    let domain = waiting.domain.clone();
    Some(match made.result {
        Ok(()) => {
            due.handed_over = due.handed_over.saturating_add(1);
            files.note_sent(due.day, kind, &domain).await;
            ReportEnd::Sent
        }
        Err(NotMade::Unwanted) => ReportEnd::Unwanted,
        Err(NotMade::TooLong) => ReportEnd::TooLong,
        Err(NotMade::Failed(error)) => {
            waiting.done.extend(made.parts);
            if due.again(waiting, now) {
                tracing::info!(domain, error, "report cannot be sent yet");
                return None;
            }
            tracing::warn!(domain, error, "report given up");
            ReportEnd::GivenUp
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 20_577;

    #[test]
    fn reports_leave_within_hours_of_the_end_of_the_day_and_not_all_at_once() {
        let end = Timestamp::from_millis((DAY + 1) * DAY_MILLIS);
        let mut times: Vec<_> = (0..1_000)
            .map(|number| time(DAY, "mx.example.org", &format!("d{number}.test")))
            .collect();
        times.sort();
        let (first, last) = (times[0], times[999]);
        assert!(first >= end + SETTLE && last < end + SETTLE + SPREAD);
        assert!(last.saturating_since(first) > SPREAD / 2);
        let again = || time(DAY, "mx.example.org", "d1.test");
        assert_eq!(again(), again());
    }

    #[test]
    fn a_domain_is_tried_again_some_times() {
        let mut due = Due::of(Kind::Tls, (DAY, Day::read(DAY, b"")), "mx.example.org");
        let waiting = |domain: &str, millis| Waiting {
            from: Timestamp::from_millis(millis),
            domain: domain.to_owned(),
            tries: 0,
            done: Vec::new(),
        };
        due.domains = [waiting("a.test", 5), waiting("b.test", u64::MAX)].into();
        let mut now = Timestamp::from_millis(7);
        let mut tried = due.next(now).unwrap();
        assert_eq!(due.next(now), None, "the other is not due");
        for _ in 1..TRIES_MAX {
            assert!(due.again(tried, now));
            assert_eq!(due.next(now), None);
            now = now + AGAIN;
            tried = due.next(now).unwrap();
            assert_eq!(tried.domain, "a.test");
        }
        assert!(!due.again(tried, now));
    }
}
