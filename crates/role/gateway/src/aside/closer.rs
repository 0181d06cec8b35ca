//! Closes files on a thread: the last close of a large file without a name frees the blocks of the file, slowly on some file systems, and
//! no session should wait for that.

use std::fmt;
use std::fs::File;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::Builder;

/// Files that wait for their close, and so descriptors beside those of the messages.
const WAITING_MAX: usize = 256;

/// The way to the thread. The thread ends with the last clone.
pub(crate) struct Closer<T = File>(Option<SyncSender<T>>);

impl<T> Clone for Closer<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
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
        let (files, waiting) = sync_channel(WAITING_MAX);
        let thread = Builder::new().name("closer".to_owned());
        let started = thread.spawn(move || waiting.into_iter().for_each(drop::<T>));
        if let Err(error) = &started {
            tracing::warn!(%error, "no thread closes files: sessions wait for it");
        }
        Self(started.ok().map(|_| files))
    }

    /// Closes a file, at once where too many files wait already.
    pub(crate) fn close(&self, file: T) {
        if let Some(files) = &self.0
            && let Err(TrySendError::Full(file) | TrySendError::Disconnected(file)) =
                files.try_send(file)
        {
            drop(file);
        }
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
        closer.close(Probe {
            closed: closed.clone(),
            held: Some(held),
        });
        assert_eq!(closes.recv().unwrap().as_deref(), Some("closer"));
        for _ in 0..WAITING_MAX {
            closer.close(quick());
        }
        assert!(closes.try_recv().is_err(), "the thread is busy");
        closer.close(quick());
        let own = thread::current().name().map(str::to_owned);
        assert_eq!(closes.try_recv(), Ok(own), "no place is left");
        release.send(()).unwrap();
        for _ in 0..WAITING_MAX {
            assert_eq!(closes.recv().unwrap().as_deref(), Some("closer"));
        }
    }
}
