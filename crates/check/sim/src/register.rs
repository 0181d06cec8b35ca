//! The register of a group: the membership record and the delivery lease, each replaced by compare-and-set, reached
//! over a separate network. Requests fail, take long, and may be carried out without an answer, also much later.

use std::collections::BTreeMap;

use vere_owner::lease::{LeaseAnswer, LeaseRequest};
use vere_owner::{Membership, RegisterFailed, RegisterRequest, RegisterSwap};

/// An open request.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) owner: usize,
    pub(crate) request: Asked,
    /// The answer on the way; `None` before the answer.
    pub(crate) reply: Option<Reply>,
    /// The asker has given up.
    pub(crate) told: bool,
    /// The request was carried out, or never will be.
    pub(crate) over: bool,
}

/// The subject of a request: the record or the lease.
#[derive(Debug)]
pub(crate) enum Asked {
    Group(RegisterRequest),
    Lease(LeaseRequest),
}

/// An answer.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Read(Result<Option<(u64, Vec<u8>)>, RegisterFailed>),
    Swapped(RegisterSwap),
    Lease(LeaseAnswer),
}

/// The register.
#[derive(Debug, Default)]
pub(crate) struct Register {
    value: Option<(u64, Vec<u8>)>,
    lease: Option<(u64, Vec<u8>)>,
    pub(crate) pending: BTreeMap<u64, Pending>,
    next: u64,
    /// The hosts cut off from the register, each with the number of cuts.
    pub(crate) cut_off: BTreeMap<usize, u32>,
}

impl Register {
    pub(crate) fn ask(&mut self, owner: usize, request: Asked) -> u64 {
        self.next += 1;
        let pending = Pending {
            owner,
            request,
            reply: None,
            told: false,
            over: false,
        };
        self.pending.insert(self.next, pending);
        self.next
    }

    /// What it holds.
    pub(crate) fn record(&self) -> Option<Membership> {
        let (_, value) = self.value.as_ref()?;
        Membership::decode(value).ok()
    }

    /// The present record, and every record that an open request may still store.
    pub(crate) fn possible(&self) -> Vec<Membership> {
        let version = self.value.as_ref().map(|(version, _)| *version);
        let late = self
            .pending
            .values()
            .filter_map(|pending| match &pending.request {
                Asked::Group(RegisterRequest::Swap { expected, value })
                    if !pending.over && *expected == version =>
                {
                    Membership::decode(value).ok()
                }
                _ => None,
            });
        self.record().into_iter().chain(late).collect()
    }

    /// Carries out a request. `blind`: without comparing the version.
    pub(crate) fn serve(&mut self, request: u64, blind: bool) -> Option<&Reply> {
        let pending = self.pending.get_mut(&request)?;
        pending.over = true;
        let reply = match &pending.request {
            Asked::Group(RegisterRequest::Read) => Reply::Read(Ok(self.value.clone())),
            Asked::Lease(LeaseRequest::Swap { expected, value })
                if *expected == self.lease.as_ref().map(|(version, _)| *version) =>
            {
                let version = expected.unwrap_or(0) + 1;
                self.lease = Some((version, value.clone()));
                Reply::Lease(LeaseAnswer::Done(version))
            }
            Asked::Lease(_) => Reply::Lease(LeaseAnswer::There(self.lease.clone())),
            Asked::Group(RegisterRequest::Swap { expected, value }) => {
                let version = self.value.as_ref().map(|(version, _)| *version);
                if version != *expected && !blind {
                    Reply::Swapped(RegisterSwap::Conflict)
                } else {
                    let version = version.unwrap_or(0) + 1;
                    self.value = Some((version, value.clone()));
                    Reply::Swapped(RegisterSwap::Done(version))
                }
            }
        };
        pending.reply = Some(reply);
        pending.reply.as_ref()
    }

    /// Reports a request as carried out without doing so.
    pub(crate) fn pretend(&mut self, request: u64) {
        let version = self.value.as_ref().map_or(1, |(version, _)| version + 1);
        if let Some(pending) = self.pending.get_mut(&request) {
            pending.over = true;
            pending.reply = Some(match pending.request {
                Asked::Group(RegisterRequest::Read) => Reply::Read(Ok(self.value.clone())),
                Asked::Group(RegisterRequest::Swap { .. }) => {
                    Reply::Swapped(RegisterSwap::Done(version))
                }
                Asked::Lease(_) => Reply::Lease(LeaseAnswer::There(self.lease.clone())),
            });
        }
    }

    /// Takes the answer for the requester: the result, or the loss of the answer.
    pub(crate) fn answer(&mut self, request: u64, lost: bool) -> Option<(usize, Reply)> {
        let pending = self.pending.get_mut(&request)?;
        pending.told = true;
        let nothing = match pending.request {
            Asked::Group(RegisterRequest::Read) => Reply::Read(Err(RegisterFailed)),
            Asked::Group(RegisterRequest::Swap { .. }) => Reply::Swapped(RegisterSwap::Unknown),
            Asked::Lease(_) => Reply::Lease(LeaseAnswer::Failed),
        };
        let reply = pending.reply.take().filter(|_| !lost).unwrap_or(nothing);
        Some((pending.owner, reply))
    }

    /// Forgets a request that is carried out and answered.
    pub(crate) fn forget(&mut self, request: u64) {
        if self
            .pending
            .get(&request)
            .is_some_and(|pending| pending.told && pending.over)
        {
            self.pending.remove(&request);
        }
    }
}
