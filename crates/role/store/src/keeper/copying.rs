//! Questions of a backup, which copies the log, and of a check, which reads it.

use tokio::sync::oneshot;
use vere_control::{HeldFile, HeldLog};
use vere_disk::log::Directory as LogDirectory;
use vere_store::{BodyReader, StoreError};

use super::{Job, Keeper, Message, closed};
use crate::holds::Hold;
use crate::mail_store::MailStore;

/// The safe part of a store's log.
///
/// # Errors
/// When the files of the log cannot be examined.
pub(crate) fn held_log(store: &MailStore) -> Result<HeldLog, StoreError> {
    let files = store.log_files()?.into_iter().map(|file| HeldFile {
        name: file.name,
        octets: file.octets,
    });
    Ok(HeldLog {
        log: format!("{:016x}", store.log_id().0),
        synced: store.synced().0,
        files: files.collect(),
    })
}

impl Keeper {
    /// Begins a hold on the log; `None` while another one lasts.
    pub(crate) fn hold(&self) -> Option<Hold> {
        self.holds.take()
    }

    /// The safe part of the log, which stays as it is as long as a hold lasts; `None` while a segment is still being
    /// written again, by work that began before the hold.
    ///
    /// # Errors
    /// The error of the store, or that the store is closed.
    pub(crate) async fn held_log(&self) -> Result<Option<HeldLog>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |owner| {
            let held = match owner.upkeep.is_busy() {
                true => Ok(None),
                false => held_log(&owner.store).map(Some),
            };
            // The caller may have stopped waiting.
            let _ = reply.send(held);
        });
        self.sender.send(Message::Job(job)).map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// A reader of the bodies that are written, for a thread that may block.
    ///
    /// # Errors
    /// That the store is closed.
    pub(crate) fn body_reader(&self) -> Result<BodyReader<LogDirectory>, StoreError> {
        self.look_blocking(|store| Ok(store.body_reader()))
    }

    /// Needless octets of the log, for a thread that may block.
    ///
    /// # Errors
    /// The error of the store, or that the store is closed.
    pub(crate) fn reclaimable(&self) -> Result<u64, StoreError> {
        self.look_blocking(|store| Ok(store.reclaimable()?.dead))
    }

    /// Looks at the store, from a thread that may block, without waiting for a sync.
    fn look_blocking<T: Send + 'static>(
        &self,
        look: impl FnOnce(&MailStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |owner| {
            // The caller may have stopped waiting.
            let _ = reply.send(look(&owner.store));
        });
        self.sender.send(Message::Job(job)).map_err(|_| closed())?;
        answer.blocking_recv().unwrap_or_else(|_| Err(closed()))
    }
}
