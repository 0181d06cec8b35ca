//! `vere fs rebuild`: a volume from its accounts and its secret alone.

mod login;
mod places;
mod report;
mod salvage;
mod search;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde_json::Value;
use vere_mailfs::volume::{CheckTerms, GONE, Salvaged};
use vere_process::failure::Failure;
use vere_recovery::{Recovered, account_rows, group_rows};
use vere_settings::{Volume as Described, VolumeAccount};

use crate::args::RebuildArgs;
use crate::bars::{bar, show};
use crate::engine::Engine;
use crate::folders::{self, Description};
use crate::host::{Event, Host};
use crate::news::News;
use crate::runs;
use crate::secrets::Opener;
use crate::serve::{finish, open};
use crate::volume::{How, Live, Upkeep};

use report::{Origin, Report};

/// The longest silence of an engine; the comparison of a large volume holds the engine for seconds.
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// Time for the first commit of this machine.
const QUIET_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &RebuildArgs) -> Result<(String, ExitCode), Failure> {
    let mut description = Description::named(&args.name)?;
    description.file = std::path::absolute(&description.file)?;
    let given = places::given(args, &description)?;
    let tag = search::choose(&search::folders(&given)?, args.tag.as_deref())?;
    let secret = &args.secret;
    let opener = Opener::get(
        secret.passphrase_file.as_ref(),
        secret.key_file.as_ref(),
        false,
    )?;
    let mut ignored = Vec::new();
    let recovered = recover(&given, &tag, &opener, &mut ignored)?;
    let facts = &recovered.facts;
    facts.check_writable()?;
    let (described, strange) = write(args, &description, &given, (&recovered, facts.lead_account))?;
    let mut report = Report::new(&tag, &description, &described, &recovered);
    report.strange = strange;
    report.ignored = ignored;
    let found = match args.salvage {
        true => Some(salvage::read(&described, &tag, &recovered)?),
        false => None,
    };
    let how = How {
        lost: found.as_ref().map(|found| salvage::lost(found, &recovered)),
        ..How::default()
    };
    check(
        (&description, &described, &opener),
        (&how, found.as_ref()),
        &mut report,
    )?;
    let code = if report.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    };
    let text = if args.json {
        format!("{:#}\n", report.json())
    } else {
        report.shown()
    };
    Ok((text, code))
}

fn recover(
    given: &[VolumeAccount],
    tag: &str,
    opener: &Opener,
    ignored: &mut Vec<String>,
) -> Result<Recovered, Failure> {
    let bar = bar("reading key slots");
    let recovered = search::recover(
        given,
        tag,
        opener,
        &mut |read, known| show(&bar, read, known),
        &mut |text| ignored.push(text),
    );
    bar.finish_and_clear();
    recovered
}

/// Writes the file of the volume and the key slot beside.
fn write(
    args: &RebuildArgs,
    description: &Description,
    given: &[VolumeAccount],
    (recovered, lead): (&Recovered, u16),
) -> Result<(Described, Vec<String>), Failure> {
    if let Some(folder) = description.file.parent() {
        folders::make_private(folder)?;
    }
    let shown = description.file.display().to_string();
    let mut strange = Vec::new();
    let described = if args.given.accounts.is_empty() {
        description.read()?
    } else {
        let rows = &recovered.facts.rows;
        let mut accounts = account_rows(rows);
        // What is left there belongs to the volume no more.
        accounts.retain(|(_, row)| row.state != GONE);
        let rows = (&*accounts, &*group_rows(rows), lead);
        let written = places::text(rows, given, args, description)?;
        let described = Described::parse(&written.text, &shown)?;
        places::write_once(&description.file, written.text.as_bytes())?;
        strange = written.strange;
        described
    };
    places::write_once(&description.slot(), &recovered.slot.encode())?;
    Ok((described, strange))
}

/// Opens the volume, registers this machine as a writer, and compares the rows with the mails of all accounts.
fn check(
    (description, described, opener): (&Description, &Described, &Opener),
    (how, found): (&How, Option<&Arc<Salvaged>>),
    report: &mut Report,
) -> Result<(), Failure> {
    let reading = bar("reading the log");
    let mut news = |news| match news {
        News::Progress(read, all) => show(&reading, read, all),
        News::Line(line) => reading.suspend(|| eprintln!("{line}")),
    };
    let opened = open(description, described, opener, how, &mut news);
    reading.finish_and_clear();
    let opened = opened?;
    let live = &opened.live;
    let rows = live.volume().facts()?;
    let (checkpoint, commits) = live.volume().origin();
    let generation = live.volume().status().generation;
    let stands_in = live.volume().stands_in().is_some();
    report.accounts_differ = account_rows(&rows) != account_rows(report.rows());
    let engine = Engine::start(opened)?;
    let events = &engine.events;
    let registered = match stands_in {
        // The machine registers with its first mount under the lead.
        true => Ok(()),
        false => wait_until_registered(&engine.host),
    };
    let checked = registered.and_then(|()| {
        if stands_in {
            return Ok((run_check(events, false)?, 0));
        }
        let Some(found) = found else {
            return checked(events);
        };
        let is_new = checkpoint.is_none() && commits == 0;
        let begun = found.begun();
        let is_lost = is_new || begun.is_some() || found.generation() > generation;
        if is_lost && !is_new {
            // The check has all pages read: what a file has already is no lost content.
            run_check(events, true)?;
        }
        // The chain has no whole state behind a broken salvage.
        let known = is_lost.then(|| if begun.is_some() { 0 } else { generation });
        report.salvaged = salvage::place(&engine.host, events, found, known)?;
        checked(events)
    });
    let status = engine
        .host
        .with(SILENCE_MAX, |live, _| live.volume().status());
    finish(&engine.host);
    engine.host.stop();
    let (mut last, repaired) = checked?;
    last["repaired"] = repaired.into();
    report.check = last;
    report.origin = status.map(|status| Origin {
        checkpoint,
        commits,
        generation: status.generation,
        fingerprint: status.fingerprint.to_string(),
        writer: status.writer,
    });
    Ok(())
}

/// A check with repair, and another one where anything was repaired. Returns the last report, and the repairs.
fn checked(events: &Sender<Event<Live>>) -> Result<(Value, u64), Failure> {
    let first = run_check(events, true)?;
    match first["repaired"].as_u64() {
        Some(repaired) if repaired > 0 => Ok((run_check(events, false)?, repaired)),
        _ => Ok((first, 0)),
    }
}

/// The number of the writer comes with a commit.
fn wait_until_registered(host: &Host<Live>) -> Result<(), Failure> {
    let (done, all_done) = channel();
    host.with(SILENCE_MAX, move |live, now| live.sync(now, done));
    match all_done.recv_timeout(QUIET_TIMEOUT) {
        Ok(Ok(())) => Ok(()),
        _ => Err(Failure::new(
            "expected a commit on the lead account that registers this machine, within 60 s; found none. `vere fs mount` tries again",
        )),
    }
}

fn run_check(events: &Sender<Event<Live>>, repair: bool) -> Result<Value, Failure> {
    let what = Upkeep::Check(CheckTerms {
        data: false,
        repair,
    });
    let bar = bar("checking");
    let report = runs::run_with(events, what, &mut |stage, done, all| {
        bar.set_message(stage);
        show(&bar, done, all);
    });
    bar.finish_and_clear();
    report.map_err(Failure::new)
}
