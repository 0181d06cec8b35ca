//! A volume begins where its opening has ended: changes of the journal lie on the state of the opening, and later commits
//! are followed one by one, as a mount does.

use std::collections::HashMap;

use vere_opening::{Log, OpenError, Opening, Places};
use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::accounts::{LOG_MAILBOX, PAGES_MAILBOX};
use super::boot::assemble;
use super::chain::Chain;
use super::found::Found;
use super::state::Volume;
use super::state::confirm::Confirm;
use super::step::{Moment, Notice, Step};
use crate::format::MailId;
use crate::merge::Merged;

/// What an opening has found for the time behind the beginning of a volume.
pub(super) struct Rest {
    stand_in: Option<(u16, String)>,
    log: Log,
    later: Vec<Found>,
    places: Places,
    lost_writer: u16,
    pub(super) merged: Option<Merged>,
}

impl<S: Storage> Volume<S> {
    /// The volume, as an opening has found the log and the journal.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(opening: Opening<S>, now: Moment) -> Result<Self, OpenError> {
        let (mut volume, rest) = Self::begun(opening, now)?;
        volume.set_out(rest)?;
        Ok(volume)
    }

    /// The state below commits of others, with the changes of the journal.
    pub(super) fn begun(opening: Opening<S>, now: Moment) -> Result<(Self, Rest), OpenError> {
        let of = opening.finish(now)?;
        let mut volume = assemble(
            of.terms,
            of.of,
            (of.tree, of.journal, of.memory),
            now,
            Chain::new(of.head, of.known),
        );
        volume.tell_left_out();
        volume.resume_epoch(of.epoch);
        volume.checkpoints = of.checkpoints;
        volume.follow = of.follow;
        volume.replay(&of.records, &of.replay)?;
        volume.last_id = of.last_id;
        let rest = Rest {
            stand_in: of.stand_in,
            log: of.log,
            later: of.later,
            places: of.places,
            lost_writer: of.lost_writer,
            merged: of.merged,
        };
        Ok((volume, rest))
    }

    /// Tells people of records of the journal that the start had to leave out.
    fn tell_left_out(&mut self) {
        if let Some(left) = self.journal.left_out() {
            let (file, at, octets) = (left.file.clone(), left.at, left.octets);
            let notice = Notice::LeftOut { file, at, octets };
            self.steps.push_back(Step::Log(notice));
        }
    }

    /// The volume begins its work.
    pub(super) fn set_out(&mut self, rest: Rest) -> Result<(), OpenError> {
        if let Some(copy) = rest.stand_in {
            self.stand_in(copy, rest.later, rest.places.log)?;
            return Ok(());
        }
        self.go_on((rest.log, rest.later), rest.places, rest.lost_writer)?;
        if let Some(merged) = rest.merged {
            self.tell_brought(merged);
        }
        self.advance_chain();
        Ok(())
    }

    /// Numbers of mailboxes, strategies of groups, accounts that have left.
    pub(super) fn read_facts(&mut self) -> Result<(), Errno> {
        self.read_lead()?;
        self.number_mailboxes()?;
        self.read_strategies()?;
        self.leave_out_gone();
        Ok(())
    }

    /// The volume goes on under its lead. `later` are commits behind the one on which changes of the journal lie.
    fn go_on(
        &mut self,
        (log, later): (Log, Vec<Found>),
        places: Places,
        lost_writer: u16,
    ) -> Result<(), OpenError> {
        let uid_validity = places.log;
        self.accounts
            .number(self.terms.lead, LOG_MAILBOX, uid_validity);
        if self.is_of_another_machine() {
            self.writer = 0;
        }
        self.tend_epoch();
        self.begin_confirming(places.first, (&log, &later), uid_validity)?;
        if self.writer == 0 {
            self.note_writer(lost_writer)?;
        }
        self.begin(&later)?;
        self.note_base()?;
        self.read_facts()?;
        self.place_pages(places.pages, places.moved);
        self.begin_mirrors(log.chain.iter().chain(&later), uid_validity);
        self.catch_up(later, uid_validity);
        self.begin_scan();
        self.follow_others(log.outside);
        self.begin_sending();
        self.make_copies();
        Ok(())
    }

    /// A volume that was opened by the local disk alone has the log from this UID on to compare with.
    fn begin_confirming(
        &mut self,
        first: Option<u32>,
        (log, later): (&Log, &[Found]),
        uid_validity: u32,
    ) -> Result<(), OpenError> {
        let Some(first) = first else {
            self.memory.seen(self.now.millis());
            return Ok(());
        };
        if self.writer == 0 {
            return Err(OpenError::Unsure);
        }
        let newest = later.last().or(log.chain.last());
        let newest = newest.map(|found| found.won(uid_validity));
        let all = log.chain.iter().chain(later).chain(&log.outside);
        let oldest = log.chain.first().or(later.first());
        let below = oldest.map_or(MailId::NONE, |oldest| oldest.record.parent);
        self.confirm = newest.map(|newest| Confirm::new(newest, (first, below), all));
        Ok(())
    }

    /// Takes over where the opening has found page mails; none found leaves the numbers as they are.
    fn place_pages(&mut self, uid_validity: u32, moved: HashMap<MailId, u32>) {
        if uid_validity != 0 {
            let lead = self.terms.lead;
            self.accounts.number(lead, PAGES_MAILBOX, uid_validity);
        }
        let moved = moved.into_iter();
        self.pages.moved = moved
            .map(|(mail, uid)| (mail, (uid_validity, uid)))
            .collect();
    }
}
