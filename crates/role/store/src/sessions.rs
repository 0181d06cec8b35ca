//! Logged-in sessions. The sessions of an account end when the account is removed, or its password changes.
//!
//! Other processes change the directory without notice. Once a second the role checks whether the directory changed,
//! and only then looks up the accounts with sessions.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use vere_directory::Directory;
use vere_imap::server::Refusal;
use vere_ports::directory::{AccountName, StoreError};

use vere_login::login::Print;

/// How often the role checks whether the directory changed.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Why a session was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LetIn {
    /// The account's password has this fingerprint; absent before the client has shown a password.
    Password(Option<Print>),
    /// The client administers the system.
    Administrator,
}

impl LetIn {
    /// Why the session must end, given the account's current fingerprint; `now` is none if the account is gone.
    fn ended_by(self, now: Option<Print>) -> Option<Refusal> {
        match (self, now) {
            (_, None) => Some(Refusal::Removed),
            (Self::Password(shown), now) if shown != now => Some(Refusal::Expired),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Session {
    let_in: LetIn,
    ended: Cell<Option<Refusal>>,
    notify: Notify,
}

/// All sessions, by account.
#[derive(Debug, Default)]
pub(super) struct Sessions(RefCell<HashMap<AccountName, Vec<Rc<Session>>>>);

/// A session's entry among the sessions of its account, removed when dropped.
#[derive(Debug)]
pub(super) struct SessionPlace {
    sessions: Rc<Sessions>,
    account: AccountName,
    session: Rc<Session>,
}

impl Sessions {
    /// Adds a session, if it may still be let in: the password may have changed since the client showed it.
    ///
    /// # Errors
    /// The reason against the session, or that the directory cannot be read.
    pub(super) fn enter(
        self: &Rc<Self>,
        directory: &Directory,
        account: AccountName,
        let_in: LetIn,
    ) -> Result<SessionPlace, Refusal> {
        let now = Print::look_up(directory, &account).map_err(|error| {
            tracing::error!(%error, "directory cannot be read");
            Refusal::Unavailable
        })?;
        if let Some(refusal) = let_in.ended_by(now) {
            return Err(refusal);
        }
        let session = Rc::new(Session {
            let_in,
            ended: Cell::default(),
            notify: Notify::new(),
        });
        let mut all = self.0.borrow_mut();
        let own = all.entry(account.clone()).or_default();
        own.push(Rc::clone(&session));
        drop(all);
        Ok(SessionPlace {
            sessions: Rc::clone(self),
            account,
            session,
        })
    }

    /// Ends sessions for as long as the role runs.
    pub(super) async fn watch(self: Rc<Self>, directory: Arc<Directory>) {
        let mut seen = None;
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            // Read the revision before the list of sessions: a later session checks its own password.
            let revision = directory.store().revision().ok();
            if revision.is_none() || revision == seen {
                continue;
            }
            match self.look(&directory).await {
                Ok(()) => seen = revision,
                Err(error) => tracing::error!(%error, "directory cannot be read"),
            }
        }
    }

    /// Ends the sessions of removed accounts, and of accounts with changed passwords.
    async fn look(&self, directory: &Arc<Directory>) -> Result<(), StoreError> {
        let present = self.0.borrow().clone();
        let accounts: Vec<AccountName> = present.keys().cloned().collect();
        let directory = Arc::clone(directory);
        let look_up = move || {
            let print = |account| Ok((Print::look_up(&directory, &account)?, account));
            let prints = accounts.into_iter().map(print);
            prints.collect::<Result<Vec<_>, StoreError>>()
        };
        let Ok(prints) = tokio::task::spawn_blocking(look_up).await else {
            return Ok(());
        };
        for (print, account) in prints? {
            for session in present.get(&account).into_iter().flatten() {
                let ended = session.let_in.ended_by(print);
                if let Some(reason) = ended.filter(|_| session.ended.get().is_none()) {
                    tracing::info!(%account, reason = reason.text(), "session ended");
                    session.ended.set(Some(reason));
                    session.notify.notify_one();
                }
            }
        }
        Ok(())
    }
}

impl SessionPlace {
    pub(super) const fn account(&self) -> &AccountName {
        &self.account
    }

    /// Why the session is over, once it is.
    pub(super) fn ended(&self) -> Option<Refusal> {
        self.session.ended.get()
    }

    /// Waits for the end of the session.
    pub(super) async fn end(&self) {
        self.session.notify.notified().await;
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        let mut all = self.sessions.0.borrow_mut();
        if let Some(own) = all.get_mut(&self.account) {
            own.retain(|session| !Rc::ptr_eq(session, &self.session));
            if own.is_empty() {
                all.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_with_its_password_and_any_with_its_account() {
        let (old, new) = (Some(Print::new(1)), Some(Print::new(2)));
        assert_eq!(LetIn::Password(old).ended_by(old), None);
        assert_eq!(LetIn::Password(old).ended_by(new), Some(Refusal::Expired));
        assert_eq!(LetIn::Password(None).ended_by(new), Some(Refusal::Expired));
        assert_eq!(LetIn::Administrator.ended_by(new), None);
        for let_in in [
            LetIn::Password(old),
            LetIn::Password(None),
            LetIn::Administrator,
        ] {
            assert_eq!(let_in.ended_by(None), Some(Refusal::Removed));
        }
    }
}
