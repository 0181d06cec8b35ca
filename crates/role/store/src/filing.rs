//! Files delivered messages: the address names the account, and its tag may name the mailbox. Marked mail goes to the account's mailbox for junk.

mod top;

use std::collections::BTreeMap;
use std::sync::Arc;

use vere_directory::{Directory, Resolution};
use vere_ports::directory::{AccountName, StoreError as DirectoryError};
use vere_settings::OverQuota;
use vere_smtp::command::RcptTo;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Message;
use vere_store::{
    Committed, Flags, ListEntry, MailboxId, MailboxName, OperationId, Prepared, QuotaUsage,
    RecipientFields, SpecialUse, StoreError, Target,
};

use self::top::Top;
use super::convert::date;
use super::mail_store::MailStore;
use super::metrics::Figures;
use super::quota::Quotas;
use super::reception::Reception;
use super::steps::{at_once, inbox, operation, report};
use vere_process::clock::now;

/// A local recipient.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Recipient {
    account: AccountName,
    /// The tag, which may name a mailbox (RFC 5233).
    tag: Option<String>,
}

/// Checks that the recipient has a mailbox here.
///
/// # Errors
/// The refusal for the client.
pub(super) fn check(directory: &Directory, rcpt: &RcptTo) -> Result<(), Refusal> {
    resolve(directory, rcpt).map(drop)
}

/// Returns the accounts of an address: one account, or the local targets of an alias.
fn resolve(directory: &Directory, rcpt: &RcptTo) -> Result<Vec<Recipient>, Refusal> {
    let address = rcpt.forward_path.address().ok_or(Refusal::MailboxUnknown)?;
    let unreadable = |error: DirectoryError| {
        tracing::error!(%error, "directory cannot be read");
        Refusal::LocalError
    };
    // The gateway names accounts. Following an alias with the name of an account once more would let one member's
    // full mailbox delay another member's mail, or file a message twice.
    if let Some((account, tag)) = directory.account_at(address).map_err(unreadable)? {
        return Ok(vec![Recipient { account, tag }]);
    }
    let resolution = directory.resolve(address).map_err(unreadable)?;
    match resolution {
        Resolution::Local { account, tag } => Ok(vec![Recipient { account, tag }]),
        // Aliases serve LMTP clients other than the gateway; targets on other systems are dropped.
        Resolution::Forward(targets) => {
            let local = targets.into_iter().filter_map(|target| match target {
                vere_directory::Target::Local { account, tag } => Some(Recipient { account, tag }),
                vere_directory::Target::Remote(_) => None,
            });
            match local.collect::<Vec<_>>() {
                none if none.is_empty() => Err(Refusal::MailboxUnknown),
                some => Ok(some),
            }
        }
        Resolution::NotLocal => Err(Refusal::RelayDenied),
        other => Err(other.refusal().unwrap_or(Refusal::MailboxUnknown)),
    }
}

/// Files a message once for all its recipients, and returns a result for each recipient.
pub(super) async fn file(reception: &Reception, message: Message) -> Vec<Result<(), Refusal>> {
    let count = message.recipients.len();
    match file_all(reception, message).await {
        Ok(results) => results,
        Err(refusal) => vec![Err(refusal); count],
    }
}

async fn file_all(
    reception: &Reception,
    message: Message,
) -> Result<Vec<Result<(), Refusal>>, Refusal> {
    let directory = reception.directory();
    let resolved: Vec<Result<Vec<Recipient>, Refusal>> = message
        .recipients
        .iter()
        .map(|rcpt| resolve(directory, rcpt))
        .collect();
    let top = Top::of(&message.body);
    let return_path = message.reverse_path.reverse_path.as_str().as_bytes().into();
    let parsers = reception.keeper().processes().delivering.clone();
    let turn = parsers.turn().await;
    let prepared = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        parsers.prepare(&message.body)
    });
    let prepared = prepared.await.map_err(|_| Refusal::LocalError)?;
    let prepared = prepared.map_err(|error| refusal(&error, OverQuota::Defer))?;
    let operation = if top.is_carried {
        OperationId(prepared.content())
    } else {
        operation().map_err(|_| Refusal::LocalError)?
    };
    let filing = Filing {
        directory: directory.clone(),
        prepared,
        return_path,
        operation,
        to_junk: top.is_marked && reception.files_into_junk(),
        quotas: reception.quotas().now(),
        figures: reception.keeper().figures().clone(),
    };
    let over = filing.quotas.over();
    let asked = reception
        .keeper()
        .ask(move |store| filing.run(store, resolved));
    asked.await.map_err(|error| refusal(&error, over))
}

/// A message on the way into mailboxes.
#[derive(Debug)]
struct Filing {
    directory: Directory,
    prepared: Prepared,
    return_path: Box<[u8]>,
    operation: OperationId,
    /// Whether recipients without a tag get the message in their mailbox for junk.
    to_junk: bool,
    quotas: Arc<Quotas>,
    figures: Figures,
}

/// The mailboxes chosen for a message.
#[derive(Debug, Default)]
struct Chosen {
    targets: BTreeMap<Recipient, Target>,
    /// Usage that the message adds to accounts.
    more: BTreeMap<AccountName, QuotaUsage>,
}

impl Filing {
    /// Files the message; each recipient may stand for several accounts, or was refused before.
    ///
    /// # Errors
    /// When the message cannot be filed for any recipient.
    fn run(
        &self,
        store: &mut MailStore,
        resolved: Vec<Result<Vec<Recipient>, Refusal>>,
    ) -> Result<Committed<Vec<Result<(), Refusal>>>, StoreError> {
        let mut chosen = Chosen::default();
        let mut choose = |members: Result<Vec<Recipient>, Refusal>| {
            let members = members?;
            self.choose(store, &mut chosen, &members)?;
            Ok(members)
        };
        let decided: Vec<Result<Vec<Recipient>, Refusal>> =
            resolved.into_iter().map(&mut choose).collect();
        let before = self.quotas.held(store, chosen.more.keys());
        let (recipients, targets): (Vec<_>, Vec<_>) = chosen.targets.into_iter().unzip();
        let delivered = store.deliver(&self.prepared, &targets, self.operation)?;
        self.quotas.warn(store, before);
        Ok(delivered.map(|added| {
            let added = added.into_iter().map(|added| added.map(drop));
            let filed = recipients.into_iter().zip(added);
            let filed: BTreeMap<Recipient, _> = filed
                .map(|(recipient, result)| {
                    let result = result.map_err(|error| self.refused(&recipient, &error));
                    (recipient, result)
                })
                .collect();
            let result = |members: Result<Vec<Recipient>, Refusal>| {
                members?.iter().try_for_each(|member| {
                    let result = filed.get(member).cloned();
                    result.unwrap_or(Err(Refusal::LocalError))
                })
            };
            decided.into_iter().map(result).collect()
        }))
    }

    /// Accepts all accounts of a recipient, or none, since one reply covers all. If only some accounts had the
    /// message, every retry for the remaining accounts would file another copy for the first accounts.
    fn choose(
        &self,
        store: &mut MailStore,
        chosen: &mut Chosen,
        members: &[Recipient],
    ) -> Result<(), Refusal> {
        let mut with = Chosen::default();
        for member in members {
            if chosen.targets.contains_key(member) || with.targets.contains_key(member) {
                continue;
            }
            let refused = |error| self.refused(member, &error);
            let target = self.target(store, member).map_err(refused)?;
            let before = store.is_delivered(&self.prepared, target.mailbox, self.operation);
            if before.map_err(refused)? {
                with.targets.insert(member.clone(), target);
                continue;
            }
            let octets = target.fields.render().len() as u64 + u64::from(self.prepared.octets());
            let before = chosen.more.get(&member.account).copied();
            let more = with.more.entry(member.account.clone());
            let more = more.or_insert(before.unwrap_or_default());
            more.octets += octets;
            more.messages += 1;
            let room = store.room_for(target.mailbox, target.quota, *more);
            room.map_err(refused)?;
            with.targets.insert(member.clone(), target);
        }
        chosen.targets.append(&mut with.targets);
        chosen.more.append(&mut with.more);
        Ok(())
    }

    fn target(&self, store: &mut MailStore, recipient: &Recipient) -> Result<Target, StoreError> {
        Ok(Target {
            mailbox: self.mailbox(store, recipient)?,
            flags: Flags::default(),
            internal_date: date(now().into()),
            fields: RecipientFields {
                return_path: Some(self.return_path.clone()),
                delivered_to: Some(recipient.account.to_string().into_bytes().into()),
            },
            quota: self.quotas.of(&recipient.account),
        })
    }

    /// Finds the mailbox that the tag names, in any letter case, or the one for junk; else INBOX.
    fn mailbox(
        &self,
        store: &mut MailStore,
        recipient: &Recipient,
    ) -> Result<MailboxId, StoreError> {
        let opened = inbox(store, &self.directory, &recipient.account)?;
        let inbox = at_once(store, opened)?;
        let tag = recipient.tag.as_deref();
        let name = tag.and_then(|tag| MailboxName::new(tag).ok());
        if name.is_none() && !self.to_junk {
            return Ok(inbox);
        }
        let listed = store.list(&recipient.account)?;
        let listed = at_once(store, listed)?;
        let named = name.and_then(|name| {
            let is = |entry: &&ListEntry| entry.name.as_str().eq_ignore_ascii_case(name.as_str());
            listed.iter().find(is)
        });
        // A tag without a mailbox of the name keeps no marked message out of Junk.
        let junk = |entry: &&ListEntry| entry.special_use == Some(SpecialUse::Junk);
        let junk = listed.iter().find(junk).filter(|_| self.to_junk);
        let found = named.or(junk).and_then(|entry| entry.mailbox);
        Ok(found.unwrap_or(inbox))
    }

    /// Returns the refusal of a recipient for which the message cannot be filed.
    fn refused(&self, recipient: &Recipient, error: &StoreError) -> Refusal {
        let account = &recipient.account;
        let mailbox = recipient.tag.as_deref().unwrap_or("INBOX");
        report(error, &self.figures, account, mailbox, self.operation);
        // A retry helps only if the account's quota exceeds the message.
        let octets = u64::from(self.prepared.octets());
        let max = self.quotas.of(account).octets;
        match error {
            StoreError::OverQuota if max.is_some_and(|max| octets > max) => {
                Refusal::MailboxSizeLimit
            }
            other => refusal(other, self.quotas.over()),
        }
    }
}

fn refusal(error: &StoreError, over: OverQuota) -> Refusal {
    match error {
        StoreError::NoMailbox => Refusal::MailboxUnknown,
        StoreError::TooLarge { .. } => Refusal::MailboxSizeLimit,
        StoreError::OverQuota => match over {
            OverQuota::Defer => Refusal::MailboxFull,
            OverQuota::Reject => Refusal::MailboxFullForGood,
        },
        StoreError::DiskFull => Refusal::StorageFull,
        other => {
            tracing::error!(error = %other, "mail cannot be filed");
            Refusal::LocalError
        }
    }
}

#[cfg(test)]
mod tests;
