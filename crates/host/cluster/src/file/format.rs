//! The file of one key.
//!
//! ```text
//!  0   "VEREREG" 0 (8) | format version u32 = 1 | key length u32 | value length u32 | 0 u32
//! 24   version u64 | key | value | crc32 of everything before u32
//! ```
//!
//! Numbers are little-endian. Nothing follows.

use crate::key::Key;
use crate::{VALUE_MAX, Versioned};

const MAGIC: &[u8; 8] = b"VEREREG\0";
const FORMAT: u32 = 1;
const HEAD_LEN: usize = 32;
const CHECKSUM_LEN: usize = 4;

/// Octets of the longest file.
pub(super) const FILE_MAX: usize = HEAD_LEN + Key::LEN_MAX + VALUE_MAX + CHECKSUM_LEN;

pub(super) fn encode(key: &Key, version: u64, value: &[u8]) -> Vec<u8> {
    let key = key.as_str().as_bytes();
    let mut out = Vec::with_capacity(HEAD_LEN + key.len() + value.len() + CHECKSUM_LEN);
    out.extend_from_slice(MAGIC);
    // Keys and values are within bounds far below 2^32.
    for number in [FORMAT, key.len() as u32, value.len() as u32, 0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    let crc = vere_checksum::crc32(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// Reads a whole file; the error says what is wrong with it.
pub(super) fn decode(octets: &[u8]) -> Result<(Key, Versioned), String> {
    let len = octets.len();
    let Some((head, rest)) = octets.split_first_chunk::<HEAD_LEN>() else {
        return Err(format!(
            "has {len} octets, fewer than the head of {HEAD_LEN}"
        ));
    };
    if !head.starts_with(MAGIC) {
        return Err("does not begin as a file of the register".to_owned());
    }
    let number = |at: usize| {
        let octets = head.get(at..at + 4).and_then(|slice| slice.try_into().ok());
        u32::from_le_bytes(octets.unwrap_or_default())
    };
    let (format, key_len, value_len) = (number(8), number(12) as usize, number(16) as usize);
    if format != FORMAT {
        return Err(format!(
            "has version {format} of the format, this program reads version {FORMAT}"
        ));
    }
    if key_len > Key::LEN_MAX || value_len > VALUE_MAX {
        return Err("announces a key or a value beyond the bounds".to_owned());
    }
    let wanted = HEAD_LEN + key_len + value_len + CHECKSUM_LEN;
    if len != wanted {
        return Err(format!("expected {wanted} octets by the head; found {len}"));
    }
    let Some((content, checksum)) = octets.split_last_chunk::<CHECKSUM_LEN>() else {
        return Err("has no checksum".to_owned());
    };
    if vere_checksum::crc32(content) != u32::from_le_bytes(*checksum) {
        return Err("wrong checksum".to_owned());
    }
    let Some((_, &version)) = head.split_last_chunk::<8>() else {
        return Err("has no version".to_owned());
    };
    let version = u64::from_le_bytes(version);
    let (key, value) = rest.split_at_checked(key_len).unwrap_or_default();
    let value = value.get(..value_len).unwrap_or_default().to_vec();
    let key = std::str::from_utf8(key).ok();
    let key = key.and_then(|key| Key::new(key).ok());
    match key {
        Some(key) if version > 0 => Ok((key, Versioned { version, value })),
        _ => Err("holds no key or no version, under a right checksum".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_as_documented() {
        let key = Key::new("group/a").unwrap();
        let octets = encode(&key, 0x0102, b"xyz");
        let mut wanted = b"VEREREG\0\x01\0\0\0\x07\0\0\0\x03\0\0\0\0\0\0\0".to_vec();
        wanted.extend_from_slice(b"\x02\x01\0\0\0\0\0\0group/axyz");
        // CRC-32 of the above, by another program (python3 zlib.crc32).
        wanted.extend_from_slice(&0x88e667f3_u32.to_le_bytes());
        assert_eq!(octets, wanted);
        let (read, versioned) = decode(&octets).unwrap();
        assert_eq!((read, versioned.version), (key, 0x0102));
        assert_eq!(versioned.value, b"xyz");
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_noticed() {
        let octets = encode(&Key::new("lease/b").unwrap(), 9, b"value");
        for bit in 0..octets.len() * 8 {
            let mut rotten = octets.clone();
            rotten[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&rotten).is_err(), "bit {bit}");
        }
        for len in 0..octets.len() {
            assert!(decode(&octets[..len]).is_err(), "cut to {len}");
        }
        let mut longer = octets.clone();
        longer.push(0);
        assert!(decode(&longer).is_err());
    }

    #[test]
    fn a_later_format_is_named_as_such() {
        let mut octets = encode(&Key::new("group/a").unwrap(), 1, b"");
        octets[8] = 2;
        let error = decode(&octets).unwrap_err();
        assert!(error.contains("version 2 of the format"), "{error}");
    }
}
