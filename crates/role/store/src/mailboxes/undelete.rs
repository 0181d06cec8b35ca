//! Brings expunged messages back, page by page, and lets go of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vere_control::{ExpungedAfter, Undelete};
use vere_ports::directory::AccountName;
use vere_store::{
    Committed, Excess, KeepLimit, KeptAt, KeptMailbox, MailboxId, MailboxName, Position,
    QuotaLimit, QuotaUsage, StoreError, Uid,
};

use super::MailboxError;
use super::expunged::{Chosen, choose, named};
use super::known;
use crate::mail_store::MailStore;
use crate::reception::Reception;
use crate::steps::at_once;
use vere_process::clock::now;

/// Messages brought back in one request.
const PAGE: usize = 2_000;
/// Steps of letting go in one request.
const STEPS: usize = 50;

/// Messages that came back, or would come back.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct UndeletedPage {
    pub(crate) messages: u64,
    pub(crate) octets: u64,
    /// The mailboxes that got them.
    pub(crate) mailboxes: Vec<BackIn>,
    /// Where the next page begins; none on the last page.
    pub(crate) after: Option<ExpungedAfter>,
    /// What the quota leaves, before these messages; absent without a quota.
    pub(crate) messages_left: Option<u64>,
    pub(crate) octets_left: Option<u64>,
    /// Why no more came back, such as the quota: no further page comes.
    pub(crate) stopped: Option<String>,
}

/// Messages back in a mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackIn {
    pub(crate) mailbox: String,
    pub(crate) messages: u64,
    pub(crate) octets: u64,
    /// Whether the mailbox was made for them, or would be.
    pub(crate) made: bool,
}

/// Messages that are not kept any more.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PurgedPage {
    pub(crate) messages: u64,
    pub(crate) octets: u64,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// The messages of one piece that go to one mailbox.
struct Batch {
    from: KeptMailbox,
    at: KeptAt,
    to: MailboxName,
    /// The UIDs with the sizes of their messages.
    messages: BTreeMap<Uid, u32>,
}

impl Batch {
    fn uids(&self) -> Vec<Uid> {
        self.messages.keys().copied().collect()
    }

    fn usage(&self, uids: &[Uid]) -> QuotaUsage {
        let sizes = uids.iter().filter_map(|uid| self.messages.get(uid));
        QuotaUsage {
            octets: sizes.map(|size| u64::from(*size)).sum(),
            messages: uids.len() as u64,
        }
    }
}

/// Brings messages back, a page of them.
///
/// # Errors
/// When there is no such account or mailbox, or the store cannot be read.
pub(crate) async fn undelete(
    reception: &Reception,
    wanted: Undelete,
    operator: u32,
) -> Result<UndeletedPage, MailboxError> {
    let account = known(reception, &wanted.of.account)?;
    let to = wanted.to.as_deref().map(named).transpose()?;
    let keeper = reception.keeper();
    let (chosen, after) = choose(keeper, &account, &wanted.of, (PAGE, false)).await?;
    let quota = reception.quotas().now().of(&account);
    let mut page = UndeletedPage {
        after,
        ..UndeletedPage::default()
    };
    let name = account.clone();
    let used = keeper.ask(move |store| {
        let usage = store.quota(&name)?;
        Ok(store.list(&name)?.map(|_| usage))
    });
    let used = used.await?;
    page.messages_left = quota.messages.map(|max| max.saturating_sub(used.messages));
    page.octets_left = quota.octets.map(|max| max.saturating_sub(used.octets));
    for batch in batches(chosen, to.as_ref()) {
        let (name, dry_run) = (account.clone(), wanted.dry_run);
        let to = batch.to.to_string();
        let done = keeper.ask(move |store| match dry_run {
            true => would_bring(store, &name, &batch),
            false => bring(store, &name, &batch, quota),
        });
        match done.await {
            Ok((back, made)) => page.add(to, back, made),
            Err(error @ StoreError::Failed(_)) => return Err(error.into()),
            Err(error) => {
                page.stopped = Some(format!("{to}: {error}"));
                page.after = None;
                break;
            }
        }
    }
    if page.messages > 0 && !wanted.dry_run {
        let (messages, octets) = (page.messages, page.octets);
        tracing::info!(%account, messages, octets, operator, "expunged messages brought back");
    }
    Ok(page)
}

impl UndeletedPage {
    fn add(&mut self, mailbox: String, back: QuotaUsage, made: bool) {
        let QuotaUsage { octets, messages } = back;
        self.messages += messages;
        self.octets += octets;
        let known = self
            .mailboxes
            .iter_mut()
            .find(|each| each.mailbox == mailbox);
        match known {
            Some(known) => {
                known.messages += messages;
                known.octets += octets;
                known.made |= made;
            }
            None => self.mailboxes.push(BackIn {
                mailbox,
                messages,
                octets,
                made,
            }),
        }
    }
}

/// The messages by the piece they are in, in their order.
fn batches(chosen: Vec<Chosen>, to: Option<&MailboxName>) -> Vec<Batch> {
    let mut batches: BTreeMap<(MailboxId, KeptAt), Batch> = BTreeMap::new();
    for Chosen {
        mailbox,
        at,
        message,
        ..
    } in chosen
    {
        let to = to.unwrap_or(&mailbox.name).clone();
        let batch = batches.entry((mailbox.id, at)).or_insert_with(|| Batch {
            from: mailbox,
            at,
            to,
            messages: BTreeMap::new(),
        });
        batch.messages.insert(message.uid, message.size);
    }
    batches.into_values().collect()
}

/// Messages that came back, and whether their mailbox was made.
type Brought = (QuotaUsage, bool);

fn would_bring(
    store: &mut MailStore,
    account: &AccountName,
    batch: &Batch,
) -> Result<Committed<Brought>, StoreError> {
    let made = match store.mailbox_named(account, &batch.to) {
        Err(StoreError::NoMailbox) => true,
        found => found.map(|_| false)?,
    };
    let back = batch.usage(&batch.uids());
    Ok(store.list(account)?.map(|_| (back, made)))
}

fn bring(
    store: &mut MailStore,
    account: &AccountName,
    batch: &Batch,
    quota: QuotaLimit,
) -> Result<Committed<Brought>, StoreError> {
    let (to, made) = match store.mailbox_named(account, &batch.to) {
        Err(StoreError::NoMailbox) => {
            // Asked before the mailbox is made: an account over quota gets no empty mailbox.
            room(store, account, batch, quota)?;
            (make(store, account, batch)?, true)
        }
        found => (at_once(store, found?)?, false),
    };
    let back = store.undelete(batch.from.id, batch.at, &batch.uids(), to, quota)?;
    Ok(back.map(|back| (batch.usage(&back.from), made)))
}

fn room(
    store: &mut MailStore,
    account: &AccountName,
    batch: &Batch,
    quota: QuotaLimit,
) -> Result<(), StoreError> {
    let inbox = store.mailbox_named(account, &MailboxName::inbox())?;
    let inbox = at_once(store, inbox)?;
    store.room_for(inbox, quota, batch.usage(&batch.uids()))
}

/// Makes the mailbox again, with the special use of the deleted one if no other mailbox has it now.
fn make(
    store: &mut MailStore,
    account: &AccountName,
    batch: &Batch,
) -> Result<MailboxId, StoreError> {
    let list = store.list(account)?;
    let list = at_once(store, list)?;
    let is_own_name = batch.to == batch.from.name;
    let special_use = batch.from.special_use.filter(|_| is_own_name);
    let is_taken = |entry: &vere_store::ListEntry| entry.special_use == special_use;
    let special_use = special_use.filter(|_| !list.iter().any(is_taken));
    let made = store.create_mailbox(account, &batch.to, special_use, now())?;
    at_once(store, made)
}

/// Lets go of the expunged messages of an account, or of one mailbox, by some steps.
///
/// # Errors
/// When there is no such account or mailbox, or the store cannot be read.
pub(crate) async fn purge(
    reception: &Reception,
    account: &str,
    mailbox: Option<&str>,
    operator: u32,
) -> Result<PurgedPage, MailboxError> {
    let account = known(reception, account)?;
    let name = mailbox.map(named).transpose()?;
    let mut page = PurgedPage::default();
    let asked = account.clone();
    let keepers = reception
        .keeper()
        .ask(move |store| store.kept_mailboxes(&asked));
    let keepers = keepers.await?.into_iter();
    let keepers = keepers.filter(|keeper| name.as_ref().is_none_or(|name| *name == keeper.name));
    let mut left = STEPS;
    'mailboxes: for keeper in keepers {
        loop {
            if left == 0 {
                page.more = true;
                break 'mailboxes;
            }
            left -= 1;
            let (name, id) = (account.clone(), keeper.id);
            let all = KeepLimit {
                before: Position(u64::MAX),
                messages: 0,
                octets: 0,
                excess: Excess::default(),
            };
            let step = reception
                .keeper()
                .ask(move |store| store.let_go(&name, Some(id), &all));
            let gone = step.await?;
            page.messages += gone.messages;
            page.octets += gone.octets;
            if !gone.more {
                break;
            }
        }
    }
    if page.messages > 0 {
        let (messages, octets) = (page.messages, page.octets);
        tracing::warn!(%account, messages, octets, operator, "expunged messages let go by an operator");
    }
    Ok(page)
}
