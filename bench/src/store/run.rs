//! The measurement of mailboxes of one size, in its order; systems take turns.
//!
//! Each part has a time, shared by all systems: a further round begins only if the round will end in time. So a run
//! ends, however slow a system is, and the report names figures with fewer rounds.

use std::path::Path;
use std::time::{Duration, Instant};

use super::forecast::Forecast;
use super::imap::ImapError;
use super::mail::Mail;
use super::offices::Office;
use super::plan::{Part, Plan};
use super::queries;
use super::report::{Answer, Figure, PART, Report};
use super::systems::{System, XAPIAN};
use super::{ask, deliver, fill, memory, offices, tasks};
use crate::error::BenchError;
use crate::output::{Header, note};
use crate::peer::OURS;
use crate::process::guard;

/// The number of systems behind the usual times of parts, with and without `--quick`.
const USUAL_SYSTEMS: (f64, f64) = (3.0, 6.0);

/// Takes figures of systems in turn, and reports the part under way.
pub(super) struct Run<'a> {
    pub(super) plan: &'a Plan,
    pub(super) header: Header,
    forecast: Forecast,
    /// All started systems, including abandoned systems and the systems of the delivery comparison.
    names: Vec<&'static str>,
    pub(super) systems: Vec<System>,
    pub(super) figures: Vec<Figure>,
    pub(super) answers: Vec<Answer>,
}

impl<'a> Run<'a> {
    /// A run with these systems.
    pub(super) fn of(plan: &'a Plan, header: Header, systems: Vec<System>) -> Self {
        let (quickly, fully) = USUAL_SYSTEMS;
        let usual = if header.quick { quickly } else { fully };
        let scale = systems.len() as f64 / usual;
        Self {
            names: systems.iter().map(|system| system.name).collect(),
            plan,
            header,
            forecast: Forecast::of(plan.parts, scale, |part| wanted(plan, part)),
            systems,
            figures: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Runs the whole measurement; results before a failure or a signal are reported as well.
    pub(super) fn whole(mut self, mail: &Mail, base: &Path) -> (Report, Result<(), BenchError>) {
        let end = self.parts(mail, base);
        let end = ended(end, &mut self.header);
        let few = self.systems.iter().any(|system| system.is_partial);
        let report = Report {
            header: self.header,
            messages: mail.messages.len(),
            few: few.then_some(self.plan.few),
            octets: mail.octets(),
            systems: self.names,
            figures: self.figures,
            answers: self.answers,
            complete: end.is_ok(),
        };
        (report, end)
    }

    fn parts(&mut self, mail: &Mail, base: &Path) -> Result<(), BenchError> {
        let plan = self.plan;
        fill_all(mail, self)?;
        let all = queries::questions(mail);
        if wanted(plan, Part::Select) {
            self.rounds(Part::Select, |run| {
                let select = |system: &mut System| Ok(vec![tasks::first_select(system)?]);
                run.each_whole("first SELECT", select)
            })?;
        }
        if wanted(plan, Part::Clients) {
            self.rounds(Part::Clients, |run| {
                run.each_whole("clients", |system| {
                    tasks::clients(system, &all, plan.clients)
                })
            })?;
        }
        if plan.cold && !nix::unistd::geteuid().is_root() {
            let reason = "cold figures: only root may tell the kernel to let go of files";
            self.header.skip(reason.to_owned());
        } else if plan.cold {
            self.rounds(Part::Cold, |run| {
                run.each_whole("cold", |system| tasks::cold(system, &all))
            })?;
        }
        ask::ask(all, queries::small_questions(mail), self)?;
        change(mail, self, base)
    }

    /// Calls `round` repeatedly, within the time of the part.
    pub(super) fn rounds<F>(&mut self, part: Part, mut round: F) -> Result<(), BenchError>
    where
        F: FnMut(&mut Self) -> Result<(), BenchError>,
    {
        self.forecast.enter(part);
        let share = self.plan.share(part);
        let began = Instant::now();
        let mut last = Duration::ZERO;
        for number in 0..share.rounds {
            let late = self.header.began.elapsed() + last > self.plan.budget;
            if number > 0 && (late || began.elapsed() + last > share.budget) {
                self.header.skip(format!(
                    "{part:?}: rounds after the first {number} of {}, for which there is no time",
                    share.rounds
                ));
                break;
            }
            let started = Instant::now();
            round(self)?;
            last = started.elapsed();
        }
        Ok(())
    }

    /// Whether another round would begin too late.
    pub(super) fn is_late(&self) -> bool {
        self.header.began.elapsed() > self.plan.budget
    }

    /// Reports the part under way.
    pub(super) fn enter(&mut self, part: Part) {
        self.forecast.enter(part);
    }

    /// Measures systems in turn. A peer with an unexpected answer is abandoned.
    ///
    /// # Errors
    /// When ours does not, or a signal came.
    pub(super) fn each<F>(&mut self, what: &str, mut measure: F) -> Result<(), BenchError>
    where
        F: FnMut(&mut System) -> Result<Vec<Figure>, ImapError>,
    {
        let mut given_up = Vec::new();
        for system in &mut self.systems {
            if guard::is_stopped() {
                return Err(BenchError::Stopped);
            }
            let (so_far, left) = (self.header.began.elapsed(), self.forecast.left());
            tell(so_far, left, system.name, what);
            match measure(system) {
                Ok(figures) => self.figures.extend(figures),
                Err(_) if guard::is_stopped() => return Err(BenchError::Stopped),
                Err(source) if system.name != OURS => given_up.push((system.name, source)),
                Err(source) => return Err(BenchError::of(OURS)(source)),
            }
        }
        for (name, source) in given_up {
            self.systems.retain(|system| system.name != name);
            self.header
                .skip(format!("{name} given up at {what}: {source}"));
        }
        Ok(())
    }

    /// Measures the systems with all of the mail.
    fn each_whole<F>(&mut self, what: &str, mut measure: F) -> Result<(), BenchError>
    where
        F: FnMut(&mut System) -> Result<Vec<Figure>, ImapError>,
    {
        self.each(what, |system| match system.is_partial {
            true => Ok(Vec::new()),
            false => measure(system),
        })
    }
}

/// The end of a measurement, which a signal may have cut short: then the results are marked as incomplete.
pub(super) fn ended(end: Result<(), BenchError>, header: &mut Header) -> Result<(), BenchError> {
    let end = match guard::is_stopped() {
        true => Err(BenchError::Stopped),
        false => end,
    };
    if let Err(error) = &end {
        header.skip(format!(
            "INCOMPLETE, everything that would come behind: {error}"
        ));
    }
    header.end();
    end
}

/// Whether a part has anything to do.
fn wanted(plan: &Plan, part: Part) -> bool {
    match part {
        Part::Fill | Part::Read => true,
        Part::Select => plan.wants(&["first SELECT"]),
        Part::Clients => plan.wants(&["10 clients"]),
        Part::Cold => plan.cold,
        Part::Change => plan.wants(&["expunge", "APPEND", "IDLE", "delivered"]),
        Part::Offices => plan.wants(&["delivery", "written"]),
        Part::Memory => plan.wants(&["memory"]),
    }
}

/// Prints the next task, its time, and the remaining time.
pub(super) fn tell(so_far: Duration, left: Duration, system: &str, what: &str) {
    let (so_far, left) = (so_far.as_secs(), left.as_secs());
    note(&format!(
        "{so_far:>4} s, some {left:>4} s to come  {system}: {what}"
    ));
}

/// Fills all systems: slow systems with the first messages only, and for each slow system our store once more with as
/// many messages, for the comparison.
fn fill_all(mail: &Mail, run: &mut Run<'_>) -> Result<(), BenchError> {
    let plan = run.plan;
    run.enter(Part::Fill);
    let fewer = plan.few < mail.messages.len();
    let mut few = false;
    for system in &mut run.systems {
        system.is_partial = fewer && system.name == XAPIAN;
        few |= system.is_partial;
    }
    run.each("fill", |system| {
        fill::fill(system, mail, plan.small, plan.few)
    })?;
    if !few || !run.systems.iter().any(|system| system.is_partial) {
        return Ok(());
    }
    run.header.skip(format!(
        "{XAPIAN} with more than the first {} messages, which it takes too long to index: its searches stand \
         beside those of {PART}, which has as many",
        plan.few
    ));
    if let Some(place) = run.names.iter().position(|name| *name == XAPIAN) {
        run.names.insert(place, PART);
    }
    run.each("fill again, with fewer", |system| match system.name {
        OURS => fill::fill_part(system, mail, plan.few),
        _ => Ok(Vec::new()),
    })
}

fn change(mail: &Mail, run: &mut Run<'_>, base: &Path) -> Result<(), BenchError> {
    let plan = run.plan;
    // Cyrus refuses malformed messages of APPEND and of deliveries.
    let mail = mail.well_formed();
    if wanted(plan, Part::Change) {
        run.rounds(Part::Change, |run| change_once(&mail, run))?;
    }
    if wanted(plan, Part::Offices) {
        deliver_beside_postfix(&mail, run, base)?;
    }
    if wanted(plan, Part::Memory) {
        run.enter(Part::Memory);
        let idlers = memory::possible(plan.idlers);
        if idlers < plan.idlers {
            let wanted = plan.idlers;
            run.header.skip(format!(
                "{wanted} connections: the limit of open files leaves room for {idlers}"
            ));
        }
        run.each("memory", |system| match system.name {
            OURS => memory::memory(system, idlers),
            // Such a system has a process for each connection: a machine lacks memory for thousands.
            _ => Ok(Vec::new()),
        })?;
    }
    Ok(())
}

fn change_once(mail: &[Vec<u8>], run: &mut Run<'_>) -> Result<(), BenchError> {
    let plan = run.plan;
    if plan.wants(&["expunge"]) {
        run.each_whole("expunge", |system| tasks::expunge(system))?;
    }
    if plan.wants(&["APPEND"]) {
        run.each_whole("append", |system| match system.habits.syncs {
            true => tasks::append(system, mail, plan.appends),
            false => Ok(Vec::new()),
        })?;
    }
    if plan.wants(&["IDLE"]) {
        run.each_whole("idle", |system| match system.habits.syncs {
            true => tasks::idle(system, plan.notices),
            false => Ok(Vec::new()),
        })?;
    }
    if plan.wants(&["delivered"]) {
        run.each_whole("deliver", |system| match system.habits.delivers {
            true => deliver::deliver(system, mail, plan.deliveries),
            false => Ok(Vec::new()),
        })?;
    }
    Ok(())
}

/// Deliveries beside Postfix, which has no further part.
fn deliver_beside_postfix(
    mail: &[Vec<u8>],
    run: &mut Run<'_>,
    base: &Path,
) -> Result<(), BenchError> {
    let mut offices = Office::all(base, &mut run.header)?;
    let messages = &mail[..run.plan.spread.min(mail.len())];
    run.names.extend(offices.iter().map(Office::name));
    run.rounds(Part::Offices, |run| {
        run.each("delivery", |system| match system.name {
            OURS => offices::deliver_ours(system, messages),
            _ => Ok(Vec::new()),
        })?;
        for office in &mut offices {
            let system = office.name();
            tell(
                run.header.began.elapsed(),
                run.forecast.left(),
                system,
                "delivery",
            );
            let delivered = office.deliver(messages);
            let delivered = delivered.map_err(|source| BenchError::of(system)(source))?;
            run.figures.extend(delivered);
        }
        Ok(())
    })
}
