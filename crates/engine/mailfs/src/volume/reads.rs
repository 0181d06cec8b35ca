//! Reads: pieces of a file come from memory, or from chunks fetched from accounts and opened.

use super::cached::place_of;
use super::job::{Job, OpenJob, Task};
use super::keep_job::Opened;
use super::state::reads::{Fetch, Slot, Waiting};
use super::state::{Asked, Volume, Working};
use super::step::{Notice, Step};
use crate::content::Source;
use crate::format::{FormatError, MailCopy};
use crate::posix::ReadPlan;
use crate::rows::Extent;
use bytes::Bytes;
use vere_ports::files::{Call, CallId, Caller, Errno, Inode, Reply};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// A read whose pieces are known.
    pub(super) fn read(
        &mut self,
        (call, asked): (CallId, Option<(Caller, Call)>),
        plan: &ReadPlan,
    ) {
        let mut waiting = Waiting {
            asked,
            ..Waiting::default()
        };
        let mut missing = Vec::new();
        for (offset, piece) in plan.at_offsets() {
            let length = usize::try_from(piece.length).unwrap_or(0);
            let slot = match &piece.source {
                Source::Zero => Slot::Zeros(length),
                Source::Unsent { id, skip } => {
                    Slot::ready(self.files.unsent().get(*id, *skip, piece.length), 0, length)
                }
                Source::Chunk { extent, skip } => {
                    let skip = usize::try_from(*skip).unwrap_or(usize::MAX);
                    match self.chunk(extent) {
                        Some(octets) => Slot::ready(Some(octets), skip, length),
                        None => {
                            missing.push((*extent, offset));
                            Slot::Chunk(*extent, skip, length)
                        }
                    }
                }
            };
            waiting.slots.push(slot);
        }
        self.reads.waiting.insert(call, waiting);
        let mut new = Vec::new();
        for (chunk, offset) in &missing {
            let at = (plan.inode, *offset);
            new.extend(self.wait_for(*chunk, at, Some(call), Urgency::Waited));
        }
        new.extend(self.read_ahead(plan));
        self.fetch_together(new);
        if missing.is_empty() {
            self.serve(call);
        }
    }

    /// A chunk that is in memory.
    fn chunk(&mut self, extent: &Extent) -> Option<Bytes> {
        self.cache
            .get(extent)
            .or_else(|| self.commits.pinned(extent))
    }

    /// Answers a read if every piece is there.
    fn serve(&mut self, call: CallId) {
        let waiting = self.reads.waiting.get(&call);
        if waiting.is_none_or(|waiting| {
            waiting
                .slots
                .iter()
                .any(|slot| matches!(slot, Slot::Chunk(..)))
        }) {
            return;
        }
        let waiting = self.reads.waiting.remove(&call).unwrap_or_default();
        let reply = waiting.octets().map(Reply::Octets).ok_or(Errno::Io);
        self.reply(call, reply);
    }

    /// Notes a reader of a chunk; returns the chunk if nobody has asked for the chunk yet.
    pub(super) fn wait_for(
        &mut self,
        chunk: Extent,
        at: (Inode, u64),
        call: Option<CallId>,
        urgency: Urgency,
    ) -> Option<Extent> {
        if let Some(fetch) = self.reads.fetches.get_mut(&chunk) {
            fetch.callers.extend(call);
            return None;
        }
        let copies = self
            .located(chunk.pack.0)
            .map_or_else(Vec::new, |located| located.copies);
        let (inode, offset) = at;
        let fetch = Fetch {
            callers: call.into_iter().collect(),
            inode,
            offset,
            urgency,
            copies,
            is_damaged: false,
            searched: Vec::new(),
            reasons: Vec::new(),
        };
        self.reads.fetches.insert(chunk, fetch);
        // The local disk comes before accounts.
        (!self.read_cached(chunk)).then_some(chunk)
    }

    /// Asks the best of the remaining copies; without a copy the read fails.
    pub(super) fn fetch_next(&mut self, chunk: Extent) {
        let Some(fetch) = self.reads.fetches.get_mut(&chunk) else {
            return;
        };
        let accounts = &self.accounts;
        let best = fetch
            .copies
            .iter()
            .enumerate()
            .min_by_key(|(_, copy)| accounts.cost(copy.account));
        let Some((number, _)) = best else {
            if !self.search_commit(chunk) && !self.search_pack(chunk) {
                self.unreadable(chunk);
            }
            return;
        };
        let copy = fetch.copies.remove(number);
        let (urgency, account) = (fetch.urgency, AccountId(copy.account));
        let (Some(uid_validity), Some(encoding)) = (
            self.accounts.uid_validity(copy.account, copy.mailbox),
            self.accounts.encoding(copy.account),
        ) else {
            fetch
                .reasons
                .push(format!("account {}: not known", copy.account));
            self.fetch_next(chunk);
            return;
        };
        let parts = match OpenJob::parts_of(encoding, place_of(chunk)) {
            Ok(parts) => parts,
            Err(error) => {
                fetch.reasons.push(error.to_string());
                self.unreadable(chunk);
                return;
            }
        };
        let request = Request::Read {
            mailbox: super::accounts::mailbox_name(copy.mailbox),
            uid_validity,
            uid: copy.uid,
            parts,
        };
        self.ask(account, urgency, request, Asked::Chunk(chunk, copy));
    }

    /// An account has answered for a chunk.
    pub(super) fn chunk_answered(
        &mut self,
        chunk: Extent,
        copy: MailCopy,
        answer: Result<Answer, Fault>,
    ) {
        if matches!(answer, Ok(Answer::Gone)) {
            self.damaged(chunk);
        }
        let parts = match answer {
            Ok(Answer::Read(parts)) => {
                <[Bytes; 2]>::try_from(parts).map_err(|_| "a part is missing".to_owned())
            }
            Ok(Answer::Gone) => Err("the mail is gone".to_owned()),
            Ok(_) => Err("the answer is to another request".to_owned()),
            Err(fault) => Err(fault.to_string()),
        };
        let located = self.located(chunk.pack.0);
        match (parts, located, self.accounts.encoding(copy.account)) {
            (Ok(parts), Some(located), Some(encoding)) => {
                let job = OpenJob {
                    keys: self.seals.keys.clone(),
                    encoding,
                    id: located.id,
                    place: place_of(chunk),
                    parts,
                };
                self.work(Job(Task::Open(job)), Working::Chunk(chunk, copy));
            }
            (Err(reason), ..) => self.copy_failed(chunk, copy, &reason),
            _ => self.copy_failed(chunk, copy, "the pack is not known any more"),
        }
    }

    /// A copy is none, whatever becomes of its account.
    fn damaged(&mut self, chunk: Extent) {
        if let Some(fetch) = self.reads.fetches.get_mut(&chunk) {
            fetch.is_damaged = true;
        }
    }

    fn copy_failed(&mut self, chunk: Extent, copy: MailCopy, reason: &str) {
        if let Some(fetch) = self.reads.fetches.get_mut(&chunk) {
            fetch
                .reasons
                .push(format!("account {}: {reason}", copy.account));
        }
        self.fetch_next(chunk);
    }

    /// A chunk is opened, or is none.
    pub(super) fn chunk_opened(
        &mut self,
        chunk: Extent,
        copy: MailCopy,
        opened: Result<Opened, FormatError>,
    ) {
        match opened {
            Ok(opened) => {
                self.chunk_is_here(chunk, opened.plain.clone());
                if let Some(located) = self.located(chunk.pack.0) {
                    self.keep_chunk(chunk, located.id, opened);
                }
            }
            Err(error) => {
                self.steps.push_back(Step::Log(Notice::Forged {
                    account: AccountId(copy.account),
                    mailbox: super::accounts::mailbox_name(copy.mailbox),
                    uid: copy.uid,
                    reason: error.to_string(),
                }));
                self.damaged(chunk);
                self.copy_failed(chunk, copy, &error.to_string());
            }
        }
    }

    /// A chunk is in memory: reads go on.
    pub(super) fn chunk_is_here(&mut self, chunk: Extent, octets: Bytes) {
        let fetch = self.reads.fetches.remove(&chunk);
        let inode = fetch.as_ref().map(|fetch| fetch.inode);
        for call in fetch.into_iter().flat_map(|fetch| fetch.callers) {
            if let Some(waiting) = self.reads.waiting.get_mut(&call) {
                waiting.arrived(chunk, &octets);
            }
            self.serve(call);
        }
        self.cache.put(chunk, octets);
        if let Some(inode) = inode {
            self.go_on_ahead(inode);
        }
    }

    /// No copy of a chunk can be read.
    fn unreadable(&mut self, chunk: Extent) {
        let Some(fetch) = self.reads.fetches.remove(&chunk) else {
            return;
        };
        if fetch.is_damaged {
            self.distrust(chunk.pack);
        }
        if fetch.callers.is_empty() {
            return;
        }
        self.steps.push_back(Step::Log(Notice::Unreadable {
            inode: fetch.inode.0,
            offset: fetch.offset,
            reason: fetch.reasons.join("; "),
        }));
        for call in fetch.callers {
            if self.reads.waiting.remove(&call).is_some() {
                self.reply(call, Err(Errno::Io));
            }
        }
    }
}
