//! Closes files on a thread: the last close of a large file without a name frees the blocks of the file, slowly on some file systems, and
//! no session should wait for that.

use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::Builder;

/// Files that wait for the close, and so descriptors beside those of the messages.
const WAITING_MAX: usize = 256;
/// Octets in the waiting files, beyond `limits.body_disk_max`; a larger file is closed by the owner.
const OCTETS_MAX: u64 = 256 << 20;

/// The way to the thread. The thread ends with the last clone.
pub(crate) struct Closer<T = File> {
    files: Option<SyncSender<(T, u64)>>,
    /// Octets in the files that wait.
    octets: Arc<AtomicU64>,
}

impl<T> Clone for Closer<T> {
    fn clone(&self) -> Self {
        Self {
            files: self.files.clone(),
            octets: Arc::clone(&self.octets),
        }
    }
}

impl<T> fmt::Debug for Closer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closer").finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Closer<T> {
    /// Starts the thread. Without a thread, files are closed by their owners.
    pub(crate) fn start() -> Self {
        let (files, waiting) = sync_channel::<(T, u64)>(WAITING_MAX);
        let octets = Arc::<AtomicU64>::default();
        let left = Arc::clone(&octets);
        let thread = Builder::new().name("closer".to_owned());
        let started = thread.spawn(move || {
            for (file, octets) in waiting {
                drop(file);
                left.fetch_sub(octets, Ordering::Relaxed);
            }
        });
        if let Err(error) = &started {
            tracing::warn!(%error, "no thread closes files: sessions wait for it");
        }
        Self {
            files: started.ok().map(|_| files),
            octets,
        }
    }

    /// Number of octets in files that wait: the disk gets them back without anybody's doing.
    pub(crate) fn octets(&self) -> u64 {
        self.octets.load(Ordering::Relaxed)
    }

    /// Closes a file of so many octets, at once where too many files or octets wait already.
    pub(crate) fn close(&self, file: T, octets: u64) {
        let Some(files) = &self.files else {
            return;
        };
        let before = self.octets.fetch_add(octets, Ordering::Relaxed);
        let refused = match before.saturating_add(octets) <= OCTETS_MAX {
            true => match files.try_send((file, octets)) {
                Ok(()) => return,
                Err(TrySendError::Full((file, _)) | TrySendError::Disconnected((file, _))) => file,
            },
            false => file,
        };
        drop(refused);
        self.octets.fetch_sub(octets, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    use super::*;

    /// A file whose close names its thread, and then waits where there is something to wait for.
    struct Probe {
        closed: Sender<Option<String>>,
        held: Option<Receiver<()>>,
    }

    impl Drop for Probe {
        fn drop(&mut self) {
            let name = thread::current().name().map(str::to_owned);
            let _ = self.closed.send(name);
            if let Some(held) = &self.held {
                let _ = held.recv();
            }
        }
    }

    #[test]
    fn a_slow_close_holds_up_nobody_and_few_files_wait_for_it() {
        let closer = Closer::start();
        let (closed, closes) = channel();
        let (release, held) = channel();
        let quick = || Probe {
            closed: closed.clone(),
            held: None,
        };
        let stuck = Probe {
            closed: closed.clone(),
            held: Some(held),
        };
        closer.close(stuck, 1);
        assert_eq!(closes.recv().unwrap().as_deref(), Some("closer"));
        for _ in 0..WAITING_MAX {
            closer.close(quick(), 1);
        }
        assert!(closes.try_recv().is_err(), "the thread is busy");
        closer.close(quick(), 1);
        let own = thread::current().name().map(str::to_owned);
        assert_eq!(closes.try_recv(), Ok(own), "no place is left");
        assert_eq!(closer.octets(), 1 + WAITING_MAX as u64);
        release.send(()).unwrap();
        for _ in 0..WAITING_MAX {
            assert_eq!(closes.recv().unwrap().as_deref(), Some("closer"));
        }
    }

    #[test]
    fn few_octets_wait() {
        let closer = Closer::start();
        let (closed, closes) = channel();
        let (release, held) = channel();
        let file = |held| Probe {
            closed: closed.clone(),
            held,
        };
        closer.close(file(Some(held)), OCTETS_MAX - 10);
        assert_eq!(closes.recv().unwrap().as_deref(), Some("closer"));
        let own = thread::current().name().map(str::to_owned);
        closer.close(file(None), 11);
        assert_eq!(closes.try_recv(), Ok(own));
        closer.close(file(None), 10);
        assert!(closes.try_recv().is_err(), "the thread is busy");
        assert_eq!(closer.octets(), OCTETS_MAX);
        release.send(()).unwrap();
        assert_eq!(closes.recv().unwrap().as_deref(), Some("closer"));
    }
}
