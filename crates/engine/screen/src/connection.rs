//! The state of one connection until trust.

use crate::access::{Access, NO_RULE};
use crate::clock::Moment;
use crate::decision::Reason;
use crate::greylist::Greylisted;
use crate::question::{Inquiry, Recipient, Score, Spf};
use crate::secret::Mark;
use crate::terms::Deadlines;

/// Where a connection stands.
///
/// | phase | list | deadline | leads to |
/// |---|---|---|---|
/// | `Banner` | of clients before their greeting | none | `Greeted` |
/// | `Greeted` | of the network | first command or idle; trust | `Asked`, `Trusted` |
/// | `Asked` | of the network | answers; trust | `Greeted` |
/// | `Trusted` | none | none | the end |
/// | `Closing` | none | none | the end |
///
/// Every phase before trust leads to `Closing` too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The client waits for its greeting.
    Banner,
    /// The client's turn.
    Greeted,
    /// A recipient waits for answers.
    Asked,
    /// The connection is in the hands of a worker.
    Trusted,
    /// The host was told to close the connection.
    Closing,
}

/// The end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection is closed.
    Close(Reason),
    /// Answers that are not there count as unavailable.
    GiveUp,
}

/// One connection. The address lies in the entries of the tables, which stay while the connection is open.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The entry of the address.
    pub(crate) address: u32,
    /// The entry of the network.
    pub(crate) network: u32,
    pub(crate) arrived: Moment,
    /// The last sign of life; in `Asked`, the time of the questions.
    pub(crate) since: Moment,
    pub(crate) sender: Mark,
    /// Client, sender and the recipient that waits for answers.
    pub(crate) triplet: Mark,
    /// Number of MAIL and RCPT commands so far.
    pub(crate) round: u32,
    /// The round of the last MAIL.
    pub(crate) mail_round: u32,
    pub(crate) lists: Inquiry<Score>,
    pub(crate) spf: Inquiry<Spf>,
    pub(crate) recipient: Inquiry<Recipient>,
    /// Refusals for good.
    pub(crate) refused: u16,
    pub(crate) errors: u16,
    /// Number of the access rule that holds for client and HELO.
    pub(crate) rule: u16,
    /// Access of client and HELO.
    pub(crate) access: Access,
    /// Access of client, HELO and sender.
    pub(crate) mail_access: Access,
    pub(crate) phase: Phase,
    /// The greylist's state of the last recipient without another objection.
    pub(crate) greylisted: Option<Greylisted>,
    /// The client spoke before its greeting.
    pub(crate) early: bool,
    /// The client has given a command.
    pub(crate) spoke: bool,
}

impl Connection {
    pub(crate) const fn new(arrived: Moment, address: u32, network: u32) -> Self {
        Self {
            address,
            network,
            arrived,
            since: arrived,
            sender: [0; 16],
            triplet: [0; 16],
            round: 0,
            mail_round: 0,
            lists: Inquiry::Unasked,
            spf: Inquiry::Unasked,
            recipient: Inquiry::Unasked,
            refused: 0,
            errors: 0,
            rule: NO_RULE,
            access: Access::Ordinary,
            mail_access: Access::Ordinary,
            phase: Phase::Banner,
            greylisted: None,
            early: false,
            spoke: false,
        }
    }

    /// Whether the engine still decides about the connection.
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self.phase, Phase::Banner | Phase::Greeted | Phase::Asked)
    }

    /// The earliest deadline, if the connection has one.
    pub(crate) fn deadline(&self, deadlines: &Deadlines) -> Option<(Moment, End)> {
        let (span, end) = match self.phase {
            Phase::Greeted if self.spoke => (deadlines.idle, End::Close(Reason::Idle)),
            Phase::Greeted => (deadlines.first_command, End::Close(Reason::FirstCommand)),
            Phase::Asked => (deadlines.answers, End::GiveUp),
            Phase::Banner | Phase::Trusted | Phase::Closing => return None,
        };
        let (wait, trust) = (self.since.after(span), self.arrived.after(deadlines.trust));
        Some(if trust < wait {
            (trust, End::Close(Reason::Slow))
        } else {
            (wait, end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_small() {
        let beside = crate::wheel::TIMER_OCTETS + size_of::<crate::chain::Link>();
        let slot = crate::slab::slot_octets::<Connection>();
        assert_eq!((slot, beside), (96, 18), "128 together are wanted at most");
    }
}
