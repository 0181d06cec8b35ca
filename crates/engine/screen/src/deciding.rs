//! Decisions about the recipient that waits for answers.

use crate::access::Access;
use crate::clock::Moment;
use crate::connection::{Connection, Phase};
use crate::decision::{Decision, Reason};
use crate::greylist::Greylisted;
use crate::judge::{Judgement, judge};
use crate::question::{Recipient, Score, Spf};
use crate::screen::Screen;
use crate::slab::{StaleTicket, Ticket};

impl Screen {
    /// Notes a command. A host that reads commands has greeted the client, and a new command gives up a recipient that
    /// waits.
    pub(crate) fn heard(
        &mut self,
        now: Moment,
        ticket: Ticket,
    ) -> Result<&mut Connection, StaleTicket> {
        if self.crowd.live(ticket)?.phase == Phase::Banner {
            self.crowd.greet(ticket, now)?;
        }
        let connection = self.crowd.live(ticket)?;
        connection.phase = Phase::Greeted;
        connection.spoke = true;
        connection.since = now;
        self.crowd.arm(ticket, &self.terms.deadlines);
        self.crowd.live(ticket)
    }

    /// Decides about the recipient that waits, if the answers that are there suffice.
    pub(crate) fn decide(
        &mut self,
        now: Moment,
        ticket: Ticket,
    ) -> Result<Option<Decision>, StaleTicket> {
        let decision = match judge(self.crowd.live(ticket)?, &self.terms) {
            Judgement::Wait => return Ok(None),
            Judgement::Refuse(reason) => Decision::Refuse(reason),
            Judgement::Defer(reason) => Decision::Defer(reason),
            Judgement::Pass => match self.greylisted(now, ticket)? {
                Some(Greylisted::New) => Decision::Defer(Reason::Greylisted),
                _ => Decision::Accept,
            },
        };
        self.heard(now, ticket)?;
        if let Decision::Refuse(reason) = decision {
            return self.refuse_recipient(now, ticket, reason).map(Some);
        }
        self.tally.count(decision);
        Ok(Some(decision))
    }

    /// Decides about a recipient whose answers did not come in time.
    pub(crate) fn give_up(&mut self, now: Moment, ticket: Ticket) -> Option<Decision> {
        let connection = self.crowd.live(ticket).ok()?;
        connection.lists.give_up(Score::NO_ANSWER);
        connection.spf.give_up(Spf::TempError);
        connection.recipient.give_up(Recipient::Deferred);
        self.decide(now, ticket).ok().flatten()
    }

    /// The greylist's state of the recipient that waits; `None` without a greylist.
    fn greylisted(
        &mut self,
        now: Moment,
        ticket: Ticket,
    ) -> Result<Option<Greylisted>, StaleTicket> {
        let found = self.look_up(now, ticket)?;
        self.crowd.live(ticket)?.greylisted = found;
        Ok(found)
    }

    fn look_up(&mut self, now: Moment, ticket: Ticket) -> Result<Option<Greylisted>, StaleTicket> {
        let connection = self.crowd.held(ticket)?;
        let Some(terms) = self.terms.greylisting.as_ref() else {
            return Ok(None);
        };
        if connection.mail_access != Access::Ordinary {
            return Ok(Some(Greylisted::Exempt));
        }
        let score = connection.lists.known();
        let lists = self.terms.lists.as_ref();
        let allowed = lists.and_then(|lists| lists.allow_threshold);
        if let (Some(score), Some(allowed)) = (score, allowed)
            && score.sum <= allowed
        {
            return Ok(Some(Greylisted::Exempt));
        }
        let network = self.crowd.networks.at(connection.network).place;
        let client = self.secret.client(network);
        let now = self.clock.date(now);
        let state = self.greylist.note(now, &client, &connection.triplet, terms);
        Ok(Some(state))
    }

    /// Refuses a recipient, and closes the connection if its address or network has had too many that do not exist.
    fn refuse_recipient(
        &mut self,
        now: Moment,
        ticket: Ticket,
        reason: Reason,
    ) -> Result<Decision, StaleTicket> {
        let connection = self.crowd.held(ticket)?;
        let (address, network) = (connection.address, connection.network);
        let is_bound = connection.access != Access::Allow;
        if is_bound
            && matches!(reason, Reason::RecipientUnknown | Reason::RecipientRefused)
            && self.count_refusal(now, address, network)
        {
            self.close(ticket, Reason::Refusals);
            return Ok(Decision::Close(Reason::Refusals));
        }
        self.refuse(ticket, reason)
    }

    /// Refuses a command, and closes the connection after too many refusals.
    pub(crate) fn refuse(
        &mut self,
        ticket: Ticket,
        reason: Reason,
    ) -> Result<Decision, StaleTicket> {
        let connection = self.crowd.live(ticket)?;
        connection.refused = connection.refused.saturating_add(1);
        if connection.refused >= self.terms.limits.refusals_max {
            self.close(ticket, Reason::Refusals);
            return Ok(Decision::Close(Reason::Refusals));
        }
        let decision = Decision::Refuse(reason);
        self.tally.count(decision);
        Ok(decision)
    }

    /// Counts a recipient that does not exist for address and network, and says whether either has had too many.
    pub(crate) fn count_refusal(&mut self, now: Moment, address: u32, network: u32) -> bool {
        let limits = &self.terms.limits;
        let address = &mut self.crowd.addresses.at_mut(address).refusals;
        let network = &mut self.crowd.networks.at_mut(network).refusals;
        let spent = address.is_spent(now, limits.refused_per_address)
            || network.is_spent(now, limits.refused_per_network);
        address.count(now, limits.refused_per_address);
        network.count(now, limits.refused_per_network);
        spent
    }
}
