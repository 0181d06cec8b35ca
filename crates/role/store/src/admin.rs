//! Access for administrators to the mailboxes of any account: IMAP over a socket in the file system.
//!
//! A client writes the account's name and a line end, and receives a PREAUTH or BYE greeting. Instead of a name, a
//! client may write a request of [`control`](vere_control) in one line, and receives an answer in one line. The
//! permissions of the socket's file decide who may connect: its owner only. An administrator's commands run like
//! commands of every other session, so the store need not stop.
//!
//! An account has one administrator's session at a time. The store still executes commands of a program that was
//! killed. The next session begins after these commands, and sees their results.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore, SemaphorePermit};
use vere_imap::server::Peer;
use vere_ports::directory::{AccountName, NameError};
use vere_settings::Settings;

use super::accounts::AccountsError;
use super::hold::{self, HoldError, write_answer};
use super::mailboxes::MailboxError;
use super::reception::Reception;
use super::search::ExplainError;
use super::{accounts, checking, mailboxes, search, session};
use vere_control::{Answer, REQUEST_MAX, StoreRequest, store_socket};
use vere_process::accept;

/// How long a client may take to send the first line, or to read an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a client waits for its turn, such as for the end of the previous session.
const TURN_PATIENCE: Duration = Duration::from_secs(60);

/// Searches explained at once: each search runs to its end, on a separate thread.
const EXPLAINED_AT_ONCE: usize = 2;

/// Why a request of an administrator is refused.
#[derive(Debug)]
enum RequestError {
    /// The requested name is no valid account name.
    Name(NameError),
    /// An administrator's session of the account did not end in time.
    InUse,
    /// Other searches did not end in time.
    ManySearches,
    /// The search cannot be explained.
    Explain(ExplainError),
    /// The accounts cannot be listed or removed.
    Accounts(AccountsError),
    /// Mailboxes cannot be listed, or messages not be brought back.
    Mailboxes(MailboxError),
    /// The log cannot be held for a backup.
    Hold(HoldError),
    /// The answer cannot be written as JSON.
    Answer(serde_json::Error),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::InUse => f.write_str("an import or export of this account is under way"),
            Self::ManySearches => f.write_str("too many searches are being explained"),
            Self::Explain(error) => error.fmt(f),
            Self::Accounts(error) => error.fmt(f),
            Self::Mailboxes(error) => error.fmt(f),
            Self::Hold(error) => error.fmt(f),
            Self::Answer(error) => error.fmt(f),
        }
    }
}

/// The display holds the texts of all causes.
impl Error for RequestError {}

impl From<NameError> for RequestError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<ExplainError> for RequestError {
    fn from(error: ExplainError) -> Self {
        Self::Explain(error)
    }
}

impl From<AccountsError> for RequestError {
    fn from(error: AccountsError) -> Self {
        Self::Accounts(error)
    }
}

impl From<MailboxError> for RequestError {
    fn from(error: MailboxError) -> Self {
        Self::Mailboxes(error)
    }
}

impl From<HoldError> for RequestError {
    fn from(error: HoldError) -> Self {
        Self::Hold(error)
    }
}

impl From<serde_json::Error> for RequestError {
    fn from(error: serde_json::Error) -> Self {
        Self::Answer(error)
    }
}

/// Turns of administrators' requests.
#[derive(Debug)]
struct Turns {
    /// Turns for the mailboxes of an account.
    accounts: RefCell<HashMap<AccountName, Arc<Mutex<()>>>>,
    /// Turns to have a search explained.
    explained: Semaphore,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            accounts: RefCell::default(),
            explained: Semaphore::new(EXPLAINED_AT_ONCE),
        }
    }
}

impl Turns {
    /// Waits until fewer searches are being explained; `None` after [`TURN_PATIENCE`].
    async fn to_explain(&self) -> Option<SemaphorePermit<'_>> {
        let turn = tokio::time::timeout(TURN_PATIENCE, self.explained.acquire());
        turn.await.ok()?.ok()
    }

    /// Waits for the end of the previous session; `None` after [`TURN_PATIENCE`].
    async fn take(&self, account: &AccountName) -> Option<OwnedMutexGuard<()>> {
        let turn = {
            let mut turns = self.accounts.borrow_mut();
            // Removes turns that no session holds or waits for.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(account.clone()).or_default())
        };
        tokio::time::timeout(TURN_PATIENCE, turn.lock_owned())
            .await
            .ok()
    }
}

/// Opens the socket for its owner alone. On failure the store still serves all other clients.
pub(super) fn bind(settings: &Settings) -> Option<UnixListener> {
    let path = store_socket(settings);
    match accept::bind(&path) {
        Ok(listener) => Some(listener),
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "no import and export: socket cannot be made");
            None
        }
    }
}

/// Serves until the role stops.
pub(super) async fn serve(reception: Rc<Reception>, listener: UnixListener) {
    let stop = reception.stopping();
    let turns = Rc::new(Turns::default());
    accept::accept(listener, "admin", stop, |stream| {
        let (reception, turns) = (Rc::clone(&reception), Rc::clone(&turns));
        async move {
            if let Err(error) = Box::pin(converse(&reception, &turns, stream)).await {
                tracing::debug!(%error, "administrator's connection lost");
            }
        }
    })
    .await;
}

async fn converse(reception: &Reception, turns: &Turns, mut stream: UnixStream) -> io::Result<()> {
    let line = tokio::time::timeout(PATIENCE, first_line(&mut stream)).await??;
    if line.starts_with(b"{") {
        return answer(reception, turns, &line, stream).await;
    }
    let name = String::from_utf8_lossy(&line);
    let account = match AccountName::parse(name.trim_ascii()) {
        Ok(account) if is_there(reception, &account) => account,
        _ => {
            return stream
                .write_all(b"* BYE there is no such account\r\n")
                .await;
        }
    };
    let Some(_turn) = turns.take(&account).await else {
        let busy = b"* BYE [INUSE] another import or export of this account is under way\r\n";
        return stream.write_all(busy).await;
    };
    tracing::info!(%account, "mailboxes opened by an administrator");
    let peer = Peer {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        tls: false,
        tls_available: false,
        may_auth_in_clear: true,
    };
    session::serve_known(&mut stream, peer, account.to_string(), reception).await
}

/// Reads up to the line end, and no octet beyond.
async fn first_line(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    while line.len() < REQUEST_MAX {
        match stream.read_u8().await? {
            b'\n' => return Ok(line),
            octet => line.push(octet),
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Executes a request of a command, and writes the answer.
async fn answer(
    reception: &Reception,
    turns: &Turns,
    line: &[u8],
    mut stream: UnixStream,
) -> io::Result<()> {
    let operator = stream.peer_cred()?.uid();
    let answer = match serde_json::from_slice(line) {
        Ok(StoreRequest::HoldLog) => return hold::serve(reception, stream).await,
        Ok(StoreRequest::Check) => return checking::serve(reception, stream).await,
        Ok(request) => match done(reception, turns, request, operator).await {
            Ok(value) => Answer::Ok(value),
            Err(error) => Answer::Error(error.to_string()),
        },
        Err(error) => Answer::Error(format!("request cannot be read: {error}")),
    };
    write_answer(&mut stream, &answer).await
}

async fn done(
    reception: &Reception,
    turns: &Turns,
    request: StoreRequest,
    operator: u32,
) -> Result<serde_json::Value, RequestError> {
    match request {
        StoreRequest::Explain {
            account,
            mailbox,
            search,
        } => {
            let text = explained(reception, turns, &account, &mailbox, &search).await?;
            Ok(text.into())
        }
        StoreRequest::Accounts { after } => {
            let page = accounts::page(reception.keeper(), after).await?;
            Ok(serde_json::to_value(page)?)
        }
        StoreRequest::Account { account } => {
            let row = accounts::one(reception.keeper(), &account).await?;
            Ok(serde_json::to_value(row)?)
        }
        StoreRequest::RemoveAccount { account } => {
            let account = AccountName::parse(&account)?;
            let Some(_turn) = turns.take(&account).await else {
                return Err(RequestError::InUse);
            };
            let row = accounts::remove(reception, &account, operator).await?;
            Ok(serde_json::to_value(row)?)
        }
        StoreRequest::RenameAccount { from, to } => {
            let (_from, _to) = (turn(turns, &from).await?, turn(turns, &to).await?);
            let row = accounts::rename(reception, (&from, &to), operator).await?;
            Ok(serde_json::to_value(row)?)
        }
        StoreRequest::Mailboxes { account } => {
            let rows = mailboxes::list(reception, &account).await?;
            Ok(serde_json::to_value(rows)?)
        }
        StoreRequest::Expunged(wanted) => {
            let page = mailboxes::page(reception, wanted).await?;
            Ok(serde_json::to_value(page)?)
        }
        StoreRequest::Undelete(wanted) => {
            let _turn = turn(turns, &wanted.of.account).await?;
            let page = mailboxes::undelete(reception, wanted, operator).await?;
            Ok(serde_json::to_value(page)?)
        }
        StoreRequest::PurgeExpunged { account, mailbox } => {
            let _turn = turn(turns, &account).await?;
            let page = mailboxes::purge(reception, &account, mailbox.as_deref(), operator).await?;
            Ok(serde_json::to_value(page)?)
        }
        // The connection itself is the hold.
        StoreRequest::HoldLog | StoreRequest::Check => Err(HoldError::Busy.into()),
    }
}

async fn turn(turns: &Turns, account: &str) -> Result<OwnedMutexGuard<()>, RequestError> {
    let account = AccountName::parse(account)?;
    turns.take(&account).await.ok_or(RequestError::InUse)
}

async fn explained(
    reception: &Reception,
    turns: &Turns,
    account: &str,
    mailbox: &str,
    search: &str,
) -> Result<String, RequestError> {
    let account = AccountName::parse(account)?;
    let Some(_turn) = turns.to_explain().await else {
        return Err(RequestError::ManySearches);
    };
    Ok(search::explain(reception.keeper(), account, mailbox, search).await?)
}

fn is_there(reception: &Reception, account: &AccountName) -> bool {
    match reception.directory().store().account(account) {
        Ok(found) => found.is_some(),
        Err(error) => {
            tracing::error!(%error, "directory cannot be read");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn searches_are_explained_in_turn() {
        let turns = Turns::default();
        let mut held = Vec::new();
        for _ in 0..EXPLAINED_AT_ONCE {
            held.push(turns.to_explain().await.expect("a turn"));
        }
        let mut next = std::pin::pin!(turns.to_explain());
        let waits =
            std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_pending()));
        assert!(waits.await);
        held.pop();
        assert!(next.await.is_some());
    }
}
