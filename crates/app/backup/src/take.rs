//! `vere backup PLACE`: makes a backup while everything runs.
//!
//! The point of the backup is the moment at which the store's log is held. Objects come first, the list last: a killed
//! backup leaves only objects. The next backup finds the objects, and `vere backup prune` removes unused objects.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use vere_control::{QueueRow, Request};
use vere_process::clock::now;
use vere_process::failure::Failure;
use vere_process::last_backup::LastBackup;
use vere_process::outcome::Outcome;
use vere_process::wording::{counted, size};
use vere_settings::Settings;
use vere_units::Timestamp;

use crate::args::TakeArgs;
use crate::last::Last;
use crate::manifest::{Log, Manifest, Queues, VERSION};
use crate::pace::Pace;
use crate::place::Use;
use crate::progress;
use crate::repository::Repository;
use crate::sources::files::Files;
use crate::sources::log::Held;
use crate::storing::{Counts, Storing};

/// Number of queues asked for at once.
const QUEUES: usize = 1_000;

/// The result of a backup, for programs.
#[derive(Debug, Serialize)]
struct Report {
    number: u64,
    made: String,
    octets: u64,
    read_octets: u64,
    reused_octets: u64,
    stored_octets: u64,
    stored_objects: u64,
    files: usize,
    log_files: usize,
    encrypted: bool,
    queued_messages: Option<u64>,
    seconds: f64,
}

/// Makes a backup.
///
/// # Errors
/// When something cannot be read or stored; the place has no further backup then.
pub(crate) fn run(
    args: &TakeArgs,
    place: &str,
    (config, settings): (&Path, &Settings),
) -> Result<Outcome, Failure> {
    let began = Instant::now();
    if !place.contains("://") && std::path::absolute(place)?.starts_with(&settings.data) {
        return Err(Failure::new(format!(
            "{}: expected a place outside of the data directory {}",
            place,
            settings.data.display()
        )));
    }
    let ask = || args.secret.get();
    let place = absolute(place)?;
    let last = (!args.accept_place).then(|| Last::read(settings, &place));
    if let Some(last) = &last {
        last.check_presence()?;
    }
    let repository = Repository::open(&place, Use::Writing, &ask)?;
    repository.clear_leftovers()?;
    let numbers = repository.numbers()?;
    let before = newest(&repository, &numbers);
    if let Some(last) = &last {
        last.check_host(before.as_ref())?;
    }
    let held = Held::take(settings)?;
    let made = now();
    let found = Files::find(settings, config)?;
    let octets = held.as_ref().map_or(0, Held::octets) + found.octets();
    let bar = progress::bar(&args.shown, "backup", octets);
    let mut storing = Storing::new(&repository, &bar, Pace::new(args.rate, args.fast))?;
    let known = before
        .as_ref()
        .map_or((&[][..], 0), |before| (&before.files[..], before.made));
    let files = found.store(&mut storing, known)?;
    let known = before.as_ref().and_then(|before| before.log.as_ref());
    let log = held
        .map(|held| copied(held, &mut storing, known))
        .transpose()?;
    let counts = storing.counts;
    let manifest = Manifest {
        version: VERSION,
        number: numbers.last().map_or(1, |last| last.saturating_add(1)),
        made: made.as_millis(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        host: settings.hostname.clone(),
        data: settings.data.display().to_string(),
        config: std::path::absolute(config)?.display().to_string(),
        log,
        files,
        queues: Queues {
            included: false,
            messages: queued(settings),
        },
    };
    repository.finish(&manifest)?;
    for name in storing.mended() {
        repository.note_mended(&name)?;
    }
    bar.finish_and_clear();
    record(&manifest, &place, settings);
    report(
        &manifest,
        counts,
        &repository,
        began.elapsed(),
        args.shown.json,
    )
}

/// The place as `vere status` names it, whatever the working directory.
fn absolute(place: &str) -> Result<String, Failure> {
    match place.contains("://") {
        true => Ok(place.to_owned()),
        false => Ok(std::path::absolute(place)?.display().to_string()),
    }
}

/// Records the backup for `vere status` and the metrics. The backup is complete also without the record.
fn record(manifest: &Manifest, place: &str, settings: &Settings) {
    let last = LastBackup {
        made: Timestamp::from_millis(manifest.made),
        number: manifest.number,
        place: place.to_owned(),
    };
    if let Err(error) = last.write(&settings.data) {
        tracing::warn!(%error, "the time of the backup is not recorded, vere status does not know it");
    }
}

/// The newest backup, the source of unchanged files. After damage to the list, all files are read again.
fn newest(repository: &Repository, numbers: &[u64]) -> Option<Manifest> {
    let manifest = repository.manifest(*numbers.last()?);
    let told = |error: &Failure| tracing::warn!(%error, "everything is read again");
    manifest.inspect_err(told).ok()
}

/// Stores the log, and makes sure that the log was held to the end.
fn copied(mut held: Held, storing: &mut Storing<'_>, known: Option<&Log>) -> Result<Log, Failure> {
    let log = held.store(storing, known)?;
    held.release()?;
    Ok(log)
}

/// How many messages wait in the queues; `None` if no gateway answers.
fn queued(settings: &Settings) -> Option<u64> {
    let (mut messages, mut after) = (0, None);
    loop {
        let request = Request::QueueList {
            group: None,
            after,
            limit: QUEUES,
        };
        let value = vere_control::ask(&settings.control.socket, &request).ok()?;
        let rows: Vec<QueueRow> = serde_json::from_value(value).ok()?;
        messages += rows.iter().map(|row| row.messages as u64).sum::<u64>();
        match rows.last() {
            Some(last) if rows.len() == QUEUES => after = Some(last.destination.clone()),
            _ => return Some(messages),
        }
    }
}

fn report(
    manifest: &Manifest,
    counts: Counts,
    repository: &Repository,
    took: Duration,
    json: bool,
) -> Result<Outcome, Failure> {
    let report = Report {
        number: manifest.number,
        made: Timestamp::from_millis(manifest.made).to_string(),
        octets: manifest.octets(),
        read_octets: counts.read,
        reused_octets: counts.reused,
        stored_octets: counts.stored,
        stored_objects: counts.objects,
        files: manifest.files.len(),
        log_files: manifest.log.as_ref().map_or(0, |log| log.files.len()),
        encrypted: repository.is_encrypted(),
        queued_messages: manifest.queues.messages,
        seconds: took.as_secs_f64(),
    };
    Ok(Outcome::Print(match json {
        true => format!("{:#}\n", serde_json::to_value(&report)?),
        false => report.text(),
    }))
}

impl Report {
    fn text(&self) -> String {
        let mut text = format!(
            "backup {} of {} ({}) made in {:.1} s: {} read, {} new\n",
            self.number,
            self.made,
            size(self.octets),
            self.seconds,
            size(self.read_octets),
            size(self.stored_octets),
        );
        match self.queued_messages {
            Some(0) => {}
            Some(count) => {
                text += &counted(count, "message waits", "messages wait");
                text += " in the queues, which no backup has\n";
            }
            None => text += "queues: unknown, no gateway answered; no backup has them\n",
        }
        if !self.encrypted {
            text += "not encrypted: whoever reads the backup has all mail and private keys\n";
        }
        text
    }
}
