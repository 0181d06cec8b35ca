//! Questions of a session and their answers, until a worker gets the session.

use std::io::{self, Write as _};
use std::time::Instant;

use mio::net::TcpStream;
use vere_handoff::note::{Greylist, Note};
use vere_handoff::question::{Listing as Listed, Sender, Spf, SpfResults};
use vere_handoff::session::STATE_OCTETS_MAX;
use vere_process::refusals;
use vere_screen::{Answer, Decision, Greylisted, Listing, Reason, Recipient, Step, Ticket};
use vere_screening::{ascii_sender, refusal, result, told};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::{Answer as Reply, Question};
use vere_units::Timestamp;

use super::broker::{Answered, Told};
use super::door::SERVICE;
use super::host::{Host, slot};
use super::link::Link;
use super::replies::{BUSY, LAST_WORDS};

impl Host {
    /// Gives a session an answer. False: the session has left for a worker.
    pub(crate) fn answer(
        &mut self,
        ticket: Ticket,
        answer: Result<(), Refusal>,
        now: Timestamp,
    ) -> bool {
        let Some(guest) = self.guest(ticket) else {
            return false;
        };
        guest.server.answer(Reply::Policy(answer), now);
        if guest.server.has_recipient() {
            self.hand_over(ticket, now);
            return false;
        }
        true
    }

    /// Answers a question of a session, if the answer is known.
    pub(crate) fn ask(
        &mut self,
        ticket: Ticket,
        question: Question,
        now: Timestamp,
    ) -> Option<Result<(), Refusal>> {
        match question {
            Question::Mail(mail) => {
                let sender = mail.reverse_path.as_str();
                let answer = self.mail(ticket, sender, now);
                self.log(ticket, sender, answer.as_ref().err());
                Some(answer)
            }
            Question::Recipient(rcpt) => {
                let address = rcpt.forward_path.as_str();
                match self.recipient(ticket, address, now) {
                    Ok(()) => {
                        if let Some(guest) = self.guest(ticket) {
                            guest.asked = address.to_owned();
                            guest.asked_at = Instant::now();
                        }
                        None
                    }
                    Err(refusal) => {
                        self.log_recipient(ticket, address, &refusal);
                        Some(Err(refusal))
                    }
                }
            }
            // Neither authentication nor XCLIENT is offered, and text goes to a worker.
            _ => Some(Err(Refusal::LocalError)),
        }
    }

    fn mail(&mut self, ticket: Ticket, sender: &str, now: Timestamp) -> Result<(), Refusal> {
        if let Some(closed) = self.gateway.closed() {
            return Err(closed.clone());
        }
        let helo = self
            .guest(ticket)
            .and_then(|guest| guest.server.helo().cloned());
        let helo = helo.map(|helo| helo.to_string()).unwrap_or_default();
        // A name that is refused is refused with MAIL.
        if let Ok(Some(decision)) = self.screen.said_helo(now, ticket, &helo) {
            return self.decided(ticket, decision);
        }
        match self.screen.mail(now, ticket, &ascii_sender(sender)) {
            Ok(Step::Decided(decision)) => match decision {
                Decision::Refuse(Reason::Access) => Err(Refusal::SenderRefused),
                decision => self.decided(ticket, decision),
            },
            Ok(Step::Ask(questions)) => {
                if let Some(guest) = self.guest(ticket) {
                    guest.spf_round = questions.spf.then_some(questions.round);
                    guest.spf_asked = guest.spf_round;
                    guest.spf_helo = None;
                }
                if questions.lists {
                    self.ask_lists(ticket, questions.round, now);
                }
                Ok(())
            }
            // The screen has given the connection up.
            Err(_) => Err(Refusal::Busy),
        }
    }

    /// Asks for the lists that have the client, once in a session; the answer waits for the first recipient.
    fn ask_lists(&mut self, ticket: Ticket, round: u32, now: Timestamp) {
        let client = self
            .guest(ticket)
            .map(|guest| guest.server.peer().address.ip());
        let is_asked = client.is_some_and(|client| self.broker.ask_lists((ticket, round), client));
        if !is_asked {
            let answer = Answer::Lists {
                listings: &[],
                complete: false,
            };
            // No recipient waits yet, so that nothing is decided.
            let _ = self.screen.answered(now, ticket, round, answer);
        }
    }

    /// Asks for SPF, once for a sender and with the first recipient: a client has one question at a time, however many senders it
    /// names. Returns the decision that needs no answer.
    fn ask_spf(&mut self, ticket: Ticket, now: Timestamp) -> Option<Decision> {
        let guest = self.guest(ticket)?;
        let round = guest.spf_round.take()?;
        let client = guest.server.peer().address.ip();
        let helo = guest.server.helo().map(ToString::to_string);
        let sender = guest.server.mail_from();
        let sender = sender.map(|mail| mail.reverse_path.as_str().to_owned());
        let (helo, sender) = (helo.unwrap_or_default(), sender.unwrap_or_default());
        let question = Sender::new(client, &helo, &sender);
        let is_asked = question.is_ok_and(|sender| self.broker.ask_spf((ticket, round), sender));
        if is_asked {
            return None;
        }
        let answer = Answer::Spf(result(Spf::TempError));
        let decided = self.screen.answered(now, ticket, round, answer);
        decided.ok().flatten()
    }

    /// Asks about a recipient. The answer comes later.
    fn recipient(&mut self, ticket: Ticket, address: &str, now: Timestamp) -> Result<(), Refusal> {
        if !self.workers.has_room() {
            return Err(Refusal::Busy);
        }
        let Some(guest) = self.guest(ticket) else {
            return Err(Refusal::Busy);
        };
        let peer = guest.server.peer();
        let client = (peer.address.ip(), peer.may_relay);
        match self.screen.recipient(now, ticket, address) {
            Ok(Step::Decided(decision)) => self.decided(ticket, decision),
            Ok(Step::Ask(questions)) => {
                if let Some(decision) = self.ask_spf(ticket, now) {
                    return self.decided(ticket, decision);
                }
                if let Some(guest) = self.guest(ticket) {
                    (guest.round, guest.refusal) = (questions.round, None);
                }
                self.broker.ask((ticket, questions.round), address, client)
            }
            Err(_) => Err(Refusal::Busy),
        }
    }

    /// A decision as an answer; one that closes the connection ends the session behind the answer.
    pub(crate) fn decided(&mut self, ticket: Ticket, decision: Decision) -> Result<(), Refusal> {
        if matches!(decision, Decision::Close(_))
            && let Some(guest) = self.guest(ticket)
        {
            guest.server.shut_down();
        }
        let Some(refusal) = refusal(decision) else {
            return Ok(());
        };
        // The words of a refusal by a list are the list's.
        if decision.reason() == Some(Reason::Listed)
            && let Some(guest) = self.guest(ticket)
            && let Some(listed) = guest.listed.as_deref()
        {
            let client = guest.server.peer().address.ip();
            let (list, text) = listed;
            return Err(vere_screening::listed(decision, client, list, text));
        }
        Err(refusal)
    }

    /// Takes answers of the broker.
    pub(crate) fn answers(&mut self, answers: Vec<Answered>, now: Timestamp) {
        for ((ticket, round), told) in answers {
            let mut listings = Vec::new();
            let answer = match &told {
                Told::Lists(told) => {
                    if let Some(guest) = self.guest(ticket)
                        && !told.name().is_empty()
                    {
                        let listed = (told.name().to_owned(), told.text().to_owned());
                        guest.listed = Some(Box::new(listed));
                    }
                    listings.extend(told.listings().iter().map(listing));
                    Answer::Lists {
                        listings: &listings,
                        complete: told.is_complete(),
                    }
                }
                Told::Spf(results) => {
                    if let Some(guest) = self.guest(ticket)
                        && guest.spf_asked == Some(round)
                    {
                        guest.spf_helo = results.helo;
                    }
                    Answer::Spf(result(results.decisive()))
                }
                Told::Recipient(Ok(())) => Answer::Recipient(Recipient::Accepted),
                Told::Recipient(Err(refusal)) => Answer::Recipient(kind(refusal)),
            };
            let decided = self.screen.answered(now, ticket, round, answer);
            if let Told::Recipient(Err(refusal)) = told
                && let Some(guest) = self.guest(ticket)
                && guest.round == round
            {
                guest.refusal = Some(refusal);
            }
            if let Ok(Some(decision)) = decided {
                self.conclude(ticket, decision, now);
            }
        }
    }

    /// Tells the client the decision about its recipient.
    pub(crate) fn conclude(&mut self, ticket: Ticket, decision: Decision, now: Timestamp) {
        let answer = self.decided(ticket, decision);
        let known = self.guest(ticket).and_then(|guest| guest.refusal.take());
        // The broker knows the reason better than its kind.
        let answer = match (decision.reason(), known) {
            (
                Some(
                    Reason::RecipientUnknown
                    | Reason::RecipientRefused
                    | Reason::RecipientDeferred
                    // The session ends behind the last of the refusals.
                    | Reason::Refusals,
                ),
                Some(refusal),
            ) => Err(refusal),
            _ => answer,
        };
        self.log_asked(ticket, answer.as_ref().err());
        if self.answer(ticket, answer, now) {
            self.serve(ticket, now);
        }
    }

    /// Gives a session with an accepted recipient to a worker.
    fn hand_over(&mut self, ticket: Ticket, now: Timestamp) {
        let guest = self.guests.get_mut(slot(ticket)).and_then(Option::take);
        let Some(guest) = guest else {
            return;
        };
        let (since, helo) = (guest.asked_at, guest.spf_helo);
        let (server, mut link, unread) = guest.into_parts();
        let _ = self.poll.registry().deregister(link.source());
        match server.hand_over() {
            Ok(handover) => {
                let found = self.screen.findings(ticket).ok();
                let sender = found.and_then(|found| found.spf).map(told);
                let spf = sender.map(|sender| SpfResults { sender, helo });
                let greylist = found.and_then(|found| found.greylisted);
                let greylist = greylist.and_then(state_for_worker);
                let note = Note { spf, greylist };
                let mut state = Vec::new();
                handover.with_note(note.octet()).encode(&mut state);
                if state.len() > STATE_OCTETS_MAX {
                    tracing::warn!(octets = state.len(), "session too large for a worker");
                    let _ = link.write_last(LAST_WORDS);
                    let _ = self.screen.left(ticket);
                    return;
                }
                let _ = self.screen.trusted(now, ticket);
                let parts = (&state[..], &unread[..]);
                self.workers.give(ticket, link, parts, since, now);
            }
            Err((_, refused)) => {
                tracing::error!(%refused, "session cannot be handed over");
                let _ = link.write_last(LAST_WORDS);
                let _ = self.screen.left(ticket);
            }
        }
    }

    /// Gives a worker a client that has said nothing.
    ///
    /// # Errors
    /// When the client is gone.
    pub(crate) fn give_at_once(
        &mut self,
        ticket: Ticket,
        mut stream: TcpStream,
        now: Timestamp,
    ) -> io::Result<()> {
        if !self.workers.has_room() {
            let _ = self.screen.left(ticket);
            return stream.write_all(BUSY);
        }
        let _ = self.screen.trusted(now, ticket);
        let nothing = (&[][..], &[][..]);
        let link = Link::Clear(stream);
        self.workers
            .give(ticket, link, nothing, Instant::now(), now);
        Ok(())
    }

    /// Writes lines about what the session's machine has refused.
    pub(crate) fn note(&mut self, ticket: Ticket) {
        if let Some(guest) = self.guest(ticket) {
            let notes = guest.server.take_notes();
            refusals::noted(SERVICE, &guest.server, &notes.refused);
        }
    }

    /// Writes a line about the refusal of the recipient that was asked about.
    pub(crate) fn log_asked(&mut self, ticket: Ticket, refusal: Option<&Refusal>) {
        let guest = self.guest(ticket);
        let asked = guest.map(|guest| std::mem::take(&mut guest.asked));
        if let (Some(asked), Some(refusal)) = (asked, refusal) {
            self.log_recipient(ticket, &asked, refusal);
        }
    }

    fn log_recipient(&mut self, ticket: Ticket, recipient: &str, refusal: &Refusal) {
        if let Some(guest) = self.guest(ticket) {
            refusals::log_recipient(SERVICE, &guest.server, recipient, Some(refusal));
        }
    }

    fn log(&mut self, ticket: Ticket, sender: &str, refusal: Option<&Refusal>) {
        if let Some(guest) = self.guest(ticket) {
            refusals::log(SERVICE, &guest.server, sender, refusal);
        }
    }
}

/// An entry as the screen has it.
const fn listing(told: &Listed) -> Listing {
    Listing {
        list: told.list,
        weight: told.weight,
    }
}

/// The kind of a broker's refusal.
fn kind(refusal: &Refusal) -> Recipient {
    match refusal {
        Refusal::MailboxUnknown | Refusal::DomainUnknown => Recipient::Unknown,
        refusal if refusal.is_permanent() => Recipient::Refused,
        _ => Recipient::Deferred,
    }
}

/// The greylist's state for the worker; a new triplet has no accepted recipient.
const fn state_for_worker(found: Greylisted) -> Option<Greylist> {
    match found {
        Greylisted::New => None,
        Greylisted::Passed => Some(Greylist::Passed),
        Greylisted::Known => Some(Greylist::Known),
        Greylisted::Exempt => Some(Greylist::Exempt),
    }
}
