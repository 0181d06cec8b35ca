//! The steps of compaction.

use bytes::Bytes;
use vere_ports::files::{Errno, Inode};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

use super::super::accounts::mailbox_name;
use super::super::job::{Job, OpenJob, Task, Unpacked};
use super::super::state::uploads::Cut;
use super::super::state::{Asked, Volume, Working};
use super::moving::Moving;
use super::rows::Writing;
use super::state::Ticket;
use crate::format::{FormatError, Place};
use crate::rows::Extent;

/// Frames moved by a run: some 100 octets each in memory.
const FRAMES_MAX: usize = 50_000;
/// Frames read at once.
const READS_MAX: usize = 8;
/// New packs on the way at once.
const PACKS_MAX: usize = 2;

/// How far moves are.
pub(super) enum Moved {
    /// An account, a job or another slice is waited for.
    Waits,
    /// Another slice follows.
    More,
    /// The rows with the new places.
    Rows(Writing),
}

impl<S: Storage> Volume<S> {
    /// Goes on with moves.
    pub(super) fn move_on(&mut self, moving: &mut Moving) -> Result<Moved, Errno> {
        if !moving.is_gathered {
            let is_all = moving.gather.slice(self.files.tree(), &moving.packs)?;
            if !is_all && moving.gather.frames.len() < FRAMES_MAX {
                return Ok(Moved::More);
            }
            moving.is_gathered = true;
            let mut frames = std::mem::take(&mut moving.gather).frames;
            frames.truncate(FRAMES_MAX);
            // Chunks that were neighbours stay neighbours.
            frames.sort_unstable_by_key(|(_, inode, offset)| (*inode, *offset));
            moving.left = frames.into();
        }
        let is_late = self.now.steady >= moving.until;
        if is_late {
            moving.left.clear();
            moving.reading.clear();
            moving.sending.clear();
            moving.read.clear();
        }
        self.read_frames(moving);
        if !moving.left.is_empty()
            || !moving.reading.is_empty()
            || !moving.read.is_empty()
            || !moving.sending.is_empty()
        {
            return Ok(Moved::Waits);
        }
        let changed = |inode: Inode| self.is_changed(inode);
        if !moving.moved.is_empty() && !moving.look(self.files.tree(), &changed)? {
            return Ok(Moved::More);
        }
        let mut writing = Writing::new(std::mem::take(&mut moving.changes));
        writing.expected = std::mem::take(&mut moving.expected);
        Ok(Moved::Rows(writing))
    }

    /// Whether a file has changes that no commit has: its rows are about to change.
    pub(super) fn is_changed(&self, inode: Inode) -> bool {
        self.commits.changed.contains_key(&inode) || self.files.unsent_octets_of(inode) > 0
    }

    fn read_frames(&mut self, moving: &mut Moving) {
        while moving.reading.len() < READS_MAX
            && moving.sending.len() < PACKS_MAX
            && let Some((extent, inode, offset)) = moving.left.pop_front()
        {
            if let Some((account, request)) = self.frame_request(&extent) {
                moving.next = moving.next.wrapping_add(1);
                let number = moving.next;
                moving.reading.insert(number, (extent, inode, offset));
                let asked = Asked::Upkeep(Ticket::Frame(number, account));
                self.ask(AccountId(account), Urgency::Idle, request, asked);
            }
        }
        let is_last = moving.left.is_empty() && moving.reading.is_empty();
        if is_last && !moving.read.is_empty() {
            self.send_moved(moving);
        }
    }

    pub(super) fn frame_request(&self, extent: &Extent) -> Option<(u16, Request)> {
        let located = self.located(extent.pack.0)?;
        let accounts = &self.accounts;
        let tried = located.copies.iter();
        let tried = tried.filter(|copy| accounts.may_try(copy.account));
        let copy = tried.min_by_key(|copy| accounts.cost(copy.account))?;
        let encoding = accounts.encoding(copy.account)?;
        let place = Place {
            at: extent.at,
            sealed_len: extent.sealed_len,
        };
        let request = Request::Read {
            mailbox: mailbox_name(copy.mailbox),
            uid_validity: accounts.uid_validity(copy.account, copy.mailbox)?,
            uid: copy.uid,
            parts: OpenJob::parts_of(encoding, place).ok()?,
        };
        Some((copy.account, request))
    }

    /// An account has given a frame, or not: a frame that cannot be read stays where it is.
    pub(super) fn frame_answered(
        &mut self,
        moving: &mut Moving,
        (number, account): (usize, u16),
        answer: Result<Answer, Fault>,
    ) {
        let Some((extent, ..)) = moving.reading.get(&number) else {
            return;
        };
        if !self.open_frame(&extent.clone(), (number, account), answer) {
            moving.reading.remove(&number);
        }
    }

    /// Has a frame opened. Returns whether the account has given one.
    pub(super) fn open_frame(
        &mut self,
        extent: &Extent,
        (number, account): (usize, u16),
        answer: Result<Answer, Fault>,
    ) -> bool {
        let encoding = self.accounts.encoding(account);
        let located = self.located(extent.pack.0);
        let parts = match answer {
            Ok(Answer::Read(parts)) => <[Bytes; 2]>::try_from(parts).ok(),
            _ => None,
        };
        let (Some(parts), Some(encoding), Some(located)) = (parts, encoding, located) else {
            return false;
        };
        let job = OpenJob {
            keys: self.seals.keys.clone(),
            encoding,
            id: located.id,
            place: Place {
                at: extent.at,
                sealed_len: extent.sealed_len,
            },
            parts,
        };
        self.work(Job(Task::Open(job)), Working::Upkeep(number));
        true
    }

    /// A frame is opened, or damaged: its replica is a matter of `check`.
    pub(super) fn moved_frame_opened(
        &mut self,
        moving: &mut Moving,
        number: usize,
        opened: Result<Bytes, FormatError>,
    ) {
        let Some((extent, inode, offset)) = moving.reading.remove(&number) else {
            return;
        };
        let Ok(octets) = opened else {
            return;
        };
        if moving.is_full(octets.len()) && !moving.read.is_empty() {
            self.send_moved(moving);
        }
        moving.read_octets = moving.read_octets.saturating_add(octets.len());
        let unpacked = Unpacked {
            inode: inode.0,
            offset,
            pieces: vec![octets],
        };
        moving.read.push((extent, unpacked));
    }

    fn send_moved(&mut self, moving: &mut Moving) {
        let (frames, chunks): (Vec<Extent>, Vec<Unpacked>) =
            std::mem::take(&mut moving.read).into_iter().unzip();
        moving.read_octets = 0;
        // No buffer of a file waits for these chunks.
        let cut = |chunk: &Unpacked| Cut {
            inode: Inode(0),
            offset: chunk.offset,
            ranges: Vec::new(),
        };
        let cuts = chunks.iter().map(cut).collect();
        let number = self.begin_pack(cuts, chunks, Urgency::Idle);
        moving.sending.insert(number.0, frames);
        self.name_pack(number);
    }
}
