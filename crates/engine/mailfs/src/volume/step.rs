//! What a volume asks of its host, and what the host tells.

use std::fmt;

pub(crate) use vere_opening::{Moment, Notice};
use vere_ports::files::{CallId, Errno, Invalidate, Reply};
use vere_ports::mail_accounts::{AccountId, Request, RequestId, Urgency};

use super::job::{Job, JobId};

/// A step that the host carries out.
pub enum Step<F> {
    /// Answers a call.
    Reply(CallId, Result<Reply, Errno>),
    /// Asks an account; the answer goes to [`Volume::answered`](super::Volume::answered).
    Ask(RequestId, AccountId, Urgency, Request),
    /// Runs a job on any thread; the result goes to [`Volume::done`](super::Volume::done).
    Work(JobId, Box<Job>),
    /// Syncs a file of the journal; the result goes to [`Volume::synced`](super::Volume::synced).
    Sync(F),
    /// Has the kernel forget what another mount has changed.
    Invalidate(Invalidate),
    /// A line for the log.
    Log(Notice),
}

impl<F> fmt::Debug for Step<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(call, reply) => formatter
                .debug_tuple("Reply")
                .field(call)
                .field(reply)
                .finish(),
            Self::Ask(id, account, _, request) => formatter
                .debug_tuple("Ask")
                .field(id)
                .field(account)
                .field(request)
                .finish(),
            Self::Work(id, _) => formatter.debug_tuple("Work").field(id).finish(),
            Self::Sync(_) => formatter.write_str("Sync"),
            Self::Invalidate(what) => formatter.debug_tuple("Invalidate").field(what).finish(),
            Self::Log(notice) => formatter.debug_tuple("Log").field(notice).finish(),
        }
    }
}
