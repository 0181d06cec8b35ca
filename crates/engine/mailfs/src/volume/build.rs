//! The making of a commit: rows, and content that is short.

use std::collections::{BTreeMap, BTreeSet};
use std::{io, iter};

use bytes::Bytes;
use vere_ports::files::{CallId, Errno, Inode, Reply};
use vere_ports::storage::Storage;

use super::calls::is_extents;
use super::dedup::SHARED_MIN;
use super::job::Unpacked;
use super::record::{Begun, Part};
use super::state::Volume;
use super::state::commits::{Flight, Snapshot, Want};
use super::state::division::divide;
use super::step::Notice;
use crate::breakage::{Breakage, is_broken};
use crate::format::commit::{Checkpoint, Record, RecordKind, RowChange};
use crate::format::{
    Builder, ChunkId, Codec, FormatError, Index, Kind, MailId, PackNumber, Sealed, Subject, mail,
};
use crate::rows::{Extent, Key};

impl<S: Storage> Volume<S> {
    /// Builds a commit with every row changed since the last one, and sends it; or several, if one has no room for all the rows.
    pub(super) fn build(
        &mut self,
        inline: &BTreeSet<Inode>,
        snapshots: &BTreeMap<Inode, Snapshot>,
        waiters: Vec<(CallId, Reply)>,
    ) {
        let calls: Vec<CallId> = waiters.iter().map(|(call, _)| *call).collect();
        if let Err(error) = self.try_build(inline, snapshots, waiters) {
            self.fail(Notice::Journal(error.to_string()));
            for call in calls {
                self.reply(call, Err(Errno::Io));
            }
        }
    }

    fn try_build(
        &mut self,
        inline: &BTreeSet<Inode>,
        snapshots: &BTreeMap<Inode, Snapshot>,
        waiters: Vec<(CallId, Reply)>,
    ) -> Result<(), BuildError> {
        let number = self.next_pack();
        let seals = self.seals.clone();
        let mut builder = Builder::new(Kind::Commit, seals.volume, seals.epoch, 0, number);
        let (index, pinned, names) = self.add_contents(inline, &mut builder, number)?;
        for inode in self.commits.changed.keys().copied().collect::<Vec<_>>() {
            self.adopt_placed(inode);
        }
        let has_content = !index.entries.is_empty();
        let mut from = self.commits.pending_from.unwrap_or(self.journal.position());
        let included = self.include_contents(snapshots, &mut from);
        let rows = self.take_rows();
        let is_partial = !self.commits.pending.is_empty();
        if is_partial {
            self.commits.included.extend(&included);
        }
        let merged = match is_partial {
            true => Vec::new(),
            false => self.commits.take_abandoned(),
        };
        let record = Record {
            index,
            ..self.record(RecordKind::Change, rows, merged)
        };
        let sealed: Sealed = builder.finish(record.encode()?.into(), &seals.keys)?;
        let id = sealed.mail_id();
        let begun = if is_partial {
            self.note_to_send(&[Part::Partial(id)])
        } else {
            self.note_begun(id, record.parent, &record.rows)
        };
        let subject = Subject::of(&sealed.head, Some(record.parent), Some(record.generation));
        let (date, encoding) = (self.now.date(), self.lead_encoding());
        let mail = mail::wrap(&subject, date, encoding, &sealed.body);
        self.commits.pending_from = is_partial.then_some(from);
        self.commits.pending_octets = 0;
        let waits = is_partial || !self.commits.changed.is_empty();
        self.commits.since = waits.then_some(self.now.steady);
        let mut flight = Flight {
            number,
            id,
            octets: u32::try_from(sealed.body.len()).unwrap_or(u32::MAX),
            has_content,
            from,
            waiters: Vec::new(),
            pinned,
            names,
            checkpoint: record.checkpoint.map(|checkpoint| checkpoint.covers),
            rows: record.rows,
            merged: record.merged,
            adopts: false,
            is_partial,
            included: match is_partial {
                true => included,
                false => self.commits.included.clone(),
            },
        };
        if let Err(error) = begun {
            // The commit is never sent. The content can be read until the next mount, and that mount has the content from the
            // journal.
            self.commits.strays.push(flight);
            return Err(error.into());
        }
        self.attach(&mut flight, inline, waiters);
        self.stage_own(id, record.checkpoint, sealed);
        self.commits.flights.push_back(flight);
        self.chain.send(id, mail.into());
        self.advance_chain();
        Ok(())
    }

    /// The record of a commit at the end of the chain, without content.
    fn record(&self, kind: RecordKind, rows: Vec<RowChange>, merged: Vec<MailId>) -> Record {
        let (parent, generation) = self.chain.end();
        Record {
            kind,
            lead_epoch: self.lead_epoch(),
            generation: generation.saturating_add(1),
            parent,
            time: self.now.millis(),
            checkpoint: self.checkpoints.newest(),
            merged,
            ancestors: Vec::new(),
            rows,
            index: Index::default(),
        }
    }

    /// Has callers wait for a commit with these contents, or for the last of several.
    fn attach(
        &mut self,
        flight: &mut Flight,
        inline: &BTreeSet<Inode>,
        waiters: Vec<(CallId, Reply)>,
    ) {
        // Nobody is told of content on servers before the content is there; the next flush has another try.
        let is_missing = |inode: &Inode| self.files.unsent_octets_of(*inode) > 0;
        if inline.iter().any(is_missing) {
            for (call, _) in waiters {
                self.reply(call, Err(Errno::Io));
            }
        } else if flight.is_partial {
            self.commits.wants.push(Want::of(BTreeSet::new(), waiters));
        } else {
            flight.waiters = waiters;
        }
    }

    /// Has the local disk keep a commit of this mount as soon as the commit is in the chain.
    fn stage_own(&mut self, id: MailId, checkpoint: Option<Checkpoint>, sealed: Sealed) {
        let covered = checkpoint.map_or(0, |of| of.covered_uid);
        self.memory.stage(id, covered, sealed.body.into());
    }

    /// Sends a commit with changes of other mounts only.
    pub(super) fn send_adoption(
        &mut self,
        merged: Vec<MailId>,
        rows: Vec<RowChange>,
    ) -> Result<(), String> {
        let number = self.next_pack();
        let seals = self.seals.clone();
        let builder = Builder::new(Kind::Commit, seals.volume, seals.epoch, 0, number);
        let record = self.record(RecordKind::Merge, rows, merged);
        let octets = record.encode().map_err(|error| error.to_string())?;
        let sealed = builder.finish(octets.into(), &seals.keys);
        let sealed: Sealed = sealed.map_err(|error| error.to_string())?;
        let id = sealed.mail_id();
        let noted = self.note_to_send(&[Part::Adopts(id)]);
        noted.map_err(|error| error.to_string())?;
        let subject = Subject::of(&sealed.head, Some(record.parent), Some(record.generation));
        let mail = mail::wrap(
            &subject,
            self.now.date(),
            self.lead_encoding(),
            &sealed.body,
        );
        let octets = u32::try_from(sealed.body.len()).unwrap_or(u32::MAX);
        self.stage_own(id, record.checkpoint, sealed);
        self.commits.flights.push_back(Flight {
            number,
            id,
            octets,
            has_content: false,
            from: self.journal.position(),
            waiters: Vec::new(),
            pinned: Vec::new(),
            names: Vec::new(),
            checkpoint: record.checkpoint.map(|checkpoint| checkpoint.covers),
            rows: record.rows,
            merged: record.merged,
            adopts: true,
            is_partial: false,
            included: BTreeSet::new(),
        });
        self.chain.send(id, mail.into());
        self.advance_chain();
        Ok(())
    }

    /// Puts short contents into the commit itself.
    fn add_contents(
        &mut self,
        inodes: &BTreeSet<Inode>,
        builder: &mut Builder,
        number: PackNumber,
    ) -> Result<Contents, FormatError> {
        let mut index = Index::default();
        let (mut pinned, mut names) = (Vec::new(), Vec::new());
        for cut in inodes
            .iter()
            .flat_map(|inode| self.cut(*inode, false))
            .collect::<Vec<_>>()
        {
            let unpacked: Unpacked = self.buffers().gather(&cut);
            let plain = unpacked.joined();
            let name = self.seals.keys.chunk_id(&plain);
            let is_long = plain.len() >= SHARED_MIN;
            if let Some(extent) = is_long
                .then(|| self.known_chunk(name, plain.len()))
                .flatten()
            {
                self.local.shares(plain.len());
                self.place(&cut, extent);
                continue;
            }
            let place = builder.push(Codec::Plain, plain.clone())?;
            index.entries.push(unpacked.entry(name, place));
            let extent = Extent {
                pack: number,
                at: place.at,
                sealed_len: place.sealed_len,
            };
            self.place(&cut, extent);
            if is_long {
                names.push((name, plain.len(), extent));
            }
            pinned.push((extent, plain));
        }
        Ok((index, pinned, names))
    }

    /// Notes in the journal the commit's share of the journal.
    fn note_begun(&mut self, commit: MailId, parent: MailId, rows: &[RowChange]) -> io::Result<()> {
        let exceptions = self.commits.changed.iter();
        let begun = Begun {
            commit,
            parent,
            through: self.journal.position(),
            exceptions: exceptions.map(|(inode, since)| (inode.0, *since)).collect(),
        };
        let bases = self.bases_of_exceptions(rows);
        let parts: Vec<Part> = iter::once(Part::Begun(begun)).chain(bases).collect();
        self.note_to_send(&parts)
    }

    /// What the journal is told of a partial commit in the chain: the changes are void, since a replay begins before the commit, and
    /// other mounts may change the rows next.
    pub(super) fn voids(&mut self, flight: &Flight, rows: &[RowChange]) -> Vec<Part> {
        if !flight.is_partial {
            self.commits.has_all(&flight.included);
            return Vec::new();
        }
        if is_broken(Breakage::PartsReplayed) {
            return Vec::new();
        }
        let files = self.commits.take_settled().into_iter();
        let files = files.map(|inode| Part::Moved(inode, None));
        let rows = self.commits.settled(rows);
        let rows = rows.filter(|key| !is_extents(key));
        let rows = rows.map(|key| Part::Drop(key.to_vec()));
        files.chain(rows).collect()
    }

    /// Has the journal know of a commit before the commit is sent.
    fn note_to_send(&mut self, parts: &[Part]) -> io::Result<()> {
        self.journal.append(parts)?;
        if is_broken(Breakage::BegunUnsynced) {
            return Ok(());
        }
        // A commit in the log whose beginning a power cut takes away would look like another mount's.
        self.sync_to_send()
    }

    /// Has the rows of files say what is placed: the whole content where all of it is, else the content of a snapshot. Returns the
    /// files with the whole content.
    fn include_contents(
        &mut self,
        snapshots: &BTreeMap<Inode, Snapshot>,
        from: &mut u64,
    ) -> BTreeSet<Inode> {
        let mut included = BTreeSet::new();
        for (inode, since) in self.commits.changed.clone() {
            let snapshot = snapshots
                .get(&inode)
                // A snapshot from before the newest commit's content would take the file back.
                .filter(|snapshot| snapshot.since > since);
            if self.files.unsent_octets_of(inode) == 0 {
                self.commits.forget(inode);
                included.insert(inode);
            } else if let Some(snapshot) = snapshot
                && let Some(pieces) = self.buffers().resolve(&snapshot.pieces)
            {
                if let Err(error) = self.files.store_snapshot(inode, &pieces, snapshot.size) {
                    self.fail(Notice::Rows(error));
                }
                self.collect_rows();
                self.commits.included(inode, snapshot.since);
            } else {
                continue;
            }
            *from = (*from).min(since);
            // The row may have been in a commit with an earlier size.
            self.commits.quietly(Key::Inode(inode).encode());
        }
        included
    }

    /// Octets shared by two files, after a copy, are placed with the source's octets.
    pub(super) fn adopt_placed(&mut self, inode: Inode) {
        let placed = self.buffers().placed(inode);
        if let Err(error) = self.files.place_copies(inode, &placed) {
            self.fail(Notice::Rows(error));
        }
        self.collect_rows();
    }

    /// The value of a row as of the last commit that has the row: one on the way, or one of the chain.
    fn sent(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut flights = self.commits.flights.iter().rev();
        match flights.find_map(|flight| flight.row(key)) {
            Some(row) => row.value.clone(),
            None => self.files.tree().in_chain(key).ok()?.map(Vec::from),
        }
    }

    /// The rows of the commit: every changed row of the present, and inodes with the size known to the servers. Rows beyond the
    /// room of a commit wait for the next one.
    fn take_rows(&mut self) -> Vec<RowChange> {
        let pending = std::mem::take(&mut self.commits.pending);
        self.commits.based.clear();
        let mut rows = Vec::with_capacity(pending.len());
        for key in pending {
            let value = match Key::decode(&key) {
                Ok(Key::Inode(inode)) if self.commits.changed.contains_key(&inode) => self
                    .files
                    .sent_inode_row(inode)
                    .map(|row| row.map(|row| row.encode())),
                _ => self
                    .files
                    .tree()
                    .get(&key)
                    .map(|value| value.map(Vec::from)),
            };
            match value {
                Ok(value) => rows.push(RowChange { key, value }),
                Err(error) => self.fail(Notice::Rows(error)),
            }
        }
        let (rows, rest) = divide(rows, self.terms.rows_max, |key| self.sent(key));
        self.commits.pending = rest.into_iter().collect();
        rows
    }
}

/// The index of a commit's chunks, the chunks, and their ids and lengths.
type Contents = (Index, Vec<(Extent, Bytes)>, Vec<(ChunkId, usize, Extent)>);

/// Why a commit cannot be made.
#[derive(Debug, thiserror::Error)]
enum BuildError {
    #[error("the commit is refused by its own format: {0}")]
    Format(#[from] FormatError),
    #[error("the journal cannot be written: {0}")]
    Journal(#[from] std::io::Error),
}
