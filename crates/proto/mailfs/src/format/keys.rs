//! Keys: all keys of an epoch are derived from the volume key, one for each use.

use std::fmt;

use super::error::FormatError;
use super::head::Kind;
use super::ids::{ChunkId, MailId};

/// A key of a volume, for one key epoch.
#[derive(Clone, PartialEq, Eq)]
pub struct VolumeKey(pub [u8; 32]);

impl fmt::Debug for VolumeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VolumeKey([redacted])")
    }
}

/// The keys of a volume: those of the newest epoch seal new mails, and each epoch's own open its mails.
#[derive(Clone)]
pub struct Keys {
    newest: EpochKeys,
    /// The newest epoch; absent where the keys are for mails of any epoch.
    epoch: Option<u16>,
    /// Earlier epochs, newest last.
    earlier: Vec<(u16, EpochKeys)>,
    local: [u8; 32],
    hints: [u8; 32],
}

/// The keys derived from the volume key of an epoch.
#[derive(Clone)]
pub(super) struct EpochKeys {
    mail_id: [u8; 32],
    volume: [u8; 32],
    commit: [u8; 32],
    pages: [u8; 32],
    data: [u8; 32],
    probe: [u8; 32],
    chunk_id: [u8; 32],
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys([redacted])")
    }
}

/// Derives the key of a use.
pub(super) fn derive(use_: &str, material: &[u8]) -> [u8; 32] {
    let mut context = String::from("veredarius mailfs v1 ");
    context.push_str(use_);
    blake3::derive_key(&context, material)
}

/// The first half of a hash.
pub(super) fn cut(hash: &blake3::Hash) -> [u8; 16] {
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

impl Keys {
    /// Derives the keys of a volume key, for mails of any epoch.
    #[must_use]
    pub fn derive(key: &VolumeKey) -> Self {
        Self {
            newest: EpochKeys::derive(key),
            epoch: None,
            earlier: Vec::new(),
            local: derive("local", &key.0),
            hints: derive("hints", &key.0),
        }
    }

    /// Derives the keys of all epochs, given in rising order; absent without an epoch. Files of the state folder stay under the key
    /// of the first epoch, so that a new epoch leaves them readable.
    #[must_use]
    pub fn of_epochs(keys: &[(u16, VolumeKey)]) -> Option<Self> {
        let ((epoch, newest), earlier) = keys.split_last()?;
        let (_, first) = keys.first()?;
        let derived = |(epoch, key): &(u16, VolumeKey)| (*epoch, EpochKeys::derive(key));
        Some(Self {
            newest: EpochKeys::derive(newest),
            epoch: Some(*epoch),
            earlier: earlier.iter().map(derived).collect(),
            local: derive("local", &first.0),
            hints: derive("hints", &first.0),
        })
    }

    /// The keys of an epoch.
    ///
    /// # Errors
    ///
    /// If the epoch is none of these keys.
    pub(super) fn of(&self, epoch: u16) -> Result<&EpochKeys, FormatError> {
        if self.epoch.is_none_or(|newest| newest == epoch) {
            return Ok(&self.newest);
        }
        let mut earlier = self.earlier.iter();
        let found = earlier.find(|(of, _)| *of == epoch);
        found.map(|(_, keys)| keys).ok_or(FormatError::Unknown {
            what: "key epoch",
            expected: "an epoch of the key slot",
            found: epoch.into(),
        })
    }

    /// Whether the keys are those of an epoch too.
    #[must_use]
    pub fn has(&self, epoch: u16) -> bool {
        self.of(epoch).is_ok()
    }

    /// The id of a chunk by its content: equal content has an equal id, and a provider cannot guess the content.
    #[must_use]
    pub fn chunk_id(&self, content: &[u8]) -> ChunkId {
        ChunkId(cut(&blake3::keyed_hash(&self.newest.chunk_id, content)))
    }

    /// The key of files of the state folder.
    #[must_use]
    pub const fn local(&self) -> &[u8; 32] {
        &self.local
    }

    /// The tag of an entry in a table of hints, which tells an entry of this volume from whatever a disk has made of it.
    #[must_use]
    pub fn hint_tag(&self, entry: &[u8]) -> [u8; 8] {
        let hash = blake3::keyed_hash(&self.hints, entry);
        hash.as_bytes().first_chunk().copied().unwrap_or_default()
    }
}

impl EpochKeys {
    fn derive(key: &VolumeKey) -> Self {
        let of = |use_| derive(use_, &key.0);
        Self {
            mail_id: of("mail id"),
            volume: of("volume"),
            commit: of("commit"),
            pages: of("pages"),
            data: of("data"),
            probe: of("probe"),
            chunk_id: of("chunk id"),
        }
    }

    /// The key of the hash that gives mail ids.
    pub(super) const fn mail_id(&self) -> &[u8; 32] {
        &self.mail_id
    }

    /// The key that seals the frames of a mail; absent for slots, which have no frames.
    pub(super) fn mail_key(&self, kind: Kind, mail: MailId) -> Option<[u8; 32]> {
        let key = match kind {
            Kind::Slot => return None,
            Kind::Volume => &self.volume,
            Kind::Commit => &self.commit,
            Kind::Pages => &self.pages,
            Kind::Data => &self.data,
            Kind::Probe => &self.probe,
        };
        Some(*blake3::keyed_hash(key, &mail.0).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_never_print() {
        let key = VolumeKey([0xab; 32]);
        let text = format!("{key:?} {:?}", Keys::derive(&key));
        assert_eq!(text, "VolumeKey([redacted]) Keys([redacted])");
    }

    /// BLAKE3's own `derive_key` with the context of the page.
    #[test]
    fn contexts_are_those_of_the_page() {
        let keys = Keys::derive(&VolumeKey([7; 32]));
        let epoch = keys.of(1).unwrap();
        let of = |context: &str| blake3::derive_key(context, &[7; 32]);
        assert_eq!(epoch.mail_id(), &of("veredarius mailfs v1 mail id"));
        assert_eq!(keys.local(), &of("veredarius mailfs v1 local"));
        let hint = blake3::keyed_hash(&of("veredarius mailfs v1 hints"), b"entry");
        assert_eq!(keys.hint_tag(b"entry"), hint.as_bytes()[..8]);
        let chunk = blake3::keyed_hash(&of("veredarius mailfs v1 chunk id"), b"content");
        assert_eq!(keys.chunk_id(b"content").0, chunk.as_bytes()[..16]);
        let mail = MailId([9; 16]);
        for (kind, name) in [
            (Kind::Volume, "volume"),
            (Kind::Commit, "commit"),
            (Kind::Pages, "pages"),
            (Kind::Data, "data"),
            (Kind::Probe, "probe"),
        ] {
            let of_kind = of(&format!("veredarius mailfs v1 {name}"));
            let expected = blake3::keyed_hash(&of_kind, &[9; 16]);
            assert_eq!(epoch.mail_key(kind, mail), Some(*expected.as_bytes()));
        }
        assert_eq!(epoch.mail_key(Kind::Slot, mail), None);
    }

    #[test]
    fn every_kind_and_mail_has_a_key_of_its_own() {
        let keys = EpochKeys::derive(&VolumeKey([7; 32]));
        let kinds = [
            Kind::Volume,
            Kind::Commit,
            Kind::Pages,
            Kind::Data,
            Kind::Probe,
        ];
        let mails = [MailId([1; 16]), MailId([2; 16])];
        let all = kinds
            .iter()
            .flat_map(|kind| mails.iter().filter_map(|mail| keys.mail_key(*kind, *mail)));
        assert_eq!(all.collect::<BTreeSet<_>>().len(), 10);
    }

    #[test]
    fn each_epoch_has_its_keys() {
        let all = [(1, VolumeKey([7; 32])), (4, VolumeKey([8; 32]))];
        let keys = Keys::of_epochs(&all).unwrap();
        assert_eq!(keys.local(), Keys::derive(&all[0].1).local());
        for (epoch, key) in &all {
            let of = keys.of(*epoch).unwrap();
            assert_eq!(of.mail_id(), EpochKeys::derive(key).mail_id());
        }
        assert!(keys.has(1) && keys.has(4) && !keys.has(2));
        let unknown = keys.of(2).err().unwrap().to_string();
        assert_eq!(
            unknown,
            "key epoch: expected an epoch of the key slot; found 2"
        );
        assert!(Keys::of_epochs(&[]).is_none());
    }
}
