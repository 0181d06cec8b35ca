//! The parts of a bundle: how each is made, bounded in time and size.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use vere_control::{Request, ask};
use vere_process::failure::Failure;
use vere_settings::Settings;

use super::args::{BundleArgs, Further};
use super::{facts, folders, journal, metrics};
use crate::dns::{self, Notice};
use crate::doctor::{self, Section};
use crate::status;

/// Octets of a part; the journal has a separate bound.
const PART_MAX: usize = 4 << 20;
/// Longest time for a part.
const PATIENCE: Duration = Duration::from_secs(20);
/// Queues in the bundle, and held messages.
const QUEUES_MAX: usize = 1_000;
/// The end of a shortened text.
const CUT: &str = "\n[cut here: the part is longer]\n";

type Make = Box<dyn FnOnce() -> Result<String, Failure> + Send>;

/// A part before the work on it.
pub(super) struct Part {
    name: &'static str,
    about: &'static str,
    patience: Duration,
    make: Make,
}

/// A part, or the reason of the absence.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) text: Result<String, String>,
}

impl Made {
    pub(super) fn missing(name: &'static str, about: &'static str, reason: String) -> Self {
        Self {
            name,
            about,
            text: Err(reason),
        }
    }
}

impl Part {
    pub(super) fn new(
        name: &'static str,
        about: &'static str,
        make: impl FnOnce() -> Result<String, Failure> + Send + 'static,
    ) -> Self {
        Self {
            name,
            about,
            patience: PATIENCE,
            make: Box::new(make),
        }
    }

    /// Makes the part on a separate thread: a part without progress delays the bundle for a bounded time.
    pub(super) fn made(self, until: Instant) -> Made {
        let Self {
            name,
            about,
            patience,
            make,
        } = self;
        let left = until.saturating_duration_since(Instant::now());
        let (to, from) = mpsc::channel();
        thread::spawn(move || {
            // The command may have given up waiting.
            let _gone = to.send(make());
        });
        let text = match from.recv_timeout(patience.min(left)) {
            Ok(made) => made.map(cut).map_err(|failure| failure.to_string()),
            Err(_) => Err("not ready in time".to_owned()),
        };
        Made { name, about, text }
    }
}

/// The beginning of a long text.
fn cut(mut text: String) -> String {
    if text.len() > PART_MAX {
        let end = (0..=PART_MAX).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text += CUT;
    }
    text
}

/// All parts but the settings themselves.
pub(super) fn all(
    args: &BundleArgs,
    settings: Option<&Arc<Settings>>,
    sections: Vec<Section>,
    further: &[Further],
) -> Vec<Part> {
    let mut parts = vec![examination(args, settings, sections)];
    parts.extend(
        settings
            .into_iter()
            .flat_map(|settings| of_system(settings, further)),
    );
    parts.extend(of_machine(args));
    parts
}

/// Parts without need of settings.
pub(super) fn of_machine(args: &BundleArgs) -> Vec<Part> {
    let log = args.log.clone();
    vec![
        Part::new(
            "versions.json",
            "versions of vere and the system, processors, memory",
            facts::versions,
        ),
        Part::new("log.txt", "the last lines of the log", move || match log {
            Some(file) => journal::of_file(&file),
            None => journal::of_unit(),
        }),
    ]
}

fn examination(
    args: &BundleArgs,
    settings: Option<&Arc<Settings>>,
    mut sections: Vec<Section>,
) -> Part {
    let settings = settings.filter(|_| !args.no_dns).map(Arc::clone);
    let addresses = args.address.clone();
    let make = move || {
        if let Some(settings) = settings {
            sections.extend(doctor::domains(&settings, &addresses, &Notice::new(true)));
        }
        doctor::in_json(&sections, doctor::level(&sections))
    };
    Part {
        patience: dns::PATIENCE + PATIENCE,
        ..Part::new("doctor.json", "the findings of vere doctor", make)
    }
}

fn of_system(settings: &Arc<Settings>, further: &[Further]) -> Vec<Part> {
    let part = |name, about, make: fn(&Settings) -> Result<String, Failure>| {
        let settings = Arc::clone(settings);
        Part::new(name, about, move || make(&settings))
    };
    let own: [Further; 6] = [
        ("status.json", "vere status", status::in_json),
        (
            "queues.json",
            "vere queue list: queues by destination",
            queues,
        ),
        ("orders.json", "vere queue orders", orders),
        (
            "memory.json",
            "vere config memory: the bounds of the roles",
            facts::memory,
        ),
        (
            "folders.json",
            "sizes of the data directories",
            folders::sizes,
        ),
        ("metrics.txt", "the metrics of all roles", metrics::all),
    ];
    let all = own.into_iter().chain(further.iter().copied());
    all.map(|(name, about, make)| part(name, about, make))
        .collect()
}

fn queues(settings: &Settings) -> Result<String, Failure> {
    let request = Request::QueueList {
        group: None,
        after: None,
        limit: QUEUES_MAX,
    };
    let value = ask(&settings.control.socket, &request)?;
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn orders(settings: &Settings) -> Result<String, Failure> {
    let value = ask(&settings.control.socket, &Request::QueueOrders)?;
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded_in_time_and_size() {
        let until = Instant::now() + Duration::from_millis(50);
        let slow = Part::new("slow", "", || {
            thread::sleep(Duration::from_secs(600));
            Ok(String::new())
        });
        assert_eq!(slow.made(until).text.unwrap_err(), "not ready in time");
        let late = Instant::now() + PATIENCE;
        let long = Part::new("long", "", || Ok("ä".repeat(PART_MAX)));
        let text = long.made(late).text.unwrap();
        assert!(text.len() <= PART_MAX + CUT.len() && text.ends_with(CUT));
        let failed = Part::new("failed", "", || Err(Failure::new("why")));
        assert_eq!(failed.made(late).text.unwrap_err(), "why");
    }
}
