//! Making and ending queues: numbered when it is asked for, acknowledged in its turn like any other change.
//!
//! Records may follow the making of their queue without waiting: transactions are done in order, and if the
//! queue cannot be made, the records are refused for lack of a queue.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use vere_owner::{Owner, SubmitError};
use vere_spoolwire::{
    Grants, KeptGrants, QueueCharter, QueueId, QueueLimits, QueueStat, RecordId, Txn,
};

use super::SpoolLink;
use super::pending::Answered;
use vere_spoolwire::SpoolError;

/// A pending change of queues. The change takes effect whether a caller waits or not.
#[derive(Debug)]
#[must_use = "whether it was done is known by waiting for it"]
pub struct Change(Result<Rc<Answered>, SpoolError>);

impl Future for Change {
    type Output = Result<(), SpoolError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &self.0 {
            Ok(answered) => answered.poll(context),
            Err(error) => Poll::Ready(Err(*error)),
        }
    }
}

impl SpoolLink {
    /// Makes a queue, or finds the queue of the name and gives the queue these limits, and the readers
    /// in the settings. The number is the lowest free one.
    ///
    /// # Errors
    ///
    /// [`SpoolError::Refused`], [`SpoolError::Busy`] before the node was reached for the first time,
    /// [`SpoolError::Invalid`] for a name over its limit, [`SpoolError::Closed`].
    pub async fn create_queue(
        &self,
        name: &str,
        limits: QueueLimits,
    ) -> Result<QueueId, SpoolError> {
        let (queue, making) = self.begin_queue(name, limits)?;
        making.await?;
        Ok(queue)
    }

    /// The same, not waited for.
    ///
    /// # Errors
    ///
    /// As [`SpoolLink::create_queue`], but for refusals, which the change tells.
    pub fn begin_queue(
        &self,
        name: &str,
        limits: QueueLimits,
    ) -> Result<(QueueId, Change), SpoolError> {
        let mut begun = QueueId(0);
        let readers = self.readers_of(name);
        let charter = QueueCharter { limits, readers };
        let change = self.change(|owner| {
            let (queue, txn) = owner.create_queue(name, charter)?;
            begun = queue;
            Ok(txn)
        });
        match change.0 {
            Ok(answered) => Ok((begun, Change(Ok(answered)))),
            Err(error) => Err(error),
        }
    }

    /// Who the settings say may read a queue of their own.
    fn readers_of(&self, name: &str) -> Grants<'_> {
        let readers = &self.shared.options.readers;
        readers.get(name).map_or(Grants::NONE, KeptGrants::get)
    }

    /// Gives an existing queue the readers of the settings, if the readers differ. Queues of another
    /// gateway, which are only delivered here, keep theirs.
    ///
    /// # Errors
    ///
    /// As [`SpoolLink::create_queue`].
    pub async fn renew_readers(&self, found: &QueueStat) -> Result<(), SpoolError> {
        let same = found.readers.get() == self.readers_of(&found.name);
        if same || self.shared.options.adopted {
            return Ok(());
        }
        self.create_queue(&found.name, found.limits).await?;
        Ok(())
    }

    /// Ends all records of a queue up to and with `through`.
    pub fn purge(&self, queue: QueueId, through: RecordId) -> Change {
        self.change(|owner| owner.purge(queue, through, false))
    }

    /// Forgets an empty queue; its number may be given out again. Refused while the queue holds records.
    pub fn drop_queue(&self, queue: QueueId) -> Change {
        self.change(|owner| owner.purge(queue, RecordId(0), true))
    }

    /// Waits until everything that was submitted so far is acknowledged, or refused.
    ///
    /// # Errors
    ///
    /// [`SpoolError::Closed`]; whether the last change was refused.
    pub async fn acknowledged(&self) -> Result<(), SpoolError> {
        let answered = {
            let mut inner = self.shared.inner.borrow_mut();
            if inner.closed {
                return Err(SpoolError::Closed);
            }
            let submitted = inner.owner.submitted();
            if inner.owner.acknowledged() >= submitted {
                return Ok(());
            }
            inner.pending.push(submitted, None, Vec::new())
        };
        Change(Ok(answered)).await
    }

    fn change(&self, ask: impl FnOnce(&mut Owner) -> Result<Txn, SubmitError>) -> Change {
        let mut inner = self.shared.inner.borrow_mut();
        if inner.closed {
            return Change(Err(SpoolError::Closed));
        }
        let answered = match ask(&mut inner.owner) {
            Ok(txn) => inner.pending.push(txn, None, Vec::new()),
            Err(error) => return Change(Err(error.into())),
        };
        drop(inner);
        self.shared.wake();
        Change(Ok(answered))
    }
}
