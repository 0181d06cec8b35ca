//! LOGIN and AUTHENTICATE (RFC 9051 sections 6.2.2 and 6.2.3).

use vere_sasl::server::{
    Exchange, Failure, Login, LoginResult, PasswordAttempt, PasswordOutcome, ScramLookup,
    Step as SaslStep,
};
use vere_sasl::{Mechanism, NAME_LENGTH_MAX, PASSWORD_LENGTH_MAX};
use vere_units::Secret;

use super::question::Question;
use super::{About, Phase, Server, Session};

/// Ended logins kept for the host; further logins are dropped.
const LOGINS_MAX: usize = 32;

/// An authentication exchange that waits for the client or for keys.
#[derive(Debug)]
pub(super) struct AuthPhase {
    pub(super) tag: String,
    exchange: Exchange,
    /// The account whose keys the client has to prove.
    account: Option<String>,
    login: Login,
}

impl Server {
    pub(super) fn login(&mut self, tag: String, user: String, password: Secret<String>) {
        if !self.may_auth_in_clear() {
            return self.needs_tls(&tag);
        }
        let malformed = user.is_empty()
            || password.expose().is_empty()
            || user.len() > NAME_LENGTH_MAX
            || password.expose().len() > PASSWORD_LENGTH_MAX;
        let mut login = Login::begun(Mechanism::Login);
        if malformed {
            return self.auth_failed(tag, login, Failure::Credentials);
        }
        let attempt = PasswordAttempt {
            mechanism: Mechanism::Plain,
            authzid: None,
            authcid: user,
            password,
        };
        login.name.clone_from(&attempt.authcid);
        self.ask(Question::Password(attempt), About::Password { tag, login });
    }

    fn needs_tls(&mut self, tag: &str) {
        self.output
            .line(&format!("{tag} NO [PRIVACYREQUIRED] log in over TLS"));
    }

    pub(super) fn authenticate(
        &mut self,
        tag: String,
        mechanism: &str,
        initial: Option<&Secret<String>>,
    ) {
        let Some(mechanism) = Mechanism::from_name(mechanism)
            .filter(|mechanism| self.config.mechanisms.contains(mechanism))
        else {
            return self
                .output
                .line(&format!("{tag} NO [CANNOT] no such mechanism"));
        };
        if !self.may_auth_by(mechanism) {
            return self.needs_tls(&tag);
        }
        let initial = match initial.map(|initial| initial.expose().as_str()) {
            None => None,
            Some("=") => Some(Vec::new()),
            Some(text) => match vere_sasl::decode(text.as_bytes()) {
                Ok(message) => Some(message),
                Err(error) => return self.bad(Some(&tag), &error.to_string()),
            },
        };
        let nonce = self.config.nonces.next();
        let (exchange, step) = Exchange::begin(mechanism, initial.as_deref(), nonce);
        let auth = AuthPhase {
            tag,
            exchange,
            account: None,
            login: Login::begun(mechanism),
        };
        self.auth_step(auth, step);
    }

    /// Takes a line of the exchange: base64, or `*` to give up.
    pub(super) fn auth_response(&mut self, mut auth: AuthPhase, line: &[u8]) {
        if line == b"*" {
            return self.bad(Some(&auth.tag), "authentication cancelled");
        }
        match vere_sasl::decode(line) {
            Ok(message) => {
                let step = auth.exchange.respond(&message);
                self.auth_step(auth, step);
            }
            Err(error) => self.bad(Some(&auth.tag), &error.to_string()),
        }
    }

    fn auth_step(&mut self, mut auth: AuthPhase, step: SaslStep) {
        match step {
            SaslStep::Challenge(challenge) => {
                let challenge = vere_sasl::encode(&challenge);
                self.output.line(&format!("+ {challenge}"));
                self.phase = Phase::AuthResponse(Box::new(auth));
            }
            SaslStep::Password(attempt) => {
                let AuthPhase { tag, mut login, .. } = auth;
                login.name.clone_from(&attempt.authcid);
                self.ask(Question::Password(attempt), About::Password { tag, login });
            }
            SaslStep::ScramUser(username) => {
                auth.login.name.clone_from(&username);
                self.ask(Question::ScramUser { username }, About::ScramUser(auth));
            }
            SaslStep::Authenticated { authcid } => {
                let account = auth.account.unwrap_or(authcid);
                self.authenticated(&auth.tag, auth.login, account);
            }
            SaslStep::Failed(failure) => self.auth_failed(auth.tag, auth.login, failure),
        }
    }

    pub(super) fn password_answered(
        &mut self,
        tag: String,
        login: Login,
        outcome: PasswordOutcome,
    ) {
        match outcome {
            PasswordOutcome::Accepted { account } => self.authenticated(&tag, login, account),
            PasswordOutcome::Rejected => self.auth_failed(tag, login, Failure::Credentials),
            PasswordOutcome::Unavailable => self.auth_undecided(&tag, login),
        }
    }

    pub(super) fn keys_answered(&mut self, mut auth: AuthPhase, found: ScramLookup) {
        let keys = match found {
            ScramLookup::Found { account, keys } => {
                auth.account = Some(account);
                Some(keys)
            }
            ScramLookup::Unknown => None,
            ScramLookup::Unavailable => return self.auth_undecided(&auth.tag, auth.login),
        };
        let step = auth.exchange.keys(keys, &self.config.fake_keys);
        self.auth_step(auth, step);
    }

    fn authenticated(&mut self, tag: &str, login: Login, account: String) {
        self.note_login(login.ended(LoginResult::Accepted));
        self.session = Session::Authenticated { account };
        let capabilities = self.capabilities();
        self.output
            .line(&format!("{tag} OK [CAPABILITY {capabilities}] logged in"));
    }

    fn note_login(&mut self, login: Login) {
        if self.logins.len() < LOGINS_MAX {
            self.logins.push(login);
        }
    }

    fn auth_undecided(&mut self, tag: &str, login: Login) {
        self.note_login(login);
        self.output.line(&format!(
            "{tag} NO [UNAVAILABLE] cannot tell now, try again later"
        ));
    }

    fn auth_failed(&mut self, tag: String, login: Login, failure: Failure) {
        if failure.is_syntax() {
            return self.bad(Some(&tag), &failure.to_string());
        }
        self.note_login(login.ended(LoginResult::Rejected));
        self.output
            .line(&format!("{tag} NO [AUTHENTICATIONFAILED] {failure}"));
        self.counts.auth_failures = self.counts.auth_failures.saturating_add(1);
        let failures = usize::try_from(self.counts.auth_failures).unwrap_or(usize::MAX);
        if failures >= self.config.limits.auth_failures_max {
            self.bye("too many failed logins");
        }
    }
}
