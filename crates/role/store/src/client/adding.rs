//! COPY, MOVE and APPEND: commands that add messages to mailboxes.

use vere_imap::server::{AppendQuery, Appended, Copied, Refusal};
use vere_imap::set::UidSet;
use vere_ports::directory::AccountName;
use vere_store::{
    Committed, MailboxId, OperationId, QuotaLimit, QuotaUsage, RecipientFields, Snapshot,
    StoreError, Target, Uid,
};

use super::super::convert::{self, opened_gone, refusal};
use super::super::mail_store::MailStore;
use super::super::steps::{named, operation, report};
use super::Client;
use vere_process::clock::now;

/// Messages copied or moved in one question to the store. A piece of this size takes the store's thread some
/// milliseconds, and other questions have their turn after each piece.
const COPIED_AT_ONCE: usize = 1_000;

/// A COPY or MOVE command.
#[derive(Debug, Clone)]
struct Copying {
    account: AccountName,
    from: MailboxId,
    target: String,
    remove: bool,
    quota: QuotaLimit,
}

impl Copying {
    /// Copies or moves one piece. The first piece finds the target, and checks that the account has room for `all`.
    fn piece(
        &self,
        store: &mut MailStore,
        (to, uids): (Option<MailboxId>, &[Uid]),
        all: QuotaUsage,
        operation: OperationId,
    ) -> Result<Committed<(MailboxId, vere_store::Copied)>, StoreError> {
        let to = match to {
            Some(to) => to,
            None => {
                // A missing target is a separate error, distinct from the loss of the open mailbox.
                let to = named(store, &self.account, &self.target).map_err(no_target)?;
                store.room_for(to, self.quota, all)?;
                to
            }
        };
        let copied = match self.remove {
            true => store.move_to(self.from, uids, to, self.quota, operation),
            false => store.copy(self.from, uids, to, self.quota, operation),
        };
        match copied {
            Ok(copied) => Ok(copied.map(|copied| (to, copied))),
            Err(error) if store.status(to).is_err() => Err(no_target(error)),
            Err(error) => Err(error),
        }
    }
}

fn no_target(error: StoreError) -> StoreError {
    match error {
        StoreError::NoMailbox => StoreError::Name,
        other => other,
    }
}

impl Client {
    /// Copies or moves messages, a piece at a time. A copy that fails removes its copies; a move that fails keeps the
    /// messages moved before. A crash leaves the pieces finished before the crash.
    pub(super) async fn copy(
        &self,
        account: AccountName,
        from: MailboxId,
        uids: UidSet,
        target: String,
        remove: bool,
    ) -> Result<Copied, Refusal> {
        let quota = match remove {
            // A move adds nothing to the account, so users can tidy up a full account.
            true => QuotaLimit::default(),
            false => self.quotas.now().of(&account),
        };
        let copying = Copying {
            account,
            from,
            target,
            remove,
            quota,
        };
        let all = self.octets_of(&copying, &uids).await;
        let all = all.map_err(|error| opened_gone(&error))?;
        let uids = convert::uids(&uids);
        let (first, rest) = uids.split_at(uids.len().min(COPIED_AT_ONCE));
        let done = self.copy_piece(&copying, (None, first), all).await;
        let (to, mut copied) = done.map_err(copy_refused)?;
        for piece in rest.chunks(COPIED_AT_ONCE) {
            let done = self.copy_piece(&copying, (Some(to), piece), all).await;
            match done {
                Ok((_, more)) => {
                    copied.from.extend(more.from);
                    copied.to.extend(more.to);
                }
                Err(error) => {
                    if !remove {
                        self.take_back(to, &copied.to).await;
                    }
                    return Err(copy_refused(error));
                }
            }
        }
        Ok(Copied {
            uid_validity: copied.uid_validity,
            from: convert::set(copied.from),
            to: convert::set(copied.to),
        })
    }

    /// Returns what the messages add to an account with a quota, if the command has several pieces. The store checks
    /// the quota of a single piece.
    async fn octets_of(&self, copying: &Copying, uids: &UidSet) -> Result<QuotaUsage, StoreError> {
        if copying.quota == QuotaLimit::default() || uids.len() as usize <= COPIED_AT_ONCE {
            return Ok(QuotaUsage::default());
        }
        let (from, uids) = (copying.from, uids.clone());
        let sum = move |snapshot: Snapshot| {
            let mut usage = QuotaUsage::default();
            for message in convert::among(&snapshot, &uids) {
                usage.octets += u64::from(message.size);
                usage.messages += 1;
            }
            usage
        };
        let snapshot = move |store: &mut MailStore| store.snapshot(from);
        self.keeper.ask_then(snapshot, |_| None, sum).await
    }

    async fn copy_piece(
        &self,
        copying: &Copying,
        (to, uids): (Option<MailboxId>, &[Uid]),
        all: QuotaUsage,
    ) -> Result<(MailboxId, vere_store::Copied), StoreError> {
        let operation = operation().map_err(|_| no_number())?;
        let figures = self.keeper.figures().clone();
        let (copying, uids) = (copying.clone(), uids.to_vec());
        let asked = self.keeper.ask(move |store| {
            let done = copying.piece(store, (to, &uids), all, operation);
            let (account, target) = (&copying.account, &copying.target);
            done.inspect_err(|error| report(error, &figures, account, target, operation))
        });
        asked.await
    }

    /// Removes the copies of a COPY that failed: the client learns of the failure and will copy again.
    async fn take_back(&self, to: MailboxId, copies: &[Uid]) {
        for piece in copies.chunks(COPIED_AT_ONCE) {
            let piece = piece.to_vec();
            let taken = self.keeper.ask(move |store| store.take_back(to, &piece));
            match taken.await {
                // A mailbox deleted meanwhile took the copies along.
                Ok(()) | Err(StoreError::NoMailbox) => {}
                Err(error) => {
                    tracing::error!(%error, mailbox = to.0, "copies of a copy that failed stay");
                    return;
                }
            }
        }
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

fn copy_refused(error: StoreError) -> Refusal {
    match error {
        StoreError::Name => Refusal::NoTarget,
        other => opened_gone(&other),
    }
}

fn no_number() -> StoreError {
    StoreError::Failed("no random numbers".to_owned())
}
