//! Invalidation has a thread. The kernel waits for locks of pages and folders that a call under way
//! holds, so no answering thread may do the work.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use fuser::{INodeNo, Notifier};
use vere_ports::files::Invalidate;

/// Work of the thread: each item once, in order. Items name inodes and names known to the kernel, so the kernel's own
/// memory bounds their number.
#[derive(Debug, Default)]
struct Work {
    order: VecDeque<Invalidate>,
    waiting: HashSet<Item>,
    ended: bool,
}

/// An item by value, to find duplicates.
type Item = (u64, Option<Vec<u8>>);

fn item(work: &Invalidate) -> Item {
    match work {
        Invalidate::Inode(inode) => (inode.0, None),
        Invalidate::Entry { parent, name } => (parent.0, Some(name.clone())),
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Invalidator(Arc<(Mutex<Work>, Condvar)>);

impl Invalidator {
    /// Starts the thread. The thread ends by itself after [`Self::end`], and nobody waits for the end: a call of the kernel
    /// may hold the thread until the mount is gone.
    pub(crate) fn start(notifier: Notifier) -> io::Result<Self> {
        let invalidator = Self::default();
        let own = invalidator.clone();
        thread::Builder::new()
            .name("fuse-forget".into())
            .spawn(move || own.run(&notifier))?;
        Ok(invalidator)
    }

    pub(crate) fn add(&self, work: Invalidate) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.ended && state.waiting.insert(item(&work)) {
            state.order.push_back(work);
            changed.notify_one();
        }
    }

    pub(crate) fn end(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended = true;
        state.order.clear();
        state.waiting.clear();
        changed.notify_one();
    }

    fn next(&self) -> Option<Invalidate> {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.ended {
                return None;
            }
            if let Some(work) = state.order.pop_front() {
                state.waiting.remove(&item(&work));
                return Some(work);
            }
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self, notifier: &Notifier) {
        while let Some(work) = self.next() {
            // An error means an inode unknown to the kernel, or the end of the mount.
            let _unknown = match work {
                Invalidate::Inode(inode) => notifier.inval_inode(INodeNo(inode.0), 0, 0),
                Invalidate::Entry { parent, name } => {
                    notifier.inval_entry(INodeNo(parent.0), OsStr::from_bytes(&name))
                }
            };
        }
    }
}
