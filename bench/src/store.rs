//! `vere bench store`: a mailbox of real mail read, searched, filled and emptied over IMAP, beside
//! Dovecot with mdbox and with Maildir, Cyrus without and with an index of words, and Courier.
//!
//! The systems run side by side and take turns, A B A B; every figure is the median of the rounds.
//! One client loop speaks to all of them, and what they answer is counted and compared.

mod deliver;
mod fill;
mod html;
mod imap;
mod linker;
mod mail;
mod memory;
mod offices;
mod queries;
mod report;
mod systems;
mod table;
mod tasks;
pub(crate) mod usage;

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};

pub use imap::ImapError;
pub use systems::SystemName;

use crate::machine::Machine;
use crate::peer::PeerError;
use mail::Mail;
use offices::Office;
use report::{Answer, Figure, OURS, Report};
use systems::System;

/// Measures the mail store over IMAP and LMTP, beside Dovecot, Cyrus and Courier.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// The mail: an mbox (mboxrd, lines ended by LF), compressed by zstd where its name ends in `.zst`.
    #[arg(long, value_name = "FILE")]
    pub mail: PathBuf,
    /// Stay near one minute: 2,000 messages, fewer rounds.
    #[arg(long)]
    pub quick: bool,
    /// So many messages; beyond those of the file copies that differ in words, ids and dates.
    #[arg(long, value_name = "COUNT")]
    pub messages: Option<usize>,
    /// Only these systems, separated by commas.
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    pub system: Vec<SystemName>,
    /// Only tasks whose names begin so; for a profile.
    #[arg(long, value_name = "TASK")]
    pub only: Option<String>,
    /// Write the figures as JSON to this file, "-" for standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the figures as a page to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The program to measure; this one by default.
    #[arg(long, value_name = "PATH")]
    pub vere: Option<PathBuf>,
    /// Keep mail below this folder: its file system decides what a sync costs.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Why the benchmark could not run to its end.
#[derive(Debug)]
pub enum StoreBenchError {
    /// The mail cannot be read.
    Mail {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A system could not be started though it is there.
    Peer(PeerError),
    /// A system did not answer as it should.
    Dialogue {
        /// The system.
        system: &'static str,
        /// What happened.
        source: ImapError,
    },
    /// A result cannot be written.
    Write {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl fmt::Display for StoreBenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mail { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Self::Peer(source) => source.fmt(f),
            Self::Dialogue { system, source } => write!(f, "{system}: {source}"),
            Self::Write { path, source } => write!(f, "cannot write {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for StoreBenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Peer(source) => Some(source),
            Self::Dialogue { source, .. } => Some(source),
            Self::Mail { source, .. } | Self::Write { source, .. } => Some(source),
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone)]
struct Plan {
    messages: usize,
    /// Messages of the small account.
    small: usize,
    rounds: usize,
    starts: usize,
    appends: usize,
    notices: usize,
    deliveries: usize,
    /// Messages that are delivered to fifteen mailboxes beside Postfix.
    spread: usize,
    /// Whether files are read from the disk, which makes the whole machine read them again.
    cold: bool,
    /// Connections that idle; only ours is asked for so many.
    idlers: usize,
    only: String,
}

impl Plan {
    fn of(args: &StoreArgs) -> Self {
        let plan = match args.quick {
            true => Self {
                messages: 2_000,
                small: 100,
                rounds: 2,
                starts: 1,
                appends: 100,
                notices: 5,
                deliveries: 50,
                spread: 20,
                cold: false,
                idlers: 200,
                only: String::new(),
            },
            false => Self {
                messages: 21_000,
                small: 1_000,
                rounds: 5,
                starts: 3,
                appends: 1_000,
                notices: 20,
                deliveries: 500,
                spread: 200,
                cold: true,
                idlers: 10_000,
                only: String::new(),
            },
        };
        Self {
            messages: args.messages.unwrap_or(plan.messages),
            cold: match &args.only {
                Some(only) => "cold".starts_with(&**only),
                None => plan.cold,
            },
            only: args.only.clone().unwrap_or_default(),
            ..plan
        }
    }

    /// Whether one of these tasks is wanted.
    fn wants(&self, tasks: &[&str]) -> bool {
        tasks.iter().any(|task| task.starts_with(&self.only))
    }
}

/// Runs the benchmark, prints its table, and writes the files asked for.
///
/// A peer that is not installed is skipped, said on standard error and in the results.
///
/// # Errors
///
/// [`StoreBenchError`] when a part of the benchmark itself fails. Figures that miss their bars are
/// not an error.
pub fn run(args: &StoreArgs) -> Result<(), StoreBenchError> {
    let plan = Plan::of(args);
    let base = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let vere = match &args.vere {
        Some(path) => path.clone(),
        None => std::env::current_exe().unwrap_or_default(),
    };
    let mail = Mail::read(&args.mail, plan.messages).map_err(|source| StoreBenchError::Mail {
        path: args.mail.clone(),
        source,
    })?;
    let mut wanted = args.system.clone();
    if wanted.is_empty() {
        wanted = SystemName::value_variants().to_vec();
    }
    let began = Instant::now();
    let (systems, skipped) = start(&wanted, &vere, &base)?;
    let run = Run {
        began,
        systems,
        figures: Vec::new(),
        answers: Vec::new(),
        skipped,
        offices: Vec::new(),
    };
    let report = measure_all(&plan, &mail, run, args.quick, &base)?;
    let to_stdout = args.json.as_deref() == Some(Path::new("-"));
    if !to_stdout {
        write(Path::new("-"), &report.table())?;
    }
    if let Some(path) = &args.json {
        write(path, &format!("{:#}\n", report.json()))?;
    }
    if let Some(path) = &args.html {
        write(path, &report.page())?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), StoreBenchError> {
    let written = if path == Path::new("-") {
        io::stdout().lock().write_all(text.as_bytes())
    } else {
        std::fs::write(path, text)
    };
    written.map_err(|source| StoreBenchError::Write {
        path: path.to_owned(),
        source,
    })
}

/// The systems that could be started, and why others could not.
fn start(
    wanted: &[SystemName],
    vere: &Path,
    base: &Path,
) -> Result<(Vec<System>, Vec<String>), StoreBenchError> {
    let (mut systems, mut skipped) = (Vec::new(), Vec::new());
    for name in wanted {
        match System::start(*name, vere, base) {
            Ok(system) => systems.push(system),
            Err(error @ (PeerError::Unavailable { .. } | PeerError::NotReady { .. })) => {
                note(&error.to_string());
                skipped.push(error.to_string());
            }
            Err(error) => return Err(StoreBenchError::Peer(error)),
        }
    }
    Ok((systems, skipped))
}

/// Takes figures of systems in turn, and says which part runs.
struct Run {
    began: Instant,
    systems: Vec<System>,
    figures: Vec<Figure>,
    answers: Vec<Answer>,
    skipped: Vec<String>,
    /// Systems that only deliveries are compared with.
    offices: Vec<&'static str>,
}

impl Run {
    fn each<F>(&mut self, what: &str, mut measure: F) -> Result<(), StoreBenchError>
    where
        F: FnMut(&mut System) -> Result<Vec<Figure>, ImapError>,
    {
        for system in &mut self.systems {
            tell(self.began, system.name, what);
            let figures = measure(system).map_err(|source| StoreBenchError::Dialogue {
                system: system.name,
                source,
            })?;
            self.figures.extend(figures);
        }
        Ok(())
    }
}

fn measure_all(
    plan: &Plan,
    mail: &Mail,
    mut run: Run,
    quick: bool,
    base: &Path,
) -> Result<Report, StoreBenchError> {
    let machine = Machine::describe(base);
    run.each("fill", |system| fill::fill(system, mail, plan.small))?;
    read(plan, mail, &mut run)?;
    change(plan, mail, &mut run, base)?;
    Ok(Report {
        machine,
        quick,
        seconds: run.began.elapsed().as_secs_f64(),
        messages: mail.messages.len(),
        octets: mail.octets(),
        systems: run
            .systems
            .iter()
            .map(|system| system.name)
            .chain(run.offices)
            .collect(),
        figures: run.figures,
        answers: run.answers,
        skipped: run.skipped,
    })
}

fn read(plan: &Plan, mail: &Mail, run: &mut Run) -> Result<(), StoreBenchError> {
    let all = queries::questions(mail);
    let mut questions = all.clone();
    questions.retain(|question| plan.wants(&[question.task]));
    let mut small = queries::small_questions(mail);
    small.retain(|question| plan.wants(&[question.task]));
    for _ in 0..plan.starts {
        if plan.wants(&["first SELECT"]) {
            let select = |system: &mut System| Ok(vec![tasks::first_select(system)?]);
            run.each("first SELECT", select)?;
        }
    }
    if plan.wants(&["10 clients"]) {
        for _ in 0..plan.starts {
            run.each("clients", |system| tasks::clients(system, &all))?;
        }
    }
    if plan.cold && !nix::unistd::geteuid().is_root() {
        let reason = "cold figures: only root may tell the kernel to let go of files";
        run.skipped.push(reason.to_owned());
    } else if plan.cold {
        for _ in 0..plan.starts {
            run.each("cold", |system| tasks::cold(system, &all))?;
        }
    }
    if questions.is_empty() && small.is_empty() {
        return Ok(());
    }
    // Whoever keeps what was asked for has it afterwards.
    let mut answers = Vec::new();
    run.each("first read", |system| {
        let answered = tasks::read(system, &questions)?;
        answers.extend(tasks::answers(system, &answered));
        tasks::read_small(system, &small).map(|_| Vec::new())
    })?;
    run.answers = answers;
    for _ in 0..plan.rounds {
        run.each("read", |system| {
            let answered = tasks::read(system, &questions)?;
            let mut figures: Vec<Figure> = answered.into_iter().map(|(figure, _)| figure).collect();
            let cpu = figures.iter().filter_map(|figure| figure.cpu).sum();
            figures.push(tasks::figure(system, "all questions, CPU", cpu));
            let memory = usage::memory(&system.processes()) as f64 / 1024.0;
            figures.push(tasks::figure(system, "memory after them", memory));
            figures.extend(tasks::read_small(system, &small)?);
            Ok(figures)
        })?;
    }
    Ok(())
}

fn change(plan: &Plan, mail: &Mail, run: &mut Run, base: &Path) -> Result<(), StoreBenchError> {
    // Cyrus refuses others when they are added or delivered.
    let mail = mail.well_formed();
    for _ in 0..plan.rounds.min(3) {
        if plan.wants(&["expunge"]) {
            run.each("expunge", |system| tasks::expunge(system))?;
        }
        if plan.wants(&["APPEND"]) {
            run.each("append", |system| match system.syncs() {
                true => tasks::append(system, &mail, plan.appends),
                false => Ok(Vec::new()),
            })?;
        }
        if plan.wants(&["IDLE"]) {
            run.each("idle", |system| match system.syncs() {
                true => tasks::idle(system, plan.notices),
                false => Ok(Vec::new()),
            })?;
        }
        if plan.wants(&["delivered"]) {
            run.each("deliver", |system| match system.delivers() {
                true => deliver::deliver(system, &mail, plan.deliveries),
                false => Ok(Vec::new()),
            })?;
        }
    }
    if plan.wants(&["delivery", "written"]) {
        offices(plan, &mail, run, base)?;
    }
    if plan.wants(&["memory"]) {
        run.each("memory", |system| match system.name {
            OURS => memory::memory(system, plan.idlers),
            // A process for each connection: thousands of them are more than a machine has room for.
            _ => Ok(Vec::new()),
        })?;
    }
    Ok(())
}

/// Deliveries beside Postfix, whose part ends here.
fn offices(
    plan: &Plan,
    mail: &[Vec<u8>],
    run: &mut Run,
    base: &Path,
) -> Result<(), StoreBenchError> {
    let (mut offices, missing) = Office::all(base).map_err(StoreBenchError::Peer)?;
    run.skipped.extend(missing.iter().map(PeerError::to_string));
    let messages = &mail[..plan.spread.min(mail.len())];
    for _ in 0..plan.rounds.min(3) {
        run.each("delivery", |system| match system.name {
            OURS => offices::deliver_ours(system, messages),
            _ => Ok(Vec::new()),
        })?;
        for office in &mut offices {
            let system = office.name();
            tell(run.began, system, "delivery");
            let delivered = office.deliver(messages);
            let delivered =
                delivered.map_err(|source| StoreBenchError::Dialogue { system, source })?;
            run.figures.extend(delivered);
        }
    }
    run.offices = offices.iter().map(Office::name).collect();
    Ok(())
}

fn tell(began: Instant, system: &str, what: &str) {
    let seconds = began.elapsed().as_secs();
    note(&format!("{seconds:>4} s  {system}: {what}"));
}

/// Tells whoever watches; the results themselves go elsewhere.
fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
