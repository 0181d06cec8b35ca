//! Commits that wait for their acknowledgement, in the order of their numbers.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::time::Instant;
use vere_spoolwire::{Batch, Operation};
use vere_spoolwire::{NodeRefusal, QueueId, RecordId, Txn};

use vere_spoolwire::SpoolError;

/// Outcome of one commit, shared by the waiting task and the driver.
#[derive(Debug, Default)]
pub(super) struct Answered {
    result: Cell<Option<Result<(), SpoolError>>>,
    waker: RefCell<Option<Waker>>,
    /// The waiting task has gone.
    abandoned: Cell<bool>,
}

impl Answered {
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Result<(), SpoolError>> {
        if let Some(result) = self.result.get() {
            return Poll::Ready(result);
        }
        let mut waker = self.waker.borrow_mut();
        if !waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(context.waker()))
        {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }

    fn answer(&self, result: Result<(), SpoolError>) {
        if self.result.get().is_none() {
            self.result.set(Some(result));
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }

    pub(super) fn abandon(&self) {
        self.abandoned.set(true);
    }

    /// Whether somebody was or will be told that it succeeded.
    fn is_void(&self) -> bool {
        match self.result.get() {
            Some(result) => result.is_err(),
            None => self.abandoned.get(),
        }
    }
}

#[derive(Debug)]
struct Waiting {
    txn: Txn,
    /// `None` for posted changes, for which no task waits.
    answered: Option<Rc<Answered>>,
    /// Set only for commits that can be undone.
    deadline: Option<Instant>,
    /// Records to delete if no caller learned of the success.
    made: Vec<(QueueId, RecordId)>,
}

/// Commits without an acknowledgement.
#[derive(Debug, Default)]
pub(super) struct Pending {
    waiting: VecDeque<Waiting>,
    /// Last transaction whose deadline was checked.
    expired: Txn,
    /// Refusals that the next acknowledgement covers.
    refused: VecDeque<(Txn, NodeRefusal)>,
}

impl Pending {
    /// A commit was given this number.
    pub(super) fn push(
        &mut self,
        txn: Txn,
        deadline: Option<Instant>,
        made: Vec<(QueueId, RecordId)>,
    ) -> Rc<Answered> {
        let answered = Rc::new(Answered::default());
        let shared = Some(Rc::clone(&answered));
        self.waiting.push_back(Waiting {
            txn,
            answered: shared,
            deadline,
            made,
        });
        answered
    }

    /// A change that nobody waits for was given this number.
    pub(super) fn post(&mut self, txn: Txn) {
        self.waiting.push_back(Waiting {
            txn,
            answered: None,
            deadline: None,
            made: Vec::new(),
        });
    }

    pub(super) fn refuse(&mut self, txn: Txn, refusal: NodeRefusal) {
        self.refused.push_back((txn, refusal));
    }

    /// Everything up to `through` is answered. Gives the records to take back: records that arrived
    /// although the sender heard of a failure, or left before the answer.
    pub(super) fn acknowledge(&mut self, through: Txn) -> Batch {
        let mut undo = Batch::new();
        while let Some(waiting) = self.waiting.pop_front_if(|waiting| waiting.txn <= through) {
            let next = self.refused.pop_front_if(|(txn, _)| *txn == waiting.txn);
            let refused = next.map(|(_, refusal)| refusal);
            let Some(answered) = waiting.answered else {
                if let Some(refusal) = refused {
                    tracing::warn!(txn = waiting.txn.0, %refusal, "posted change was refused");
                }
                continue;
            };
            match refused {
                Some(refusal) => answered.answer(Err(SpoolError::Refused(refusal))),
                None if answered.is_void() => {
                    for (queue, id) in waiting.made {
                        undo.delete(queue, id);
                    }
                }
                None => answered.answer(Ok(())),
            }
        }
        undo
    }

    /// Fails what has waited too long; gives when to look again.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        let from = self
            .waiting
            .partition_point(|waiting| waiting.txn <= self.expired);
        for waiting in self.waiting.iter().skip(from) {
            if let Some(deadline) = waiting.deadline {
                if deadline > now {
                    return Some(deadline);
                }
                if let Some(answered) = &waiting.answered {
                    answered.answer(Err(SpoolError::Timeout));
                }
            }
            self.expired = waiting.txn;
        }
        None
    }

    /// Nothing that waits will be answered by the node.
    pub(super) fn fail(&mut self, error: SpoolError) {
        for waiting in self.waiting.drain(..) {
            if let Some(answered) = waiting.answered {
                answered.answer(Err(error));
            }
        }
        self.refused.clear();
        self.expired = Txn(0);
    }
}

/// The queues of the records that a batch makes.
pub(super) fn queues_of(batch: &Batch) -> Vec<QueueId> {
    let queue = |operation: &Operation| match operation {
        Operation::Put { queue, .. } => Some(*queue),
        Operation::Move { to, .. } => Some(*to),
        Operation::Delete { .. } | Operation::Replace { .. } => None,
    };
    batch.operations().iter().filter_map(queue).collect()
}
