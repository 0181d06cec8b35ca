//! What brings messages into mailboxes: COPY, MOVE and APPEND.

use vere_imap::server::{AppendQuery, Appended, Copied, Refusal};
use vere_imap::set::UidSet;
use vere_ports::directory::AccountName;
use vere_store::{MailboxId, QuotaLimit, RecipientFields, StoreError, Target};

use super::super::convert::{self, refusal};
use super::super::messages::opened_gone;
use super::super::steps::{named, operation, report};
use super::Client;
use crate::role::clock::now;

impl Client {
    pub(super) async fn copy(
        &self,
        account: AccountName,
        from: MailboxId,
        uids: UidSet,
        target: String,
        remove: bool,
    ) -> Result<Copied, Refusal> {
        let operation = operation()?;
        let quota = self.quotas.now().of(&account);
        let figures = self.keeper.figures().clone();
        let asked = self.keeper.ask(move |store| {
            let to = named(store, &account, &target).map_err(|error| match error {
                // That the one which is open is gone is something else.
                StoreError::NoMailbox => StoreError::Name,
                other => other,
            })?;
            let uids = convert::uids(&uids);
            let copied = match remove {
                // What moves is held once before and after: a full account can be tidied up.
                true => store.move_to(from, &uids, to, QuotaLimit::default(), operation),
                false => store.copy(from, &uids, to, quota, operation),
            };
            copied.inspect_err(|error| report(error, &figures, &account, &target, operation))
        });
        let copied = asked.await.map_err(|error| match error {
            StoreError::Name => Refusal::NoTarget,
            other => opened_gone(&other),
        })?;
        Ok(Copied {
            uid_validity: copied.uid_validity,
            from: convert::set(copied.from),
            to: convert::set(copied.to),
        })
    }

    pub(super) async fn append(
        &self,
        account: AccountName,
        query: AppendQuery,
    ) -> Result<Appended, Refusal> {
        let operation = operation()?;
        let flags = convert::to_store(&query.flags).map_err(|error| refusal(&error))?;
        let message = query.message;
        let quotas = self.quotas.now();
        let figures = self.keeper.figures().clone();
        let internal_date = convert::date(query.date.unwrap_or_else(|| now().into()));
        let parsers = self.keeper.processes().delivering.clone();
        let turn = parsers.turn().await;
        let prepare = move || {
            let _turn = turn;
            parsers.prepare(&message)
        };
        let asked = self.keeper.ask_with(prepare, move |store, prepared| {
            let target = Target {
                mailbox: named(store, &account, &query.mailbox)?,
                flags,
                internal_date,
                fields: RecipientFields::default(),
                quota: quotas.of(&account),
            };
            let before = quotas.held(store, std::iter::once(&account));
            let delivered = store.deliver(&prepared, &[target], operation)?;
            quotas.warn(store, before);
            Ok(delivered.map(move |added| {
                for error in added.iter().filter_map(|added| added.as_ref().err()) {
                    report(error, &figures, &account, &query.mailbox, operation);
                }
                added
            }))
        });
        let results = asked.await.map_err(|error| refusal(&error))?;
        match results.into_iter().next() {
            Some(Ok(added)) => Ok(Appended {
                uid_validity: added.uid_validity,
                uid: added.uid.get(),
            }),
            Some(Err(error)) => Err(refusal(&error)),
            None => Err(Refusal::Unavailable),
        }
    }
}
