//! How times grow with the number of messages of a mailbox: the mailbox grows step by step, and the same figures are
//! measured at each size, within the time.

use std::io;
use std::time::{Duration, Instant};

use super::deliver::{Lane, Protocol};
use super::fill::{self, MIB};
use super::imap::ImapError;
use super::mail::Mail;
use super::queries::{self, Question};
use super::run::tell;
use super::systems::{READER, System, address_of};
use super::tasks::{self, millis};
use super::usage;
use crate::error::BenchError;
use crate::output::{Header, note};

/// The sizes, in messages; the third is the size of all further figures.
pub(super) const SIZES: [usize; 6] = [1_000, 5_000, 21_000, 50_000, 100_000, 200_000];

/// Number of sizes with `--quick`.
pub(super) const QUICK_SIZES: usize = 3;

/// The mailbox of deliveries.
const MAILBOX: &str = "INBOX";

/// How often each question is asked at a size, beside the first time; less often where that takes longer.
const ROUNDS: usize = 5;
const ROUNDS_TIME: Duration = Duration::from_secs(10);

/// Messages that are added and delivered singly at each size.
const ADDED: usize = 50;

/// A system with less processor time than this has finished its background work.
const QUIET_CPU: Duration = Duration::from_millis(10);
const QUIET_TIME: Duration = Duration::from_millis(500);
/// Longest wait for the end of background work, which may never end.
const QUIET_MAX: Duration = Duration::from_secs(60);

/// No size is begun with an expected end after the limit, by the times of the sizes before.
const BUDGET: Duration = Duration::from_secs(570);

/// A figure that grows.
#[derive(Debug)]
pub(super) struct Grown {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    /// Bound of growth: the exponent of the number of messages.
    pub(super) exponent_max: f64,
}

/// A figure in proportion to the mailbox. Linear is 1; figures of one run differ by 0.05, an eighth more time at ten
/// times the messages.
const fn linear(name: &'static str, unit: &'static str) -> Grown {
    Grown {
        name,
        unit,
        exponent_max: 1.05,
    }
}

/// The cost of one message, independent of the size of the mailbox: the time of a sync differs by half from minute to
/// minute, which is 0.2 at ten times the messages.
const fn constant(name: &'static str, unit: &'static str) -> Grown {
    Grown {
        name,
        unit,
        exponent_max: 0.2,
    }
}

/// All growing figures.
pub(super) const GROWING: [Grown; 9] = [
    linear("list", "ms"),
    linear("four fields", "ms"),
    linear("TEXT 0.1 %", "ms"),
    linear("FROM", "ms"),
    constant("APPEND", "ms"),
    constant("delivery", "ms"),
    linear("filled", "s"),
    linear("disk", "MiB"),
    linear("index", "MiB"),
];

/// One figure at one size.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    pub(super) system: &'static str,
    pub(super) name: &'static str,
    /// Number of messages of the mailbox.
    pub(super) messages: u64,
    pub(super) value: f64,
}

/// All mailboxes to fill, in turns.
#[derive(Debug)]
pub(super) struct Growing<'a> {
    header: &'a mut Header,
    all: Vec<Growth<'a>>,
    pub(super) points: Vec<Point>,
}

impl<'a> Growing<'a> {
    /// The growth of empty systems, with `mail` to fill the systems with.
    pub(super) fn of(header: &'a mut Header, systems: &'a [System], mail: &'a Mail) -> Self {
        let all = systems.iter().map(|system| Growth::of(system, mail));
        Self {
            header,
            all: all.collect(),
            points: Vec::new(),
        }
    }

    /// Goes through the sizes, in their order.
    ///
    /// # Errors
    /// When a system does not answer as expected; earlier results are kept.
    pub(super) fn through(&mut self, sizes: &[usize]) -> Result<(), BenchError> {
        let started = Instant::now();
        let mut before = 0;
        for (place, size) in sizes.iter().copied().enumerate() {
            let pace = |to: usize| match before {
                0 => Duration::ZERO,
                before => started
                    .elapsed()
                    .mul_f64((to - before) as f64 / before as f64),
            };
            if self.header.began.elapsed() + pace(size) > BUDGET {
                let left_out = &sizes[place..];
                self.header
                    .skip(format!("sizes {left_out:?}, for which there is no time"));
                break;
            }
            let left = sizes.last().map_or(Duration::ZERO, |last| pace(*last));
            self.to(size, left)?;
            before = size;
        }
        Ok(())
    }

    fn to(&mut self, size: usize, left: Duration) -> Result<(), BenchError> {
        for one in &mut self.all {
            let system = one.system.name;
            tell(
                self.header.began.elapsed(),
                left,
                system,
                &format!("{size} messages"),
            );
            let grown = one.grow(size);
            let grown = grown.map_err(|source| BenchError::of(system)(source))?;
            note(&format!(
                "        {size} messages: filled in {:.1} s, at rest {:.1} s later, measured in {:.1} s",
                grown.filled.as_secs_f64(),
                grown.rested.as_secs_f64(),
                grown.measured.as_secs_f64()
            ));
            if grown.rested >= QUIET_MAX {
                self.header.skipped.push(format!(
                    "{system}: rest with {size} messages, which did not come within {QUIET_MAX:?}"
                ));
            }
            self.points.extend(grown.points);
        }
        Ok(())
    }
}

/// A size of a system, with the times of its steps.
#[derive(Debug)]
struct Step {
    points: Vec<Point>,
    filled: Duration,
    rested: Duration,
    measured: Duration,
}

/// A mailbox under growth.
#[derive(Debug)]
struct Growth<'a> {
    system: &'a System,
    mail: &'a Mail,
    questions: Vec<Question>,
    /// Messages of the mail in the mailbox so far, and the time of filling.
    filled: usize,
    took: Duration,
}

impl<'a> Growth<'a> {
    fn of(system: &'a System, mail: &'a Mail) -> Self {
        let mut questions = queries::questions(mail);
        questions.retain(|question| GROWING.iter().any(|one| one.name == question.task));
        Self {
            system,
            mail,
            questions,
            filled: 0,
            took: Duration::ZERO,
        }
    }

    /// Fills the mailbox up to a size and takes all figures of that size, one figure for each round.
    fn grow(&mut self, size: usize) -> Result<Step, ImapError> {
        let more = self.mail.messages.get(self.filled..size);
        let started = Instant::now();
        fill::extend(
            self.system,
            READER,
            MAILBOX,
            self.filled,
            more.unwrap_or_default(),
        )?;
        let filled = started.elapsed();
        self.took += filled;
        self.filled = size;
        settle(self.system);
        let rested = started.elapsed() - filled;
        let points = self.measure()?;
        let measured = started.elapsed() - filled - rested;
        Ok(Step {
            points,
            filled,
            rested,
            measured,
        })
    }

    fn measure(&self) -> Result<Vec<Point>, ImapError> {
        let system = self.system;
        let mut imap = system.login()?;
        let messages = imap.ok(&format!("EXAMINE {MAILBOX}"))?.exists;
        let mut points = Vec::new();
        let mut add = |name, value| {
            points.push(Point {
                system: system.name,
                name,
                messages,
                value,
            });
        };
        add("filled", self.took.as_secs_f64());
        add("disk", system.disk()? as f64 / MIB);
        if let Some(octets) = system.index_disk()? {
            add("index", octets as f64 / MIB);
        }
        // Caches are full afterwards.
        tasks::ask(system, &mut imap, &self.questions)?;
        let started = Instant::now();
        for round in 0..ROUNDS {
            if round > 0 && started.elapsed() > ROUNDS_TIME {
                break;
            }
            for (figure, _) in tasks::ask(system, &mut imap, &self.questions)? {
                add(figure.task, figure.value);
            }
        }
        let added = self.mail.messages.iter().cycle().take(ADDED);
        for message in added.clone() {
            let reply = imap.append(MAILBOX, message)?;
            add("APPEND", millis(reply.took));
        }
        let to = [address_of(READER)];
        let mut lane = Lane::connect(system.lmtp, Protocol::Lmtp)?;
        for message in added {
            let started = Instant::now();
            lane.deliver(&to, message)?;
            add("delivery", millis(started.elapsed()));
        }
        Ok(points)
    }
}

/// Waits until a system has finished its background work.
fn settle(system: &System) {
    let quiet = |before: Duration, now: Duration| now.saturating_sub(before) < QUIET_CPU;
    usage::at_rest(QUIET_TIME, QUIET_MAX, || system.cpu(), quiet);
}

/// Fails where a system cannot be filled step by step.
pub(super) fn check(system: &System) -> io::Result<()> {
    match system.files() {
        None => Ok(()),
        Some(_) => Err(io::Error::other(
            "it is filled with files at once, not step by step",
        )),
    }
}
