//! Hashes that only the holder of the secret can predict, so that nobody provokes collisions.

use crate::place::Place;

/// A key of the greylist: 32 bits of the hash of the client's network, so that an entry tells its [`Part`](crate::Part), then 96
/// bits of the hash of all that the entry stands for.
pub(crate) type Mark = [u8; 16];

/// Octets of a mark that the client's network decides alone.
pub(crate) const NETWORK_OCTETS: usize = 4;

/// The first octet of the hashed text, so that hashes for different purposes never meet.
mod purpose {
    pub(super) const PLACE: u8 = 1;
    pub(super) const SENDER: u8 = 2;
    pub(super) const TRIPLET: u8 = 3;
    pub(super) const CLIENT: u8 = 4;
    pub(super) const CHECK: u8 = 5;
}

/// The secret of an engine, for hashes by keyed BLAKE3.
#[derive(Clone, Copy)]
pub(crate) struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    pub(crate) const fn new(octets: [u8; 32]) -> Self {
        Self(octets)
    }

    /// The hash of a place in the counting tables.
    pub(crate) fn place(&self, place: Place) -> u64 {
        first(&self.hash(purpose::PLACE, &[&place.0]))
    }

    /// The mark of a sender; letter case does not count.
    pub(crate) fn sender(&self, sender: &str) -> Mark {
        first_mark(&self.hash(purpose::SENDER, &[sender.to_ascii_lowercase().as_bytes()]))
    }

    /// The mark of a client's network, the mark of a sender, and a recipient, in which letter case does not count.
    pub(crate) fn triplet(&self, network: Place, sender: &Mark, recipient: &str) -> Mark {
        let recipient = recipient.to_ascii_lowercase();
        let mut mark = first_mark(&self.hash(
            purpose::TRIPLET,
            &[&network.0, sender, recipient.as_bytes()],
        ));
        mark[..NETWORK_OCTETS].copy_from_slice(&self.client(network)[..NETWORK_OCTETS]);
        mark
    }

    /// The mark of a client's network.
    pub(crate) fn client(&self, network: Place) -> Mark {
        first_mark(&self.hash(purpose::CLIENT, &[&network.0]))
    }

    /// A number by which a snapshot finds that it was made with another secret.
    pub(crate) fn check(&self) -> u64 {
        first(&self.hash(purpose::CHECK, &[]))
    }

    /// Only the last part may vary in length.
    fn hash(&self, purpose: u8, parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[purpose]);
        for part in parts {
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }
}

fn first_mark(hash: &[u8; 32]) -> Mark {
    let mut mark = Mark::default();
    mark.copy_from_slice(&hash[..16]);
    mark
}

fn first(hash: &[u8; 32]) -> u64 {
    let mut octets = [0; 8];
    octets.copy_from_slice(&hash[..8]);
    u64::from_le_bytes(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_differ_by_secret_purpose_and_text() {
        let (one, other) = (Secret::new([1; 32]), Secret::new([2; 32]));
        let place = Place([7; 16]);
        assert_ne!(one.place(place), other.place(place));
        assert_ne!(one.place(place), one.place(Place([8; 16])));
        assert_ne!(one.check(), other.check());
        assert_ne!(one.client(place), one.client(Place([8; 16])));
        let sender = one.sender("A@Example.org");
        assert_eq!(sender, one.sender("a@example.ORG"));
        assert_ne!(sender, one.sender("b@example.org"));
        let triplet = one.triplet(place, &sender, "C@example.org");
        assert_eq!(triplet, one.triplet(place, &sender, "c@example.org"));
        assert_ne!(triplet, one.triplet(place, &sender, "d@example.org"));
        assert_ne!(
            triplet,
            one.triplet(Place([8; 16]), &sender, "c@example.org")
        );
        assert_ne!(
            triplet,
            one.triplet(place, &one.sender(""), "c@example.org")
        );
        assert_eq!(triplet[..4], one.client(place)[..4]);
        assert_ne!(triplet[4..], one.client(place)[4..]);
    }

    #[test]
    fn the_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Secret::new([65; 32])), "Secret(..)");
    }
}
