//! Answers the questions of one IMAP connection's machine.

mod adding;

use std::rc::Rc;
use std::sync::Arc;

use vere_directory::Directory;
use vere_imap::server::{
    Answer, Changes, FlagsChanged, MailboxChange, MailboxEntry, Opened, Question, Quota, Refusal,
    Status, StoreQuery,
};
use vere_imap::set::UidSet;
use vere_ports::directory::AccountName;
use vere_sasl::server::{PasswordAttempt, PasswordOutcome, ScramLookup};
use vere_store::{MailboxId, MailboxName, ModSeq, StoreError, SystemFlags};

use super::convert::{self, among, flags_of, opened_gone, refusal};
use super::fetcher::Fetcher;
use super::keeper::Keeper;
use super::opened::{self, OpenMailbox, Since};
use super::quota::SharedQuotas;
use super::search;
use super::sessions::{LetIn, SessionPlace, Sessions};
use super::steps::{attribute, claim, empty_inbox, inbox, named, operation, special_use};
use vere_login::guessing::{Attempt, Outcome};
use vere_login::login::{self, Logins, Print};
use vere_process::clock::now;
use vere_process::places;

/// The host's side of a connection.
#[derive(Debug)]
pub(super) struct Client {
    keeper: Keeper,
    directory: Arc<Directory>,
    logins: Logins,
    quotas: SharedQuotas,
    address: places::Client,
    /// A SCRAM exchange whose result only the machine sees.
    exchange: Option<Attempt>,
    sessions: Rc<Sessions>,
    let_in: LetIn,
    /// Set once the account is known.
    place: Option<SessionPlace>,
    open: Option<OpenMailbox>,
    fetcher: Fetcher,
}

impl Client {
    pub(super) fn new(
        keeper: Keeper,
        directory: Arc<Directory>,
        logins: Logins,
        quotas: SharedQuotas,
        address: places::Client,
        (sessions, let_in): (Rc<Sessions>, LetIn),
        fetcher: Fetcher,
    ) -> Self {
        Self {
            keeper,
            directory,
            logins,
            quotas,
            address,
            exchange: None,
            sessions,
            let_in,
            place: None,
            open: None,
            fetcher,
        }
    }

    /// Drops the state of a mailbox that the machine has closed.
    pub(super) fn follow(&mut self, open: Option<u64>) {
        if self.open.as_ref().map(|own| own.id.0) != open {
            self.open = None;
            self.fetcher.rest();
        }
    }

    /// Notes that the machine waits for its client. The next command may be far off, so memory is released.
    pub(super) fn rest(&mut self) {
        if let Some(open) = &mut self.open {
            open.rest();
        }
        self.fetcher.rest();
    }

    /// Returns the fetcher of this session.
    pub(super) const fn fetcher(&mut self) -> &mut Fetcher {
        &mut self.fetcher
    }

    /// Waits until the open mailbox may have changed, and returns the mailbox's id.
    pub(super) async fn changed(&self) -> u64 {
        match &self.open {
            Some(open) => {
                open.watch.changed().await;
                open.id.0
            }
            None => std::future::pending().await,
        }
    }

    /// Notes that the open mailbox has changed: the client's view is old.
    pub(super) fn note_change(&mut self) {
        if let Some(open) = &mut self.open {
            open.changed();
        }
    }

    /// Why the session is over, once it is.
    pub(super) fn ended(&self) -> Option<Refusal> {
        self.place.as_ref().and_then(SessionPlace::ended)
    }

    /// Waits until the session is over.
    pub(super) async fn end(&self) {
        match &self.place {
            Some(place) => place.end().await,
            None => std::future::pending().await,
        }
    }

    pub(super) async fn answer(&mut self, question: Question) -> Answer {
        match question {
            Question::Password(attempt) => Answer::Login(self.log_in(attempt).await),
            Question::ScramUser { username } => {
                // Only the machine sees whether the proof is right. The attempt counts as failed unless the session
                // enters the account.
                self.exchange = None;
                let exchange = self.logins.exchange(self.address, &username).await;
                self.exchange = Some(exchange);
                self.let_in = LetIn::Password(Print::of_user(&self.directory, &username));
                Answer::ScramUser(login::scram_keys(&self.directory, &username))
            }
            other => match &self.place {
                Some(place) => self.of_account(place.account().clone(), other).await,
                None => Answer::Done(Err(Refusal::Unavailable)),
            },
        }
    }

    /// Notes the account that the machine has authenticated, and opens the account's mailboxes.
    ///
    /// # Errors
    /// When the account may not log in any more, or the store fails.
    pub(super) async fn enter(&mut self, account: Option<&str>) -> Result<(), Refusal> {
        let Some(name) = account.filter(|_| self.place.is_none()) else {
            return Ok(());
        };
        let name = AccountName::parse(name).map_err(|_| Refusal::Unavailable)?;
        if let Some(exchange) = self.exchange.take() {
            exchange.settle(Outcome::Succeeded);
        }
        let directory = Directory::clone(&self.directory);
        let place = self.sessions.enter(&directory, name.clone(), self.let_in)?;
        let opened = self
            .keeper
            .ask(move |store| inbox(store, &directory, &name));
        let inbox = opened.await.map_err(|error| refusal(&error))?;
        // Most sessions open INBOX next.
        self.keeper.wanted_soon(inbox);
        self.place = Some(place);
        Ok(())
    }

    async fn log_in(&mut self, attempt: PasswordAttempt) -> PasswordOutcome {
        self.exchange = None;
        let directory = Directory::clone(&self.directory);
        self.let_in = LetIn::Password(Print::of_user(&directory, &attempt.authcid));
        let outcome = self.logins.password(self.address, directory, attempt).await;
        if let PasswordOutcome::Accepted { account } = &outcome
            && self.enter(Some(account)).await.is_err()
        {
            return PasswordOutcome::Unavailable;
        }
        outcome
    }

    async fn of_account(&mut self, account: AccountName, question: Question) -> Answer {
        match question {
            Question::Mailboxes => Answer::Mailboxes(self.mailboxes(account).await),
            Question::Status {
                mailbox,
                deleted_octets,
            } => Answer::Status(self.status(account, mailbox, deleted_octets).await),
            Question::Change(change) => Answer::Done(self.change(account, change).await),
            Question::Open { mailbox, read_only } => {
                Answer::Opened(self.open(account, mailbox, read_only).await.map(Box::new))
            }
            Question::Changes {
                mailbox,
                since,
                uid_next,
                read_only,
            } => Answer::Changes(
                self.changes(MailboxId(mailbox), ModSeq(since), uid_next, read_only)
                    .await,
            ),
            Question::Fetch(query) => {
                Answer::Messages(self.fetcher.fetch(&self.keeper, &account, query).await)
            }
            Question::Piece(query) => Answer::Piece(self.fetcher.piece(query).await),
            Question::Store(query) => Answer::Flags(self.store(query).await),
            Question::Expunge { mailbox, uids } => {
                Answer::Done(self.expunge(MailboxId(mailbox), uids).await)
            }
            Question::Copy {
                mailbox,
                uids,
                target,
                remove,
            } => Answer::Copied(
                self.copy(account, MailboxId(mailbox), uids, target, remove)
                    .await,
            ),
            Question::Append(query) => Answer::Appended(self.append(account, *query).await),
            Question::Search {
                mailbox,
                key,
                recent,
            } => Answer::Found(
                search::search(
                    &self.keeper,
                    (&account, MailboxId(mailbox)),
                    key,
                    recent,
                    now(),
                )
                .await,
            ),
            Question::Quota => Answer::Quota(self.quota(account).await),
            Question::Password(_) | Question::ScramUser { .. } => {
                Answer::ScramUser(ScramLookup::Unavailable)
            }
        }
    }

    async fn mailboxes(&self, account: AccountName) -> Result<Vec<MailboxEntry>, Refusal> {
        let listed = self.keeper.ask(move |store| store.list(&account)).await;
        let entry = |entry: vere_store::ListEntry| MailboxEntry {
            name: entry.name.to_string(),
            exists: entry.mailbox.is_some(),
            subscribed: entry.subscribed,
            special_use: entry.special_use.and_then(attribute),
        };
        match listed {
            Ok(entries) => Ok(entries.into_iter().map(entry).collect()),
            Err(error) => Err(refusal(&error)),
        }
    }

    async fn status(
        &self,
        account: AccountName,
        mailbox: String,
        deleted_octets: bool,
    ) -> Result<Status, Refusal> {
        let found = self.keeper.ask(move |store| {
            let id = named(store, &account, &mailbox)?;
            if !deleted_octets {
                return Ok(store.status(id)?.map(|status| (status, None)));
            }
            let snapshot = store.snapshot(id)?;
            Ok(snapshot.map(|snapshot| (snapshot.status(), Some(snapshot))))
        });
        let (status, snapshot) = found.await.map_err(|error| refusal(&error))?;
        let messages = snapshot.iter().flat_map(|snapshot| snapshot.iter_from(0));
        let deleted = messages.filter(|message| message.flags.contains(SystemFlags::DELETED));
        Ok(Status {
            messages: status.messages,
            recent: status
                .uid_next
                .get()
                .saturating_sub(status.recent_from.get()),
            uid_next: status.uid_next.get(),
            uid_validity: status.uid_validity,
            unseen: status.unseen,
            deleted: status.deleted,
            deleted_octets: deleted.map(|message| u64::from(message.size)).sum(),
            size: status.octets,
            mod_seq: status.highest_mod_seq.0,
        })
    }

    async fn change(&self, account: AccountName, change: MailboxChange) -> Result<(), Refusal> {
        let operation = operation()?;
        let special_use = match &change {
            MailboxChange::Create {
                special_use: Some(name),
                ..
            } => Some(special_use(name).ok_or(Refusal::SpecialUse)?),
            _ => None,
        };
        let changed = self.keeper.ask(move |store| match change {
            MailboxChange::Create { mailbox, .. } => {
                let name = MailboxName::new(&mailbox)?;
                let made = store.create_mailbox(&account, &name, special_use, now())?;
                Ok(made.map(drop))
            }
            MailboxChange::Delete(mailbox) => {
                store.delete_mailbox(&account, &MailboxName::new(&mailbox)?, now())
            }
            MailboxChange::Rename { from, to } => {
                let (from, to) = (MailboxName::new(&from)?, MailboxName::new(&to)?);
                if from.is_inbox() {
                    return empty_inbox(store, &account, &to, operation);
                }
                store.rename_mailbox(&account, &from, &to)
            }
            MailboxChange::Subscribe {
                mailbox,
                subscribed,
            } => store.subscribe(&account, &MailboxName::new(&mailbox)?, subscribed),
        });
        changed.await.map_err(|error| refusal(&error))
    }

    async fn open(
        &mut self,
        account: AccountName,
        mailbox: String,
        read_only: bool,
    ) -> Result<Opened, Refusal> {
        let opened = self.keeper.ask(move |store| {
            let id = named(store, &account, &mailbox)?;
            let snapshot = store.snapshot(id)?;
            // Claimed after the snapshot, so that the answer does not wait for a sync of the claim.
            let recent = claim(store, id, read_only)?;
            Ok(snapshot.map(|snapshot| (recent, snapshot)))
        });
        let (recent_from, snapshot) = opened.await.map_err(|error| refusal(&error))?;
        let status = snapshot.status();
        let first_unseen = snapshot.first_unseen();
        let opened = Opened {
            mailbox: snapshot.mailbox().0,
            uid_validity: status.uid_validity,
            uid_next: status.uid_next.get(),
            mod_seq: status.highest_mod_seq.0,
            uids: convert::all(&snapshot),
            first_unseen: first_unseen.map(|message| message.uid.get()),
            recent_from,
            keywords: snapshot
                .keywords()
                .iter()
                .map(|keyword| Arc::from(keyword.as_str()))
                .collect(),
        };
        let watch = self.keeper.watch(snapshot.mailbox());
        self.open = Some(OpenMailbox::new(snapshot, watch));
        Ok(opened)
    }

    async fn changes(
        &mut self,
        id: MailboxId,
        since: ModSeq,
        uid_next: u32,
        read_only: bool,
    ) -> Result<Changes, Refusal> {
        let asked = self.keeper.ask(move |store| {
            let end = store.end();
            let expunged = store.expunged_since(id, since)?;
            let expunged = expunged.when(end).unwrap_or_default();
            let snapshot = store.snapshot(id)?;
            // Claimed after the snapshot, so that the answer does not wait for a sync of the claim.
            let recent = claim(store, id, read_only)?;
            Ok(snapshot.map(|snapshot| (recent, expunged, snapshot)))
        });
        let (recent_from, expunged, snapshot) = asked.await.map_err(|error| opened_gone(&error))?;
        let open = self.open.as_mut().filter(|open| open.id == id);
        let since = Since {
            mod_seq: since,
            uid_next,
            expunged,
        };
        Ok(opened::changes(open, &snapshot, &since, recent_from))
    }

    async fn store(&self, query: StoreQuery) -> Result<FlagsChanged, Refusal> {
        let flags = convert::to_store(&query.flags).map_err(|error| refusal(&error))?;
        let id = MailboxId(query.mailbox);
        let asked = self.keeper.ask(move |store| {
            let uids = convert::uids(&query.uids);
            let mode = convert::mode(query.action);
            let unchanged_since = query.unchanged_since.map(ModSeq);
            let stored = store.store_flags(id, &uids, mode, &flags, unchanged_since)?;
            let end = store.end();
            let stored = stored
                .when(end)
                .map_err(|_| StoreError::Failed("not at the end of the log".to_owned()))?;
            Ok(store
                .snapshot(id)?
                .map(|snapshot| (stored, snapshot, query.uids)))
        });
        let (stored, snapshot, uids) = asked.await.map_err(|error| opened_gone(&error))?;
        let modified = convert::set(stored.modified);
        let rows = among(&snapshot, &uids).filter(|message| !modified.contains(message.uid.get()));
        Ok(FlagsChanged {
            rows: rows.map(|message| flags_of(&snapshot, message)).collect(),
            changed: convert::set(stored.changed),
            modified,
        })
    }

    async fn expunge(&self, id: MailboxId, uids: Option<UidSet>) -> Result<(), Refusal> {
        let asked = self.keeper.ask(move |store| {
            let uids = uids.map(|uids| convert::uids(&uids));
            Ok(store.expunge(id, uids.as_deref(), now())?.map(drop))
        });
        asked.await.map_err(|error| opened_gone(&error))
    }

    async fn quota(&self, account: AccountName) -> Result<Quota, Refusal> {
        let limit = self.quotas.now().of(&account);
        let asked = self.keeper.ask(move |store| {
            let usage = store.quota(&account)?;
            Ok(store.list(&account)?.map(|_| usage))
        });
        let usage = asked.await.map_err(|error| refusal(&error))?;
        Ok(Quota {
            octets: usage.octets,
            octets_max: limit.octets,
            messages: usage.messages,
            messages_max: limit.messages,
        })
    }
}
