//! Strategies of groups: the members for a write to wait for, and the member for a read to ask.

use super::state::Volume;
use super::step::Moment;
use super::strategy::Strategy;
use crate::rows::{GroupRow, Key, RowValue};
use vere_ports::files::Errno;
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// The strategies as rows have them.
    pub(super) fn read_strategies(&mut self) -> Result<(), Errno> {
        for (group, _) in self.group_members() {
            if let Some(row) = self.group_row(group)? {
                let strategy = Strategy::of_row(row.strategy);
                self.accounts.set_strategy(group, strategy);
            }
        }
        Ok(())
    }

    /// Gives every group a strategy, from now on and for every later mount.
    pub fn set_strategy(&mut self, now: Moment, strategy: Strategy) {
        self.at(now);
        for (group, accounts) in self.group_members() {
            self.accounts.set_strategy(group, strategy);
            // A damaged row is written anew, with the members of the mount.
            let before = self.group_row(group).ok().flatten();
            let row = GroupRow {
                strategy: strategy.number(),
                ..before.clone().unwrap_or(GroupRow {
                    strategy: 0,
                    sync_copies: u8::try_from(self.terms.sync_copies).unwrap_or(u8::MAX),
                    accounts,
                })
            };
            if before.as_ref() != Some(&row) {
                self.put_row(Key::Group(group).encode(), row.encode());
                self.commits.since.get_or_insert(now.steady);
            }
        }
        for pack in self.accounts.rested() {
            self.send_pack(pack);
        }
    }

    /// The strategy of the first group.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        let mut strategies = self.accounts.strategies();
        let first = strategies.next();
        first.map_or(Strategy::default(), |(_, strategy)| strategy)
    }

    fn group_row(&self, group: u16) -> Result<Option<GroupRow>, Errno> {
        let row = self.files.tree().get(&Key::Group(group).encode())?;
        Ok(row.as_deref().and_then(|row| GroupRow::decode(row).ok()))
    }

    fn group_members(&self) -> Vec<(u16, Vec<u16>)> {
        let groups = self.accounts.groups();
        groups
            .map(|(group, accounts)| (group, accounts.to_vec()))
            .collect()
    }
}
