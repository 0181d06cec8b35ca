//! `vere-bench fs`: a file system on mail accounts, beside bare IMAP, the local disk, sshfs and rclone.
//!
//! Every server is a process on loopback, started by the benchmark in a folder of its own; a bundled relay puts a round
//! trip of 0, 20 or 50 ms before it and counts octets. The workloads are those of Srinivasan's thesis (Figures 4.1 to
//! 4.9, Table 4.1): the same sizes, block sizes, numbers of accounts, and settings of Postmark and IOZone, by code of the
//! benchmark itself.

mod accounts;
mod bare;
mod bars;
mod content;
mod distance;
mod files;
mod fuse;
mod git;
mod mounts;
mod office;
mod plan;
mod postmark;
mod records;
mod relay;
mod report;
mod results;
mod sftp;
mod small;
mod sqlite;
mod sshd;
mod system;
mod vere;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::error::BenchError;
use crate::figures::Figures;
use crate::machine::filesystem_of;
use crate::output::{Common, Header, note};
use crate::peer::{self, PeerError};
use crate::process::guard;

use accounts::Accounts;
pub use accounts::Format;
use files::made;
pub use plan::Part;
use plan::Plan;
use results::{Results, at};
use sftp::Sftp;
use sshd::Sshd;
use system::{LOCAL, Local, System};

/// Measures a file system on mail accounts.
#[derive(Debug, Clone, Args)]
pub struct FsArgs {
    /// Arguments of all benchmarks.
    #[command(flatten)]
    pub common: Common,
    /// Measure only these rows, separated by commas.
    #[arg(long, value_enum, value_name = "ROW", value_delimiter = ',')]
    pub only: Vec<Part>,
    /// Measure only these file systems, separated by commas: vere, ext4, sshfs, "rclone writes", "rclone full".
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub system: Vec<String>,
    /// Measure at these round trips, separated by commas.
    #[arg(long, value_name = "MILLISECONDS", value_delimiter = ',')]
    pub round_trip: Vec<u64>,
    /// Format of mailboxes of Dovecot.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "mdbox")]
    pub format: Format,
    /// Have vere send mails in base64, as to servers that change 8-bit mails.
    #[arg(long)]
    pub base64: bool,
}

/// The servers behind all mounts.
struct Site {
    vere: PathBuf,
    base: PathBuf,
    accounts: Option<Accounts>,
    sshd: Option<Sshd>,
    /// The words of `--system`; all without words.
    wanted: Vec<String>,
    /// Whether mails are in base64.
    base64: bool,
}

impl Site {
    /// Starts the server of SFTP, where a row needs one.
    fn start(
        vere: PathBuf,
        base: PathBuf,
        args: &FsArgs,
        plan: &Plan,
        results: &mut Results,
    ) -> Self {
        let header = &mut results.header;
        let is_needed = plan.has_mounts();
        let sshd = is_needed.then(|| peer::or_skipped(sshd::SSHD, Sshd::start(&base), header));
        Self {
            vere,
            accounts: None,
            sshd: sshd.flatten(),
            base,
            wanted: args.system.clone(),
            base64: args.base64,
        }
    }

    /// Starts Dovecot with empty accounts: mdbox frees no room when mails are removed.
    fn begin(&mut self, plan: &Plan, results: &mut Results) {
        self.accounts = None;
        if !plan.has_mounts() && !plan.has(Part::Imap) {
            return;
        }
        match Accounts::start(plan.format, &self.base) {
            Ok(accounts) => {
                results.option(accounts.options.clone());
                self.accounts = Some(accounts);
            }
            Err(error) => results.skip(error.to_string()),
        }
    }
}

/// Runs the benchmark, prints its table, and writes the requested files.
///
/// A system that does not start is skipped, with its reason on standard error and in the results.
///
/// # Errors
///
/// [`BenchError`] when a part of the benchmark itself fails, or a signal ended it. Figures beyond their bars are not an
/// error.
pub fn run(args: &FsArgs) -> Result<(), BenchError> {
    guard::stop_on_signals();
    let quick = args.common.quick;
    let base = args.common.base();
    let plan = Plan {
        base64: args.base64,
        ..Plan::new(quick, &args.only, &args.round_trip, args.format)
    };
    let mut results = Results {
        header: Header::new("fs", quick, &base),
        figures: Figures::default(),
        options: Vec::new(),
        troubles: Vec::new(),
    };
    let vere = peer::program(args.common.vere.as_deref())?;
    let mut site = Site::start(vere, base, args, &plan, &mut results);
    let measured = plan.round_trips.iter().try_for_each(|round_trip| {
        site.begin(&plan, &mut results);
        at_distance(&plan, *round_trip, &site, &mut results)
    });
    if let Err(error) = &measured {
        // The figures so far count: a whole run takes an hour and more.
        results.header.skip(format!("the rest: {error}"));
    }
    results.header.end();
    args.common.publish(
        &report::table(&plan, &results),
        &report::json(&plan, &results),
        &report::page(&plan, &results),
    )?;
    measured
}

/// Measures all rows at a distance.
fn at_distance(
    plan: &Plan,
    round_trip: u64,
    site: &Site,
    results: &mut Results,
) -> Result<(), BenchError> {
    if plan.has(Part::Relay) {
        relay::measure(round_trip, results)?;
    }
    if let Some(accounts) = site.accounts.as_ref().filter(|_| plan.has(Part::Imap)) {
        let measured = bare::measure(plan, round_trip, accounts, results);
        within(format!("{round_trip} ms: bare IMAP"), measured, results)?;
    }
    if !plan.has_mounts() {
        return Ok(());
    }
    let mut systems = systems(round_trip, site, results);
    for part in &plan.parts {
        for round in 0..plan.rounds {
            for system in &mut systems {
                let turn = Turn {
                    part: *part,
                    round_trip,
                    round,
                    base: &site.base,
                };
                turn.measure(plan, &mut **system, results)?;
            }
        }
    }
    for system in &mut systems {
        mounts::memory(at(round_trip, mounts::MEMORY), &**system, results);
        if let Err(error) = system.unmount() {
            results.trouble(format!("{}: unmount: {error}", system.name()));
        }
    }
    Ok(())
}

/// A row of a round at a distance.
struct Turn<'a> {
    part: Part,
    round_trip: u64,
    round: usize,
    base: &'a Path,
}

impl Turn<'_> {
    /// Measures a file system.
    fn measure(
        &self,
        plan: &Plan,
        system: &mut dyn System,
        results: &mut Results,
    ) -> Result<(), BenchError> {
        let Self {
            part,
            round_trip,
            round,
            ..
        } = *self;
        let name = system.name();
        let is_absent = matches!(part, Part::Relay | Part::Imap);
        if is_absent || round > 0 && (part.is_once() || plan.is_quick && part.is_long()) {
            return Ok(());
        }
        note(&format!(
            "{round_trip} ms, round {}, {name}: {part:?}",
            round + 1
        ));
        let place = system.root().join(format!("{part:?}-{round}"));
        // A failed row may leave a system unmounted.
        let prepared = system.prepare(part);
        let mounted = prepared.and_then(|()| match system.is_mounted() {
            true => Ok(()),
            false => system.mount().map(drop),
        });
        let made = mounted.and_then(|()| made(&place));
        let measured = made.and_then(|()| self.work(plan, &place, system, results));
        let what = format!("{round_trip} ms: {name}: {part:?}");
        within(what.clone(), measured, results)?;
        within(what, system.clear(&place), results)
    }

    /// Measures a file system in a folder.
    fn work(
        &self,
        plan: &Plan,
        place: &Path,
        system: &mut dyn System,
        results: &mut Results,
    ) -> Result<(), BenchError> {
        let (round_trip, base) = (self.round_trip, self.base);
        match self.part {
            Part::Relay | Part::Imap => Ok(()),
            Part::Mount => mounts::measure(round_trip, system, results),
            Part::Files => files::measure(plan, round_trip, place, system, results),
            Part::Large => files::large(plan, round_trip, place, system, results),
            Part::Small => small::measure(plan, round_trip, place, system, results),
            Part::Postmark => postmark::measure(plan, round_trip, place, system, results),
            Part::Records => records::measure(plan, round_trip, place, system, results),
            Part::Office => office::measure(round_trip, place, system, results),
            Part::Sqlite => sqlite::measure(plan, round_trip, place, system, results),
            Part::Git => git::measure(plan, round_trip, place, base, system, results),
            Part::Known => mounts::known(plan, round_trip, place, system, results),
        }
    }
}

/// Turns a failure into a trouble of the results: the other systems are still measured.
fn within(
    what: String,
    measured: Result<(), BenchError>,
    results: &mut Results,
) -> Result<(), BenchError> {
    if guard::is_stopped() {
        return Err(BenchError::Stopped);
    }
    if let Err(error) = measured {
        results.trouble(format!("{what}: {error}"));
    }
    Ok(())
}

/// All file systems at a distance, mounted.
fn systems(round_trip: u64, site: &Site, results: &mut Results) -> Vec<Box<dyn System>> {
    let far = Duration::from_millis(round_trip);
    let is_wanted =
        |name: &str| site.wanted.is_empty() || site.wanted.iter().any(|word| word == name);
    let mut found: Vec<Box<dyn System>> = Vec::new();
    for name in [
        LOCAL,
        sftp::SSHFS,
        sftp::RCLONE_WRITES,
        sftp::RCLONE_FULL,
        peer::OURS,
    ] {
        if !is_wanted(name) {
            continue;
        }
        match system(name, far, site).and_then(|mut system| system.mount().map(|_| system)) {
            Ok(system) => {
                if name.starts_with("rclone") || name == sftp::SSHFS {
                    results.option(Sftp::options(name));
                }
                found.push(system);
            }
            Err(BenchError::Peer(error @ PeerError::Unavailable { .. })) => {
                results.skip(error.to_string());
            }
            Err(error) => results
                .header
                .skip(format!("{round_trip} ms: {name} skipped: {error}")),
        }
    }
    found
}

/// A file system at a distance, not mounted.
fn system(name: &'static str, far: Duration, site: &Site) -> Result<Box<dyn System>, BenchError> {
    let base: &Path = &site.base;
    let absent = |what| PeerError::unavailable(name, format!("{what} does not run"));
    if name == LOCAL {
        let kind = filesystem_of(base);
        if kind != LOCAL {
            let reason = format!(
                "{} lies on {kind} (--dir names another folder)",
                base.display()
            );
            return Err(PeerError::unavailable(name, reason).into());
        }
        return Ok(Box::new(Local::below(base)?));
    }
    if name == peer::OURS {
        let accounts = site.accounts.as_ref();
        let imap = accounts.ok_or_else(|| absent(accounts::DOVECOT))?.address;
        return Ok(Box::new(vere::Vere::new(
            &site.vere,
            imap,
            far,
            (base, site.base64),
        )?));
    }
    let sshd = site.sshd.as_ref().ok_or_else(|| absent(sshd::SSHD))?;
    Ok(Box::new(Sftp::new(name, sshd, far, base)?))
}
