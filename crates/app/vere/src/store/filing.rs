//! Where a delivered message goes: the mailbox of an account, by the tag of the address.

use std::collections::BTreeMap;
use std::sync::Arc;

use vere_directory::{Directory, Resolution};
use vere_ports::directory::AccountName;
use vere_settings::OverQuota;
use vere_smtp::command::RcptTo;
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Message;
use vere_store::{Flags, MailboxId, MailboxName, RecipientFields, StoreError, Target};

use super::convert::date;
use super::keeper::MailStore;
use super::listeners::Reception;
use super::quota::Quotas;
use super::steps::{at_once, inbox, operation, report};
use crate::role::clock::now;

/// A recipient that is ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Recipient {
    account: AccountName,
    /// The tag, which may name a mailbox (RFC 5233).
    tag: Option<String>,
}

/// Whether there is such a mailbox.
///
/// # Errors
/// What the client is told.
pub(super) fn check(directory: &Directory, rcpt: &RcptTo) -> Result<(), Refusal> {
    resolve(directory, rcpt).map(drop)
}

/// The accounts that an address stands for: one, or those of an alias.
fn resolve(directory: &Directory, rcpt: &RcptTo) -> Result<Vec<Recipient>, Refusal> {
    let address = rcpt.forward_path.address().ok_or(Refusal::MailboxUnknown)?;
    let resolution = directory.resolve(address).map_err(|error| {
        tracing::error!(%error, "directory cannot be read");
        Refusal::LocalError
    })?;
    match resolution {
        Resolution::Local { account, tag } => Ok(vec![Recipient { account, tag }]),
        // Who hands over here has followed aliases already; those that lead elsewhere end here.
        Resolution::Forward(targets) => {
            let local = targets.into_iter().filter_map(|target| match target {
                vere_directory::Destination::Local { account, tag } => {
                    Some(Recipient { account, tag })
                }
                vere_directory::Destination::Remote(_) => None,
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

/// Files a message, once for all its recipients, and says for each what became of it.
pub(super) async fn file(reception: &Reception, message: Message) -> Vec<Result<(), Refusal>> {
    let directory = reception.directory();
    let count = message.recipients.len();
    let resolved: Vec<Result<Vec<Recipient>, Refusal>> = message
        .recipients
        .iter()
        .map(|rcpt| resolve(directory, rcpt))
        .collect();
    let recipients: Vec<Recipient> = resolved.iter().flatten().flatten().cloned().collect();
    let filed = match file_for(reception, message, recipients).await {
        Ok(filed) => filed,
        Err(refusal) => return vec![Err(refusal); count],
    };
    let result = |found: Result<Vec<Recipient>, Refusal>| {
        found?.into_iter().try_for_each(|recipient| {
            let result = filed.get(&recipient).cloned();
            result.unwrap_or(Err(Refusal::LocalError))
        })
    };
    resolved.into_iter().map(result).collect()
}

type Filed = BTreeMap<Recipient, Result<(), Refusal>>;

async fn file_for(
    reception: &Reception,
    message: Message,
    mut recipients: Vec<Recipient>,
) -> Result<Filed, Refusal> {
    recipients.sort_unstable();
    recipients.dedup();
    let operation = operation().map_err(|_| Refusal::LocalError)?;
    let quotas = reception.quotas().now();
    let return_path = message
        .reverse_path
        .reverse_path
        .as_str()
        .as_bytes()
        .to_vec();
    let parsers = reception.keeper().processes().delivering.clone();
    let turn = parsers.turn().await;
    let prepared = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        parsers.prepare(&message.body)
    });
    let prepared = prepared.await.map_err(|_| Refusal::LocalError)?;
    let prepared = prepared.map_err(|error| refusal(&error, OverQuota::Defer))?;
    let over = quotas.over();
    let octets = u64::from(prepared.octets());
    // Waiting helps only who has so much room at all.
    let limits = Arc::clone(&quotas);
    let refusal_of = move |error: &StoreError, account: &AccountName| {
        let never = limits.of(account).octets.is_some_and(|max| octets > max);
        match error {
            StoreError::OverQuota if never => Refusal::MailboxSizeLimit,
            other => refusal(other, over),
        }
    };
    let figures = reception.keeper().figures().clone();
    let directory = reception.directory().clone();
    let asked = reception.keeper().ask(move |store| {
        let targets: Vec<Result<Target, StoreError>> = recipients
            .iter()
            .map(|recipient| target(store, &directory, recipient, (&return_path, &quotas)))
            .collect();
        let known: Vec<Target> = targets.iter().flatten().cloned().collect();
        let accounts = recipients.iter().map(|recipient| &recipient.account);
        let before = quotas.held(store, accounts)?;
        let delivered = store.deliver(&prepared, &known, operation)?;
        quotas.warn(store, before);
        Ok(delivered.map(|added| {
            let mut added = added.into_iter();
            let both = recipients.into_iter().zip(targets);
            let results = both.map(|(recipient, target)| {
                let refused = |error| refusal_of(&error, &recipient.account);
                let noted = |error: StoreError| {
                    let mailbox = recipient.tag.as_deref().unwrap_or("INBOX");
                    report(&error, &figures, &recipient.account, mailbox, operation);
                    error
                };
                let result = match target {
                    Ok(_) => match added.next() {
                        Some(Ok(_)) => Ok(()),
                        Some(Err(error)) => Err(refused(noted(error))),
                        None => Err(Refusal::LocalError),
                    },
                    Err(error) => Err(refused(error)),
                };
                (recipient, result)
            });
            results.collect::<Filed>()
        }))
    });
    asked.await.map_err(|error| refusal(&error, over))
}

fn target(
    store: &mut MailStore,
    directory: &Directory,
    recipient: &Recipient,
    (return_path, quotas): (&[u8], &Quotas),
) -> Result<Target, StoreError> {
    Ok(Target {
        mailbox: mailbox(store, directory, recipient)?,
        flags: Flags::default(),
        internal_date: date(now().into()),
        fields: RecipientFields {
            return_path: Some(return_path.into()),
            delivered_to: Some(recipient.account.to_string().into_bytes().into()),
        },
        quota: quotas.of(&recipient.account),
    })
}

/// The mailbox that the tag names, in any case, where there is one; else INBOX.
fn mailbox(
    store: &mut MailStore,
    directory: &Directory,
    recipient: &Recipient,
) -> Result<MailboxId, StoreError> {
    let opened = inbox(store, directory, &recipient.account)?;
    let inbox = at_once(store, opened)?;
    let Some(name) = recipient
        .tag
        .as_deref()
        .and_then(|tag| MailboxName::new(tag).ok())
    else {
        return Ok(inbox);
    };
    let listed = store.list(&recipient.account)?;
    let listed = at_once(store, listed)?;
    let found = listed
        .into_iter()
        .find(|entry| entry.name.as_str().eq_ignore_ascii_case(name.as_str()));
    Ok(found.and_then(|entry| entry.mailbox).unwrap_or(inbox))
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
