//! Uploads: written octets become chunks, chunks become packs, and packs go to a group of accounts.

use super::accounts::{FIRST_DATA_MAILBOX, mailbox_name};
use super::job::{Job, NameJob, Packed, Task, Unpacked};
use super::packs::{Fate, FateRange, Located};
use super::state::uploads::{CHUNKS_MAX, Cut, PACK_FULL, Upload};
use super::state::{Asked, Volume, Working};
use super::step::Notice;
use crate::format::subject::id_word;
use crate::format::{FormatError, Kind, MailCopy, PackNumber, Place};
use crate::rows::{Extent, Key, PackRow, RowValue};
use std::mem;
use vere_pending::cuts::Buffers;
use vere_ports::files::Inode;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// Written octets, and the fate of each range.
    pub(super) const fn buffers(&self) -> Buffers<'_> {
        let (files, fates) = (&self.files, &self.fates);
        Buffers { files, fates }
    }

    /// Chunks of all written octets of a file, neither sent nor on the way; `whole_only` leaves an end out.
    pub(super) fn cut(&mut self, inode: Inode, whole_only: bool) -> Vec<Cut> {
        let size = self.files.size(inode).unwrap_or(0);
        self.buffers().cut((inode, size), whole_only)
    }

    /// Sends chunks.
    pub(super) fn upload(&mut self, cuts: Vec<Cut>, urgency: Urgency) {
        if self.journal.is_full() || self.is_stopped() {
            return;
        }
        let mut pack: Vec<Cut> = Vec::new();
        let mut octets = 0_usize;
        for cut in cuts {
            let length = cut.octets();
            let is_full = octets >= PACK_FULL || pack.len() >= CHUNKS_MAX;
            if !pack.is_empty() && is_full {
                self.upload_pack(mem::take(&mut pack), urgency);
                octets = 0;
            }
            octets = octets.saturating_add(length);
            pack.push(cut);
        }
        if !pack.is_empty() {
            self.upload_pack(pack, urgency);
        }
    }

    /// A pack begins with the ids of its chunks.
    fn upload_pack(&mut self, chunks: Vec<Cut>, urgency: Urgency) {
        let unpacked = chunks
            .iter()
            .map(|cut| self.buffers().gather(cut))
            .collect();
        let number = self.begin_pack(chunks, unpacked, urgency);
        self.name_pack(number);
    }

    /// Has the ids of a pack's chunks made. Chunks without ranges of buffers go in any case, whatever the volume has already.
    pub(super) fn name_pack(&mut self, number: PackNumber) {
        let chunks = self.uploads.packs.get(&number.0);
        let job = NameJob {
            keys: self.seals.keys.clone(),
            chunks: chunks.map_or_else(Vec::new, |upload| upload.unpacked.clone()),
        };
        self.work(Job(Task::Name(job)), Working::Names(number));
    }

    pub(super) fn begin_pack(
        &mut self,
        chunks: Vec<Cut>,
        unpacked: Vec<Unpacked>,
        urgency: Urgency,
    ) -> PackNumber {
        let number = self.next_pack();
        for cut in &chunks {
            self.set_fates(cut, Fate::Sending(number.0));
        }
        let group = self.accounts.best_group(urgency);
        let octets = chunks.iter().map(Cut::octets).sum();
        let upload = Upload {
            chunks,
            unpacked,
            names: Vec::new(),
            twins: Vec::new(),
            group,
            urgency,
            copies: Vec::new(),
            asked: Vec::new(),
            packed: None,
            doubt: None,
            octets,
        };
        self.uploads.packs.insert(number.0, upload);
        self.accounts.group_begins(group, octets);
        number
    }

    /// The pack of a resting group goes to another group under another number. The first group may have the pack all the same:
    /// an orphan.
    fn reroute(&mut self, number: PackNumber) {
        let Some(upload) = self.uploads.packs.remove(&number.0) else {
            return;
        };
        self.accounts.group_ends(upload.group, upload.octets);
        let Upload {
            chunks,
            unpacked,
            names,
            twins,
            urgency,
            ..
        } = upload;
        let other = self.begin_pack(chunks, unpacked, urgency);
        for (_, cut) in &twins {
            self.set_fates(cut, Fate::Sending(other.0));
        }
        for (place, name) in names.iter().enumerate() {
            self.uploads.coming.insert(*name, (other.0, place));
        }
        if let Some(upload) = self.uploads.packs.get_mut(&other.0) {
            (upload.names, upload.twins) = (names, twins);
        }
        self.commits.renumber(number, other);
        self.renumber_moved(number, other);
        self.make_pack(other);
    }

    /// The mails of a pack are made.
    pub(super) fn pack_made(&mut self, number: PackNumber, packed: Result<Packed, FormatError>) {
        let packed = match packed {
            Ok(packed) => packed,
            Err(error) => {
                // The bounds of a pack are below those of the format: only a broken engine comes here.
                self.fail(Notice::Pack(error.to_string()));
                return;
            }
        };
        let Some(upload) = self.uploads.packs.get_mut(&number.0) else {
            return;
        };
        upload.packed = Some(packed);
        self.send_pack(number);
    }

    /// Asks an account of the group to store a pack, or whether it has the pack after all. Packs wait while all members rest.
    pub(super) fn send_pack(&mut self, number: PackNumber) {
        if self.is_stopped() {
            return;
        }
        let Some(upload) = self.uploads.packs.get(&number.0) else {
            return;
        };
        let Some(packed) = &upload.packed else {
            return;
        };
        let wanted = self.copies_wanted(upload);
        if upload.copies.len().saturating_add(upload.asked.len()) >= wanted {
            return;
        }
        let may_ask =
            |account: &u16| self.accounts.may_try(*account) && !upload.asked.contains(account);
        let doubtful = upload.doubt.filter(may_ask);
        // A copy at an account that rests is made good later, and is a duplicate if the account has one already.
        let (accounts, urgency) = (&self.accounts, upload.urgency);
        let best = || accounts.best_member(upload.group, &upload.copies, &upload.asked, urgency);
        let Some(account) = doubtful.or_else(best) else {
            if !upload.asked.is_empty() {
                return;
            }
            if upload.copies.is_empty() && self.accounts.has_better_group(upload.group, urgency) {
                self.reroute(number);
            } else {
                self.accounts.postpone(number);
            }
            return;
        };
        let mailbox = mailbox_name(FIRST_DATA_MAILBOX);
        let request = if doubtful.is_some() {
            let word = id_word(packed.id);
            Request::Find { mailbox, word }
        } else {
            let encoding = self.accounts.encoding(account);
            let mail = packed.mails.iter().find(|(of, _)| Some(*of) == encoding);
            let mail = mail.map(|(_, mail)| mail.clone()).unwrap_or_default();
            Request::Append {
                mailbox,
                mail,
                alone: false,
            }
        };
        if let Some(upload) = self.uploads.packs.get_mut(&number.0) {
            upload.asked.push(account);
        }
        self.ask(
            AccountId(account),
            urgency,
            request,
            Asked::Pack(number, account),
        );
        // Further members are asked at the same time.
        self.send_pack(number);
    }

    /// Copies needed by a pack before the pack's content counts as stored.
    fn copies_wanted(&self, upload: &Upload) -> usize {
        let sync_copies = self.terms.sync_copies;
        self.accounts
            .copies_wanted(upload.group, &upload.copies, sync_copies)
    }

    /// An account has a pack, or not.
    pub(super) fn pack_answered(
        &mut self,
        number: PackNumber,
        account: u16,
        answer: Result<Answer, Fault>,
    ) {
        let Some(upload) = self.uploads.packs.get_mut(&number.0) else {
            return;
        };
        upload.asked.retain(|of| *of != account);
        match answer {
            Ok(Answer::Appended(Some((uid_validity, uid)))) => {
                self.pack_is_at(number, account, uid_validity, uid);
                return;
            }
            Ok(Answer::Found(uid_validity, uids)) => {
                if let Some(uid) = uids.into_iter().min() {
                    self.pack_is_at(number, account, uid_validity, uid);
                    return;
                }
                // Not there: the pack is sent again, perhaps elsewhere.
                upload.doubt = None;
            }
            // The account does not tell where the mail is, or the connection ended: the subject tells.
            Ok(_) => upload.doubt = Some(account),
            Err(fault) => {
                if matches!(fault, Fault::Unreachable(_)) {
                    upload.doubt = Some(account);
                }
                self.accounts.refuses_mail(account, &fault);
                self.account_failed(account, &fault);
            }
        }
        self.advance_pack(number);
    }

    /// A copy of a pack is stored: with enough copies, the pack's chunks are placed; further ones follow behind.
    fn pack_is_at(&mut self, number: PackNumber, account: u16, uid_validity: u32, uid: u32) {
        if self.is_gone(account) {
            // The account has left meanwhile: the mail is an orphan.
            self.advance_pack(number);
            return;
        }
        self.numbered(account, FIRST_DATA_MAILBOX, uid_validity);
        let Some(upload) = self.uploads.packs.get_mut(&number.0) else {
            return;
        };
        upload.doubt = upload.doubt.filter(|doubtful| *doubtful != account);
        let octets = upload.packed.as_ref().map_or(0, |packed| packed.octets);
        let mailbox = FIRST_DATA_MAILBOX;
        upload.copies.push(MailCopy {
            account,
            mailbox,
            uid,
        });
        self.takes_room(account, octets);
        self.advance_pack(number);
    }

    /// A pack with enough copies is stored; another one is sent on.
    pub(super) fn advance_pack(&mut self, number: PackNumber) {
        let Some(upload) = self.uploads.packs.get(&number.0) else {
            return;
        };
        let has_enough = upload.copies.len() >= self.copies_wanted(upload);
        if has_enough && !upload.copies.is_empty() && upload.asked.is_empty() {
            self.pack_ends(number);
        } else {
            self.send_pack(number);
        }
    }

    /// A pack is stored: its chunks are placed, and further copies follow behind.
    fn pack_ends(&mut self, number: PackNumber) {
        let Some(mut upload) = self.uploads.packs.remove(&number.0) else {
            return;
        };
        let octets = upload.packed.as_ref().map_or(0, |packed| packed.octets);
        let members = self.accounts.members(upload.group);
        self.speed.add(self.now.steady, octets.into());
        self.accounts.group_ends(upload.group, upload.octets);
        let Some(packed) = upload.packed.take() else {
            return;
        };
        for member in members {
            if upload.copies.iter().all(|copy| copy.account != member) {
                self.send_copy(number, member, &packed);
            }
        }
        let located = Located {
            id: packed.id,
            copies: upload.copies.clone(),
        };
        self.locate(number.0, located, (Kind::Data, upload.group, packed.octets));
        self.place_chunks(number, &upload, &packed);
        self.note_moved(number, &packed.places);
        self.pack_stored(number);
        self.upload_more();
        self.resume_blocked();
    }

    /// The chunks of a pack have their places, and so have equal chunks of other packs.
    fn place_chunks(&mut self, number: PackNumber, upload: &Upload, packed: &Packed) {
        let extent = |place: &Place| Extent {
            pack: number,
            at: place.at,
            sealed_len: place.sealed_len,
        };
        let chunks = upload.chunks.iter().zip(&upload.unpacked);
        let named = chunks.zip(&upload.names);
        for (((cut, chunk), name), place) in named.zip(&packed.places) {
            self.uploads.coming.remove(name);
            self.place(cut, extent(place));
            self.note_chunk(*name, chunk.octets(), extent(place));
        }
        for (place, cut) in &upload.twins {
            if let Some(place) = packed.places.get(*place) {
                self.place(cut, extent(place));
            }
        }
    }

    /// Sends a further copy of a pack, or leaves the copy to later while the account rests.
    fn send_copy(&mut self, number: PackNumber, account: u16, packed: &Packed) {
        let encoding = self.accounts.encoding(account);
        let mail = packed.mails.iter().find(|(of, _)| Some(*of) == encoding);
        match mail {
            Some((_, mail)) if self.accounts.may(account, Urgency::Idle) => {
                let request = Request::Append {
                    mailbox: mailbox_name(FIRST_DATA_MAILBOX),
                    mail: mail.clone(),
                    alone: false,
                };
                self.ask(
                    AccountId(account),
                    Urgency::Idle,
                    request,
                    Asked::Copy(number, account),
                );
            }
            _ => self.replicas.lacks(account, number.0),
        }
    }

    /// The ranges of a chunk have their place.
    pub(super) fn place(&mut self, cut: &Cut, extent: Extent) {
        self.uploads.placed.insert(extent.pack.0);
        let mut in_chunk = 0_u32;
        for (id, skip, length) in &cut.ranges {
            let fate = Fate::Placed {
                extent,
                skip: in_chunk,
            };
            self.fates.set(
                *id,
                FateRange {
                    skip: *skip,
                    length: *length,
                    fate,
                },
            );
            in_chunk = in_chunk.saturating_add(*length);
        }
        if let Err(error) = self
            .files
            .stored(cut.inode, cut.offset, &cut.pieces(), extent)
        {
            self.fail(Notice::Rows(error));
        }
        self.collect_rows();
    }

    /// An account has told the numbers of a mailbox; the next commit tells other mounts.
    pub(super) fn numbered(&mut self, account: u16, mailbox: u16, uid_validity: u32) {
        if self.accounts.number(account, mailbox, uid_validity) {
            let key = Key::Mailbox { account, mailbox };
            self.put_row(key.encode(), uid_validity.to_le_bytes().to_vec());
        }
    }

    /// Remembers where a pack is, and has the next commit tell.
    pub(super) fn locate(&mut self, number: u64, located: Located, facts: (Kind, u16, u32)) {
        let (kind, group, octets) = facts;
        let row = PackRow {
            mail: located.id,
            kind: kind as u8,
            group,
            octets,
            copies: located.copies,
        };
        self.put_row(Key::Pack(number).encode(), row.encode());
    }

    /// Where a pack is.
    pub(super) fn located(&self, number: u64) -> Option<Located> {
        let row = self.files.tree().get(&Key::Pack(number).encode()).ok()??;
        let row = PackRow::decode(&row).ok()?;
        Some(Located {
            id: row.mail,
            copies: row.copies,
        })
    }
}
