//! The events of a session, from the greeting to trust.

use vere_units::Timestamp;

use crate::access::{Access, Known, NO_RULE, first_match};
use crate::connection::{Connection, Phase};
use crate::decision::{Decision, Reason};
use crate::question::{Answer, Inquiry, Questions, Score};
use crate::screen::Screen;
use crate::slab::{StaleTicket, Ticket};
use crate::terms::{EarlyTalk, Terms};

/// The engine's answer to MAIL or RCPT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The host asks the questions, all at once. MAIL is answered with 250 at once; RCPT waits for a decision of
    /// [`Screen::answered`] or [`Screen::due`].
    Ask(Questions),
    /// The command is decided.
    Decided(Decision),
}

impl Screen {
    /// The client sent octets before its greeting.
    ///
    /// # Errors
    ///
    /// [`StaleTicket`], also if the connection is trusted or was told to close.
    pub fn spoke_early(&mut self, ticket: Ticket) -> Result<Option<Decision>, StaleTicket> {
        let connection = self.crowd.live(ticket)?;
        if connection.phase != Phase::Banner {
            return Ok(None);
        }
        connection.early = true;
        if self.terms.banner.early != EarlyTalk::Refuse {
            return Ok(None);
        }
        self.close(ticket, Reason::EarlyTalk);
        Ok(Some(Decision::Close(Reason::EarlyTalk)))
    }

    /// The client gave a sign of life that is no command of its own, such as part of a line.
    ///
    /// # Errors
    ///
    /// [`StaleTicket`], also if the connection is trusted or was told to close.
    pub fn activity(&mut self, now: Timestamp, ticket: Ticket) -> Result<(), StaleTicket> {
        let now = self.clock.at(now);
        let connection = self.crowd.live(ticket)?;
        // The timer stays: when it runs out, the deadline is computed again.
        if connection.phase == Phase::Greeted && connection.spoke {
            connection.since = now;
        }
        Ok(())
    }

    /// The client gave a command that has no event of its own.
    ///
    /// # Errors
    ///
    /// [`StaleTicket`], also if the connection is trusted or was told to close.
    pub fn command(&mut self, now: Timestamp, ticket: Ticket) -> Result<(), StaleTicket> {
        let now = self.clock.at(now);
        self.heard(now, ticket).map(drop)
    }

    /// The client said HELO or EHLO. The decision is a refusal by a rule of access.
    ///
    /// # Errors
    ///
    /// [`StaleTicket`], also if the connection is trusted or was told to close.
    pub fn said_helo(
        &mut self,
        now: Timestamp,
        ticket: Ticket,
        helo: &str,
    ) -> Result<Option<Decision>, StaleTicket> {
        let now = self.clock.at(now);
        let address = self.heard(now, ticket)?.address;
        let known = Known {
            client: self.crowd.addresses.at(address).place,
            helo: Some(helo),
            sender: None,
        };
        let (rule, access) = first_match(&self.terms.access, NO_RULE, Access::Ordinary, known);
        let connection = self.crowd.live(ticket)?;
        connection.rule = rule;
        connection.access = access;
        connection.mail_access = access;
        if access == Access::Refuse {
            return self.refuse(ticket, Reason::Access).map(Some);
        }
        Ok(None)
    }

    /// The client began a transaction. `sender` is the reverse-path without brackets and route, empty for the null one.
    ///
    /// # Errors
    ///
    /// [`StaleTicket`], also if the connection is trusted or was told to close.
    pub fn mail(
        &mut self,
        now: Timestamp,
        ticket: Ticket,
        sender: &str,
    ) -> Result<Step, StaleTicket> {
        let now = self.clock.at(now);
        let connection = self.heard(now, ticket)?;
        let (address, rule, access) = (connection.address, connection.rule, connection.access);
        let known = Known {
            client: self.crowd.addresses.at(address).place,
            helo: None,
            sender: Some(sender),
        };
        let (_, access) = first_match(&self.terms.access, rule, access, known);
        let connection = self.crowd.live(ticket)?;
        connection.mail_access = access;
        if access == Access::Refuse {
            return self.refuse(ticket, Reason::Access).map(Step::Decided);
        }
        connection.sender = self.secret.sender(sender);
        connection.round = connection.round.wrapping_add(1);
        connection.mail_round = connection.round;
        let asks = access == Access::Ordinary && !is_kept_until_quit(connection, &self.terms);
        let spf = asks && self.terms.spf.is_some();
        connection.spf = if spf {
            Inquiry::Pending
        } else {
            Inquiry::Unasked
        };
        let lists = asks && self.terms.lists.is_some() && connection.lists == Inquiry::Unasked;
        if lists {
            connection.lists = Inquiry::Pending;
        }
        Ok(Step::Ask(Questions {
            round: connection.round,
            lists,
            spf,
            recipient: false,
        }))
    }

    /// The client named a recipient: `recipient` is the forward-path without brackets and route. A recipient without a
    /// transaction is the host's to refuse.
    ///
    /// # Errors
    ///
    /// [`StaleTicket`], also if the connection is trusted or was told to close.
    pub fn recipient(
        &mut self,
        now: Timestamp,
        ticket: Ticket,
        recipient: &str,
    ) -> Result<Step, StaleTicket> {
        let now = self.clock.at(now);
        let connection = self.heard(now, ticket)?;
        if connection.mail_access == Access::Refuse {
            return self.refuse(ticket, Reason::Access).map(Step::Decided);
        }
        let (sender, network) = (connection.sender, connection.network);
        let network = self.crowd.networks.at(network).place;
        let connection = self.crowd.live(ticket)?;
        if is_kept_until_quit(connection, &self.terms) {
            let refusal = self.refuse(ticket, Reason::EarlyTalk);
            return refusal.map(Step::Decided);
        }
        connection.phase = Phase::Asked;
        connection.triplet = self.secret.triplet(network, &sender, recipient);
        connection.recipient = Inquiry::Pending;
        connection.round = connection.round.wrapping_add(1);
        let round = connection.round;
        if let Some(decision) = self.decide(now, ticket)? {
            return Ok(Step::Decided(decision));
        }
        self.crowd.arm(ticket, &self.terms.deadlines);
        Ok(Step::Ask(Questions {
            round,
            recipient: true,
            ..Questions::default()
        }))
    }

    /// An answer came. `round` is that of the question; an answer to a question of an earlier transaction or recipient
    /// has no effect. The decision is about the recipient that waits.
    ///
    /// # Errors
    ///
    /// [`StaleTicket`], also if the connection is trusted or was told to close.
    pub fn answered(
        &mut self,
        now: Timestamp,
        ticket: Ticket,
        round: u32,
        answer: Answer<'_>,
    ) -> Result<Option<Decision>, StaleTicket> {
        let now = self.clock.at(now);
        let connection = self.crowd.live(ticket)?;
        match answer {
            Answer::Lists { listings, complete } if connection.lists != Inquiry::Unasked => {
                connection.lists = Inquiry::Known(Score::of(listings, complete));
            }
            Answer::Spf(spf)
                if round == connection.mail_round && connection.spf != Inquiry::Unasked =>
            {
                connection.spf = Inquiry::Known(spf);
            }
            Answer::Recipient(recipient)
                if round == connection.round && connection.phase == Phase::Asked =>
            {
                connection.recipient = Inquiry::Known(recipient);
            }
            _ => return Ok(None),
        }
        if connection.phase != Phase::Asked {
            return Ok(None);
        }
        self.decide(now, ticket)
    }

    /// A command of the client was an error. The decision closes the connection after too many errors.
    ///
    /// # Errors
    ///
    /// [`StaleTicket`], also if the connection is trusted or was told to close.
    pub fn error(
        &mut self,
        now: Timestamp,
        ticket: Ticket,
    ) -> Result<Option<Decision>, StaleTicket> {
        let now = self.clock.at(now);
        let connection = self.heard(now, ticket)?;
        connection.errors = connection.errors.saturating_add(1);
        if connection.errors < self.terms.limits.errors_max {
            return Ok(None);
        }
        self.close(ticket, Reason::Errors);
        Ok(Some(Decision::Close(Reason::Errors)))
    }
}

/// Whether the client spoke before its greeting, and its recipients are refused for that.
fn is_kept_until_quit(connection: &Connection, terms: &Terms) -> bool {
    connection.early && terms.banner.early != EarlyTalk::Ignore
}
