//! Collections of garbage: run after run while there is more to do, and once a day in a mount.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use vere_mailfs::volume::{CollectTerms, Status};

use crate::host::{Event, with};
use crate::lines::{self, Level};
use crate::runs;
use crate::volume::{Live, Upkeep, moment};

/// Runs of a collection: each moves 256 MiB and removes 20,000 packs at most, and the next day has runs of its own.
const RUNS_MAX: usize = 16;
/// Time from a collection to the next one of a mount.
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// The longest silence of an engine before a look is given up.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Collects, and waits for the result: the sum of all runs.
pub(crate) fn run(events: &Sender<Event<Live>>) -> Result<Value, String> {
    let mut all = json!({});
    for _ in 0..RUNS_MAX {
        let report = runs::run(events, Upkeep::Collect(CollectTerms::DEFAULT))?;
        let has_more = report["has_more"] == Value::Bool(true);
        add(&mut all, &report);
        if !has_more {
            break;
        }
    }
    Ok(all)
}

/// Adds the numbers of a run; what waits is told by the last run.
fn add(all: &mut Value, report: &Value) {
    let (Some(all), Some(report)) = (all.as_object_mut(), report.as_object()) else {
        return;
    };
    for (key, value) in report {
        let before = all.get(key).and_then(Value::as_u64).unwrap_or(0);
        let sum = value.as_u64().map(|value| before.saturating_add(value));
        let value = match sum.filter(|_| key != "waiting") {
            Some(sum) => sum.into(),
            None => value.clone(),
        };
        all.insert(key.clone(), value);
    }
}

/// The collections of a mount.
#[derive(Debug, Default)]
pub(crate) struct Daily {
    is_running: Arc<AtomicBool>,
}

impl Daily {
    /// Collects if a day has passed since the last collection and the mount has nothing else to do. A mount that is never quiet
    /// collects after two days.
    pub(crate) fn look(&self, events: &Sender<Event<Live>>) {
        if self.is_running.load(Ordering::Acquire) {
            return;
        }
        let facts = with(events, SILENCE_MAX, |live: &mut Live, now| {
            let now = moment(now);
            (live.volume().status_at(now), now.millis())
        });
        if !facts.is_some_and(|(status, now)| is_due(&status, now)) {
            return;
        }
        self.is_running.store(true, Ordering::Release);
        let (events, is_running) = (events.clone(), Arc::clone(&self.is_running));
        let collect = move || {
            match run(&events) {
                Ok(report) => lines::log(Level::Info, &format!("garbage: {report}")),
                Err(reason) => lines::log(Level::Warn, &format!("garbage: {reason}")),
            }
            is_running.store(false, Ordering::Release);
        };
        let thread = thread::Builder::new()
            .name("fs-garbage".into())
            .spawn(collect);
        if thread.is_err() {
            // The next look has another try.
            self.is_running.store(false, Ordering::Release);
        }
    }
}

/// Whether a collection is due. A clock that was set back makes no difference: the last collection counts as long ago.
fn is_due(status: &Status, now_ms: i64) -> bool {
    let last = status.upkeep.map_or(0, |row| row.collected_ms);
    let age = Duration::from_millis(now_ms.saturating_sub(last).unsigned_abs());
    let is_quiet = status.quiet
        && status.octets_waiting == 0
        && status.copies_missing == 0
        && status
            .accounts
            .iter()
            .all(|account| account.failing.is_none());
    let is_possible = status.read_only.is_none();
    is_possible && ((is_quiet && age >= DAY) || age >= DAY.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use vere_mailfs::rows::UpkeepRow;

    use super::{add, is_due};
    use crate::status::tests::status;
    use vere_mailfs::volume::Status;

    #[test]
    fn runs_add_up() {
        let mut all = json!({});
        add(
            &mut all,
            &json!({ "removed": 2, "waiting": 3, "has_more": true, "failed": [] }),
        );
        add(
            &mut all,
            &json!({ "removed": 5, "waiting": 4, "has_more": false, "failed": [1] }),
        );
        assert_eq!(
            all,
            json!({ "removed": 7, "waiting": 4, "has_more": false, "failed": [1] })
        );
    }

    #[test]
    fn a_quiet_mount_collects_once_a_day_and_a_busy_one_every_two() {
        let hours = |hours: i64| hours * 3_600_000;
        let at = |quiet: bool, last: i64, now: i64| {
            let mut accounts = status().accounts;
            accounts.truncate(1);
            let status = Status {
                quiet,
                accounts,
                upkeep: Some(UpkeepRow {
                    collected_ms: hours(last),
                    ..UpkeepRow::default()
                }),
                ..status()
            };
            is_due(&status, hours(now))
        };
        assert!(!at(true, 100, 123) && at(true, 100, 124));
        assert!(!at(false, 100, 147) && at(false, 100, 148));
        assert!(at(true, 1_000, 100), "a clock that was set back");
        assert!(!is_due(
            &Status {
                read_only: Some("full".to_owned()),
                ..status()
            },
            hours(999)
        ));
    }
}
