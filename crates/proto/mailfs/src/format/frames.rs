//! Frames: content sealed for a mail, at offsets known before sealing.
//!
//! ```text
//! frame    0  sealed length u32, with the tag of 16
//!          4  sealed: codec u8 (0 plain, 1 zstd) | content
//! mail id  BLAKE3 keyed("mail id") over the head's octets 0..64 with zeros as mail id, then for each frame:
//!          sealed length u32 | codec u8 | content; cut to 16 octets
//! nonce    offset of the frame in the decoded body u64 | 0 (16)
//! associated data: the head's octets 0..64 | offset of the frame u32
//! ```
//!
//! A mail id is bound to the content, and the key of a mail to its id: so a nonce needs no random source, and a retry yields
//! equal octets.

use bytes::{Buf as _, Bytes, BytesMut};

use super::bounds::{CONTENT_OCTETS_MAX, FRAME_OCTETS_MAX, FRAMES_MAX, MAIL_OCTETS_MAX};
use super::codec::{Codec, unpack};
use super::error::FormatError;
use super::head::{COVERED, HEAD_OCTETS, Head, Kind};
use super::ids::{MailId, PackNumber, VolumeId};
use super::keys::{EpochKeys, Keys, cut};
use super::seal::{TAG, seal, unseal};
use super::wire::{Reader, within};

/// Octets of a frame's length.
const LENGTH: usize = 4;
/// Octets of a frame besides its content.
pub const FRAME_OVERHEAD: usize = LENGTH + 1 + TAG;
/// The shortest sealed length: a codec and a tag.
const SEALED_MIN: usize = 1 + TAG;
/// Octets of associated data.
const ASSOCIATED: usize = COVERED + LENGTH;

/// Where a frame lies in a decoded body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The offset of the frame's length.
    pub at: u32,
    /// The sealed length, as the frame says: octets behind the length.
    pub sealed_len: u32,
}

impl Place {
    /// Octets of the whole frame, with its length.
    #[must_use]
    pub const fn octets(self) -> u32 {
        self.sealed_len.saturating_add(4)
    }
}

/// Collects the frames of a mail.
#[derive(Debug)]
pub struct Builder {
    head: Head,
    frames: Vec<Pending>,
    /// Octets of head and frames.
    octets: usize,
    /// Octets of content before compression.
    content: usize,
}

#[derive(Debug)]
struct Pending {
    place: Place,
    codec: u8,
    packed: Bytes,
}

/// A mail's body, decoded form, ready to be encoded for an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The head.
    pub head: Head,
    /// Head and frames.
    pub body: Vec<u8>,
    /// The frames, the last one included.
    pub places: Vec<Place>,
}

impl Sealed {
    /// The id of the mail.
    #[must_use]
    pub const fn mail_id(&self) -> MailId {
        self.head.mail
    }
}

impl Builder {
    /// Begins a mail. Mails of kind [`Kind::Slot`] have no frames and are made by [`super::slot`].
    #[must_use]
    pub const fn new(
        kind: Kind,
        volume: VolumeId,
        epoch: u16,
        group: u16,
        pack: PackNumber,
    ) -> Self {
        Self {
            head: Head {
                kind,
                volume,
                mail: MailId::NONE,
                epoch,
                group,
                frames: 0,
                last_sealed_len: 0,
                pack,
            },
            frames: Vec::new(),
            octets: HEAD_OCTETS,
            content: 0,
        }
    }

    /// Octets of the body so far.
    #[must_use]
    pub const fn octets(&self) -> usize {
        self.octets
    }

    /// Frames so far.
    #[must_use]
    pub const fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Adds a frame. The place holds from now on, so that the last frame can name it.
    ///
    /// # Errors
    ///
    /// If the frame, or the mail with the frame, would be beyond a bound; the builder is unchanged then.
    pub fn push(&mut self, codec: Codec, content: Bytes) -> Result<Place, FormatError> {
        let count = self.frames.len().saturating_add(1);
        within("frames of a mail", count, FRAMES_MAX)?;
        within("octets of content", content.len(), FRAME_OCTETS_MAX)?;
        let all = self.content.saturating_add(content.len());
        within("octets of content of a mail", all, CONTENT_OCTETS_MAX)?;
        let (codec, packed) = codec.pack(content);
        let whole = packed.len().saturating_add(FRAME_OVERHEAD);
        let end = self.octets.saturating_add(whole);
        within("octets of a mail", end, MAIL_OCTETS_MAX)?;
        let place = Place {
            at: narrow(self.octets),
            sealed_len: narrow(whole.saturating_sub(LENGTH)),
        };
        (self.octets, self.content) = (end, all);
        self.frames.push(Pending {
            place,
            codec,
            packed,
        });
        Ok(place)
    }

    /// Adds the last frame, a commit record or an index, and seals the mail. Records, pages' indexes and facts are compressed,
    /// indexes of data packs are not.
    ///
    /// # Errors
    ///
    /// If the last frame is beyond a bound, the kind has no frames, or the keys lack the epoch.
    pub fn finish(mut self, last_frame: Bytes, keys: &Keys) -> Result<Sealed, FormatError> {
        let codec = match self.head.kind {
            Kind::Volume | Kind::Commit | Kind::Pages => Codec::Zstd,
            Kind::Slot | Kind::Data | Kind::Probe => Codec::Plain,
        };
        let last = self.push(codec, last_frame)?;
        self.head.frames = narrow(self.frames.len());
        self.head.last_sealed_len = last.sealed_len;
        self.head.mail = self.mail_id(keys.of(self.head.epoch)?);
        let key = frame_key(keys, &self.head)?;
        let covered = self.head.covered();
        let mut body = Vec::with_capacity(self.octets);
        body.extend_from_slice(&self.head.encode());
        for frame in &self.frames {
            let at = frame.place.at;
            body.extend_from_slice(&frame.place.sealed_len.to_le_bytes());
            let from = body.len();
            body.push(frame.codec);
            body.extend_from_slice(&frame.packed);
            let octets = body.get_mut(from..).unwrap_or_default();
            let tag = seal(&key, &nonce(at), &associated(&covered, at), octets);
            body.extend_from_slice(&tag.ok_or(refused(at))?);
        }
        Ok(Sealed {
            head: self.head,
            body,
            places: self.frames.iter().map(|frame| frame.place).collect(),
        })
    }

    fn mail_id(&self, keys: &EpochKeys) -> MailId {
        let mut id = IdHasher::new(keys, &self.head);
        for frame in &self.frames {
            id.frame(frame.place, &[frame.codec], &frame.packed);
        }
        id.finish()
    }
}

/// A verified mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The head.
    pub head: Head,
    /// The frames in order, at least the last one.
    pub frames: Vec<(Place, Bytes)>,
}

impl Opened {
    /// The content of the last frame: a commit record, an index, or the facts of a volume.
    #[must_use]
    pub fn last(&self) -> &[u8] {
        self.frames.last().map_or(&[], |(_, content)| content)
    }
}

/// Opens a whole body and verifies every octet: the seals of all frames, and the mail id.
///
/// # Errors
///
/// If the body is no mail with frames, is another mail than expected, was changed, or has another key.
pub fn open(body: &[u8], keys: &Keys, expect: Option<MailId>) -> Result<Opened, FormatError> {
    within("octets of a mail", body.len(), MAIL_OCTETS_MAX)?;
    let head = Head::decode(body)?;
    expected(&head, expect.unwrap_or(head.mail))?;
    let key = frame_key(keys, &head)?;
    let places = places(body, &head)?;
    let covered = head.covered();
    let mut id = IdHasher::new(keys.of(head.epoch)?, &head);
    let mut sealed = Vec::with_capacity(places.len());
    for place in places {
        let plain = unseal_frame(body, place, &key, &covered)?;
        id.frame(place, &plain, &[]);
        sealed.push((place, plain));
    }
    expected(&head, id.finish())?;
    let mut room = CONTENT_OCTETS_MAX;
    let mut frames = Vec::with_capacity(sealed.len());
    for (place, plain) in sealed {
        let content = content(plain.freeze(), room)?;
        room = room.saturating_sub(content.len());
        frames.push((place, content));
    }
    Ok(Opened { head, frames })
}

/// Opens a frame that was read alone, with the head of its mail: `frame` begins with the length, and lies at `at` of the
/// decoded body.
///
/// # Errors
///
/// If the head is that of another mail, the frame was changed or lies elsewhere, or has another key.
pub fn open_frame(
    head: &[u8],
    frame: &[u8],
    at: u32,
    keys: &Keys,
    expect: MailId,
) -> Result<Bytes, FormatError> {
    open_frame_in_place(head, frame.into(), at, keys, expect)
}

/// As [`open_frame`], for octets that nobody else needs: the content lies where the sealed octets were.
///
/// # Errors
///
/// As [`open_frame`].
pub fn open_frame_in_place(
    head: &[u8],
    frame: BytesMut,
    at: u32,
    keys: &Keys,
    expect: MailId,
) -> Result<Bytes, FormatError> {
    let head = Head::decode(head)?;
    expected(&head, expect)?;
    let key = frame_key(keys, &head)?;
    let mut reader = Reader::new("frame", &frame);
    let sealed_len = reader.u32()?;
    if reader.left() as u64 != u64::from(sealed_len) {
        return Err(FormatError::Differs {
            what: "octets of a frame",
            expected: sealed_len.into(),
            found: reader.left() as u64,
        });
    }
    let place = Place { at, sealed_len };
    check_length(place)?;
    let mut sealed = frame;
    sealed.advance(LENGTH);
    unseal_octets(&mut sealed, place, &key, &head.covered())?;
    content(sealed.freeze(), FRAME_OCTETS_MAX)
}

/// The places of all frames, which must fill the body.
fn places(body: &[u8], head: &Head) -> Result<Vec<Place>, FormatError> {
    let mut reader = Reader::new("frames of a mail", body);
    reader.octets(HEAD_OCTETS)?;
    let mut places = Vec::new();
    for _ in 0..head.frames {
        let at = narrow(body.len().saturating_sub(reader.left()));
        let sealed_len = reader.u32()?;
        let place = Place { at, sealed_len };
        reader.octets(check_length(place)?)?;
        places.push(place);
    }
    reader.end()?;
    let found = places.last().map_or(0, |place| place.sealed_len);
    if places.is_empty() || found != head.last_sealed_len {
        return Err(FormatError::Differs {
            what: "sealed length of the last frame",
            expected: head.last_sealed_len.into(),
            found: found.into(),
        });
    }
    Ok(places)
}

fn check_length(place: Place) -> Result<usize, FormatError> {
    let len = usize::try_from(place.sealed_len).unwrap_or(usize::MAX);
    let max = FRAME_OCTETS_MAX.saturating_add(SEALED_MIN);
    within("sealed length of a frame", len, max)?;
    if len < SEALED_MIN {
        return Err(FormatError::Below {
            what: "sealed length of a frame",
            min: SEALED_MIN as u64,
            found: len as u64,
        });
    }
    Ok(len)
}

fn unseal_frame(
    body: &[u8],
    place: Place,
    key: &[u8; 32],
    covered: &[u8; COVERED],
) -> Result<BytesMut, FormatError> {
    let frame = body.get(place.at as usize..).unwrap_or_default();
    let mut reader = Reader::new("frame", frame);
    reader.octets(LENGTH)?;
    let mut sealed = BytesMut::from(reader.octets(place.sealed_len as usize)?);
    unseal_octets(&mut sealed, place, key, covered)?;
    Ok(sealed)
}

/// Turns sealed octets into codec and content.
fn unseal_octets(
    sealed: &mut BytesMut,
    place: Place,
    key: &[u8; 32],
    covered: &[u8; COVERED],
) -> Result<(), FormatError> {
    let associated = associated(covered, place.at);
    let plain = unseal(key, &nonce(place.at), &associated, sealed);
    let len = plain.ok_or(refused(place.at))?.len();
    sealed.truncate(len);
    Ok(())
}

fn content(plain: Bytes, room: usize) -> Result<Bytes, FormatError> {
    let mut packed = plain;
    let codec = packed.split_to(packed.len().min(1));
    unpack(codec.first().copied().unwrap_or(u8::MAX), &packed, room)
}

fn expected(head: &Head, expected: MailId) -> Result<(), FormatError> {
    if head.mail == expected {
        return Ok(());
    }
    Err(FormatError::Mail {
        expected,
        found: head.mail,
    })
}

fn frame_key(keys: &Keys, head: &Head) -> Result<[u8; 32], FormatError> {
    let key = keys.of(head.epoch)?.mail_key(head.kind, head.mail);
    key.ok_or(FormatError::Unknown {
        what: "kind of mail",
        expected: "a kind with frames",
        found: head.kind as u64,
    })
}

const fn refused(at: u32) -> FormatError {
    FormatError::Seal { what: "frame", at }
}

/// Hashes what a mail id is bound to.
struct IdHasher(blake3::Hasher);

impl IdHasher {
    fn new(keys: &EpochKeys, head: &Head) -> Self {
        let unnamed = Head {
            mail: MailId::NONE,
            ..*head
        };
        let mut hasher = blake3::Hasher::new_keyed(keys.mail_id());
        hasher.update(&unnamed.covered());
        Self(hasher)
    }

    /// A frame's codec and content, in two pieces as the caller has them.
    fn frame(&mut self, place: Place, first: &[u8], second: &[u8]) {
        self.0.update(&place.sealed_len.to_le_bytes());
        self.0.update(first);
        self.0.update(second);
    }

    fn finish(self) -> MailId {
        MailId(cut(&self.0.finalize()))
    }
}

fn nonce(at: u32) -> [u8; 24] {
    let mut nonce = [0; 24];
    let at = at.to_le_bytes();
    nonce.iter_mut().zip(at).for_each(|(to, from)| *to = from);
    nonce
}

fn associated(covered: &[u8; COVERED], at: u32) -> [u8; ASSOCIATED] {
    let mut octets = [0; ASSOCIATED];
    let source = covered.iter().copied().chain(at.to_le_bytes());
    octets
        .iter_mut()
        .zip(source)
        .for_each(|(to, from)| *to = from);
    octets
}

/// A number below [`MAIL_OCTETS_MAX`].
fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
