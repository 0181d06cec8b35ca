//! The key slot that opened a mount. Another machine may remove the slot, or give the slot another secret, while the mount runs.
//!
//! The removal of the slot ends the right of the machine to the volume: the mount turns read-only, sends nothing more, and keeps the
//! journal for a mount with a slot that counts. Programs can read on, so that a person can save open work elsewhere. A slot with
//! another secret still counts: the mount goes on, and log and status name the need of the next mount for the new secret.

use vere_ports::storage::Storage;

use super::state::Volume;
use super::state::follow::OwnSlot;
use super::step::{Notice, Step};
use crate::format::MailId;
use crate::format::commit::RowChange;
use crate::format::slot::Slot;
use crate::rows::{Key, RowValue, SlotRow};

impl<S: Storage> Volume<S> {
    /// Tells the volume the slot of the opening.
    pub fn use_slot(&mut self, number: u8, mail: MailId) {
        self.follow.slot = Some(OwnSlot {
            number,
            mail,
            is_renewed: false,
        });
    }

    /// A line for people, if the next mount needs another secret.
    pub(super) fn slot_line(&self) -> Option<String> {
        let own = self.follow.slot.filter(|own| own.is_renewed)?;
        Some(Notice::Renewed(own.number).to_string())
    }

    /// Whether the mount may send nothing, because a commit would harm, or would count for nobody.
    pub(super) fn is_stopped(&self) -> bool {
        let ends = self.read_only.as_ref().is_some_and(ends_sending);
        ends || self.stand_in.is_some() || self.is_retired()
    }

    /// Another mount has changed rows; perhaps the row of the slot.
    pub(super) fn heed_slots(&mut self, rows: &[RowChange]) {
        let Some(mut own) = self.follow.slot else {
            return;
        };
        let key = Key::Slot(own.number).encode();
        for row in rows.iter().filter(|row| row.key == key) {
            let Some(value) = &row.value else {
                // The number may be given to another slot by a later commit.
                self.fail(Notice::Revoked(own.number));
                return;
            };
            // An unreadable row is a matter of the next mount, without trust in any slot.
            if let Ok(row) = SlotRow::decode(value)
                && row.mail != own.mail
            {
                own.mail = row.mail;
                own.is_renewed = true;
                self.steps.push_back(Step::Log(Notice::Renewed(own.number)));
            }
        }
        self.follow.slot = Some(own);
    }

    /// A command of this machine has changed slots.
    pub(super) fn note_own_slots(&mut self, slots: &[Slot]) {
        if let Some(own) = &mut self.follow.slot
            && let Some(slot) = slots.iter().find(|slot| slot.number == own.number)
        {
            own.mail = slot.head.mail;
            own.is_renewed = false;
        }
    }
}

/// Whether a mount may send nothing more, for this reason.
pub(super) const fn ends_sending(notice: &Notice) -> bool {
    matches!(
        notice,
        Notice::Buried(_) | Notice::Revoked(_) | Notice::NewKeys
    )
}
