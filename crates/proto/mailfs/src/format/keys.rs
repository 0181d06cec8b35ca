//! Keys: all keys of an epoch are derived from the volume key, one for each use.

use std::fmt;

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

/// The keys derived from a volume key.
#[derive(Clone)]
pub struct Keys {
    mail_id: [u8; 32],
    volume: [u8; 32],
    commit: [u8; 32],
    pages: [u8; 32],
    data: [u8; 32],
    probe: [u8; 32],
    chunk_id: [u8; 32],
    local: [u8; 32],
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
    /// Derives the keys of a volume key.
    #[must_use]
    pub fn derive(key: &VolumeKey) -> Self {
        let of = |use_| derive(use_, &key.0);
        Self {
            mail_id: of("mail id"),
            volume: of("volume"),
            commit: of("commit"),
            pages: of("pages"),
            data: of("data"),
            probe: of("probe"),
            chunk_id: of("chunk id"),
            local: of("local"),
        }
    }

    /// The id of a chunk by its content: equal content has an equal id, and a provider cannot guess the content.
    #[must_use]
    pub fn chunk_id(&self, content: &[u8]) -> ChunkId {
        ChunkId(cut(&blake3::keyed_hash(&self.chunk_id, content)))
    }

    /// The key of files of the state folder.
    #[must_use]
    pub const fn local(&self) -> &[u8; 32] {
        &self.local
    }

    /// The key of the hash that gives mail ids.
    pub(super) const fn mail_id(&self) -> &[u8; 32] {
        &self.mail_id
    }

    /// The key that seals the frames of a mail; none for slots, which have no frames.
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
        let of = |context: &str| blake3::derive_key(context, &[7; 32]);
        assert_eq!(keys.mail_id(), &of("veredarius mailfs v1 mail id"));
        assert_eq!(keys.local(), &of("veredarius mailfs v1 local"));
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
            assert_eq!(keys.mail_key(kind, mail), Some(*expected.as_bytes()));
        }
        assert_eq!(keys.mail_key(Kind::Slot, mail), None);
    }

    #[test]
    fn every_kind_and_mail_has_a_key_of_its_own() {
        let keys = Keys::derive(&VolumeKey([7; 32]));
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
}
