//! A mount opens its volume anew while programs use the mount, after a stop that a fresh opening mends.
//!
//! An attempt reads the lead's log as a start does, beside the old volume, which serves reads meanwhile. The new volume takes the
//! old one's place at the end. Requests and jobs carry the number of their opening, so that an answer to an earlier volume
//! reaches nobody.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::time::Duration;

use vere_disk::log::Directory;
use vere_mailfs::volume::{
    Create, OpenError, OpenStep, Opening, Reopen, Stranded, Terms, Volume, is_outage,
};
use vere_ports::files::Errno;
use vere_ports::mail_accounts::{Answer, Fault, RequestId};
use vere_process::failure::Failure;
use vere_units::Timestamp;

use crate::accounts::ANSWER_TIMEOUT;
use crate::attempts::{Attempt, Means, Pauses, Reopening};
use crate::folders;
use crate::host::{Now, Step};
use crate::leads::Known;
use crate::lines::Level;
use crate::rollback::{self, Leave};
use crate::tags::{NUMBERS, tagged, untagged};
use crate::volume::{Live, moment, random, storage};

/// The longest pause for which changes wait for an attempt; before a longer one they are refused.
const HOLD_MAX: Duration = Duration::from_secs(10);

impl Live {
    /// The mount opens its volume anew after a stop.
    pub(crate) fn reopens(&mut self, means: Means) {
        self.volume.allow_reopening();
        self.reopening = Some(Reopening {
            means,
            pauses: Pauses::default(),
            last: 0,
            attempt: None,
            reopened: None,
            finishing: Vec::new(),
        });
    }

    /// For people: what the mount does about a stop, and why the volume was opened anew last.
    pub(crate) fn reopening_lines(&self) -> (Option<String>, Option<String>) {
        let Some(of) = &self.reopening else {
            return (None, None);
        };
        let reason = self.volume.reopen_reason();
        let line = reason.map(|reason| match &of.attempt {
            Some(_) => format!("under way: {reason}"),
            None if self.volume.waits_for_lead() => {
                "as soon as the lead account answers".to_owned()
            }
            None => format!("soon: {reason}"),
        });
        (line, of.reopened.map(|reason| reason.to_string()))
    }

    /// An account has answered the volume, or an opening.
    pub(crate) fn route(&mut self, now: Now, id: RequestId, answer: Result<Answer, Fault>) {
        let (number, id) = untagged(id);
        if number == self.number % NUMBERS {
            self.volume.answered(moment(now), id, answer);
            return;
        }
        let attempt = self.reopening.as_mut().and_then(|of| of.attempt.as_mut());
        if let Some(attempt) = attempt.filter(|of| number == of.number % NUMBERS)
            && let Some(opening) = &mut attempt.opening
        {
            attempt.heard = now.steady;
            opening.answered(id, answer);
        }
    }

    /// Begins an attempt, or carries one on. To be called after every event.
    pub(crate) fn tend(&mut self, now: Now) {
        let Some(of) = &mut self.reopening else {
            return;
        };
        match &mut of.attempt {
            None => self.begin_attempt(now),
            Some(attempt) => {
                let Some(opening) = &mut attempt.opening else {
                    return;
                };
                if attempt.heard + ANSWER_TIMEOUT <= now.steady {
                    let text = "expected an answer within 60 s; found none".to_owned();
                    opening.give_up(Fault::Unreachable(text));
                }
                steps_of(attempt.number, opening, &mut self.steps);
                if opening.is_over() {
                    self.end_attempt(now);
                }
            }
        }
    }

    /// When an attempt begins or is given up.
    pub(crate) fn attempt_due(&self) -> Option<Timestamp> {
        let of = self.reopening.as_ref()?;
        match &of.attempt {
            Some(attempt) => {
                let reads = attempt.opening.as_ref();
                reads.map(|_| attempt.heard + ANSWER_TIMEOUT)
            }
            None => {
                let is_wanted = !self.is_ending && self.volume.reopening_wanted().is_some();
                is_wanted.then_some(of.pauses.until)
            }
        }
    }

    fn begin_attempt(&mut self, now: Now) {
        let Some(of) = &mut self.reopening else {
            return;
        };
        if self.is_ending || self.volume.reopening_wanted().is_none() {
            return;
        }
        of.pauses.stopped(now.steady);
        let until = of.pauses.until;
        if until > now.steady {
            if until > now.steady + HOLD_MAX {
                self.volume.reopening_failed(moment(now), false);
            }
            return;
        }
        let Some((reason, create)) = self.volume.begin_reopening(moment(now)) else {
            // The local disk is full.
            let _pause = of.pauses.failed(now.steady, true);
            return;
        };
        let line = format!("reopening: {reason}");
        self.steps.push_back(Step::Log(Level::Info, line));
        let mut terms = (of.means.terms)();
        if let Some((account, epoch)) = self.volume.other_lead() {
            go_under(&mut terms, account, epoch);
        }
        self.open((reason, (terms, create), None), now);
    }

    /// Has the thread of the disk read the journal for an opening.
    fn open(
        &mut self,
        (reason, of, stranded): (Reopen, (Terms, Create), Option<Stranded>),
        now: Now,
    ) {
        let Some(reopening) = &mut self.reopening else {
            return;
        };
        let next = |number: u64| number.saturating_add(1);
        reopening.last = next(reopening.last);
        if reopening.last % NUMBERS == self.number % NUMBERS {
            reopening.last = next(reopening.last);
        }
        let number = reopening.last;
        let journal = reopening.means.journal.clone();
        let (terms, create) = of.clone();
        reopening.attempt = Some(Attempt {
            number,
            reason,
            of,
            stranded,
            opening: None,
            heard: now.steady,
        });
        let read = move || -> Result<Opening<Directory>, Failure> {
            let (storage, random) = (storage(&journal)?, random()?);
            Ok(match stranded {
                None => Opening::new(terms, create, storage, random),
                Some(how) => Opening::bring_in(terms, create, storage, random, how),
            })
        };
        self.steps.push_back(Step::Disk(Box::new(move || {
            let opening = read();
            Box::new(move |live: &mut Self, now| live.read_journal(now, number, opening))
        })));
    }

    /// The journal of an attempt is read.
    fn read_journal(
        &mut self,
        now: Now,
        number: u64,
        opening: Result<Opening<Directory>, Failure>,
    ) {
        let attempt = self.reopening.as_mut().and_then(|of| of.attempt.as_mut());
        let Some(attempt) = attempt.filter(|of| of.number == number) else {
            return;
        };
        match opening {
            Ok(opening) => {
                attempt.opening = Some(opening);
                attempt.heard = now.steady;
                self.tend(now);
            }
            Err(failure) => self.attempt_failed(now, &failure.to_string(), (false, false)),
        }
    }

    /// Everything is read: the new volume takes the old one's place.
    fn end_attempt(&mut self, now: Now) {
        let attempt = self.reopening.as_mut().and_then(|of| of.attempt.take());
        let Some(mut attempt) = attempt else { return };
        let Some(opening) = attempt.opening.take() else {
            return;
        };
        match Volume::reopen(opening, &mut self.volume, moment(now)) {
            Ok(volume) => {
                self.volume = volume;
                self.number = attempt.number;
                self.note_lead();
                let line = format!("reopened: {}", attempt.reason);
                self.steps.push_back(Step::Log(Level::Info, line));
                if let Some(of) = &mut self.reopening {
                    of.reopened = Some(attempt.reason);
                    of.pauses.opened(now.steady);
                }
                self.end_waiting(now);
            }
            Err(error) => {
                if let OpenError::LeadChanged { account, epoch } = error {
                    let (mut terms, create) = attempt.of;
                    go_under(&mut terms, account, epoch);
                    self.open((Reopen::LeadChanged, (terms, create), None), now);
                    return;
                }
                let stranded = rollback::stranded(Leave::default(), Some(&error));
                if stranded.is_some() && attempt.stranded.is_none() {
                    self.open((attempt.reason, attempt.of, stranded), now);
                    return;
                }
                let is_outage = matches!(&error, OpenError::Account(_, fault) if is_outage(fault));
                // The next attempt waits for the lead of the volume; where another account is the lead, for the pause.
                let waits = is_outage && attempt.reason != Reopen::LeadChanged;
                let text = rollback::explained(error).to_string();
                self.attempt_failed(now, &text, (is_outage, waits));
            }
        }
    }

    /// The places of the journal are of this lead's log from now on. Without the file the next start finds the lead by the logs.
    fn note_lead(&mut self) {
        let (account, epoch) = self.volume.lead();
        let known = Known {
            account,
            epoch,
            journal: account,
        };
        let state = self.reopening.as_ref();
        let state = state.and_then(|of| of.means.journal.parent());
        if let Some(state) = state.filter(|_| epoch > 1)
            && let Err(failure) = folders::note_lead(state, &known)
        {
            let line = failure.to_string();
            self.steps.push_back(Step::Log(Level::Warn, line));
        }
    }

    fn attempt_failed(&mut self, now: Now, text: &str, (is_outage, waits): (bool, bool)) {
        let Some(of) = &mut self.reopening else {
            return;
        };
        of.attempt = None;
        let pause = of.pauses.failed(now.steady, is_outage);
        self.volume.reopening_failed(moment(now), waits);
        let is_mended = self.volume.reopen_reason().is_some();
        let (level, rest) = match pause.filter(|_| is_mended) {
            Some(pause) => {
                let seconds = pause.as_secs();
                let when = if waits {
                    " and the lead account answers"
                } else {
                    ""
                };
                let rest =
                    format!("another attempt follows as soon as {seconds} s have passed{when}");
                (Level::Warn, rest)
            }
            None => {
                self.volume.give_up_reopening(moment(now));
                let rest = "the mount stays read-only until the volume is mounted again";
                (Level::Error, rest.to_owned())
            }
        };
        let line = format!("reopening failed: {text}; {rest}");
        self.steps.push_back(Step::Log(level, line));
        self.end_waiting(now);
    }

    /// Whoever has waited for the attempt waits for the end of the mount.
    fn end_waiting(&mut self, now: Now) {
        let waiting = self.reopening.as_mut();
        let waiting = waiting.map(|of| std::mem::take(&mut of.finishing));
        for done in waiting.into_iter().flatten() {
            self.finish(now, done);
        }
    }

    /// Has the end of the mount wait for an attempt under way. Gives the sender back without one.
    pub(crate) fn wait_for_attempt(
        &mut self,
        done: Sender<Result<(), Errno>>,
    ) -> Option<Sender<Result<(), Errno>>> {
        match &mut self.reopening {
            Some(of) if of.attempt.is_some() => {
                of.finishing.push(done);
                None
            }
            _ => Some(done),
        }
    }
}

/// Terms of an opening under a lead that the journal may not know.
fn go_under(terms: &mut Terms, account: u16, epoch: u32) {
    terms.is_new_lead |= terms.lead != account;
    (terms.lead, terms.lead_epoch) = (account, epoch);
}

/// Passes the wishes of an opening on.
fn steps_of(number: u64, opening: &mut Opening<Directory>, steps: &mut VecDeque<Step<Live>>) {
    while let Some(step) = opening.poll() {
        steps.push_back(match step {
            OpenStep::Ask(id, account, urgency, request) => {
                Step::Ask(tagged(number, id), account, urgency, request)
            }
            OpenStep::Log(notice) => Step::Log(Level::of(&notice), notice.to_string()),
        });
    }
}

#[cfg(test)]
mod tests;
