//! A message being sent: MAIL, RCPT, DATA or BDAT, in one or several rounds.
//!
//! A round is a transaction on the wire. A server that accepts a limited number of recipients at a time, by
//! RCPTMAX (RFC 9422) or by `452` to further recipients (RFC 5321 section 4.5.3.1.10), needs several rounds.

use bytes::Bytes;

use super::body::{Body, is_text};
use super::close::{CloseReason, Misbehaviour, permanent, transient};
use super::message::{OutgoingMessage, RecipientOutcome, TransactionOutcome, is_too_many};
use super::session::Session;
use super::wire::{Awaited, Wire};
use super::{ClientConfig, Extensions};
use crate::command::{BodyType, MailFrom, Orcpt, RcptTo};
use crate::reply::Reply;

/// How the connection goes on after a reply.
#[derive(Debug)]
pub(super) enum Flow {
    Continue,
    Close(CloseReason),
}

/// A message and the state of its recipients.
#[derive(Debug)]
pub(super) struct Transaction {
    mail: MailFrom,
    recipients: Vec<RcptTo>,
    outcomes: Vec<Option<RecipientOutcome>>,
    octets: Bytes,
    /// Whether BDAT is used, without dot-stuffing; otherwise DATA, except with `one_round`.
    binary: bool,
    /// Whether BDAT is sent together with the envelope, before the replies to the envelope.
    one_round: bool,
    lmtp: bool,
    dsn: bool,
    /// Ends behind RCPT.
    dry_run: bool,
    /// Recipients for later rounds, by index.
    waiting: Vec<usize>,
    round: Round,
    /// Whether the server has replied to MAIL.
    answered: bool,
    sender_refused: bool,
}

/// A transaction on the wire.
#[derive(Debug, Default)]
struct Round {
    next: Next,
    /// Recipients of this round, by index.
    recipients: Vec<usize>,
    /// The recipients accepted by the server.
    accepted: Vec<usize>,
    /// Number of accepted recipients with a final reply (LMTP).
    finals: usize,
    /// Recipients that the server may accept in another round.
    too_many: Vec<(usize, Reply)>,
    /// The message while being sent.
    body: Option<Body>,
    delivered: bool,
}

/// The next command to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    Reset,
    Mail,
    /// RCPT for the recipient at this index of the round.
    Recipient(usize),
    /// DATA, or BDAT with the message.
    Content,
    /// No more commands.
    #[default]
    Nothing,
}

impl Transaction {
    /// Makes a transaction, and settles recipients that this server cannot serve.
    pub(super) fn new(message: OutgoingMessage, session: &Session, config: &ClientConfig) -> Self {
        let extensions = &session.extensions;
        let text = is_text(&message.body);
        let one_round = text && goes_in_one_round(&message.body, session, config);
        let chunks = extensions.chunking && extensions.binary_mime;
        let mut transaction = Self {
            mail: MailFrom::new(message.reverse_path),
            outcomes: vec![None; message.recipients.len()],
            recipients: message.recipients,
            octets: message.body,
            binary: !text || (chunks && message.body_type == BodyType::BinaryMime),
            one_round,
            lmtp: config.lmtp,
            dsn: extensions.dsn,
            dry_run: message.dry_run,
            waiting: Vec::new(),
            round: Round::default(),
            answered: false,
            sender_refused: false,
        };
        if let Err(reply) = transaction.fit(extensions, message.body_type, config.just_send_8bit) {
            transaction.settle_rest(&reply);
        }
        transaction.fit_smtputf8(extensions, message.smtputf8);
        if message.require_tls {
            transaction.fit_require_tls(extensions, session.secured);
        }
        // 0 is the default priority and is not sent.
        let priority = Some(message.priority).filter(|priority| *priority != 0);
        transaction.mail.priority = priority.filter(|_| extensions.mt_priority);
        if extensions.size.is_some() {
            transaction.mail.size = Some(transaction.octets.len() as u64);
        }
        if transaction.dsn {
            transaction.mail.ret = message.ret;
            transaction.mail.envid = message.envid;
        }
        transaction.fit_dsn();
        let open = transaction.outcomes.iter().enumerate();
        let open = open
            .filter(|(_, outcome)| outcome.is_none())
            .map(|(index, _)| index);
        transaction.waiting = open.collect();
        transaction
    }

    /// Chooses the form of the body, or gives the reason against every form.
    fn fit(
        &mut self,
        extensions: &Extensions,
        declared: BodyType,
        just_send_8bit: bool,
    ) -> Result<(), Reply> {
        let size_max = extensions.size.filter(|size| *size > 0);
        if let Some(max) = size_max.filter(|max| self.octets.len() as u64 > *max) {
            let text = format!(
                "message of {} octets, server takes {max}",
                self.octets.len()
            );
            return Err(permanent(552, 3, 4, text));
        }
        if self.binary {
            if !(extensions.chunking && extensions.binary_mime) {
                let text = "binary message, server does not offer BINARYMIME";
                return Err(permanent(554, 6, 3, text));
            }
            self.mail.body = BodyType::BinaryMime;
            return Ok(());
        }
        let eight_bit = !self.octets.is_ascii();
        if extensions.eight_bit_mime && (eight_bit || declared != BodyType::SevenBit) {
            self.mail.body = BodyType::EightBitMime;
        } else if eight_bit && !just_send_8bit {
            let text = "8-bit message, server does not offer 8BITMIME";
            return Err(permanent(554, 6, 3, text));
        }
        Ok(())
    }

    /// Requests SMTPUTF8, or settles the recipients that cannot be reached without SMTPUTF8 (RFC 6531 section
    /// 3.2). A message that requested SMTPUTF8 without using it may go to a server without SMTPUTF8.
    fn fit_smtputf8(&mut self, extensions: &Extensions, asked: bool) {
        if extensions.smtputf8 {
            let mut addresses = self
                .recipients
                .iter()
                .map(|rcpt| rcpt.forward_path.is_ascii());
            self.mail.smtputf8 =
                asked || !self.mail.reverse_path.is_ascii() || !addresses.all(|ascii| ascii);
            return;
        }
        if !self.mail.reverse_path.is_ascii() {
            let text = "sender needs SMTPUTF8, which the server does not offer";
            self.settle_rest(&permanent(550, 6, 7, text));
        } else if asked && !vere_mime::header(&self.octets).is_ascii() {
            let text = "header needs SMTPUTF8, which the server does not offer";
            self.settle_rest(&permanent(550, 6, 9, text));
        }
        for (recipient, outcome) in self.recipients.iter().zip(&mut self.outcomes) {
            if outcome.is_none() && !recipient.forward_path.is_ascii() {
                let text = "recipient needs SMTPUTF8, which the server does not offer";
                *outcome = Some(RecipientOutcome::Failed(permanent(553, 6, 7, text)));
            }
        }
    }

    /// RFC 8689 section 4.2.1: a message with REQUIRETLS is not sent to a server without REQUIRETLS.
    fn fit_require_tls(&mut self, extensions: &Extensions, secured: bool) {
        self.mail.require_tls = secured && extensions.require_tls;
        if !self.mail.require_tls {
            let text = "message needs REQUIRETLS, which the server does not offer";
            self.settle_rest(&permanent(550, 7, 30, text));
        }
    }

    /// Drops parameters that need DSN, and writes ORCPT in ASCII where necessary.
    fn fit_dsn(&mut self) {
        for recipient in &mut self.recipients {
            if !self.dsn {
                recipient.notify = None;
                recipient.orcpt = None;
            } else if !self.mail.smtputf8 {
                recipient.orcpt = recipient.orcpt.take().and_then(ascii_orcpt);
            }
        }
    }

    /// Makes output while there is room and no reply to wait for. False when the message is settled.
    pub(super) fn pump(&mut self, wire: &mut Wire, session: &mut Session) -> bool {
        loop {
            if let Some(body) = &mut self.round.body {
                body.fill(wire);
                if body.has_ended() {
                    self.round.body = None;
                    wire.release();
                }
                return true;
            }
            if self.round.next == Next::Nothing {
                if wire.is_awaiting() {
                    return true;
                }
                self.end_round();
                if !self.begin_round(session) {
                    return false;
                }
            }
            let alone =
                !session.extensions.pipelining || (self.binary && self.round.next == Next::Content);
            if (alone && wire.is_awaiting()) || !wire.has_room() {
                return true;
            }
            self.advance(wire, session);
        }
    }

    fn begin_round(&mut self, session: &Session) -> bool {
        if session.mails_left == Some(0) {
            let text = "server takes no more messages on this connection";
            self.settle_rest(&transient(3, 2, text));
            self.waiting.clear();
        }
        let limit = session
            .extensions
            .recipients_max
            .map_or(usize::MAX, |max| max as usize);
        let count = self.waiting.len().min(limit);
        self.round = Round {
            next: if session.open {
                Next::Reset
            } else {
                Next::Mail
            },
            recipients: self.waiting.drain(..count).collect(),
            ..Round::default()
        };
        count > 0
    }

    /// Surplus recipients get another round if this round had an accepted recipient.
    fn end_round(&mut self) {
        let round = std::mem::take(&mut self.round);
        for (index, reply) in round.too_many {
            if round.delivered {
                self.waiting.push(index);
            } else {
                self.settle(index, RecipientOutcome::Deferred(reply));
            }
        }
    }

    /// Makes the next command.
    fn advance(&mut self, wire: &mut Wire, session: &mut Session) {
        match self.round.next {
            Next::Reset => {
                wire.command(Awaited::Reset, |out| out.extend_from_slice(b"RSET\r\n"));
                self.round.next = Next::Mail;
            }
            Next::Mail => {
                session.mails_left = session.mails_left.map(|left| left.saturating_sub(1));
                wire.command(Awaited::Mail, |out| self.mail.encode(out));
                self.round.next = Next::Recipient(0);
            }
            Next::Recipient(place) => {
                let index = self.round.recipients.get(place).copied();
                match index.and_then(|index| self.recipients.get(index).map(|to| (index, to))) {
                    Some((index, recipient)) => {
                        wire.command(Awaited::Recipient(index), |out| recipient.encode(out));
                        self.round.next = Next::Recipient(place.saturating_add(1));
                    }
                    None => self.round.next = Next::Content,
                }
            }
            Next::Content => {
                self.round.next = Next::Nothing;
                if self.dry_run {
                    wire.command(Awaited::Reset, |out| out.extend_from_slice(b"RSET\r\n"));
                } else if self.round.accepted.is_empty() && !wire.is_awaiting() {
                    // Every recipient was refused: the message is sent for no recipient.
                } else if self.binary || self.one_round {
                    let size = self.octets.len();
                    let command = format!("BDAT {size} LAST\r\n");
                    wire.put(|out| out.extend_from_slice(command.as_bytes()));
                    self.send_body(Body::plain(self.octets.clone()), wire);
                } else {
                    wire.command(Awaited::Data, |out| out.extend_from_slice(b"DATA\r\n"));
                }
            }
            Next::Nothing => {}
        }
    }

    fn send_body(&mut self, body: Body, wire: &mut Wire) {
        let replies = if self.lmtp {
            self.round.accepted.len()
        } else {
            1
        };
        for _ in 0..replies {
            wire.hold_reply(Awaited::Final);
        }
        self.round.body = Some(body);
    }

    /// Takes the reply awaited next.
    pub(super) fn on_reply(
        &mut self,
        awaited: Awaited,
        early: bool,
        reply: Reply,
        wire: &mut Wire,
        session: &mut Session,
    ) -> Flow {
        if early {
            return self.on_early(awaited, reply);
        }
        let fits = match awaited {
            Awaited::Data => reply.is_intermediate(),
            _ => reply.is_completion(),
        };
        if !fits && !is_refusal(&reply) {
            return wrong_kind(awaited, reply);
        }
        self.answered |= awaited == Awaited::Mail;
        match awaited {
            Awaited::Reset if reply.is_completion() => session.open = false,
            Awaited::Mail if reply.is_completion() => session.open = true,
            Awaited::Mail => {
                self.sender_refused = true;
                self.round.next = Next::Nothing;
                self.waiting.clear();
                self.settle_rest(&reply);
            }
            Awaited::Recipient(index) => self.on_recipient(index, reply),
            Awaited::Data => return self.on_data(reply, wire),
            Awaited::Final => {
                // A refused chunk leaves the transaction open (RFC 3030 section 2).
                session.open &= (self.binary || self.one_round) && is_refusal(&reply);
                self.on_final(reply);
            }
            Awaited::Lone => session.open = false,
            _ => return wrong_kind(awaited, reply),
        }
        Flow::Continue
    }

    fn on_recipient(&mut self, index: usize, reply: Reply) {
        if self.outcomes.get(index).is_none_or(Option::is_some) {
            // MAIL was refused: the replies to RCPT have no meaning.
            return;
        }
        if reply.is_completion() && self.dry_run {
            self.settle(index, RecipientOutcome::of(reply));
        } else if reply.is_completion() {
            self.round.accepted.push(index);
        } else if is_too_many(&reply) {
            self.round.too_many.push((index, reply));
        } else {
            self.settle(index, RecipientOutcome::of(reply));
        }
    }

    fn on_data(&mut self, reply: Reply, wire: &mut Wire) -> Flow {
        if is_refusal(&reply) {
            for index in std::mem::take(&mut self.round.accepted) {
                self.settle(index, RecipientOutcome::of(reply.clone()));
            }
        } else if !self.round.accepted.is_empty() {
            self.send_body(Body::stuffed(self.octets.clone()), wire);
        } else if self.lmtp {
            // LMTP gives a reply per accepted recipient; without accepted recipients the end of the text would
            // get no reply, and the state would be uncertain.
            return wrong_kind(Awaited::Data, reply);
        } else {
            wire.command(Awaited::Lone, |out| out.extend_from_slice(b".\r\n"));
        }
        Flow::Continue
    }

    fn on_final(&mut self, reply: Reply) {
        // A completion without accepted recipients delivers to no recipient.
        self.round.delivered |= reply.is_completion() && !self.round.accepted.is_empty();
        if self.lmtp {
            if let Some(index) = self.round.accepted.get(self.round.finals).copied() {
                self.settle(index, RecipientOutcome::of(reply));
            }
            self.round.finals = self.round.finals.saturating_add(1);
        } else {
            for index in std::mem::take(&mut self.round.accepted) {
                self.settle(index, RecipientOutcome::of(reply.clone()));
            }
        }
    }

    /// Handles a reply before its command was sent. A refusal in the middle of a message is believed, a success
    /// never; in both cases client and server no longer agree on the state. Without accepted recipients the
    /// refusal says nothing about the message.
    fn on_early(&mut self, awaited: Awaited, reply: Reply) -> Flow {
        if awaited == Awaited::Final && is_refusal(&reply) {
            if self.lmtp {
                self.on_final(reply);
            } else if !self.round.accepted.is_empty() {
                return Flow::Close(CloseReason::Refused(reply));
            }
        }
        let early = Misbehaviour::TooEarly(awaited.stage());
        Flow::Close(CloseReason::Misbehaved(early))
    }

    fn settle(&mut self, index: usize, outcome: RecipientOutcome) {
        if let Some(place) = self.outcomes.get_mut(index) {
            place.get_or_insert(outcome);
        }
    }

    /// Settles every recipient without an outcome.
    fn settle_rest(&mut self, reply: &Reply) {
        for place in &mut self.outcomes {
            place.get_or_insert_with(|| RecipientOutcome::of(reply.clone()));
        }
    }

    /// Settles what is open with the reply, and ends with an unusable connection.
    pub(super) fn abandon(mut self, reply: Reply) -> TransactionOutcome {
        for (index, reply) in std::mem::take(&mut self.round.too_many) {
            self.settle(index, RecipientOutcome::Deferred(reply));
        }
        self.settle_rest(&reply);
        let untried = !self.answered;
        TransactionOutcome {
            untried,
            ..self.finish(false)
        }
    }

    pub(super) fn finish(mut self, connection_usable: bool) -> TransactionOutcome {
        self.settle_rest(&transient(3, 0, "no outcome"));
        TransactionOutcome {
            recipients: self.outcomes.into_iter().flatten().collect(),
            dsn_passed_on: self.dsn,
            sender_refused: self.sender_refused,
            connection_usable,
            untried: false,
        }
    }
}

fn is_refusal(reply: &Reply) -> bool {
    reply.is_transient() || reply.is_permanent()
}

fn wrong_kind(awaited: Awaited, reply: Reply) -> Flow {
    let wrong = Misbehaviour::WrongKind(awaited.stage(), reply);
    Flow::Close(CloseReason::Misbehaved(wrong))
}

/// RFC 3030 section 4.2 with RFC 2920: a text may be sent as a chunk before the replies to the envelope arrive; a
/// server that refuses the envelope reads the chunk all the same. In LMTP the client has to know the accepted
/// recipients first.
fn goes_in_one_round(text: &[u8], session: &Session, config: &ClientConfig) -> bool {
    let extensions = &session.extensions;
    let offered = extensions.chunking && extensions.pipelining && !config.lmtp;
    offered && session.recent && text.len() <= config.one_round_max && text.ends_with(b"\r\n")
}

/// Writes an original recipient of type `utf-8` in ASCII (RFC 6533 section 3, `utf-8-addr-xtext`).
fn ascii_orcpt(orcpt: Orcpt) -> Option<Orcpt> {
    if orcpt.is_ascii() {
        return Some(orcpt);
    }
    let mut text = String::new();
    for c in orcpt.as_str().chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            text.push_str(&format!("\\x{{{:X}}}", u32::from(c)));
        }
    }
    Orcpt::parse(&text)
}
