//! Steps of questions to the store.

use vere_directory::Directory;
use vere_imap::server::Refusal;
use vere_ports::directory::AccountName;
use vere_store::{
    Committed, MailboxId, MailboxName, OperationId, QuotaLimit, SpecialUse, StoreError,
};

use super::mail_store::MailStore;
use super::metrics::Figures;
use vere_process::clock::now;

/// Reports an operation whose id was used before with other content. Ids are random, so the likeliest reason is a
/// client that guesses ids to write in another client's place.
pub(super) fn report(
    error: &StoreError,
    figures: &Figures,
    account: &AccountName,
    mailbox: &str,
    operation: OperationId,
) {
    if !matches!(error, StoreError::IdCollision) {
        return;
    }
    figures.collided();
    let operation = format!("{:032x}", u128::from_be_bytes(operation.0));
    tracing::error!(
        %account,
        mailbox,
        operation,
        "an operation's id was used before with other content; nothing was written, and somebody may be guessing ids"
    );
}

/// Unwraps a committed value, for a further step of the same question.
pub(super) fn at_once<T>(store: &MailStore, committed: Committed<T>) -> Result<T, StoreError> {
    committed
        .when(store.end())
        .map_err(|_| StoreError::Failed("not at the end of the log".to_owned()))
}

pub(super) fn named(
    store: &mut MailStore,
    account: &AccountName,
    name: &str,
) -> Result<MailboxId, StoreError> {
    // A text that is no valid name names no mailbox.
    let name = MailboxName::new(name).map_err(|_| StoreError::NoMailbox)?;
    let found = store.mailbox_named(account, &name)?;
    at_once(store, found)
}

/// Returns the `INBOX` of an account, and makes it only if the directory knows the account. A session or a delivery
/// that began before the account's removal must not make the account again.
pub(super) fn inbox(
    store: &mut MailStore,
    directory: &Directory,
    account: &AccountName,
) -> Result<Committed<MailboxId>, StoreError> {
    if let Err(StoreError::NoMailbox) = store.mailbox_named(account, &MailboxName::inbox()) {
        let known = directory.store().account(account);
        let known = known.map_err(|error| StoreError::Failed(error.to_string()))?;
        known.ok_or(StoreError::NoMailbox)?;
    }
    store.open_account(account, now())
}

/// Returns the first UID that is recent in this session. The answer does not wait for a sync of the claim. After a
/// power cut a later session may see these messages as recent, too, which RFC 3501 section 2.3.2 asks for when the
/// state is unknown.
pub(super) fn claim(
    store: &mut MailStore,
    id: MailboxId,
    read_only: bool,
) -> Result<u32, StoreError> {
    let from = match read_only {
        true => store.status(id)?.map(|status| status.recent_from),
        false => store.claim_recent(id)?,
    };
    Ok(at_once(store, from)?.get())
}

/// RENAME of INBOX: the messages move, and INBOX stays (RFC 9051 section 6.3.6).
pub(super) fn empty_inbox(
    store: &mut MailStore,
    account: &AccountName,
    to: &MailboxName,
    operation: OperationId,
) -> Result<Committed<()>, StoreError> {
    let made = store.create_mailbox(account, to, None, now())?;
    let to = at_once(store, made)?;
    let inbox = store.mailbox_named(account, &MailboxName::inbox())?;
    let inbox = at_once(store, inbox)?;
    let snapshot = store.snapshot(inbox)?;
    let uids: Vec<_> = at_once(store, snapshot)?
        .iter_from(0)
        .map(|message| message.uid)
        .collect();
    let moved = store.move_to(inbox, &uids, to, QuotaLimit::default(), operation)?;
    Ok(moved.map(drop))
}

/// Returns a new random id for an operation.
pub(super) fn operation() -> Result<OperationId, Refusal> {
    let mut octets = [0; 16];
    getrandom::fill(&mut octets).map_err(|_| Refusal::Unavailable)?;
    Ok(OperationId(octets))
}

pub(super) fn attribute(special_use: SpecialUse) -> Option<&'static str> {
    let named = SpecialUse::NAMED
        .iter()
        .find(|(own, ..)| *own == special_use);
    named.and_then(|(.., name)| name.strip_prefix('\\'))
}

pub(super) fn special_use(name: &str) -> Option<SpecialUse> {
    let wanted = SpecialUse::NAMED.iter().find(|(.., own)| {
        own.strip_prefix('\\')
            .is_some_and(|own| own.eq_ignore_ascii_case(name))
    });
    wanted.map(|(own, ..)| *own)
}

#[cfg(test)]
mod tests {
    use vere_ports::directory::Change;

    use super::super::filled;
    use super::*;

    /// Somebody logged in, and mail was on the way, when the account was removed and what it had.
    #[test]
    fn what_a_removed_account_had_is_not_made_again() {
        let (_folder, mut store) = filled::store();
        let account = AccountName::parse("a@example.org").unwrap();
        let directory = filled::directory(std::slice::from_ref(&account));
        drop(inbox(&mut store, &directory, &account).unwrap());
        let removed = Change::RemoveAccount(account.clone());
        directory.store().apply(&removed).unwrap();
        // The mailboxes of a removed account remain until they are removed, too.
        drop(inbox(&mut store, &directory, &account).unwrap());
        drop(store.remove_account(&account).unwrap());
        let again = inbox(&mut store, &directory, &account);
        assert_eq!(again.unwrap_err(), StoreError::NoMailbox);
        let new = MailboxName::new("New").unwrap();
        let made = store.create_mailbox(&account, &new, None, now());
        assert_eq!(made.unwrap_err(), StoreError::NoMailbox);
        let subscribed = store.subscribe(&account, &new, true);
        assert_eq!(subscribed.unwrap_err(), StoreError::NoMailbox);
        let held = store.holding(&account).unwrap();
        assert_eq!(at_once(&store, held).unwrap().mailboxes, 0);
        directory.store().apply(&filled::added(&account)).unwrap();
        drop(inbox(&mut store, &directory, &account).unwrap());
    }

    #[test]
    fn ids_that_come_again_with_something_else_are_counted_and_nothing_else_is() {
        let figures = Figures::default();
        let account = AccountName::parse("a@example.org").unwrap();
        for error in [StoreError::NoMailbox, StoreError::OverQuota] {
            report(&error, &figures, &account, "INBOX", OperationId([1; 16]));
        }
        assert_eq!(figures.collisions(), 0);
        report(
            &StoreError::IdCollision,
            &figures,
            &account,
            "INBOX",
            OperationId([1; 16]),
        );
        assert_eq!(figures.collisions(), 1);
    }
}
