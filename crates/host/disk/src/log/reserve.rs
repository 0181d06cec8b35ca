//! Room set aside on the disk, so that records can still be ended when nothing else is left.

use vere_ports::storage::{Storage, StorageFile};

use super::threads::{Arc, AtomicBool, Ordering};

const NAME: &str = "reserve";

/// A file that is there to be given up. Shared by the logs of a node.
#[derive(Debug)]
pub(super) struct Reserve<S: Storage> {
    file: S::File,
    len: u64,
    held: AtomicBool,
}

impl<S: Storage> Reserve<S> {
    /// Sets the room aside, as far as there is any.
    pub(super) fn new(storage: &S, len: u64) -> std::io::Result<Arc<Self>> {
        let file = match storage.open(NAME) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => storage.create(NAME)?,
            other => other?,
        };
        let reserve = Self {
            file,
            len,
            held: AtomicBool::new(false),
        };
        reserve.hold();
        Ok(Arc::new(reserve))
    }

    /// Whether it is there.
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Gives it up. False when there was nothing to give.
    pub(super) fn release(&self) -> bool {
        if !self.held.swap(false, Ordering::Relaxed) {
            return false;
        }
        self.file.truncate(0).is_ok()
    }

    /// Sets it aside again, when there is room for twice as much: so that what comes next does not run
    /// into the end at once.
    pub(super) fn hold(&self) {
        if self.is_held() {
            return;
        }
        let roomy = self.file.allocate(2 * self.len).is_ok();
        let kept = self.file.truncate(if roomy { self.len } else { 0 }).is_ok();
        self.held.store(roomy && kept, Ordering::Relaxed);
    }
}
