//! Uploads: written octets become chunks, chunks become packs, and packs go to a group of accounts.

use super::accounts::{FIRST_DATA_MAILBOX, mailbox_name};
use super::job::{Job, PackJob, Packed, Task, Unpacked};
use super::packs::{Fate, FateRange, Located};
use super::state::uploads::{CHUNK_MAX, CHUNKS_MAX, Cut, PACK_MAX, Upload};
use super::state::{Asked, Volume, Working};
use super::step::{Moment, Notice};
use crate::content::{Source, UnsentId};
use crate::format::subject::id_word;
use crate::format::{FormatError, Kind, MailCopy, PackNumber, Place};
use crate::rows::{Extent, Key, PackRow, RowValue};
use hashbrown::HashSet;
use std::mem;
use vere_ports::files::Inode;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// Chunks of all written octets of a file that are neither sent nor on their way; `whole_only` leaves an end that may grow.
    pub(super) fn cut(&self, inode: Inode, whole_only: bool) -> Vec<Cut> {
        let mut cuts: Vec<Cut> = Vec::new();
        for run in self.files.unsent_of(inode) {
            let mut at = run.offset;
            let mut continues = false;
            for piece in run.pieces {
                let Source::Unsent { id, skip } = piece.source else {
                    continue;
                };
                for (skip, length, fate) in self.fates.of(id.0, skip, piece.length) {
                    if fate.is_none() {
                        add(&mut cuts, inode, continues, at, (id.0, skip, length));
                    }
                    continues = fate.is_none();
                    at = at.saturating_add(length.into());
                }
            }
        }
        if whole_only {
            cuts.retain(|cut| cut.octets() >= CHUNK_MAX);
        }
        cuts
    }

    /// The packs on which written octets of a file wait.
    pub(super) fn sending(&self, inode: Inode) -> HashSet<u64> {
        let mut packs = HashSet::new();
        for piece in self
            .files
            .unsent_of(inode)
            .into_iter()
            .flat_map(|run| run.pieces)
        {
            if let Source::Unsent { id, skip } = piece.source {
                for (_, _, fate) in self.fates.of(id.0, skip, piece.length) {
                    if let Some(Fate::Sending(pack)) = fate {
                        packs.insert(pack);
                    }
                }
            }
        }
        packs
    }

    /// The octets of a chunk.
    pub(super) fn gather(&self, cut: &Cut) -> Unpacked {
        let pieces = cut.ranges.iter().map(|(id, skip, length)| {
            let octets = self.files.unsent().get(UnsentId(*id), *skip, *length);
            octets.unwrap_or_default()
        });
        Unpacked {
            inode: cut.inode.0,
            offset: cut.offset,
            pieces: pieces.collect(),
        }
    }

    /// Sends chunks.
    pub(super) fn upload(&mut self, cuts: Vec<Cut>, urgency: Urgency, now: Moment) {
        let mut pack: Vec<Cut> = Vec::new();
        let mut octets = 0_usize;
        for cut in cuts {
            let length = cut.octets();
            let is_full = octets.saturating_add(length) > PACK_MAX || pack.len() >= CHUNKS_MAX;
            if !pack.is_empty() && is_full {
                self.upload_pack(mem::take(&mut pack), urgency, now);
                octets = 0;
            }
            octets = octets.saturating_add(length);
            pack.push(cut);
        }
        if !pack.is_empty() {
            self.upload_pack(pack, urgency, now);
        }
    }

    fn upload_pack(&mut self, chunks: Vec<Cut>, urgency: Urgency, now: Moment) {
        let unpacked = chunks.iter().map(|cut| self.gather(cut)).collect();
        self.begin_pack(chunks, unpacked, urgency, now);
    }

    fn begin_pack(
        &mut self,
        chunks: Vec<Cut>,
        unpacked: Vec<Unpacked>,
        urgency: Urgency,
        now: Moment,
    ) -> PackNumber {
        let number = self.next_pack();
        for (id, skip, length) in chunks.iter().flat_map(|cut| &cut.ranges) {
            let range = FateRange {
                skip: *skip,
                length: *length,
                fate: Fate::Sending(number.0),
            };
            self.fates.set(*id, range);
        }
        let group = self.accounts.best_group(urgency);
        let octets = chunks.iter().map(Cut::octets).sum();
        let job = PackJob {
            seals: self.seals.clone(),
            pack: number,
            group,
            chunks: unpacked.clone(),
            encodings: self.accounts.encodings(group),
            date: now.date(),
        };
        let upload = Upload {
            chunks,
            unpacked,
            group,
            urgency,
            copies: Vec::new(),
            packed: None,
            doubt: None,
            octets,
        };
        self.uploads.packs.insert(number.0, upload);
        self.accounts.group_begins(group, octets);
        self.work(Job(Task::Pack(job)), Working::Pack(number));
        number
    }

    /// A pack whose group rests goes to another group under another number. The first group may have it all the same: an orphan.
    fn reroute(&mut self, number: PackNumber) {
        let Some(upload) = self.uploads.packs.remove(&number.0) else {
            return;
        };
        self.accounts.group_ends(upload.group, upload.octets);
        let Upload {
            chunks,
            unpacked,
            urgency,
            ..
        } = upload;
        let other = self.begin_pack(chunks, unpacked, urgency, self.now);
        self.commits.renumber(number, other);
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
        let Some(upload) = self.uploads.packs.get(&number.0) else {
            return;
        };
        let Some(packed) = &upload.packed else {
            return;
        };
        let doubtful = upload
            .doubt
            .filter(|account| self.accounts.may_try(*account));
        // A copy at an account that rests is made good later, and is a duplicate if the account has one already.
        let urgency = upload.urgency;
        let best = || {
            let accounts = &self.accounts;
            accounts.best_member(upload.group, &upload.copies, urgency)
        };
        let Some(account) = doubtful.or_else(best) else {
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
        self.ask(
            AccountId(account),
            urgency,
            request,
            Asked::Pack(number, account),
        );
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
                self.account_failed(account, &fault);
            }
        }
        self.send_pack(number);
    }

    /// A copy of a pack is stored: with enough copies, the pack's chunks are placed; further ones follow behind.
    fn pack_is_at(&mut self, number: PackNumber, account: u16, uid_validity: u32, uid: u32) {
        self.numbered(account, FIRST_DATA_MAILBOX, uid_validity);
        let Some(upload) = self.uploads.packs.get_mut(&number.0) else {
            return;
        };
        upload.doubt = None;
        let octets = upload.packed.as_ref().map_or(0, |packed| packed.octets);
        let mailbox = FIRST_DATA_MAILBOX;
        upload.copies.push(MailCopy {
            account,
            mailbox,
            uid,
        });
        let copies = upload.copies.len();
        let members = self.accounts.members(upload.group);
        self.takes_room(account, octets);
        if copies < self.terms.sync_copies.clamp(1, members.len().max(1)) {
            self.send_pack(number);
            return;
        }
        self.speed.add(self.now.steady, octets.into());
        let Some(upload) = self.uploads.packs.remove(&number.0) else {
            return;
        };
        self.accounts.group_ends(upload.group, upload.octets);
        let Some(packed) = upload.packed else {
            return;
        };
        for member in members {
            if upload.copies.iter().all(|copy| copy.account != member) {
                self.send_copy(number, member, &packed);
            }
        }
        let located = Located {
            id: packed.id,
            copies: upload.copies,
        };
        self.locate(number.0, located, (Kind::Data, upload.group, packed.octets));
        for (cut, place) in upload.chunks.iter().zip(&packed.places) {
            let Place { at, sealed_len } = *place;
            self.place(
                cut,
                Extent {
                    pack: number,
                    at,
                    sealed_len,
                },
            );
        }
        self.pack_stored(number);
        self.upload_more();
        self.resume_blocked();
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

/// Adds a range to the last chunk if the range continues the chunk and has room, else to new chunks.
fn add(cuts: &mut Vec<Cut>, inode: Inode, continues: bool, offset: u64, range: (u64, u32, u32)) {
    let (id, mut skip, mut length) = range;
    let mut offset = offset;
    let mut continues = continues;
    while length > 0 {
        let used = cuts
            .last()
            .filter(|_| continues)
            .map_or(CHUNK_MAX, Cut::octets);
        let room = u32::try_from(CHUNK_MAX.saturating_sub(used)).unwrap_or(0);
        let room = if room == 0 {
            u32::try_from(CHUNK_MAX).unwrap_or(u32::MAX)
        } else {
            room
        };
        let taken = length.min(room);
        match cuts.last_mut() {
            Some(last) if used < CHUNK_MAX => last.ranges.push((id, skip, taken)),
            _ => cuts.push(Cut {
                inode,
                offset,
                ranges: vec![(id, skip, taken)],
            }),
        }
        skip = skip.saturating_add(taken);
        length = length.saturating_sub(taken);
        offset = offset.saturating_add(taken.into());
        continues = true;
    }
}
