//! Work without state, for any thread: sealing and encoding packs, opening chunks.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use vere_ports::mail_accounts::Part;
use vere_units::Timestamp;

use crate::format::commit::Record;
use crate::format::slot::Slot;
use crate::format::{
    Builder, ChunkId, Codec, Encoding, FormatError, HEAD_OCTETS, Head, Index, IndexEntry, Keys,
    Kind, Locator, MailId, PackNumber, Place, Subject, VolumeId, mail, open, open_frame_in_place,
};
use crate::mirror::MirrorJob;
use vere_keep::keep_job::{CachedJob, KeepJob, Kept, Opened};

const HEAD_LEN: u32 = HEAD_OCTETS as u32;

/// Names a job until its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// A job.
#[derive(Debug)]
pub struct Job(pub Task);

/// What a job does.
#[derive(Debug)]
pub enum Task {
    /// Gives the chunks of a pack their ids.
    Name(NameJob),
    /// Makes the mails of a pack.
    Pack(PackJob),
    /// Opens a chunk.
    Open(OpenJob),
    /// Opens a chunk of the local disk.
    Cached(CachedJob),
    /// Has the local disk keep a chunk.
    Keep(KeepJob),
    /// Makes a pack's mail for another account.
    Copy(CopyJob),
    /// Makes the mail of a commit or of pages for another account.
    Mirror(MirrorJob),
    /// Verifies a whole mail.
    Inspect(InspectJob),
}

/// The end of a job.
#[derive(Debug)]
pub struct JobResult(pub Done);

/// What a job has done.
#[derive(Debug)]
pub enum Done {
    /// The ids of chunks, in order.
    Named(Vec<ChunkId>),
    /// The mails of a pack.
    Packed(Result<Packed, FormatError>),
    /// A chunk.
    Opened(Result<Opened, FormatError>),
    /// The octets of a chunk of the local disk.
    Cached(Option<Bytes>),
    /// Whether the local disk keeps a chunk.
    Kept(Kept),
    /// A pack's mail for another account.
    Copied(Result<Bytes, FormatError>),
    /// What a mail has.
    Inspected(Result<Inspected, FormatError>),
}

impl Job {
    /// Does the work.
    #[must_use]
    pub fn run(self) -> JobResult {
        JobResult(match self.0 {
            Task::Name(job) => Done::Named(job.run()),
            Task::Pack(job) => Done::Packed(job.run()),
            Task::Open(job) => Done::Opened(job.run()),
            Task::Cached(job) => Done::Cached(job.run()),
            Task::Keep(job) => Done::Kept(job.run()),
            Task::Copy(job) => Done::Copied(job.run()),
            Task::Mirror(job) => Done::Copied(job.run()),
            Task::Inspect(job) => Done::Inspected(job.run()),
        })
    }
}

/// A volume as its mails name it.
#[derive(Debug, Clone)]
pub struct Seals {
    /// The volume.
    pub volume: VolumeId,
    /// The key epoch of new mails.
    pub epoch: u16,
    /// The keys.
    pub keys: Arc<Keys>,
}

/// Chunks that may be on accounts already.
#[derive(Debug)]
pub struct NameJob {
    /// The keys.
    pub keys: Arc<Keys>,
    /// The chunks.
    pub chunks: Vec<Unpacked>,
}

impl NameJob {
    fn run(self) -> Vec<ChunkId> {
        let chunks = self.chunks.iter();
        let names = chunks.map(|chunk| self.keys.chunk_id(&chunk.joined()));
        names.collect()
    }
}

/// Chunks to be packed into a mail.
#[derive(Debug)]
pub struct PackJob {
    /// The volume.
    pub seals: Seals,
    /// The number of the pack.
    pub pack: PackNumber,
    /// The group.
    pub group: u16,
    /// The chunks.
    pub chunks: Vec<Unpacked>,
    /// The ids of the chunks, in their order.
    pub names: Vec<ChunkId>,
    /// The encodings of the group's accounts.
    pub encodings: Vec<Encoding>,
    /// The date of the mails.
    pub date: Timestamp,
}

/// Octets of a file that become a chunk.
#[derive(Debug, Clone)]
pub struct Unpacked {
    /// The inode of the file.
    pub inode: u64,
    /// The offset in the file.
    pub offset: u64,
    /// The octets, in order.
    pub pieces: Vec<Bytes>,
}

impl Unpacked {
    /// The number of octets.
    #[must_use]
    pub fn octets(&self) -> usize {
        let lengths = self.pieces.iter().map(Bytes::len);
        lengths.fold(0, usize::saturating_add)
    }

    /// The octets in a single buffer.
    #[must_use]
    pub fn joined(&self) -> Bytes {
        match self.pieces.as_slice() {
            [piece] => piece.clone(),
            pieces => pieces.concat().into(),
        }
    }

    /// The entry of the chunk in an index.
    #[must_use]
    pub fn entry(&self, chunk: ChunkId, place: Place) -> IndexEntry {
        IndexEntry {
            place,
            chunk,
            inode: self.inode,
            offset: self.offset,
        }
    }
}

/// The mails of a pack.
#[derive(Debug)]
pub struct Packed {
    /// The id of the mail.
    pub id: MailId,
    /// The place of each chunk.
    pub places: Vec<Place>,
    /// Octets before encoding.
    pub octets: u32,
    /// The mail in each encoding.
    pub mails: Vec<(Encoding, Bytes)>,
}

impl PackJob {
    fn run(self) -> Result<Packed, FormatError> {
        let Seals {
            volume,
            epoch,
            keys,
        } = &self.seals;
        let mut builder = Builder::new(Kind::Data, *volume, *epoch, self.group, self.pack);
        let mut index = Index::default();
        let mut places = Vec::new();
        for (chunk, name) in self.chunks.iter().zip(&self.names) {
            let place = builder.push(Codec::Plain, chunk.joined())?;
            index.entries.push(chunk.entry(*name, place));
            places.push(place);
        }
        let sealed = builder.finish(index.encode()?.into(), keys)?;
        let subject = Subject::of(&sealed.head, None, None);
        let octets = u32::try_from(sealed.body.len()).unwrap_or(u32::MAX);
        let mails = self
            .encodings
            .iter()
            .map(|encoding| {
                (
                    *encoding,
                    mail::wrap(&subject, self.date, *encoding, &sealed.body).into(),
                )
            })
            .collect();
        Ok(Packed {
            id: sealed.mail_id(),
            places,
            octets,
            mails,
        })
    }
}

/// A chunk as an account has given it.
#[derive(Debug)]
pub struct OpenJob {
    /// The keys.
    pub keys: Arc<Keys>,
    /// The encoding of the account.
    pub encoding: Encoding,
    /// The mail.
    pub id: MailId,
    /// The place within the mail.
    pub place: Place,
    /// Head and frame, encoded.
    pub parts: [Bytes; 2],
}

impl OpenJob {
    /// The parts of the mail that hold the head and a frame.
    ///
    /// # Errors
    /// When the place is beyond a mail's bounds.
    pub fn parts_of(encoding: Encoding, place: Place) -> Result<Vec<Part>, FormatError> {
        let head = encoding.span(0, HEAD_LEN)?;
        let frame = encoding.span(place.at, place.octets())?;
        Ok(vec![head.part, frame.part])
    }

    /// The decoded head and frame of a page, from the parts of its mail.
    ///
    /// # Errors
    /// When the parts are not those of the place.
    pub fn page_parts(
        encoding: Encoding,
        at: &Locator,
        parts: &[Bytes],
    ) -> Result<(BytesMut, BytesMut), FormatError> {
        let [head, frame] = parts else {
            return Err(FormatError::Differs {
                what: "parts of a mail",
                expected: 2,
                found: parts.len() as u64,
            });
        };
        let octets = at.sealed_len.saturating_add(4);
        let head = encoding.decode_part(&encoding.span(0, HEAD_LEN)?, head)?;
        let frame = encoding.decode_part(&encoding.span(at.at, octets)?, frame)?;
        Ok((head, frame))
    }

    fn run(self) -> Result<Opened, FormatError> {
        let [head, frame] = &self.parts;
        let span = self.encoding.span(0, HEAD_LEN)?;
        let head = self.encoding.decode_part(&span, head)?;
        let span = self.encoding.span(self.place.at, self.place.octets())?;
        let frame = self.encoding.decode_part(&span, frame)?;
        let sealed = Bytes::copy_from_slice(&frame);
        let plain = open_frame_in_place(&head, frame, self.place.at, &self.keys, self.id)?;
        Ok(Opened {
            plain,
            head: head.freeze(),
            frame: sealed,
        })
    }
}

/// A pack as an account has given it, for another account.
#[derive(Debug)]
pub struct CopyJob {
    /// The keys.
    pub keys: Arc<Keys>,
    /// The mail.
    pub id: MailId,
    /// The encoding of the account that has given the mail.
    pub from: Encoding,
    /// The encoding of the other account.
    pub to: Encoding,
    /// The mail as given.
    pub body: Bytes,
    /// The date of the new mail.
    pub date: Timestamp,
}

impl CopyJob {
    /// Opens the whole pack first: a damaged copy must not spread.
    fn run(self) -> Result<Bytes, FormatError> {
        let body = mail::unwrap(&self.body, self.from)?;
        let opened = open(&body, &self.keys, Some(self.id))?;
        let subject = Subject::of(&opened.head, None, None);
        Ok(mail::wrap(&subject, self.date, self.to, &body).into())
    }
}

/// A whole mail as an account has given it, to be compared with its subject.
#[derive(Debug)]
pub struct InspectJob {
    /// The volume.
    pub seals: Seals,
    /// The encoding of the account.
    pub encoding: Encoding,
    /// The subject.
    pub subject: Subject,
    /// The mail as given.
    pub body: Bytes,
}

/// A mail with a true subject.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspected {
    /// Its frames.
    pub places: Vec<Place>,
    /// The commits that a commit names as merged.
    pub merged: Vec<MailId>,
}

impl InspectJob {
    fn check(&self, head: &Head) -> Result<(), FormatError> {
        self.subject.check(head)?;
        if head.volume != self.seals.volume {
            return Err(FormatError::Form {
                what: "volume of the head",
                expected: "this volume",
            });
        }
        Ok(())
    }

    fn run(self) -> Result<Inspected, FormatError> {
        let body = mail::unwrap(&self.body, self.encoding)?;
        if self.subject.kind == Kind::Slot {
            // A slot has no frames, and the mail id is a hash of the octets.
            self.check(&Slot::decode(&body)?.head)?;
            return Ok(Inspected::default());
        }
        let opened = open(&body, &self.seals.keys, Some(self.subject.mail))?;
        self.check(&opened.head)?;
        let mut merged = Vec::new();
        if opened.head.kind == Kind::Commit {
            let record = Record::decode(opened.last())?;
            let parent = self.subject.parent.unwrap_or(MailId::NONE);
            if record.parent != parent {
                return Err(FormatError::Mail {
                    expected: record.parent,
                    found: parent,
                });
            }
            if self.subject.generation != Some(record.generation) {
                return Err(FormatError::Differs {
                    what: "generation of the subject",
                    expected: record.generation,
                    found: self.subject.generation.unwrap_or(0),
                });
            }
            merged = record.merged;
        }
        let places = opened.frames.iter().map(|(place, _)| *place);
        Ok(Inspected {
            places: places.collect(),
            merged,
        })
    }
}
