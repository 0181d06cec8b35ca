//! From the greeting to the first message: EHLO, STARTTLS (RFC 3207), AUTH (RFC 4954).

use super::wire::Awaited;
use super::{Client, CloseReason, Extensions, Misbehaviour, Phase, TlsMode};
use crate::reply::Reply;
use vere_sasl::Mechanism;
use vere_sasl::client::{Exchange, ExchangeError};

/// Octets of a command line with CRLF that every server accepts (RFC 5321 section 4.5.3.1.4).
const COMMAND_LENGTH_MAX: usize = 512;

/// The state of a connection between messages.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) extensions: Extensions,
    /// The reply that listed the extensions.
    pub(super) hello: Option<Reply>,
    /// Whether the connection is encrypted.
    pub(super) secured: bool,
    /// Number of further messages that the server accepts, if announced.
    pub(super) mails_left: Option<u32>,
    /// Whether the server has an open transaction, so that RSET must come before MAIL.
    pub(super) open: bool,
    /// Whether the server said something just now: then it will hardly have closed the connection.
    pub(super) recent: bool,
}

impl Session {
    pub(super) fn new(secured: bool) -> Self {
        Self {
            extensions: Extensions::default(),
            hello: None,
            secured,
            mails_left: None,
            open: false,
            recent: true,
        }
    }
}

/// An AUTH under way.
#[derive(Debug)]
pub(super) struct Authentication {
    exchange: Exchange,
    /// An initial response too long for the command line: goes out on the first, empty challenge.
    held_back: Option<Vec<u8>>,
    /// Mechanisms to try after a refusal of this mechanism.
    left: Vec<Mechanism>,
}

impl Client {
    /// Takes a reply before the first message.
    pub(super) fn on_session_reply(&mut self, awaited: Awaited, reply: Reply) {
        match awaited {
            Awaited::Greeting => self.on_greeting(reply),
            Awaited::Hello | Awaited::Helo => self.on_hello(awaited, reply),
            Awaited::StartTls => self.on_start_tls(reply),
            Awaited::Auth => self.on_auth(reply),
            // Awaited only while a message is under way or the connection is left.
            _ => self.close(CloseReason::Misbehaved(Misbehaviour::Unasked(reply))),
        }
    }

    fn on_greeting(&mut self, reply: Reply) {
        if reply.is_completion() {
            self.say_hello();
        } else {
            self.refused(Awaited::Greeting, reply);
        }
    }

    fn refused(&mut self, awaited: Awaited, reply: Reply) {
        if reply.is_intermediate() {
            let wrong = Misbehaviour::WrongKind(awaited.stage(), reply);
            self.close(CloseReason::Misbehaved(wrong));
        } else {
            self.close_politely(CloseReason::Refused(reply));
        }
    }

    pub(super) fn say_hello(&mut self) {
        let verb = if self.config.lmtp { "LHLO" } else { "EHLO" };
        self.command(Awaited::Hello, &[verb, " ", &self.config.hostname.clone()]);
    }

    fn on_hello(&mut self, awaited: Awaited, reply: Reply) {
        if reply.is_completion() {
            self.session.extensions = match awaited {
                Awaited::Hello => Extensions::parse(&reply),
                _ => Extensions::default(),
            };
            self.session.hello = Some(reply);
            self.session.mails_left = self.session.extensions.mail_max;
            self.after_hello();
        } else if reply.is_permanent() && awaited == Awaited::Hello && !self.config.lmtp {
            // RFC 5321 section 3.2: a server from before ESMTP.
            self.command(Awaited::Helo, &["HELO ", &self.config.hostname.clone()]);
        } else {
            self.refused(awaited, reply);
        }
    }

    fn after_hello(&mut self) {
        let offered = self.session.extensions.starttls;
        match self.config.tls {
            _ if self.session.secured => self.authenticate(),
            TlsMode::Required if !offered => self.close_politely(CloseReason::TlsUnavailable),
            TlsMode::Required | TlsMode::Opportunistic if offered => {
                self.command(Awaited::StartTls, &["STARTTLS"]);
            }
            _ => self.authenticate(),
        }
    }

    fn on_start_tls(&mut self, reply: Reply) {
        if reply.code == 220 {
            self.phase = Phase::AwaitTls;
        } else if self.config.tls == TlsMode::Required {
            self.close_politely(CloseReason::TlsRefused(reply));
        } else {
            self.authenticate();
        }
    }

    fn authenticate(&mut self) {
        if self.config.auth.is_none() {
            return self.become_idle();
        }
        let clear = self.session.secured || self.config.auth_in_clear;
        let mut usable = self.session.extensions.auth.clone();
        usable.retain(|mechanism| clear || !mechanism.reveals_password());
        // Taken from the end, best first.
        usable.reverse();
        self.begin_exchange(usable);
    }

    fn begin_exchange(&mut self, mut left: Vec<Mechanism>) {
        let (Some(mechanism), Some(credentials)) = (left.pop(), &self.config.auth) else {
            return self.close_politely(CloseReason::AuthUnavailable);
        };
        let begun = Exchange::begin(mechanism, credentials, self.config.nonces.next());
        let (exchange, initial) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.close_politely(CloseReason::AuthBroken(error)),
        };
        let line = format!("AUTH {mechanism}");
        let (line, held_back) = match initial {
            None => (line, None),
            Some(initial) => {
                let encoded = vere_sasl::encode(&initial);
                let whole = format!("{line} {encoded}");
                if whole.len().saturating_add(2) <= COMMAND_LENGTH_MAX {
                    (whole, None)
                } else {
                    (line, Some(initial))
                }
            }
        };
        self.command(Awaited::Auth, &[&line]);
        self.phase = Phase::Authenticating(Box::new(Authentication {
            exchange,
            held_back,
            left,
        }));
    }

    fn on_auth(&mut self, reply: Reply) {
        let phase = std::mem::replace(&mut self.phase, Phase::Opening);
        let Phase::Authenticating(mut authentication) = phase else {
            return self.close(CloseReason::Misbehaved(Misbehaviour::Unasked(reply)));
        };
        match reply.code {
            235 => match authentication.exchange.succeeded() {
                Ok(()) => self.become_idle(),
                Err(error) => self.close_politely(CloseReason::AuthBroken(error)),
            },
            334 => match authentication.respond(&reply) {
                Ok(response) => {
                    self.command(Awaited::Auth, &[&vere_sasl::encode(&response)]);
                    self.phase = Phase::Authenticating(authentication);
                }
                Err(error) => {
                    self.close_politely(CloseReason::AuthBroken(error));
                    self.wire.cancel_exchange();
                }
            },
            // RFC 4954 sections 4 and 6: the mechanism is refused, another mechanism may be
            // accepted.
            504 | 534 if !authentication.left.is_empty() => {
                self.begin_exchange(authentication.left);
            }
            400..=599 => self.close_politely(CloseReason::AuthRefused(reply)),
            _ => {
                let wrong = Misbehaviour::WrongKind(Awaited::Auth.stage(), reply);
                self.close(CloseReason::Misbehaved(wrong));
            }
        }
    }

    /// Sends a command: the parts, followed by CRLF.
    fn command(&mut self, awaited: Awaited, parts: &[&str]) {
        self.wire.command(awaited, |out| {
            for part in parts {
                out.extend_from_slice(part.as_bytes());
            }
            out.extend_from_slice(b"\r\n");
        });
    }
}

impl Authentication {
    fn respond(&mut self, reply: &Reply) -> Result<Vec<u8>, ExchangeError> {
        if let Some(initial) = self.held_back.take() {
            return Ok(initial);
        }
        let challenge = reply.text.first().map_or("", |line| line.trim_ascii());
        let challenge = vere_sasl::decode(challenge.as_bytes())
            .map_err(|_| ExchangeError::Malformed("base64 challenge"))?;
        self.exchange.respond(&challenge)
    }
}
