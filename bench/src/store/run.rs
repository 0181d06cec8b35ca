//! Everything that is measured of mailboxes of one size, in its order; systems take turns.

use std::path::Path;
use std::time::Instant;

use super::imap::ImapError;
use super::mail::Mail;
use super::offices::Office;
use super::plan::Plan;
use super::queries::{self, Question};
use super::report::{Answer, Figure, OURS, Report};
use super::systems::System;
use super::{StoreBenchError, deliver, fill, memory, offices, tasks, tell, usage};
use crate::machine::Machine;
use crate::output::note;
use crate::peer::PeerError;

/// Takes figures of systems in turn, and says which part runs.
pub(super) struct Run {
    began: Instant,
    /// All that were started, those given up as well, and those that only deliveries are compared with.
    names: Vec<&'static str>,
    systems: Vec<System>,
    figures: Vec<Figure>,
    answers: Vec<Answer>,
    skipped: Vec<String>,
}

impl Run {
    pub(super) fn of(began: Instant, systems: Vec<System>, skipped: Vec<String>) -> Self {
        Self {
            names: systems.iter().map(|system| system.name).collect(),
            began,
            systems,
            figures: Vec::new(),
            answers: Vec::new(),
            skipped,
        }
    }

    /// Measures everything.
    ///
    /// # Errors
    /// When ours does not answer as it should; a peer that does not is given up.
    pub(super) fn whole(
        mut self,
        plan: &Plan,
        mail: &Mail,
        quick: bool,
        base: &Path,
    ) -> Result<Report, StoreBenchError> {
        let machine = Machine::describe(base);
        self.each("fill", |system| fill::fill(system, mail, plan.small))?;
        read(plan, mail, &mut self)?;
        change(plan, mail, &mut self, base)?;
        Ok(Report {
            machine,
            quick,
            seconds: self.began.elapsed().as_secs_f64(),
            messages: mail.messages.len(),
            octets: mail.octets(),
            systems: self.names,
            figures: self.figures,
            answers: self.answers,
            skipped: self.skipped,
        })
    }

    fn each<F>(&mut self, what: &str, mut measure: F) -> Result<(), StoreBenchError>
    where
        F: FnMut(&mut System) -> Result<Vec<Figure>, ImapError>,
    {
        let mut given_up = Vec::new();
        for system in &mut self.systems {
            tell(self.began, system.name, what);
            match measure(system) {
                Ok(figures) => self.figures.extend(figures),
                Err(source) if system.name != OURS => given_up.push((system.name, source)),
                Err(source) => {
                    return Err(StoreBenchError::Dialogue {
                        system: OURS,
                        source,
                    });
                }
            }
        }
        for (name, source) in given_up {
            self.systems.retain(|system| system.name != name);
            self.skip(format!("{name} given up at {what}: {source}"));
        }
        Ok(())
    }

    fn skip(&mut self, why: String) {
        note(&why);
        self.skipped.push(why);
    }

    /// Whether another round would begin too late.
    fn is_late(&self, plan: &Plan) -> bool {
        self.began.elapsed() > plan.budget
    }
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
    ask(plan, &questions, &small, run)
}

/// Asks the questions in rounds.
fn ask(
    plan: &Plan,
    questions: &[Question],
    small: &[Question],
    run: &mut Run,
) -> Result<(), StoreBenchError> {
    // Whoever keeps what was asked for has it afterwards. What takes long is not asked again.
    let (mut answers, mut slow) = (Vec::new(), Vec::new());
    run.each("first read", |system| {
        let answered = tasks::read(system, questions)?;
        answers.extend(tasks::answers(system, &answered));
        tasks::read_small(system, small)?;
        let long = answered.into_iter().map(|(figure, _)| figure);
        slow.extend(long.filter(|one| one.value > tasks::millis(plan.question_max)));
        Ok(Vec::new())
    })?;
    run.answers = answers;
    for one in &slow {
        let (system, task, limit) = (one.system, one.task, plan.question_max);
        run.skip(format!(
            "{system}: {task} takes more than {limit:?} and is asked once"
        ));
    }
    for round in 0..plan.rounds {
        if round > 0 && run.is_late(plan) {
            run.skip(format!(
                "rounds of reading after the first {round}: they take too long"
            ));
            break;
        }
        run.each("read", |system| {
            let own: Vec<&Figure> = slow
                .iter()
                .filter(|one| one.system == system.name)
                .collect();
            let mut asked = questions.to_vec();
            asked.retain(|question| own.iter().all(|one| one.task != question.task));
            let answered = tasks::read(system, &asked)?;
            let mut figures: Vec<Figure> = answered.into_iter().map(|(figure, _)| figure).collect();
            let all = figures.iter().chain(own);
            let cpu = all.filter_map(|figure| figure.cpu).sum();
            figures.push(tasks::figure(system, "all questions, CPU", cpu));
            let memory = usage::memory(&system.processes()) as f64 / 1024.0;
            figures.push(tasks::figure(system, "memory after them", memory));
            figures.extend(tasks::read_small(system, small)?);
            Ok(figures)
        })?;
    }
    run.figures.extend(slow);
    Ok(())
}

fn change(plan: &Plan, mail: &Mail, run: &mut Run, base: &Path) -> Result<(), StoreBenchError> {
    // Cyrus refuses others when they are added or delivered.
    let mail = mail.well_formed();
    for round in 0..plan.rounds.min(3) {
        if round > 0 && run.is_late(plan) {
            run.skip(format!(
                "rounds of changes after the first {round}: they take too long"
            ));
            break;
        }
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
        let idlers = memory::possible(plan.idlers);
        if idlers < plan.idlers {
            let wanted = plan.idlers;
            run.skip(format!(
                "{wanted} connections: the limit of open files leaves room for {idlers}"
            ));
        }
        run.each("memory", |system| match system.name {
            OURS => memory::memory(system, idlers),
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
    for round in 0..plan.rounds.min(3) {
        if round > 0 && run.is_late(plan) {
            run.skip(format!(
                "rounds of deliveries after the first {round}: they take too long"
            ));
            break;
        }
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
    run.names.extend(offices.iter().map(Office::name));
    Ok(())
}
