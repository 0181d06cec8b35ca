//! A volume that was opened from a copy, because the lead does not answer: whatever the copy has can be read. Nothing is sent, and
//! the journal keeps what was changed before.

use vere_ports::files::Errno;
use vere_ports::mail_accounts::AccountId;
use vere_ports::storage::Storage;

use super::found::Found;
use super::record::Won;
use super::state::Volume;
use super::step::Notice;

impl<S: Storage> Volume<S> {
    /// The volume begins as the copy on an account has the volume. `later` are commits behind the one on which changes of the
    /// journal lie.
    pub(super) fn stand_in(
        &mut self,
        (account, reason): (u16, String),
        later: Vec<Found>,
        uid_validity: u32,
    ) -> Result<(), Errno> {
        self.chain.stand();
        self.stand_in = Some(account);
        self.read_facts()?;
        self.fail(Notice::StandIn {
            lead: AccountId(self.terms.lead),
            account: AccountId(account),
            reason,
        });
        self.catch_up(later, uid_validity);
        // A watch tells when the lead answers.
        self.follow_others(Vec::new());
        self.ask_quotas();
        Ok(())
    }

    /// A commit of the chain for the journal: places of a copy say nothing about the lead's log.
    pub(super) fn noted(&self, won: Won) -> Won {
        match self.stand_in {
            Some(_) => won.without_place(),
            None => won,
        }
    }

    /// The account from whose copy the volume was opened, while the lead does not answer.
    #[must_use]
    pub const fn stands_in(&self) -> Option<u16> {
        self.stand_in
    }
}
