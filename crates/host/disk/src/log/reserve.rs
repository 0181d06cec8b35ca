//! Reserved disk space, so that records can still be ended when the disk is full.

use vere_ports::storage::{Storage, StorageFile};

use super::threads::{Arc, AtomicBool, Ordering};

const NAME: &str = "reserve";

/// A file whose purpose is to be removed. Shared by the logs of a node.
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

    /// Whether the reserve exists.
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Releases the reserve. False when there was no reserve.
    pub(super) fn release(&self) -> bool {
        if !self.held.swap(false, Ordering::Relaxed) {
            return false;
        }
        self.file.truncate(0).is_ok()
    }

    /// Creates the reserve again, when the disk has twice that space: the next writes must not fill
    /// the disk at once.
    pub(super) fn hold(&self) {
        if self.is_held() {
            return;
        }
        let roomy = self.file.allocate(2 * self.len).is_ok();
        let kept = self.file.truncate(if roomy { self.len } else { 0 }).is_ok();
        self.held.store(roomy && kept, Ordering::Relaxed);
    }
}
