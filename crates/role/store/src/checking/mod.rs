//! A check of the running store, for an administrator: rows in steps between the work for clients; bodies, the log and
//! the search index on a thread of its own.
//!
//! The connection is answered by a line for the progress now and then, and by the figures at the end. The log is held
//! meanwhile, as for a backup, so that no body goes between the look at its message and the look at the body. The check
//! ends with its connection.

mod figures;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use vere_control::{Answer, CheckLine, StoreProgress};
use vere_store::{Check, StoreError};

use crate::hold::{self, HoldError, write_answer};
use crate::keeper::Keeper;
use crate::reception::Reception;
use crate::search;

pub(crate) use figures::{StoreFigures, sentence};

/// How often the administrator hears of the progress.
const TICK: Duration = Duration::from_millis(500);

/// What the check and its connection share.
#[derive(Debug, Default)]
struct Shared {
    progress: Mutex<StoreProgress>,
    stopped: AtomicBool,
}

impl Shared {
    fn tell(&self, stage: &str, done: u64, all: u64) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        *progress = StoreProgress::new(stage, done, all);
    }

    fn progress(&self) -> StoreProgress {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.clone()
    }

    fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }
}

/// Ends the check when the connection ends.
struct Stop(Arc<Shared>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }
}

/// Checks the store for a client.
///
/// # Errors
/// When the connection is lost.
pub(super) async fn serve(reception: &Reception, mut stream: UnixStream) -> io::Result<()> {
    let keeper = reception.keeper();
    let hold = match hold::begin(keeper).await {
        Ok((hold, _)) => hold,
        Err(error) => return write_answer(&mut stream, &Answer::Error(error.to_string())).await,
    };
    let shared = Arc::new(Shared::default());
    let _stop = Stop(Arc::clone(&shared));
    let (keeper, of_check) = (keeper.clone(), Arc::clone(&shared));
    let work = tokio::task::spawn_blocking(move || checked(&keeper, &of_check));
    tokio::pin!(work);
    let mut tick = tokio::time::interval(TICK);
    let max = reception.backup_hold_max();
    let late = tokio::time::sleep(max);
    tokio::pin!(late);
    tracing::info!("check of the mail store begun");
    let answer = loop {
        tokio::select! {
            biased;
            () = hold.ended() => break Answer::Error(HoldError::Room.to_string()),
            () = &mut late => break Answer::Error(HoldError::TooLong(max).to_string()),
            done = &mut work => break match done.map_err(io::Error::other)? {
                Ok(figures) => Answer::Ok(serde_json::to_value(figures)?),
                Err(error) => Answer::Error(error.to_string()),
            },
            // Nothing is asked on this connection any more: the client has gone.
            gone = stream.read_u8() => return gone.map(drop),
            _ = tick.tick() => {
                write_answer(&mut stream, &CheckLine::Progress(shared.progress())).await?;
            }
        }
    };
    write_answer(&mut stream, &answer).await
}

/// Does the whole check.
fn checked(keeper: &Keeper, shared: &Shared) -> Result<StoreFigures, StoreError> {
    let mut check = Box::new(Check::default());
    let survey = keeper.ask_blocking(|store| store.log_survey())?;
    let octets = survey.octets();
    let done = std::cell::Cell::new(0);
    let told = |more| {
        done.set(done.get() + more);
        shared.tell("log", done.get(), octets);
    };
    check.surveyed(octets, survey.run(&told));
    while shared.goes_on() {
        let (returned, claims) = keeper.ask_blocking(move |store| {
            let claims = store.check_rows(&mut check)?;
            Ok(claims.map(|claims| (check, claims)))
        })?;
        check = returned;
        let Some(claims) = claims else {
            break;
        };
        let reader = keeper.body_reader()?;
        for claim in claims {
            if !shared.goes_on() {
                break;
            }
            check.compare(&reader, claim);
            shared.tell("messages", check.stored_octets(), octets);
        }
    }
    shared.tell("search index", 0, 0);
    let index = search::check_running(keeper, &|| shared.goes_on())?;
    let reclaimable = keeper.reclaimable()?;
    Ok(StoreFigures::of(&check.finish(), index, reclaimable))
}
