//! The end of a check: findings, and repair.

use vere_inventory::verified::{Verified, report_packs};
use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::super::state::Volume;
use super::compare::Comparison;
use super::inspect::{Suspect, Verdict};
use super::rows::{RowChange, Writing};
use super::state::{Stage, Then, Upkeep, What};
use crate::rows::Key;

impl<S: Storage> Volume<S> {
    /// Names the files of wrong packs, and begins the repair if wanted.
    pub(super) fn end_check(
        &mut self,
        upkeep: &mut Upkeep,
        verdicts: &[(Suspect, Verdict)],
    ) -> Result<(), Errno> {
        let What::Check(terms, report) = &mut upkeep.what else {
            return Ok(());
        };
        let verified = Verified::of(verdicts, report);
        let tree = self.files.tree();
        report_packs(tree, &upkeep.comparison, &verified, report)?;
        verified.check_places(tree, report)?;
        self.note_check()?;
        report.findings.sort();
        if terms.repair {
            let changes = self.repair(&upkeep.comparison, &verified);
            report.repaired = changes.len();
            upkeep.stage = Stage::Write(Writing::new(changes), Then::Copy);
        }
        Ok(())
    }

    /// The rows to be changed; copies to be made are noted.
    fn repair(&mut self, comparison: &Comparison, verified: &Verified) -> Vec<RowChange> {
        let generation = self.chain.end().1.saturating_add(1);
        let present = (generation, self.now.millis());
        let (changes, lacking) = verified.repair(comparison, &self.accounts, present);
        for (account, number) in lacking {
            self.replicas.lacks(account, number);
        }
        for ((account, mailbox), (_, found)) in &comparison.renumbered {
            self.numbered(*account, *mailbox, *found);
        }
        changes
    }

    /// Every copy that can be made now is made.
    pub(super) fn end_copies(&mut self, upkeep: &mut Upkeep) {
        upkeep.stage = Stage::Over;
        if let What::Check(_, report) = &mut upkeep.what {
            let changed = upkeep.comparison.packs.keys();
            let keys: Vec<Vec<u8>> = changed
                .map(|number| Key::Pack(*number).encode())
                .filter(|key| self.commits.holds(key))
                .collect();
            report.repaired = report.repaired.saturating_add(keys.len());
            upkeep.stage = Stage::Write(Writing::of_keys(keys), Then::End);
        }
    }
}
