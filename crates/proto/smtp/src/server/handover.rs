//! Hand-over: another process goes on with a session.
//!
//! A front runs the [`Server`] of a connection until the answer that accepts a recipient
//! ([`Server::has_recipient`]). The front then takes the machine apart with [`Server::hand_over`] and sends the
//! [`Handover`] as octets. A worker puts the machine together with [`Server::resume`] and gives it the octets of the
//! client that the front has read and the machine has not consumed. The client gets the same replies as from one
//! machine. Replies that the front has not sent are part of the hand-over, and the worker sends them.
//!
//! The decoder trusts the front no more than a client: commands and names pass the parsers that the client's octets
//! pass, and a session that no client can reach is an error.
//!
//! Format version 2, little endian. `str` is a u16 length and that many octets of UTF-8, without control characters.
//! `opt` is a u8: 0 for nothing, 1 when the value follows. `bool` is a u8, 0 or 1. Each value has exactly one form.
//!
//! ```text
//! u8       version = 2
//!          the client ([`Peer`]):
//! u8         permissions: 1 relays, 2 AUTH without TLS, 4 priorities, 8 XCLIENT, 16 STARTTLS is offered
//! sock       address of the client
//! sock       our address
//! opt str    name in the DNS
//! opt        TLS: str version, str cipher suite, opt str server name
//!          the session:
//! str        argument of HELO or EHLO, in lower case
//! bool       EHLO
//! opt str    account
//! opt        XCLIENT: opt str HELO, opt bool PROTO=ESMTP, opt str LOGIN
//! u32        errors
//! u32        idle commands
//! u32        failed authentications
//! u32        transactions
//! u32        refusals
//!          the transaction:
//! str        MAIL command without CRLF
//! u32        refused recipients
//! u8         note of the host, without meaning for the machine
//! u16        number of recipients, from 1 to 1,000, each:
//! str          RCPT command without CRLF
//!          replies not sent:
//! u16        number of octets, at most 32,768
//! octets
//!
//! sock:  u8 4, 4 octets of address, u16 port
//!        u8 6, 16 octets of address, u16 port, u32 flow information, u32 scope
//! ```
//!
//! A `str` has at most 1,024 octets, a command at most 4,096. The texts of commands are those of
//! [`MailFrom::encode`] and [`RcptTo::encode`], so that a parameter added to them is handed over as well.
//!
//! ```
//! use std::sync::Arc;
//! use vere_smtp::server::{Answer, Handover, Peer, Role, Server, ServerConfig, Step};
//! use vere_units::Timestamp;
//!
//! let config = Arc::new(ServerConfig::new("mx.example.org", Role::Mx));
//! let peer = Peer::new("192.0.2.7:4711".parse()?, "192.0.2.1:25".parse()?);
//! let now = Timestamp::from_millis(0);
//! let mut front = Server::new(Arc::clone(&config), peer, now);
//! front.sent(front.output().len()); // the greeting
//!
//! let mut received: &[u8] = b"EHLO a.example\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n";
//! while !front.has_recipient() {
//!     let taken = front.input(received, now);
//!     received = &received[taken..];
//!     if let Step::Ask(_) = front.step() {
//!         front.answer(Answer::Policy(Ok(())), now);
//!     }
//! }
//! let mut octets = Vec::new();
//! front.hand_over().map_err(|(_, refused)| refused)?.encode(&mut octets);
//!
//! let mut worker = Server::resume(config, Handover::decode(&octets)?, now);
//! assert_eq!(received, b"DATA\r\n");
//! worker.input(received, now);
//! assert!(worker.output().ends_with(b"250 2.1.5 recipient ok\r\n354 end data with <CRLF>.<CRLF>\r\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod message;
mod octets;
mod wire;

use std::sync::Arc;

use vere_units::Timestamp;

use crate::address::DomainOrLiteral;
use crate::command::{MailFrom, RcptTo};

use super::config::{Peer, ServerConfig};
use super::line::LineReader;
use super::notes::Notes;
use super::output::Output;
use super::session::{Counts, Forwarded, Session, Transaction};
use super::{Phase, Server};

use octets::is_text;

pub use error::{HandoverError, HandoverRefused};

/// The most recipients of a transaction that is handed over.
const RECIPIENTS_MAX: usize = 1_000;
/// The most octets of replies not sent: the default of
/// [`output_octets_max`](crate::limits::Limits::output_octets_max), a reply behind it, and as much again.
const REPLIES_OCTETS_MAX: usize = 32_768;

/// A session between two commands with an accepted recipient, without the configuration.
///
/// Every value encodes to octets that decode to an equal value, except that counts above 2^32 - 1 become 2^32 - 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handover {
    pub(super) peer: Peer,
    /// Always present: MAIL needs HELO or EHLO first.
    pub(super) helo: DomainOrLiteral,
    pub(super) esmtp: bool,
    pub(super) account: Option<String>,
    pub(super) forwarded: Option<Box<Forwarded>>,
    pub(super) counts: Counts,
    pub(super) mail: MailFrom,
    /// Never empty.
    pub(super) recipients: Vec<RcptTo>,
    pub(super) recipients_refused: usize,
    pub(super) note: u8,
    /// The end of the output; the first reply may lack octets that were sent.
    pub(super) replies: Vec<u8>,
}

impl Handover {
    /// Whether the connection is encrypted.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.peer.tls.is_some()
    }

    /// The host's note about the open transaction; 0 unless [`Handover::with_note`] was called.
    #[must_use]
    pub const fn note(&self) -> u8 {
        self.note
    }

    /// The session with a note for the host of the other process, about the open transaction.
    #[must_use]
    pub const fn with_note(mut self, note: u8) -> Self {
        self.note = note;
        self
    }

    /// The session in a process that cannot carry out handshakes: STARTTLS is not offered any longer.
    #[must_use]
    pub const fn without_starttls(mut self) -> Self {
        self.peer.tls_available = false;
        self
    }

    /// A contradiction between parts of the session, which no client and no settings can bring about.
    fn contradiction(&self) -> Option<&'static str> {
        let mail = &self.mail;
        let login = self.forwarded.as_ref().and_then(|it| it.login.as_ref());
        let known = self.account.is_some() || login.is_some();
        let parameters =
            mail.has_parameters() || self.recipients.iter().any(RcptTo::has_parameters);
        let ascii = mail.reverse_path.is_ascii() && self.recipients.iter().all(RcptTo::is_ascii);
        let believed = mail.auth.as_ref().is_some_and(|auth| !auth.is_null());
        let urgent = mail.priority > Some(0);
        let rules = [
            (parameters && !self.esmtp, "parameters without EHLO"),
            (
                !ascii && !mail.smtputf8,
                "an address that needs SMTPUTF8, without SMTPUTF8",
            ),
            (
                mail.require_tls && self.peer.tls.is_none(),
                "REQUIRETLS without TLS",
            ),
            (
                believed && !known,
                "AUTH= with an address from an unknown client",
            ),
            (
                urgent && !known && !self.peer.may_prioritise,
                "a priority above 0 from a client without that permission",
            ),
        ];
        let broken = rules.into_iter().find(|(broken, _)| *broken);
        broken.map(|(_, text)| text)
    }
}

impl Server {
    /// Whether the open transaction has an accepted recipient.
    ///
    /// The value changes to true only in [`Server::answer`]. [`Server::input`] stops behind a RCPT command until the
    /// answer, so that a host that asks after each answer hands the session over before any octet behind the RCPT
    /// command is consumed.
    #[must_use]
    pub fn has_recipient(&self) -> bool {
        let open = self.session.transaction.as_deref();
        open.is_some_and(|transaction| !transaction.recipients.is_empty())
    }

    /// Takes the session apart, for [`Server::resume`] in another process.
    ///
    /// The session must stand between two commands, within a transaction that has a recipient and no chunk yet.
    /// Replies may wait, also in part. Octets of the client that were read and not consumed are the host's. The host
    /// takes the tally and the notes before; otherwise they are lost.
    ///
    /// # Errors
    ///
    /// The unchanged session and the reason why it cannot be handed over now.
    pub fn hand_over(self) -> Result<Handover, (Box<Self>, HandoverRefused)> {
        if let Err(refused) = self.check_hand_over() {
            return Err((Box::new(self), refused));
        }
        let Session {
            helo: Some(helo),
            esmtp,
            account,
            transaction: Some(transaction),
            ..
        } = self.session
        else {
            // Neither is missing after the check: MAIL needs a name.
            return Err((Box::new(self), HandoverRefused::NoRecipient));
        };
        Ok(Handover {
            peer: self.peer,
            helo,
            esmtp,
            account,
            forwarded: self.forwarded,
            counts: self.counts,
            mail: transaction.mail,
            recipients: transaction.recipients,
            recipients_refused: transaction.recipients_refused,
            note: 0,
            replies: self.output.into_pending(),
        })
    }

    /// Goes on with a session that another process has handed over, as if there had been no other process.
    ///
    /// The tally and the notes are empty: the replies that wait have been counted. The client has the time of a whole
    /// command again, because two processes need not agree about the time.
    ///
    /// The configuration should be that of the process before; the session keeps what that process has decided.
    /// Recipients above [`recipients_max`](crate::limits::Limits::recipients_max) stay, and counts above their limit
    /// end the session at the next count, not at once. Replies above
    /// [`output_octets_max`](crate::limits::Limits::output_octets_max) are sent before the next command is read.
    /// Parameters of an extension that is not offered here, and a transaction that the role or `tls_required` would
    /// refuse, are accepted; only the commands that follow are refused.
    #[must_use]
    pub fn resume(config: Arc<ServerConfig>, handover: Handover, now: Timestamp) -> Self {
        let transaction = Transaction {
            mail: handover.mail,
            recipients: handover.recipients,
            recipients_refused: handover.recipients_refused,
            chunks: None,
        };
        Self {
            config,
            peer: handover.peer,
            phase: Phase::Command,
            session: Session {
                helo: Some(handover.helo),
                esmtp: handover.esmtp,
                account: handover.account,
                // The reply to MAIL, which has left or waits, ends this state.
                priority_lowered: false,
                transaction: Some(Box::new(transaction)),
            },
            forwarded: handover.forwarded,
            counts: handover.counts,
            lines: LineReader::default(),
            output: Output::resumed(handover.replies),
            notes: Notes::default(),
            greeting_pending: false,
            // A session that is to end does not stand between two commands.
            shutting_down: false,
            waiting_since: now,
        }
    }

    pub(super) fn check_hand_over(&self) -> Result<(), HandoverRefused> {
        if self.greeting_pending {
            return Err(HandoverRefused::Greeting);
        }
        if !matches!(self.phase, Phase::Command) {
            return Err(HandoverRefused::Phase);
        }
        let transaction = match self.session.transaction.as_deref() {
            Some(transaction) if !transaction.recipients.is_empty() => transaction,
            _ => return Err(HandoverRefused::NoRecipient),
        };
        if transaction.chunks.is_some() {
            return Err(HandoverRefused::Chunks);
        }
        if !self.lines.is_empty() {
            return Err(HandoverRefused::Line);
        }
        if transaction.recipients.len() > RECIPIENTS_MAX {
            return Err(HandoverRefused::Recipients(transaction.recipients.len()));
        }
        if self.output.len() > REPLIES_OCTETS_MAX {
            return Err(HandoverRefused::Replies(self.output.len()));
        }
        let unfit = self
            .host_texts()
            .into_iter()
            .find(|(text, _)| text.is_some_and(|text| !is_text(text)));
        match unfit {
            Some((_, name)) => Err(HandoverRefused::Text(name)),
            None => Ok(()),
        }
    }

    /// The texts whose form is up to the host, with their names. All other texts are parsed and have lengths that fit.
    fn host_texts(&self) -> [(Option<&str>, &'static str); 6] {
        let tls = self.peer.tls.as_ref();
        let forwarded = self.forwarded.as_ref();
        [
            (self.peer.name.as_deref(), octets::NAME),
            (tls.map(|tls| tls.version.as_str()), octets::TLS_VERSION),
            (tls.map(|tls| tls.cipher.as_str()), octets::TLS_CIPHER),
            (
                tls.and_then(|tls| tls.sni.as_deref()),
                octets::TLS_SERVER_NAME,
            ),
            (self.session.account.as_deref(), octets::ACCOUNT),
            (
                forwarded.and_then(|forwarded| forwarded.login.as_deref()),
                octets::LOGIN,
            ),
        ]
    }
}
