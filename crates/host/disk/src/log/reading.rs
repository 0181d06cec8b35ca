//! Reading contents of entries again, on a separate thread: who waits for a record does not keep the
//! node's thread waiting, nor a sync.

use std::io;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use nix::errno::Errno;
use vere_ports::spool_log::{LogRead, LogStretch};
use vere_ports::storage::{Storage, StorageFile};

use super::format::segment_name;
use super::index;
use super::octets::Octets;
use super::sync::Wake;

/// A stretch to be read.
pub(super) struct ReadJob<S: Storage> {
    pub(super) storage: S,
    pub(super) log_id: u64,
    pub(super) stretch: LogStretch,
    pub(super) into: Vec<u8>,
    pub(super) done: Sender<LogRead>,
}

/// Runs read jobs until every log is closed.
pub(super) fn run_reads<S: Storage>(jobs: &Receiver<ReadJob<S>>, wake: &Wake) {
    while let Ok(job) = jobs.recv() {
        job.run();
        wake();
    }
}

/// How often and how long the means to open a file are waited for: a minute.
const TRIES_MAX: u32 = 600;
const TRY_PAUSE: Duration = Duration::from_millis(100);

impl<S: Storage> ReadJob<S> {
    pub(super) fn run(mut self) {
        let name = segment_name(self.stretch.segment);
        let read = open(&self.storage, &name)
            .and_then(|file| read(&file, self.stretch, self.log_id, &mut self.into));
        let result = match read {
            Ok(None) => Ok(()),
            Ok(Some(offset)) => Err(format!("{name} is damaged at offset {offset}")),
            Err(error) => Err(format!("{name}: {error}")),
        };
        if result.is_err()
            && let Err(error) = index::remove(&self.storage, self.stretch.segment)
        {
            // The index remains, and the next start finds the damage no sooner than this start did.
            tracing::warn!(file = name, %error, "cannot remove the index of a damaged log segment");
        }
        let read = LogRead {
            stretch: self.stretch,
            octets: self.into,
            result,
        };
        // After the log is closed the result is not needed.
        let _ = self.done.send(read);
    }
}

/// Opens a segment. A shortage of file handles or memory in the process or the machine says nothing
/// about the log: the open is tried again.
fn open<S: Storage>(storage: &S, name: &str) -> io::Result<S::File> {
    let mut tries = 0;
    loop {
        match storage.open(name) {
            Err(error) if lacks_means(&error) && tries < TRIES_MAX => {
                tries += 1;
                std::thread::sleep(TRY_PAUSE);
            }
            other => return other,
        }
    }
}

fn lacks_means(error: &io::Error) -> bool {
    let lacking = [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM];
    error
        .raw_os_error()
        .is_some_and(|number| lacking.contains(&Errno::from_raw(number)))
}

/// Returns the first offset of damage, if any.
fn read<F: StorageFile>(
    file: &F,
    stretch: LogStretch,
    log_id: u64,
    into: &mut [u8],
) -> io::Result<Option<u64>> {
    let mut octets = Octets::new(file, file.len()?);
    let (mut offset, mut position) = (stretch.offset, stretch.position);
    let mut rest = into
        .get_mut(..stretch.octets as usize)
        .ok_or(io::ErrorKind::InvalidInput)?;
    while !rest.is_empty() {
        let entry = octets.entry(offset, log_id)?;
        let Some((entry, content)) = entry.filter(|(entry, _)| entry.position == position) else {
            return Ok(Some(offset));
        };
        let Some((here, after)) = rest.split_at_mut_checked(content.len()) else {
            return Ok(Some(offset));
        };
        here.copy_from_slice(content);
        rest = after;
        offset += entry.len();
        position += entry.len();
    }
    Ok(None)
}
