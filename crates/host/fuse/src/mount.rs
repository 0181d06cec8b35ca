//! A mount and its threads.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fuser::{Session, SessionACL};
use vere_ports::files::{Errno, Invalidate};

use crate::adapter::Adapter;
use crate::attach::attach;
use crate::detach::{self, Strength, Unmounted};
use crate::error::MountError;
use crate::invalidate::Invalidator;
use crate::options::{LOOPS, Options, READ_AHEAD_KIB};
use crate::pending::Replies;
use crate::point;
use crate::sink::Sink;

/// How a mount ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// By an unmount.
    Unmounted,
    /// By a failure of a loop.
    Failed(String),
}

/// The end of a mount, once known.
#[derive(Debug, Default)]
struct End {
    state: Mutex<Option<Ended>>,
    changed: Condvar,
}

impl End {
    fn set(&self, ended: Ended) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        self.changed.notify_all();
    }

    fn wait(&self, longest: Duration) -> Option<Ended> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(state, longest, |state| state.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

/// A running mount. A drop ends the mount by force, so that no program waits for a lost engine.
#[derive(Debug)]
pub struct Mount {
    point: PathBuf,
    minor: Option<u32>,
    replies: Replies,
    invalidator: Invalidator,
    end: Arc<End>,
}

impl Mount {
    /// Mounts at a folder. Calls may reach the sink before this function returns.
    ///
    /// # Errors
    /// Every error names the remedy; the folder stays unmounted.
    pub fn start(point: &Path, options: &Options, sink: Arc<dyn Sink>) -> Result<Self, MountError> {
        let whole = point::check(point)?;
        let device = attach(&whole, options)?;
        Self::serve(whole.clone(), device, sink).inspect_err(|_| {
            // The first error counts.
            let _second = detach::unmount(&whole, Strength::Forced);
        })
    }

    fn serve(point: PathBuf, device: OwnedFd, sink: Arc<dyn Sink>) -> Result<Self, MountError> {
        let failed = |error: io::Error| MountError::system("FUSE", error);
        let minor = point::mounted_at(&point)
            .map_err(failed)?
            .map(|mounted| mounted.minor);
        let replies = Replies::new(Arc::clone(&sink));
        let mut config = fuser::Config::default();
        config.n_threads = Some(LOOPS);
        config.clone_fd = true;
        // The kernel keeps other users out, unless `allow_other` lets them in.
        let session = Session::from_fd(
            Adapter::new(replies.clone()),
            device,
            SessionACL::All,
            config,
        )
        .map_err(failed)?;
        if let Some(minor) = minor {
            // Only root may; for others the kernel's 128 KiB stay.
            let _without = fs::write(
                format!("/sys/class/bdi/0:{minor}/read_ahead_kb"),
                READ_AHEAD_KIB.to_string(),
            );
        }
        let invalidator = Invalidator::start(session.notifier()).map_err(failed)?;
        let mount = Self {
            point,
            minor,
            replies,
            invalidator,
            end: Arc::default(),
        };
        mount.run(session, sink).map_err(failed)?;
        Ok(mount)
    }

    fn run(&self, session: Session<Adapter>, sink: Arc<dyn Sink>) -> io::Result<()> {
        let (minor, replies, invalidator, end) = (
            self.minor,
            self.replies.clone(),
            self.invalidator.clone(),
            Arc::clone(&self.end),
        );
        let work = move || {
            let ended = match session.run() {
                Ok(()) => Ended::Unmounted,
                Err(error) => Ended::Failed(error.to_string()),
            };
            if let (Ended::Failed(_), Some(minor)) = (&ended, minor) {
                // Another loop may still read calls; no program may wait for the lost loop.
                let _gone = detach::abort(minor);
            }
            invalidator.end();
            replies.fail_all(Errno::Io);
            end.set(ended);
            sink.ended();
        };
        thread::Builder::new().name("fuse".into()).spawn(work)?;
        Ok(())
    }

    /// The way back for replies.
    #[must_use]
    pub fn replies(&self) -> Replies {
        self.replies.clone()
    }

    /// The mount point, absolute.
    #[must_use]
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// Makes the kernel forget, later and by another thread.
    pub fn invalidate(&self, what: Invalidate) {
        self.invalidator.add(what);
    }

    /// Unmounts. The engine must go on answering meanwhile: the kernel writes out pages first.
    ///
    /// # Errors
    /// When the mount is gone already, or the right is missing.
    pub fn unmount(&self, strength: Strength) -> Result<Unmounted, MountError> {
        detach::unmount_own(&self.point, self.minor, strength)
    }

    /// Waits for the end of the mount.
    #[must_use]
    pub fn wait(&self, longest: Duration) -> Option<Ended> {
        self.end.wait(longest)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.end.wait(Duration::ZERO).is_none() {
            // Nothing is left to do about a failure.
            let _failed = self.unmount(Strength::Forced);
        }
        self.invalidator.end();
    }
}
