//! Letting go of kept messages: the old ones, and the oldest of an account that has too many.

use std::collections::BTreeSet;

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{MetaEngine, Partition};
use vere_ports::storage::Storage;

use super::listing::KeptMailbox;
use crate::committed::Committed;
use crate::error::StoreError;
use crate::log::Position;
use crate::model::MailboxId;
use crate::rows::{KEPT_ROW_MAX, KeptCount};
use crate::store::Store;

/// Rows of kept messages that a step removes.
const ROWS_AT_ONCE: usize = 8;
/// Share of a limit that remains when the limit was exceeded, so that not every message expunged later exceeds it.
const REST_PERCENT: u64 = 90;

/// What an account may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepLimit {
    /// Messages expunged before this position of the log go.
    pub before: Position,
    /// Messages kept.
    pub messages: u64,
    /// Octets of the messages kept.
    pub octets: u64,
    /// Limits that the step before, [`LetGo::excess`], was about to go below.
    pub excess: Excess,
}

/// The limits that an account exceeded: the steps go on down to 90 percent of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Excess {
    /// The limit of messages.
    pub messages: bool,
    /// The limit of octets.
    pub octets: bool,
}

/// A step of letting go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LetGo {
    /// Messages that are not kept any more.
    pub messages: u64,
    /// Octets of these.
    pub octets: u64,
    /// Messages that the account still keeps.
    pub kept_messages: u64,
    /// Octets of these.
    pub kept_octets: u64,
    /// Whether more has to go: the next step does so.
    pub more: bool,
    /// When the oldest messages were expunged that the account keeps, once nothing more has to go.
    pub oldest: Option<Position>,
    /// Limits that were exceeded, for [`KeepLimit::excess`] of the next step.
    pub excess: Excess,
}

/// The oldest kept messages of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Oldest {
    at: u64,
    id: MailboxId,
    /// The mailbox is deleted and kept no messages before: it goes as a whole.
    whole: bool,
}

impl KeepLimit {
    /// The limits that so much exceeds, or that it has not gone below far enough since a step before.
    fn excess_of(&self, messages: u64, octets: u64) -> Excess {
        let is_over = |kept: u64, limit: u64, goes_on: bool| {
            kept > limit || (goes_on && kept > rest_of(limit))
        };
        Excess {
            messages: is_over(messages, self.messages, self.excess.messages),
            octets: is_over(octets, self.octets, self.excess.octets),
        }
    }
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Lists accounts after `after`, at most `limit`, and the account after which the next page begins.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn accounts_after(
        &self,
        after: Option<AccountName>,
        limit: usize,
    ) -> Result<(Vec<AccountName>, Option<AccountName>), StoreError> {
        let after = after.map(Partition::Account);
        let partitions = self.meta.partitions(after.as_ref(), limit)?;
        let is_full = partitions.len() == limit;
        let names = partitions
            .into_iter()
            .map_while(|partition| match partition {
                Partition::Account(name) => Some(name),
                // Accounts sort before mailboxes.
                Partition::Mailbox(_) => None,
            });
        let names: Vec<_> = names.collect();
        let next = names.last().filter(|_| is_full && names.len() == limit);
        let next = next.cloned();
        Ok((names, next))
    }

    /// Lets go of kept messages of an account by one bounded step: of those that are too old, then of the oldest while
    /// the account keeps too much, until it keeps 90 percent of the limit; each step hands its [`Excess`] on to the
    /// next. Reclaiming frees the space of the messages.
    /// With `only` nothing but one mailbox counts.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn let_go(
        &mut self,
        account: &AccountName,
        only: Option<MailboxId>,
        limit: &KeepLimit,
    ) -> Result<Committed<LetGo>, StoreError> {
        let mut keepers = self.keepers_of(account)?;
        keepers.retain(|keeper| only.is_none_or(|only| only == keeper.id));
        let (messages, octets) = sum(&keepers);
        let mut done = LetGo {
            kept_messages: messages,
            kept_octets: octets,
            ..LetGo::default()
        };
        let mut oldest = BTreeSet::new();
        for keeper in &keepers {
            oldest.extend(self.oldest_of(account, keeper)?);
        }
        let excess = limit.excess_of(messages, octets);
        let is_over = excess.messages || excess.octets;
        done.oldest = oldest.first().map(|first| Position(first.at));
        if let Some(first) = oldest.pop_first()
            && (first.at < limit.before.0 || is_over)
        {
            let next = oldest.first().map_or(u64::MAX, |next| next.at);
            let released = match first.whole {
                true => self.let_mailbox_go(account, first.id, &keepers)?,
                false => self.let_rows_go(first.id, |so_far, at| {
                    let messages = messages.saturating_sub(so_far.messages.into());
                    let octets = octets.saturating_sub(so_far.octets);
                    let over = (excess.messages && messages > rest_of(limit.messages))
                        || (excess.octets && octets > rest_of(limit.octets));
                    at < limit.before.0 || (over && at <= next)
                })?,
            };
            done.messages = released.messages.into();
            done.octets = released.octets;
            done.kept_messages -= done.messages.min(messages);
            done.kept_octets -= done.octets.min(octets);
            done.more = true;
            done.oldest = None;
            done.excess = excess;
        }
        Ok(Committed::new(done, self.log.end()))
    }

    /// The oldest messages that a mailbox keeps.
    fn oldest_of(
        &self,
        account: &AccountName,
        keeper: &KeptMailbox,
    ) -> Result<Option<Oldest>, StoreError> {
        let id = keeper.id;
        let row = self.kept_row_after(&Partition::Mailbox(id.0), &[])?;
        if let Some((_, at, _)) = row {
            return Ok(Some(Oldest {
                at,
                id,
                whole: false,
            }));
        }
        let account = self.known_account(account)?;
        let whole = |at| Oldest {
            at,
            id,
            whole: true,
        };
        Ok(account.aside(id).map(|row| whole(row.at)))
    }

    /// Removes rows of kept messages, the oldest first, while `goes` says so of the sum so far and a row's position.
    fn let_rows_go(
        &mut self,
        id: MailboxId,
        goes: impl Fn(&KeptCount, u64) -> bool,
    ) -> Result<KeptCount, StoreError> {
        let mut edit = self.keeping_edit(id)?;
        let partition = Partition::Mailbox(id.0);
        let (mut released, mut after) = (KeptCount::default(), Vec::new());
        let mut bodies = Vec::with_capacity(KEPT_ROW_MAX);
        for _ in 0..ROWS_AT_ONCE {
            let Some((key, at, row)) = self.kept_row_after(&partition, &after)? else {
                break;
            };
            if !goes(&released, at) {
                break;
            }
            let more = edit.release(&key, &row, &|_| true);
            released.messages += more.messages;
            released.octets += more.octets;
            let body = |(_, row): &(_, crate::rows::MessageRow)| (row.blob.0, u64::from(row.size));
            bodies.extend(row.messages.iter().map(body));
            after = key;
        }
        if released.messages == 0 {
            return Ok(released);
        }
        self.commit_edit(edit)?;
        for (blob, octets) in bodies {
            self.count_removed(blob, octets);
        }
        self.kept.fewer(released.messages.into(), released.octets);
        self.end_aside(id)?;
        Ok(released)
    }

    /// Lets a deleted mailbox go.
    fn let_mailbox_go(
        &mut self,
        account: &AccountName,
        id: MailboxId,
        keepers: &[KeptMailbox],
    ) -> Result<KeptCount, StoreError> {
        self.purge_asides(account, &BTreeSet::from([id]))?;
        let keeper = keepers.iter().find(|keeper| keeper.id == id);
        Ok(keeper.map_or(KeptCount::default(), |keeper| KeptCount {
            messages: keeper.messages.try_into().unwrap_or(u32::MAX),
            octets: keeper.octets,
        }))
    }
}

/// What remains of a limit that was exceeded.
fn rest_of(limit: u64) -> u64 {
    let rest = u128::from(limit) * u128::from(REST_PERCENT) / 100;
    u64::try_from(rest).unwrap_or(limit)
}

fn sum(keepers: &[KeptMailbox]) -> (u64, u64) {
    keepers.iter().fold((0, 0), |(messages, octets), keeper| {
        (messages + keeper.messages, octets + keeper.octets)
    })
}
