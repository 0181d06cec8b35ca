//! The way from a process to the spool: changes and reads in the order in which they were submitted.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use vere_spoolwire::{
    Batch, Block, Committed, NodeRefusal, Operation, QueueId, QueueStat, RecordId, SpoolError, Txn,
};

use super::spool::Spool;
use crate::schedule::Micros;

/// Requests of a process.
#[derive(Debug, Clone)]
pub(crate) enum Submitted {
    Batch(Batch, Vec<RecordId>),
    /// The end of records that their process does not want any more.
    Undo(Batch),
    Create(u32, String),
    Remove(u32),
    Fetch {
        queue: QueueId,
        from: RecordId,
        records: u32,
        octets: u32,
    },
    List,
}

/// Answers of the spool.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Done,
    Block(Block),
    List(Vec<QueueStat>),
}

/// Where the answer to a request is left.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    answer: Option<Result<Answer, SpoolError>>,
    waker: Option<Waker>,
    /// The waiting process is gone.
    dropped: bool,
    /// The request stands though nobody waits.
    stands: bool,
}

/// A handle on the answer.
pub(crate) type Place = Rc<RefCell<Slot>>;

/// Leaves an answer, unless there is one.
pub(crate) fn answer(place: &Place, answer: Result<Answer, SpoolError>) {
    let mut slot = place.borrow_mut();
    if slot.answer.is_none() {
        slot.answer = Some(answer);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    }
}

/// Waits for an answer.
#[derive(Debug)]
pub(crate) struct Waiting(pub(crate) Place);

/// An answer that is there at once.
pub(crate) fn failed(error: SpoolError) -> Waiting {
    let place = Place::default();
    answer(&place, Err(error));
    Waiting(place)
}

impl Waiting {
    /// Nobody waits, and the request stands.
    pub(crate) fn let_go(self) {
        self.0.borrow_mut().stands = true;
    }
}

impl Future for Waiting {
    type Output = Result<Answer, SpoolError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.borrow_mut();
        match slot.answer.clone() {
            Some(answer) => Poll::Ready(answer),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.borrow_mut().dropped = true;
    }
}

/// A commit on the way.
#[derive(Debug)]
pub(crate) struct SimCommit(pub(crate) Waiting, pub(crate) Vec<RecordId>);

impl Future for SimCommit {
    type Output = Result<Committed, SpoolError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ids = self.1.clone();
        let done = |_| Committed { txn: Txn(0), ids };
        Pin::new(&mut self.0)
            .poll(context)
            .map(|answer| answer.map(done))
    }
}

/// A change of queues on the way.
#[derive(Debug)]
pub(crate) struct SimChange(pub(crate) Waiting);

impl Future for SimChange {
    type Output = Result<(), SpoolError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|answer| answer.map(drop))
    }
}

/// A request on the way.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) what: Submitted,
    pub(crate) place: Place,
    /// When the process gives a commit of new records up.
    pub(crate) deadline: Option<Micros>,
}

impl Request {
    /// Whether the request only adds records, and the process does not want the records any more.
    pub(crate) fn is_given_up(&self) -> bool {
        let slot = self.place.borrow();
        let failed = matches!(slot.answer, Some(Err(_)));
        let only_puts = matches!(&self.what, Submitted::Batch(batch, _) if batch.only_puts());
        only_puts && (slot.dropped && !slot.stands || failed) && !matches!(slot.answer, Some(Ok(_)))
    }

    /// The end of the records that a commit has made.
    pub(crate) fn undo(&self) -> Option<Batch> {
        let Submitted::Batch(batch, ids) = &self.what else {
            return None;
        };
        let mut undo = Batch::new();
        for (operation, id) in batch.operations().iter().zip(ids) {
            if let Operation::Put { queue, .. } = operation {
                undo.delete(*queue, *id);
            }
        }
        Some(undo)
    }
}

/// The requests of a process that are on the way.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    pub(crate) requests: VecDeque<Request>,
    /// The number of the next record of each queue, by the count of the process.
    next: BTreeMap<u32, u64>,
    /// Queues as the process knows queues to be.
    names: BTreeMap<u32, String>,
    /// The group belongs to another process.
    pub(crate) closed: bool,
    /// Nothing is done before.
    pub(crate) stalled_until: Micros,
}

impl Pipe {
    /// The pipe of a process that opens the group.
    pub(crate) fn open(spool: &Spool) -> Self {
        let queues = spool.queues.iter();
        Self {
            next: queues.clone().map(|(id, one)| (*id, one.next)).collect(),
            names: queues.map(|(id, one)| (*id, one.name.clone())).collect(),
            ..Self::default()
        }
    }

    /// Submits a request.
    pub(crate) fn submit(&mut self, what: Submitted, deadline: Option<Micros>) -> Waiting {
        let place = Place::default();
        if self.closed {
            answer(&place, Err(SpoolError::Closed));
        } else {
            let place = Rc::clone(&place);
            self.requests.push_back(Request {
                what,
                place,
                deadline,
            });
        }
        Waiting(place)
    }

    /// The numbers of the new records of a batch.
    pub(crate) fn number(&mut self, batch: &Batch) -> Vec<RecordId> {
        let mut ids = Vec::new();
        for operation in batch.operations() {
            let (Operation::Put { queue, .. } | Operation::Move { to: queue, .. }) = operation
            else {
                continue;
            };
            let next = self.next.entry(queue.0).or_insert(1);
            ids.push(RecordId(*next));
            *next += 1;
        }
        ids
    }

    /// The number of a queue: of that name, or the lowest free number.
    pub(crate) fn queue(&mut self, name: &str) -> u32 {
        let known = self.names.iter().find(|(_, known)| *known == name);
        if let Some((number, _)) = known {
            return *number;
        }
        let free = (1..).find(|number| !self.names.contains_key(number));
        let number = free.unwrap_or(1);
        self.names.insert(number, name.to_owned());
        self.next.insert(number, 1);
        number
    }

    /// A queue was removed, or could not be made.
    pub(crate) fn forget(&mut self, number: u32) {
        self.names.remove(&number);
    }

    /// Does the next request.
    pub(crate) fn perform(
        &mut self,
        spool: &mut Spool,
        request: &Request,
    ) -> Result<Answer, NodeRefusal> {
        match &request.what {
            Submitted::Batch(batch, ids) => spool.apply(batch, ids).map(|()| Answer::Done),
            Submitted::Undo(batch) => spool.apply(batch, &[]).map(|()| Answer::Done),
            Submitted::Create(number, name) => {
                let made = spool.create(*number, name);
                if made.is_err() {
                    self.forget(*number);
                }
                made.map(|()| Answer::Done)
            }
            Submitted::Remove(number) => {
                let removed = spool.remove(*number);
                let again = self.requests.iter().any(
                    |later| matches!(&later.what, Submitted::Create(made, _) if made == number),
                );
                if removed.is_ok() && !again {
                    self.forget(*number);
                }
                removed.map(|()| Answer::Done)
            }
            Submitted::Fetch {
                queue,
                from,
                records,
                octets,
            } => spool
                .block(*queue, *from, *records, *octets)
                .map(Answer::Block),
            Submitted::List => Ok(Answer::List(spool.list())),
        }
    }
}
