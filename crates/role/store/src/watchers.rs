//! Those who want to hear of changes of mailboxes: sessions that have one open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use vere_store::MailboxId;

/// Who wants to hear of which mailbox.
#[derive(Debug, Default)]
pub(super) struct Watchers(Mutex<HashMap<MailboxId, Vec<Arc<Notify>>>>);

impl Watchers {
    /// Tells those who watch a mailbox.
    pub(super) fn tell(&self, mailbox: MailboxId) {
        let watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for watcher in watchers.get(&mailbox).into_iter().flatten() {
            watcher.notify_one();
        }
    }
}

/// Hears of changes of a mailbox.
#[derive(Debug)]
pub(super) struct Watch {
    watchers: Arc<Watchers>,
    mailbox: MailboxId,
    notify: Arc<Notify>,
}

impl Watch {
    pub(super) fn new(watchers: Arc<Watchers>, mailbox: MailboxId) -> Self {
        let notify = Arc::new(Notify::new());
        let mut all = watchers.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(mailbox).or_default().push(Arc::clone(&notify));
        drop(all);
        Self {
            watchers,
            mailbox,
            notify,
        }
    }

    /// Waits for a change; one that was before the call counts.
    pub(super) async fn changed(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut all = self
            .watchers
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(watchers) = all.get_mut(&self.mailbox) {
            watchers.retain(|watcher| !Arc::ptr_eq(watcher, &self.notify));
            if watchers.is_empty() {
                all.remove(&self.mailbox);
            }
        }
    }
}
