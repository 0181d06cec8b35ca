//! Requests that have waited for too long.

use std::time::Duration;

use tokio::time::Instant;
use vere_ports::mail_accounts::{Answer, Fault, Request, RequestId, Urgency};

use super::{DIAL_MAX, Pool, millis};
use crate::asked::{Asked, octets};
use crate::program::RUN_MAX;

/// Longest wait of a request for a connection while a program prints the secret of a login that is under way.
const PROGRAM_WAIT_MAX: Duration = RUN_MAX.saturating_add(DIAL_MAX);

impl Pool {
    /// Answers requests after too long a wait for a connection or for leave to ask, and watches at the due time.
    pub(super) fn expire(&mut self, now: Instant) {
        let due: Vec<RequestId> = self
            .polls
            .extract_if(.., |(due, _)| *due <= now)
            .map(|(_, id)| id)
            .collect();
        for id in due {
            self.answer(id, 0, Ok(Answer::Changed));
        }
        if self.slots.any_serves() {
            return self.expire_throttled(now);
        }
        let refused = matches!(self.last_fault, Fault::Login(_));
        let is_far = self.pace.dial_from > now + self.settings.times.wait;
        let hopeless = now < self.pace.dial_from && (refused || is_far);
        let (longest, fault) = (self.wait_max(), self.wait_fault());
        let late = self
            .queue
            .extract_if(.., |_, asked| hopeless || asked.at + longest <= now);
        for (_, asked) in late.collect::<Vec<_>>() {
            self.answer(asked.id, octets(&asked.request), Err(fault.clone()));
        }
    }

    /// An account that wants patience for longer than a request waits says so to every request: another account may serve.
    fn expire_throttled(&mut self, now: Instant) {
        let wait = self.pace.ask_from.saturating_duration_since(now);
        if wait <= self.settings.times.wait {
            return;
        }
        let text = match &self.last_fault {
            Fault::Throttled(text, _) => text.clone(),
            other => other.to_string(),
        };
        let asks =
            |_: &(Urgency, u64), asked: &mut Asked| !matches!(asked.request, Request::Watch { .. });
        let late: Vec<(_, Asked)> = self.queue.extract_if(.., asks).collect();
        for (_, asked) in late {
            let fault = Fault::Throttled(text.clone(), millis(wait));
            self.answer(asked.id, octets(&asked.request), Err(fault));
        }
    }

    /// The program of the login that is under way, if any.
    fn running_program(&self) -> Option<&str> {
        let program = self.settings.remote.login.program();
        program.filter(|_| self.slots.any_dials())
    }

    /// The longest wait for a connection now: a program that prints a secret has more time than a server.
    pub(super) fn wait_max(&self) -> Duration {
        match self.running_program() {
            Some(_) => PROGRAM_WAIT_MAX,
            None => self.settings.times.wait,
        }
    }

    /// Why a request has waited for nothing.
    fn wait_fault(&self) -> Fault {
        match self.running_program() {
            Some(program) => Fault::Unreachable(format!(
                "{program}: expected a secret and a login within {} seconds; found a login under way",
                PROGRAM_WAIT_MAX.as_secs()
            )),
            None => self.last_fault.clone(),
        }
    }
}
