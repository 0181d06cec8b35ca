//! The connection of a backup, or of a check: the log stays as it is until the connection ends.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use vere_control::{Answer, HeldLog};
use vere_store::StoreError;

use super::holds::Hold;
use super::keeper::Keeper;
use super::reception::Reception;

/// How long a client may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a hold waits for a segment that is being written again.
const REWRITE_PATIENCE: Duration = Duration::from_secs(300);
/// How often the hold looks whether that segment is finished.
const LOOK: Duration = Duration::from_millis(50);

/// Why the log cannot be held, or is held no longer.
#[derive(Debug)]
pub(super) enum HoldError {
    /// Another backup, or a check, holds the log.
    Busy,
    /// A segment was being written again for too long.
    Rewriting,
    /// The disk is nearly full.
    Room,
    /// The time is over.
    TooLong(Duration),
    /// The store cannot be read.
    Store(StoreError),
}

impl fmt::Display for HoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("another backup, or a check, reads the mail store"),
            Self::Rewriting => f.write_str(
                "the mail store is rewriting a large segment of its log; try again in some minutes",
            ),
            Self::Room => f.write_str(
                "the disk of the mail store is nearly full: the work was ended to reclaim space",
            ),
            Self::TooLong(max) => write!(
                f,
                "the work was ended after store.backup_hold_max ({} s)",
                max.as_secs()
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

/// The display holds the texts of all causes.
impl Error for HoldError {}

impl From<StoreError> for HoldError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Holds the log for a client until the client writes a line or goes away.
///
/// # Errors
/// When the connection is lost.
pub(super) async fn serve(reception: &Reception, mut stream: UnixStream) -> io::Result<()> {
    let (hold, held) = match begin(reception.keeper()).await {
        Ok(begun) => begun,
        Err(error) => return write_answer(&mut stream, &Answer::Error(error.to_string())).await,
    };
    let (files, synced, began) = (held.files.len(), held.synced, Instant::now());
    tracing::info!(files, synced, "log held for a backup");
    write_answer(&mut stream, &Answer::Ok(serde_json::to_value(held)?)).await?;
    let max = reception.backup_hold_max();
    let ended = tokio::select! {
        // A hold that was taken away is never confirmed, also if the client ends in the same moment.
        biased;
        () = hold.ended() => Some(HoldError::Room),
        () = tokio::time::sleep(max) => Some(HoldError::TooLong(max)),
        line = stream.read_u8() => line.map(|_| None)?,
    };
    let seconds = began.elapsed().as_secs();
    let answer = match ended {
        None => {
            tracing::info!(seconds, "log released by a backup");
            Answer::Ok(serde_json::Value::Null)
        }
        Some(error) => {
            tracing::error!(seconds, %error, "log taken from a backup");
            Answer::Error(error.to_string())
        }
    };
    drop(hold);
    write_answer(&mut stream, &answer).await
}

/// Begins a hold, once no segment is being written again.
pub(super) async fn begin(keeper: &Keeper) -> Result<(Hold, HeldLog), HoldError> {
    let hold = keeper.hold().ok_or(HoldError::Busy)?;
    let deadline = Instant::now() + REWRITE_PATIENCE;
    while Instant::now() < deadline {
        if let Some(held) = keeper.held_log().await? {
            return Ok((hold, held));
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(HoldError::Rewriting)
}

/// Writes an answer, or another value, in a line.
pub(super) async fn write_answer(
    stream: &mut UnixStream,
    answer: &impl Serialize,
) -> io::Result<()> {
    let mut octets = serde_json::to_vec(answer)?;
    octets.push(b'\n');
    tokio::time::timeout(PATIENCE, stream.write_all(&octets)).await?
}
