//! The questions of mailboxes without changes, in rounds.
//!
//! Caches of a system are full before the measurement: fetches and searches of fields are asked once before, and a
//! search that reads every message, so that the kernel has the files. Then every system answers every question, and
//! answers again in further rounds, the questions of least time first, until the time of the system is spent: ours,
//! with answers in milliseconds, in every round; a system that reads all mail for an answer perhaps once. The time of
//! the first answer has a separate row where the system may remember the result.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::imap::{Imap, ImapError};
use super::plan::{Part, Plan};
use super::queries::Question;
use super::report::{Answer, Figure, PART};
use super::run::Run;
use super::systems::{System, XAPIAN};
use super::{queries, table, tasks, usage};
use crate::error::BenchError;
use crate::peer::OURS;
use crate::process::guard;
use crate::row::median;

/// The question before the measurement, beside the questions about fields.
const READS_ALL: &str = "TEXT absent";

/// The time of each question at a system, in milliseconds.
type Costs = HashMap<&'static str, f64>;

/// A mailbox of a system, as the object of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// The large mailbox.
    Large,
    /// The mailbox with the first messages only.
    Few,
}

impl Asked {
    const fn mailbox(self) -> &'static str {
        match self {
            Self::Large => tasks::MAILBOX,
            Self::Few => tasks::FEW,
        }
    }
}

/// Asks all wanted questions.
pub(super) fn ask(
    mut questions: Vec<Question>,
    mut small: Vec<Question>,
    run: &mut Run<'_>,
) -> Result<(), BenchError> {
    let plan = run.plan;
    questions.retain(|question| plan.wants(&[question.task]));
    small.retain(|question| plan.wants(&[question.task]));
    if questions.is_empty() && small.is_empty() {
        return Ok(());
    }
    run.enter(Part::Read);
    run.each("first read", |system| {
        let of =
            |question: &Question| !table::is_of_text(question.task) || question.task == READS_ALL;
        let mut warm = of_system(system, &questions);
        warm.retain(of);
        let mut imap = opened(system, Asked::Large)?;
        tasks::ask(system, &mut imap, &warm)?;
        tasks::read_small(system, &small)?;
        Ok(Vec::new())
    })?;
    let mut asking = Asking::default();
    let rounds = plan.share(Part::Read).rounds;
    for round in 0..rounds {
        if round > 0 && run.is_late() {
            run.header.skip(format!(
                "rounds of reading after the first {round} of {rounds}, for which there is no time"
            ));
            break;
        }
        run.each("read", |system| {
            asking.round(system, &questions, &small, plan)
        })?;
    }
    run.answers.append(&mut asking.answers);
    for line in asking.remarks(rounds) {
        run.header.skip(line);
    }
    let figures = asking.sums(&run.figures);
    run.figures.extend(figures);
    Ok(())
}

/// The questions for a system: a system with few messages gets only the questions of its comparison.
fn of_system(system: &System, questions: &[Question]) -> Vec<Question> {
    let mut own = questions.to_vec();
    own.retain(|question| !system.is_partial || table::is_of_text(question.task));
    own
}

fn opened(system: &System, asked: Asked) -> Result<Imap, ImapError> {
    let mut imap = system.login()?;
    imap.ok(&format!("EXAMINE {}", system.mailbox(asked.mailbox())))?;
    Ok(imap)
}

/// The state of a run of questions.
#[derive(Debug, Default)]
struct Asking {
    answers: Vec<Answer>,
    /// The times of each question, and so its number of answers, by system.
    costs: HashMap<&'static str, Costs>,
    times: HashMap<(&'static str, &'static str), usize>,
    /// The time of each system in further rounds.
    again: HashMap<&'static str, Duration>,
    /// Questions left out for lack of time.
    left_out: Vec<(&'static str, usize)>,
}

impl Asking {
    /// Asks a system as many questions as its time allows.
    fn round(
        &mut self,
        system: &mut System,
        questions: &[Question],
        small: &[Question],
        plan: &Plan,
    ) -> Result<Vec<Figure>, ImapError> {
        let own = of_system(system, questions);
        let mut figures = self.ask_of(system, system.name, Asked::Large, &own, plan)?;
        if system.name == OURS && !system.part_numbers.is_empty() {
            let mut own = own;
            own.retain(|question| table::is_of_text(question.task));
            figures.extend(self.ask_of(system, PART, Asked::Few, &own, plan)?);
        }
        let memory = usage::memory(&system.processes()) as f64 / 1024.0;
        figures.push(tasks::figure(system, "memory after them", memory));
        figures.extend(tasks::read_small(system, small)?);
        Ok(figures)
    }

    /// Asks one mailbox of a system; `name` is the name of the mailbox in results.
    fn ask_of(
        &mut self,
        system: &System,
        name: &'static str,
        asked: Asked,
        questions: &[Question],
        plan: &Plan,
    ) -> Result<Vec<Figure>, ImapError> {
        let first = !self.costs.contains_key(name);
        let costs = self.costs.entry(name).or_default();
        let again = self.again.entry(name).or_default();
        let chosen = match first {
            true => questions.to_vec(),
            false => cheapest(questions, costs, plan.again_max.saturating_sub(*again)),
        };
        let mut imap = opened(system, asked)?;
        let (started, mut figures) = (Instant::now(), Vec::new());
        for (place, question) in chosen.iter().enumerate() {
            if first && started.elapsed() > plan.questions_max {
                self.left_out.push((name, chosen.len() - place));
                break;
            }
            if guard::is_stopped() {
                break;
            }
            let answered = match tasks::ask(system, &mut imap, std::slice::from_ref(question)) {
                Err(_) if guard::is_stopped() => break,
                answered => answered?,
            };
            for (figure, reply) in answered {
                costs.insert(question.task, figure.value);
                *self.times.entry((name, question.task)).or_default() += 1;
                if first {
                    let numbers = match asked {
                        Asked::Large => &system.numbers,
                        Asked::Few => &system.part_numbers,
                    };
                    self.answers
                        .extend(tasks::answer(name, numbers, &figure, &reply));
                    figures.extend(queries::first_answer(question.task).map(|task| Figure {
                        system: name,
                        task,
                        ..figure.clone()
                    }));
                }
                figures.push(Figure {
                    system: name,
                    ..figure
                });
            }
        }
        if !first {
            *again += started.elapsed();
        }
        Ok(figures)
    }

    /// The questions with fewer rounds than planned.
    fn remarks(&self, rounds: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, count) in &self.left_out {
            lines.push(format!(
                "{name}: {count} questions, for which it had no time left"
            ));
        }
        let mut names: Vec<&str> = self.costs.keys().copied().collect();
        names.sort_unstable();
        for name in names {
            let own = self.times.iter().filter(|((system, _), _)| *system == name);
            let rare: Vec<usize> = own
                .map(|(_, times)| *times)
                .filter(|times| *times < rounds)
                .collect();
            if let (Some(least), Some(most)) = (rare.iter().min(), rare.iter().max()) {
                lines.push(format!(
                    "{name}: {} questions that take it long were asked {least} to {most} times, not {rounds}",
                    rare.len()
                ));
            }
        }
        lines
    }

    /// The processor time of all questions of each system with all of the mail.
    fn sums(&self, figures: &[Figure]) -> Vec<Figure> {
        let mut sums = Vec::new();
        let skip = |name: &str| name == PART || self.costs.contains_key(PART) && name == XAPIAN;
        for (name, costs) in self.costs.iter().filter(|(name, _)| !skip(name)) {
            let cpu = |task: &&str| {
                let of = figures
                    .iter()
                    .filter(|one| one.system == *name && one.task == *task);
                median(of.filter_map(|one| one.cpu))
            };
            let sum = costs.keys().filter_map(cpu).sum();
            sums.push(Figure::new(name, "all questions, CPU", sum));
        }
        sums
    }
}

/// The cheapest questions, as many as fit into `time`.
fn cheapest(questions: &[Question], costs: &Costs, time: Duration) -> Vec<Question> {
    let cost = |question: &Question| costs.get(question.task).copied();
    let mut known: Vec<(f64, &Question)> = questions
        .iter()
        .filter_map(|question| Some((cost(question)?, question)))
        .collect();
    known.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut left = tasks::millis(time);
    let mut fit: Vec<&str> = Vec::new();
    for (cost, question) in known {
        left -= cost;
        if left < 0.0 {
            break;
        }
        fit.push(question.task);
    }
    // In the order of all questions.
    let chosen = questions.iter().filter(|one| fit.contains(&one.task));
    chosen.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(task: &'static str) -> Question {
        Question {
            task,
            command: String::new(),
        }
    }

    #[test]
    fn what_takes_least_is_asked_again_first() {
        let questions = ["list", "TEXT 1 %", "FROM", "BODY 1 %", "SUBJECT"].map(question);
        let costs: Costs = [
            ("list", 30.0),
            ("TEXT 1 %", 1_300.0),
            ("FROM", 6.0),
            ("BODY 1 %", 1_000.0),
        ]
        .into();
        let chosen = |millis| {
            let chosen = cheapest(&questions, &costs, Duration::from_millis(millis));
            chosen.iter().map(|one| one.task).collect::<Vec<_>>()
        };
        assert_eq!(chosen(5), [] as [&str; 0]);
        assert_eq!(chosen(36), ["list", "FROM"]);
        assert_eq!(chosen(1_100), ["list", "FROM", "BODY 1 %"]);
        // A question without a measured time is not known to fit.
        assert_eq!(chosen(9_999), ["list", "TEXT 1 %", "FROM", "BODY 1 %"]);
    }

    #[test]
    fn what_was_asked_less_often_is_told_and_sums_are_of_medians() {
        let mut asking = Asking::default();
        for (name, task, times) in [
            (OURS, "list", 5),
            ("cyrus", "list", 5),
            ("cyrus", "FROM", 1),
        ] {
            asking.costs.entry(name).or_default().insert(task, 1.0);
            asking.times.insert((name, task), times);
        }
        asking.left_out.push(("courier", 3));
        assert_eq!(
            asking.remarks(5),
            [
                "courier: 3 questions, for which it had no time left",
                "cyrus: 1 questions that take it long were asked 1 to 1 times, not 5",
            ]
        );
        let figure = |system, task, cpu| Figure {
            cpu: Some(cpu),
            ..Figure::new(system, task, 0.0)
        };
        let figures = [
            figure("cyrus", "list", 1.0),
            figure("cyrus", "list", 9.0),
            figure("cyrus", "list", 2.0),
            figure("cyrus", "FROM", 10.0),
        ];
        let sums = asking.sums(&figures);
        let of = |name| {
            sums.iter()
                .find(|one| one.system == name)
                .map(|one| one.value)
        };
        assert_eq!((of("cyrus"), of(OURS)), (Some(12.0), Some(0.0)));
    }
}
