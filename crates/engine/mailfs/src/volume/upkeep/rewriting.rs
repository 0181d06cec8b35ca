//! The steps of files on the way into new packs.

use bytes::Bytes;
use vere_ports::files::{Errno, Inode};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Urgency};
use vere_ports::storage::Storage;

use super::super::job::Unpacked;
use super::super::state::uploads::{CHUNKS_MAX, Cut, PACK_FULL};
use super::super::state::{Asked, Volume};
use super::anew::{Anew, File};
use super::state::{Stage, Ticket, Upkeep, What};
use crate::format::FormatError;
use crate::rows::{InodeRow, inode_key};
use crate::tree::Change;

/// Frames read at once.
const READS_MAX: usize = 8;
/// New packs on the way at once.
const PACKS_MAX: usize = 2;
/// Free room to be left: until the next collections the content takes room twice.
const ROOM_MIN: u64 = 64 << 20;

impl<S: Storage> Volume<S> {
    /// Files in many pieces follow the moves of a collection.
    pub(super) fn begin_anew(&self, upkeep: &mut Upkeep) {
        let What::Collect(terms, _) = &upkeep.what else {
            upkeep.stage = Stage::Over;
            return;
        };
        let free = self.accounts.room().free.saturating_sub(ROOM_MIN);
        let octets = terms.move_max.min(free);
        upkeep.stage = Stage::Anew(Box::new(Anew::new(octets, self.now.steady)));
    }

    /// Goes on with files. Returns whether no file is left; `is_hungry` asks for another slice.
    pub(super) fn write_anew(
        &mut self,
        anew: &mut Anew,
        is_hungry: &mut bool,
    ) -> Result<bool, Errno> {
        if self.now.steady >= anew.until || self.read_only.is_some() {
            return Ok(true);
        }
        if !anew.is_found {
            anew.is_found = anew.fragments.slice(self.files.tree())?;
            *is_hungry = true;
            return Ok(false);
        }
        loop {
            let Some(mut file) = anew.file.take() else {
                if !self.next_file(anew)? {
                    return Ok(true);
                }
                continue;
            };
            self.carry_on(anew, &mut file);
            if !file.is_sent() && !file.is_lost {
                anew.file = Some(file);
                return Ok(false);
            }
            if file.is_lost {
                continue;
            }
            match self.replace_extents(&file) {
                Ok(true) => {
                    anew.files = anew.files.saturating_add(1);
                    anew.octets = anew.octets.saturating_add(file.octets);
                }
                Ok(false) => {}
                Err(errno) => {
                    // The packs are stored: another try needs the rows alone.
                    anew.file = Some(file);
                    return Err(errno);
                }
            }
        }
    }

    /// Begins with the next file, if there is room. Returns whether a file is under way.
    fn next_file(&self, anew: &mut Anew) -> Result<bool, Errno> {
        while let Some((inode, octets)) = anew.fragments.found.last().copied() {
            let file = match octets <= anew.octets_left {
                true => match self.version_of(inode)? {
                    Some(of) => File::of(self.files.tree(), inode, of, (PACK_FULL, CHUNKS_MAX))?,
                    None => None,
                },
                false => None,
            };
            anew.fragments.found.pop();
            if let Some(file) = file {
                anew.octets_left = anew.octets_left.saturating_sub(octets);
                anew.file = Some(Box::new(file));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The size and the version of a file's content; none while a change is on the way.
    fn version_of(&self, inode: Inode) -> Result<Option<(u64, u64)>, Errno> {
        if self.is_changed(inode) || self.read_only.is_some() {
            return Ok(None);
        }
        let row = self.files.tree().get(&inode_key(inode))?;
        let row = row.and_then(|row| InodeRow::decode(&row).ok());
        Ok(row.map(|row| (row.size, row.generation)))
    }

    /// Has the rows of a file name the new chunks, all in one commit. Returns whether nothing of the file has changed meanwhile.
    fn replace_extents(&mut self, file: &File) -> Result<bool, Errno> {
        if self.version_of(file.inode)? != Some(file.version) {
            return Ok(false);
        }
        let Some(changes) = file.changes(self.files.tree())? else {
            return Ok(false);
        };
        let changes = changes.into_iter();
        self.change_rows(changes.map(|(key, value)| Change { key, value }).collect());
        Ok(true)
    }

    fn carry_on(&mut self, anew: &mut Anew, file: &mut File) {
        file.take_pieces();
        while file.sending.len() < PACKS_MAX
            && let Some(chunks) = file.take_pack()
        {
            self.send_anew(file, chunks);
            file.take_pieces();
        }
        while file.reading.len() < READS_MAX
            && file.sending.len() < PACKS_MAX
            && let Some(extent) = file.missing()
        {
            let Some((account, request)) = self.frame_request(&extent) else {
                file.is_lost = true;
                return;
            };
            anew.next = anew.next.wrapping_add(1);
            file.reading.insert(anew.next, extent);
            let asked = Asked::Upkeep(Ticket::Frame(anew.next, account));
            self.ask(AccountId(account), Urgency::Idle, request, asked);
        }
    }

    fn send_anew(&mut self, file: &mut File, chunks: Vec<Unpacked>) {
        let place = |chunk: &Unpacked| {
            let length = u32::try_from(chunk.octets()).unwrap_or(u32::MAX);
            (chunk.offset, length)
        };
        let places = chunks.iter().map(place).collect();
        // No buffer of a file waits for these chunks.
        let cut = |chunk: &Unpacked| Cut {
            inode: Inode(0),
            offset: chunk.offset,
            ranges: Vec::new(),
        };
        let cuts = chunks.iter().map(cut).collect();
        let number = self.begin_pack(cuts, chunks, Urgency::Idle);
        file.sending.insert(number.0, places);
        self.name_pack(number);
    }

    /// An account has given a frame, or not.
    pub(super) fn anew_answered(
        &mut self,
        anew: &mut Anew,
        (number, account): (usize, u16),
        answer: Result<Answer, Fault>,
    ) {
        let Some(file) = &mut anew.file else {
            return;
        };
        let Some(extent) = file.reading.get(&number).copied() else {
            return;
        };
        if !self.open_frame(&extent, (number, account), answer) {
            file.is_lost = true;
        }
    }

    /// A frame is opened, or damaged, which is a matter of `check`.
    pub(super) fn anew_opened(anew: &mut Anew, number: usize, opened: Result<Bytes, FormatError>) {
        let Some(file) = &mut anew.file else {
            return;
        };
        match (file.reading.remove(&number), opened) {
            (Some(extent), Ok(octets)) => file.opened(extent, octets),
            (Some(_), Err(_)) => file.is_lost = true,
            (None, _) => {}
        }
    }

    /// The report of files that were written anew.
    pub(super) fn end_anew(upkeep: &mut Upkeep) {
        let stage = std::mem::replace(&mut upkeep.stage, Stage::Over);
        if let (Stage::Anew(anew), What::Collect(_, report)) = (stage, &mut upkeep.what) {
            report.files_rewritten = anew.files;
            report.octets_rewritten = anew.octets;
        }
    }
}
