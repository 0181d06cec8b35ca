//! Key slots as accounts have them, and the keys that a secret opens.

use std::collections::{BTreeMap, BTreeSet};

use vere_ports::mail_accounts::AccountId;

use crate::format::slot::{Cost, Method, Slot, SlotKeys, SlotSecret};
use crate::format::{Keys, MailId, VolumeId};

/// Work of argon2id, in KiB times passes. A person who floods an account with slots makes a recovery no longer than that, and each
/// account has an equal share: a flood on one account leaves the slots of the others their turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// For all slots together.
    pub(super) all: u64,
    /// For slots behind the first one that opens: a newer slot may have further keys.
    pub(super) further: u64,
}

impl Work {
    /// 256 and 16 slots of the default cost: about a minute, and about 4 s.
    pub(super) const DEFAULT: Self = Self {
        all: 256 * work(Cost::DEFAULT),
        further: 16 * work(Cost::DEFAULT),
    };
    /// 64 and 8 slots of the default cost, about 15 s and 2 s: a mount waits.
    pub(super) const MOUNT: Self = Self {
        all: 64 * work(Cost::DEFAULT),
        further: 8 * work(Cost::DEFAULT),
    };
}

const fn work(cost: Cost) -> u64 {
    (cost.memory_kib as u64).saturating_mul(cost.passes as u64)
}

/// What has become of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotState {
    /// The secret opens the slot.
    Opens,
    /// The secret opens the slot, and the volume does not know the slot any more.
    Revoked,
    /// The slot is closed to the secret.
    Closed,
    /// The work for all slots before was enough.
    Untried,
}

/// A slot, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotReport {
    /// The number.
    pub number: u8,
    /// The mail.
    pub mail: MailId,
    /// The label, if the slot was opened.
    pub label: Option<String>,
    /// The accounts that have the slot.
    pub accounts: Vec<AccountId>,
    /// What has become of the slot.
    pub state: SlotState,
}

/// A slot that was read.
#[derive(Debug)]
pub(super) struct FoundSlot {
    pub(super) slot: Slot,
    pub(super) accounts: BTreeSet<AccountId>,
    keys: Option<SlotKeys>,
    is_tried: bool,
}

impl FoundSlot {
    pub(super) const fn new(slot: Slot) -> Self {
        Self {
            slot,
            accounts: BTreeSet::new(),
            keys: None,
            is_tried: false,
        }
    }

    fn work(&self) -> u64 {
        match self.slot.method {
            Method::Passphrase(cost) => work(cost),
            Method::KeyFile => 0,
        }
    }

    const fn suits(&self, secret: SlotSecret<'_>) -> bool {
        matches!(
            (secret, self.slot.method),
            (SlotSecret::Passphrase(_), Method::Passphrase(_))
                | (SlotSecret::KeyFile(_), Method::KeyFile)
        )
    }
}

/// All slots that accounts have, and the keys of the opened ones.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pub(super) found: BTreeMap<MailId, FoundSlot>,
    /// The volume of the opened slots, and the keys of its epochs.
    pub(super) ring: Option<(VolumeId, BTreeMap<u16, Keys>)>,
}

impl Slots {
    /// Opens every slot that the secret opens, cheap ones and ones of many accounts first. Returns how many were tried.
    pub(super) fn open(&mut self, secret: SlotSecret<'_>, most: Work) -> usize {
        let mut order: Vec<(u64, usize, MailId)> = self
            .found
            .iter()
            .filter(|(_, found)| found.suits(secret))
            .map(|(mail, found)| (found.work(), found.accounts.len(), *mail))
            .collect();
        order.sort_by_key(|(work, accounts, _)| (*work, std::cmp::Reverse(*accounts)));
        let mut shares = self.shares(most);
        let (mut left, mut tried) = (most.all, 0_usize);
        for (work, _, mail) in order {
            let Some(rest) = left.checked_sub(work) else {
                break;
            };
            let Some(found) = self.found.get_mut(&mail) else {
                continue;
            };
            if !pay(&mut shares, &found.accounts, work) {
                continue;
            }
            left = rest;
            tried = tried.saturating_add(1);
            found.is_tried = true;
            if let Ok(keys) = found.slot.open(secret) {
                let volume = found.slot.head.volume;
                left = left.min(most.further);
                let (first, ring) = self.ring.get_or_insert_with(|| (volume, BTreeMap::new()));
                // A second volume with an equal tag is another recovery.
                if *first == volume {
                    for (epoch, key) in &keys.keys {
                        ring.entry(*epoch).or_insert_with(|| Keys::derive(key));
                    }
                    found.keys = Some(keys);
                }
            }
        }
        tried
    }

    /// The part of the work that each account may cause.
    fn shares(&self, most: Work) -> BTreeMap<AccountId, u64> {
        let accounts = self.found.values().flat_map(|found| &found.accounts);
        let accounts: BTreeSet<AccountId> = accounts.copied().collect();
        let number = u64::try_from(accounts.len()).unwrap_or(u64::MAX).max(1);
        let share = most.all.checked_div(number).unwrap_or(most.all);
        accounts
            .into_iter()
            .map(|account| (account, share))
            .collect()
    }

    /// Opened slots, those of the newest epoch first.
    pub(super) fn opened(&self) -> Vec<(Slot, SlotKeys)> {
        let opened = self.found.values();
        let opened = opened.filter_map(|found| Some((found.slot.clone(), found.keys.clone()?)));
        let mut opened: Vec<(Slot, SlotKeys)> = opened.collect();
        opened.sort_by_key(|(slot, _)| std::cmp::Reverse(slot.head.epoch));
        opened
    }

    /// The opened slot of the newest epoch that `is_valid` by number and mail.
    pub(super) fn best(&self, is_valid: impl Fn(u8, MailId) -> bool) -> Option<(&Slot, &SlotKeys)> {
        let opened = self.found.iter().filter_map(|(mail, found)| {
            let keys = found.keys.as_ref()?;
            is_valid(found.slot.number, *mail).then_some((&found.slot, keys))
        });
        opened.max_by_key(|(slot, _)| (slot.head.epoch, slot.head.pack))
    }

    /// Every slot, for people.
    pub(super) fn reports(&self, is_valid: impl Fn(u8, MailId) -> bool) -> Vec<SlotReport> {
        let report = |(mail, found): (&MailId, &FoundSlot)| SlotReport {
            number: found.slot.number,
            mail: *mail,
            label: found.keys.as_ref().map(|keys| keys.label.clone()),
            accounts: found.accounts.iter().copied().collect(),
            state: match (&found.keys, found.is_tried) {
                (Some(_), _) if is_valid(found.slot.number, *mail) => SlotState::Opens,
                (Some(_), _) => SlotState::Revoked,
                (None, true) => SlotState::Closed,
                (None, false) => SlotState::Untried,
            },
        };
        self.found.iter().map(report).collect()
    }
}

/// Takes the work for a slot from the account with the most left. Returns whether an account has that much.
fn pay(shares: &mut BTreeMap<AccountId, u64>, accounts: &BTreeSet<AccountId>, work: u64) -> bool {
    if accounts.is_empty() {
        return true;
    }
    let most = shares.iter_mut();
    let most = most.filter(|(account, _)| accounts.contains(account));
    let Some((_, share)) = most.max_by_key(|(_, share)| **share) else {
        return false;
    };
    let Some(rest) = share.checked_sub(work) else {
        return false;
    };
    *share = rest;
    true
}
