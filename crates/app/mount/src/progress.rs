//! The progress of a check, a collection, or of sending: a bar with rate and time left on a terminal, and with `--json` an object per line on
//! standard error.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::control::{Request, ask};
use crate::figures;

/// Time between looks.
const LOOK: Duration = Duration::from_millis(250);
/// The longest time of a look.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between lines of JSON.
const LINE: Duration = Duration::from_secs(1);

/// How fast a stage is.
#[derive(Debug)]
struct Rate {
    stage: String,
    begun: Instant,
    first: u64,
}

impl Rate {
    fn new() -> Self {
        Self {
            stage: String::new(),
            begun: Instant::now(),
            first: 0,
        }
    }

    /// Adds rate and time left to what an engine tells: stage, parts done, and all parts as far as known.
    fn of(&mut self, now: Instant, told: &Value) -> Value {
        let stage = told["stage"].as_str().unwrap_or_default();
        let number = |key: &str| told[key].as_u64().unwrap_or(0);
        let (done, all) = (number("done"), number("all"));
        if stage != self.stage || done < self.first {
            stage.clone_into(&mut self.stage);
            self.begun = now;
            self.first = done;
        }
        let millis = u64::try_from(now.saturating_duration_since(self.begun).as_millis());
        let since = done.saturating_sub(self.first).saturating_mul(1_000);
        let per_second = since.checked_div(millis.unwrap_or(u64::MAX));
        let left = all.checked_sub(done).filter(|_| all > 0);
        let seconds = left.and_then(|left| left.checked_div(per_second?));
        json!({
            "stage": stage,
            "unit": told["unit"],
            "done": done,
            "all": if all > 0 { Some(all) } else { None },
            "per_second": per_second,
            "seconds_left": seconds,
        })
    }
}

/// A thread that shows the progress of a run until the end.
#[derive(Debug)]
pub(crate) struct Watch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins. `look` gives what an engine tells, or nothing where no run is under way.
    pub(crate) fn start(
        is_json: bool,
        mut look: impl FnMut() -> Option<Value> + Send + 'static,
    ) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let watch = move || {
            let bar = (!is_json && std::io::stderr().is_terminal()).then(bar);
            let (mut rate, mut line) = (Rate::new(), None::<Instant>);
            while !over.load(Ordering::Acquire) {
                let told = look().filter(|told| told["stage"].is_string());
                if let Some(told) = told {
                    let now = Instant::now();
                    let progress = rate.of(now, &told);
                    let is_due = line.is_none_or(|line| now.duration_since(line) >= LINE);
                    if let Some(bar) = &bar {
                        show(bar, &progress);
                    } else if is_json && is_due {
                        eprintln!("{progress}");
                        line = Some(now);
                    }
                }
                thread::park_timeout(LOOK);
            }
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
        };
        // Without a thread the run goes on unseen.
        let thread = thread::Builder::new()
            .name("fs-progress".into())
            .spawn(watch);
        Self {
            is_over,
            thread: thread.ok(),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the bar is no failure of the run.
            let _shown = thread.join();
        }
    }
}

/// What a mount still has to send, from its states: octets.
pub(crate) fn sending(socket: PathBuf) -> impl FnMut() -> Option<Value> + Send + 'static {
    let mut most = 0;
    move || {
        let status = ask(&socket, &Request::Status, Some(PATIENCE)).ok()??;
        let waiting = status["octets_waiting"].as_u64()?;
        most = waiting.max(most);
        let done = most.saturating_sub(waiting);
        Some(json!({ "stage": "sending", "unit": "octets", "done": done, "all": most }))
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("{prefix:10} {wide_bar} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, progress: &Value) {
    let stage = progress["stage"].as_str().unwrap_or_default();
    bar.set_prefix(stage.to_owned());
    bar.set_length(progress["all"].as_u64().unwrap_or(0));
    bar.set_position(progress["done"].as_u64().unwrap_or(0));
    bar.set_message(words(progress));
}

/// The figures of a bar.
fn words(progress: &Value) -> String {
    let number = |number: u64| match progress["unit"].as_str() {
        Some("octets") => figures::octets(number),
        _ => number.to_string(),
    };
    let done = number(progress["done"].as_u64().unwrap_or(0));
    let mut text = match progress["all"].as_u64() {
        Some(all) => format!("{done} of {}", number(all)),
        None => done,
    };
    if let Some(rate) = progress["per_second"].as_u64().filter(|rate| *rate > 0) {
        text.push_str(&format!(", {}/s", number(rate)));
    }
    if let Some(left) = progress["seconds_left"].as_u64() {
        text.push_str(&format!(", {} left", figures::time(left)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_has_a_rate_and_a_time_left() {
        let mut rate = Rate::new();
        let begun = Instant::now();
        let told =
            |stage: &str, done: u64, all: u64| json!({ "stage": stage, "done": done, "all": all });
        let first = rate.of(begun, &told("listing", 10, 110));
        assert_eq!(first["seconds_left"], Value::Null);
        let later = rate.of(begun + Duration::from_secs(5), &told("listing", 60, 110));
        assert_eq!(
            (&later["per_second"], &later["seconds_left"]),
            (&json!(10), &json!(5))
        );
        assert_eq!(words(&later), "60 of 110, 10/s, 5 s left");
        // Another stage has a rate of its own, and perhaps no end that is known.
        let next = rate.of(begun + Duration::from_secs(6), &told("weighing", 500, 0));
        assert_eq!(
            (&next["all"], &next["seconds_left"]),
            (&Value::Null, &Value::Null)
        );
        let last = rate.of(begun + Duration::from_secs(8), &told("weighing", 900, 0));
        assert_eq!(words(&last), "900, 200/s");
        let octets =
            json!({ "unit": "octets", "done": 1 << 20, "all": 3 << 20, "per_second": 2_048 });
        assert_eq!(words(&octets), "1.0 MiB of 3.0 MiB, 2.0 KiB/s");
    }

    #[test]
    fn a_watch_ends_with_its_run() {
        let looks = Arc::new(AtomicBool::new(false));
        let looked = Arc::clone(&looks);
        let watch = Watch::start(false, move || {
            looked.store(true, Ordering::Release);
            None
        });
        while !looks.load(Ordering::Acquire) {
            thread::yield_now();
        }
        drop(watch);
    }
}
