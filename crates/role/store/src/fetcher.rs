//! Fetches messages for a session: reads ahead while earlier messages are sent, reads large messages piece by piece,
//! and accounts for their memory until the client has read the responses.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::Instant;
use tracing::field::display;
use vere_imap::server::{FetchQuery, Messages, Need, PieceQuery, Refusal};
use vere_ports::directory::AccountName;
use vere_store::PIECES_MEMORY;

use super::fetch_memory::{FetchMemory, Hold};
use super::keeper::Keeper;
use super::large::Large;
use super::messages::{FetchBatch, fetch};
use vere_process::pace::Pace;
use vere_process::wire::{self, Connection};

/// Octets of a query while memory is short: any session may have this much memory.
const SMALL: usize = 16 * 1024;
/// Octets assumed for a batch of messages without content.
const BARE: usize = 64 * 1024;
/// How often the pace of a client that does not read is checked.
const LOOK: Duration = Duration::from_secs(1);

/// Fetches messages for one session.
#[derive(Debug)]
pub(super) struct Fetcher {
    memory: Rc<FetchMemory>,
    /// Set by the first fetch.
    hold: Option<Hold>,
    ahead: Option<Ahead>,
    /// Message that the machine fetches in pieces.
    large: Option<Large>,
    /// Set while memory is held.
    pace: Option<Pace>,
    /// Octets of responses that the client has not read.
    unread: usize,
    /// The connection had to wait for the client, so no batch is read ahead.
    is_slow: bool,
}

/// A batch read before the machine asks for the messages.
#[derive(Debug)]
struct Ahead {
    query: FetchQuery,
    octets: usize,
    batch: JoinHandle<Result<FetchBatch, Refusal>>,
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.batch.abort();
    }
}

impl Fetcher {
    pub(super) const fn new(memory: Rc<FetchMemory>) -> Self {
        Self {
            memory,
            hold: None,
            ahead: None,
            large: None,
            pace: None,
            unread: 0,
            is_slow: false,
        }
    }

    /// Returns the first of the requested messages.
    ///
    /// # Errors
    /// The refusal for the client.
    pub(super) async fn fetch(
        &mut self,
        keeper: &Keeper,
        account: &AccountName,
        query: FetchQuery,
    ) -> Result<Messages, Refusal> {
        self.large = None;
        if self.hold.is_none() {
            self.hold = Some(self.memory.hold(account.clone()));
        }
        // A batch read ahead for another query is useless now.
        let ahead = self.ahead.take().filter(|ahead| ahead.query == query);
        let batch = match ahead {
            Some(mut ahead) => (&mut ahead.batch)
                .await
                .map_err(|_| Refusal::Unavailable)??,
            None => self.read(keeper, query.clone()).await?,
        };
        let batch = self.with_room(keeper, &query, batch).await?;
        let rest = &batch.messages.rest;
        if !rest.is_empty() && batch.large.is_none() && !self.is_slow {
            let uids = rest.clone();
            self.read_ahead(keeper, FetchQuery { uids, ..query }).await;
        }
        self.large = batch.large;
        Ok(batch.messages)
    }

    async fn read(&mut self, keeper: &Keeper, query: FetchQuery) -> Result<FetchBatch, Refusal> {
        let expected = expected(&query);
        let has_room = self
            .hold
            .as_mut()
            .is_some_and(|hold| hold.try_take(expected));
        let query = match has_room {
            true => query,
            false => small(query),
        };
        let alone_max = query.octets_max;
        fetch(keeper, query, alone_max).await
    }

    /// Waits for memory while the first message needs more than the batch could take, and then reads that message.
    async fn with_room(
        &mut self,
        keeper: &Keeper,
        query: &FetchQuery,
        mut batch: FetchBatch,
    ) -> Result<FetchBatch, Refusal> {
        while let Some(needs) = batch.needs {
            let Some(hold) = &mut self.hold else {
                return Err(Refusal::Unavailable);
            };
            hold.take(needs).await;
            self.pace = None;
            let query = FetchQuery {
                uids: batch.messages.rest,
                octets_max: SMALL,
                ..query.clone()
            };
            batch = fetch(keeper, query, needs).await?;
        }
        Ok(batch)
    }

    /// Reads the batch of the next query, if memory is free now.
    async fn read_ahead(&mut self, keeper: &Keeper, query: FetchQuery) {
        let octets = expected(&query);
        if !self.hold.as_mut().is_some_and(|hold| hold.try_take(octets)) {
            return;
        }
        let (keeper, next) = (keeper.clone(), query.clone());
        let batch = spawn_local(async move {
            let alone_max = next.octets_max;
            fetch(&keeper, next, alone_max).await
        });
        self.ahead = Some(Ahead {
            query,
            octets,
            batch,
        });
        // Begin the read now, and not when the connection next has to wait.
        tokio::task::yield_now().await;
    }

    /// Returns a piece of the large message that was fetched last.
    ///
    /// # Errors
    /// When the message cannot be read.
    pub(super) async fn piece(&mut self, query: PieceQuery) -> Result<Bytes, Refusal> {
        let large = self.large.as_mut().filter(|large| large.uid() == query.uid);
        let (Some(large), Some(hold)) = (large, &mut self.hold) else {
            return Err(Refusal::Unavailable);
        };
        if !large.is_begun() {
            // The client has read all earlier responses, so the session holds no other memory.
            hold.take(PIECES_MEMORY.saturating_add(query.octets)).await;
            self.pace = None;
        }
        large.piece(query).await
    }

    /// Records the octets of unread responses, and adjusts the memory held.
    pub(super) fn keep(&mut self, unread: usize) {
        self.unread = unread;
        let Some(hold) = &mut self.hold else {
            return;
        };
        let large = self.large.as_ref().filter(|large| large.is_begun());
        let large = large.map_or(0, |_| PIECES_MEMORY);
        let ahead = self.ahead.as_ref().map_or(0, |ahead| ahead.octets);
        hold.set(unread.saturating_add(large).saturating_add(ahead));
        match hold.octets() {
            0 => self.pace = None,
            _ => drop(self.pace.get_or_insert_with(|| Pace::begin(Instant::now()))),
        }
    }

    /// Releases all memory: the client has read the responses of its command.
    pub(super) fn rest(&mut self) {
        (self.ahead, self.large, self.is_slow) = (None, None, false);
        self.keep(0);
    }

    /// Sends octets to a client. `patience` limits the wait while the session holds no memory. While memory is held,
    /// the client must keep up the pace of [`Pace`].
    ///
    /// # Errors
    /// When the connection breaks, or the client is too slow.
    pub(super) async fn send(
        &mut self,
        connection: &mut impl Connection,
        octets: &[u8],
        patience: Duration,
    ) -> io::Result<()> {
        let mut rest = octets;
        while let Some(pace) = &mut self.pace {
            match wire::write_some(connection, rest, LOOK).await? {
                Some(_) if rest.is_empty() => return Ok(()),
                Some(written) => {
                    pace.add(Instant::now(), written);
                    rest = &rest[written..];
                }
                None => {
                    // The client must read earlier responses first, so drop the batch read ahead.
                    (self.ahead, self.is_slow) = (None, true);
                    self.keep(self.unread);
                }
            }
            let pace = self.pace.as_mut();
            if pace.is_some_and(|pace| pace.is_slow(Instant::now())) {
                let text = "the client does not read what it fetches";
                let account = self.hold.as_ref().map(|hold| display(hold.account()));
                tracing::info!(account, "connection ended: {text}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
        }
        wire::write(connection, rest, patience).await
    }
}

/// Estimated octets of the answer to a query.
fn expected(query: &FetchQuery) -> usize {
    match query.need {
        Need::Nothing => BARE,
        Need::Parsed | Need::Header => query.octets_max,
        // The last message may exceed `octets_max`.
        Need::Whole => query.octets_max.saturating_mul(2),
    }
}

/// Limits a query to the memory that any session may have at any time.
fn small(query: FetchQuery) -> FetchQuery {
    FetchQuery {
        octets_max: SMALL.min(query.octets_max),
        large_from: query.large_from.map(|from| from.min(SMALL)),
        ..query
    }
}
