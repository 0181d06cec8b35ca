//! The octets of segments and indexes; `docs/internals/archive.md` draws them.
//!
//! Numbers are little-endian. Everything here is pure: octets in, values out.

mod head;
mod meta;
mod record;

#[cfg(test)]
mod tests;

pub(crate) use head::{EntryHead, FILE_HEAD_OCTETS, FileHead, FileKind, HEAD_OCTETS};
pub use meta::{Fields, Texts};
pub(crate) use meta::{decode, encode, encoded_len};
pub(crate) use record::{RECORD_HEAD_OCTETS, Record, Summary, TRAILER_OCTETS};

/// The most octets of the texts of an entry with their heads: about 32,767 recipients with addresses of 500 octets.
pub const META_OCTETS_MAX: u64 = 16 << 20;

/// Reads a number at a place of fixed octets.
macro_rules! number {
    ($name:ident, $type:ty, $octets:literal) => {
        pub(crate) fn $name(octets: &[u8], at: usize) -> Option<$type> {
            let octets = octets.get(at..at.checked_add($octets)?)?;
            Some(<$type>::from_le_bytes(octets.try_into().ok()?))
        }
    };
}

number!(u32_at, u32, 4);
number!(u64_at, u64, 8);

/// Puts octets at a place of a fixed buffer, as far as the buffer reaches.
fn put(buffer: &mut [u8], at: usize, octets: &[u8]) {
    for (place, octet) in buffer.iter_mut().skip(at).zip(octets) {
        *place = *octet;
    }
}
