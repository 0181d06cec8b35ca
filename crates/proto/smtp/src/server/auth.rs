//! AUTH: the client proves to be an account (RFC 4954).

use std::borrow::Cow;

use crate::command::AuthCommand;
use vere_sasl::Mechanism;
use vere_sasl::server::{
    Exchange, Failure, Login, LoginResult, PasswordOutcome, ScramLookup, Step as SaslStep,
};

use super::line::LineError;
use super::output::Fixed;
use super::question::Question;
use super::{About, Phase, Server, replies};

/// An authentication exchange that waits for the client or for keys.
#[derive(Debug)]
pub(super) struct AuthPhase {
    exchange: Exchange,
    /// The account whose keys the client has to prove.
    account: Option<String>,
    login: Login,
}

impl Server {
    /// Whether AUTH is offered and the connection good enough for it.
    pub(super) fn may_auth(&self) -> bool {
        self.config.auth.is_some() && (self.peer.tls.is_some() || self.peer.may_auth_in_clear)
    }

    pub(super) fn auth(&mut self, command: &AuthCommand) {
        let mechanism = match self.check_auth(command) {
            Ok(mechanism) => mechanism,
            Err(reply) => return self.fail(reply),
        };
        let Some(config) = &self.config.auth else {
            return self.fail(replies::NOT_OFFERED);
        };
        let initial = match command
            .initial
            .as_ref()
            .map(|initial| initial.expose().as_str())
        {
            None => None,
            Some("=") => Some(Vec::new()),
            Some(text) => match vere_sasl::decode(text.as_bytes()) {
                Ok(message) => Some(message),
                Err(_) => return self.fail(replies::AUTH_SYNTAX),
            },
        };
        let (exchange, step) = Exchange::begin(mechanism, initial.as_deref(), config.nonces.next());
        self.auth_step(
            AuthPhase {
                exchange,
                account: None,
                login: Login::begun(mechanism),
            },
            step,
        );
    }

    fn check_auth(&self, command: &AuthCommand) -> Result<Mechanism, Fixed> {
        let Some(config) = &self.config.auth else {
            return Err(replies::NOT_OFFERED);
        };
        if !self.session.esmtp {
            return Err(replies::EHLO_FIRST);
        }
        if self.account().is_some() {
            return Err(replies::AUTH_ALREADY);
        }
        if self.session.transaction.is_some() {
            return Err(replies::WITHIN_TRANSACTION);
        }
        if !self.may_auth() {
            return Err(replies::AUTH_NEEDS_TLS);
        }
        Mechanism::from_name(&command.mechanism)
            .filter(|mechanism| config.mechanisms.contains(mechanism))
            .ok_or(replies::AUTH_MECHANISM)
    }

    /// Takes a line of the exchange: base64, or `*` to give up.
    pub(super) fn auth_response(
        &mut self,
        mut auth: AuthPhase,
        line: Result<Cow<'_, [u8]>, LineError>,
    ) {
        let line = match line {
            Ok(line) => line,
            Err(LineError::TooLong) => return self.fail(replies::AUTH_TOO_LONG),
            Err(error) => return self.fail_line(error),
        };
        if *line == *b"*" {
            return self.fail(replies::AUTH_CANCELLED);
        }
        match vere_sasl::decode(&line) {
            Ok(message) => {
                let step = auth.exchange.respond(&message);
                self.auth_step(auth, step);
            }
            Err(_) => self.fail(replies::AUTH_SYNTAX),
        }
    }

    fn auth_step(&mut self, mut auth: AuthPhase, step: SaslStep) {
        match step {
            SaslStep::Challenge(challenge) => {
                self.output.challenge(&challenge);
                self.phase = Phase::AuthResponse(Box::new(auth));
            }
            SaslStep::Password(attempt) => {
                auth.login.name.clone_from(&attempt.authcid);
                let about = About::Password(Box::new(auth.login));
                self.ask(Question::Password(attempt), about);
            }
            SaslStep::ScramUser(username) => {
                auth.login.name.clone_from(&username);
                self.ask(
                    Question::ScramUser { username },
                    About::ScramUser(Box::new(auth)),
                );
            }
            SaslStep::Authenticated { authcid } => {
                self.authenticated(auth.login, auth.account.unwrap_or(authcid));
            }
            SaslStep::Failed(failure) => self.auth_failed(auth.login, failure),
        }
    }

    pub(super) fn password_answered(&mut self, login: Login, outcome: PasswordOutcome) {
        match outcome {
            PasswordOutcome::Accepted { account } => self.authenticated(login, account),
            PasswordOutcome::Rejected => self.auth_failed(login, Failure::Credentials),
            PasswordOutcome::Unavailable => self.auth_undecided(login),
        }
    }

    pub(super) fn keys_answered(&mut self, mut auth: AuthPhase, found: ScramLookup) {
        let Some(config) = &self.config.auth else {
            return self.fail(replies::NOT_OFFERED);
        };
        let keys = match found {
            ScramLookup::Found { account, keys } => {
                auth.account = Some(account);
                Some(keys)
            }
            ScramLookup::Unknown => None,
            ScramLookup::Unavailable => return self.auth_undecided(auth.login),
        };
        let step = auth.exchange.keys(keys, &config.fake_keys);
        self.auth_step(auth, step);
    }

    fn authenticated(&mut self, login: Login, account: String) {
        self.notes.login(login.ended(LoginResult::Accepted));
        self.session.account = Some(account);
        self.output.tally.authenticated();
        self.output.fixed(replies::AUTHENTICATED);
    }

    fn auth_undecided(&mut self, login: Login) {
        self.notes.login(login);
        self.output.tally.undecided();
        self.idle(replies::AUTH_UNAVAILABLE);
    }

    fn auth_failed(&mut self, login: Login, failure: Failure) {
        if failure.is_syntax() {
            return self.fail(replies::AUTH_SYNTAX);
        }
        self.notes.login(login.ended(LoginResult::Rejected));
        self.output.tally.rejected();
        self.counts.auth_failures = self.counts.auth_failures.saturating_add(1);
        self.fail(replies::AUTH_FAILED);
        if self.counts.auth_failures >= self.config.limits.auth_failures_max {
            self.close_with(replies::TOO_MANY_AUTH_FAILURES);
        }
    }
}
