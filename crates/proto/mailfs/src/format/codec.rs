//! The codec of a frame: the octet before the content says whether the content is compressed.

use bytes::Bytes;

use super::bounds::FRAME_OCTETS_MAX;
use super::error::FormatError;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
const LEVEL: i32 = 3;

/// How the content of a frame is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// As given. The length of a frame then says no more than the length of the content.
    Plain,
    /// Compressed where that is shorter.
    Zstd,
}

impl Codec {
    /// The codec's number, and the content in its form.
    pub(super) fn pack(self, content: Bytes) -> (u8, Bytes) {
        let shorter = match self {
            Self::Plain => None,
            Self::Zstd => zstd::bulk::compress(&content, LEVEL)
                .ok()
                .filter(|packed| packed.len() < content.len()),
        };
        match shorter {
            Some(packed) => (ZSTD, packed.into()),
            None => (PLAIN, content),
        }
    }
}

/// The content of a frame by the codec's number. At most `max` octets of memory are taken.
pub(super) fn unpack(codec: u8, packed: &Bytes, max: usize) -> Result<Bytes, FormatError> {
    let max = max.min(FRAME_OCTETS_MAX);
    match codec {
        PLAIN => {
            within(packed.len() as u64, max)?;
            Ok(packed.clone())
        }
        ZSTD => inflate(packed, max).map(Bytes::from),
        found => Err(FormatError::Unknown {
            what: "codec of a frame",
            expected: "0 (plain) or 1 (zstd)",
            found: found.into(),
        }),
    }
}

fn inflate(packed: &[u8], max: usize) -> Result<Vec<u8>, FormatError> {
    const MALFORMED: FormatError = FormatError::Form {
        what: "compressed content of a frame",
        expected: "a zstd frame that names its length",
    };
    let announced = zstd::zstd_safe::get_frame_content_size(packed);
    let announced = announced.ok().flatten().ok_or(MALFORMED)?;
    let len = within(announced, max)?;
    let mut content = vec![0; len];
    match zstd::bulk::decompress_to_buffer(packed, &mut content) {
        Ok(found) if found == len => Ok(content),
        _ => Err(MALFORMED),
    }
}

fn within(found: u64, max: usize) -> Result<usize, FormatError> {
    let len = usize::try_from(found).ok().filter(|len| *len <= max);
    len.ok_or(FormatError::Above {
        what: "octets of content",
        max: max as u64,
        found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_that_does_not_shrink_stays_plain() {
        let content = Bytes::from_static(b"short");
        assert_eq!(Codec::Zstd.pack(content.clone()), (0, content.clone()));
        assert_eq!(Codec::Plain.pack(content.clone()), (0, content));
        let long = Bytes::from(vec![7; 1_000]);
        assert_eq!(Codec::Plain.pack(long.clone()), (0, long.clone()));
        let (codec, packed) = Codec::Zstd.pack(long.clone());
        assert_eq!((codec, packed.len() < 40), (1, true));
        assert_eq!(unpack(codec, &packed, 1_000), Ok(long));
    }

    /// Lengths around the one at which repeated octets begin to shrink.
    #[test]
    fn content_is_packed_where_that_is_shorter() {
        let mut packed = 0;
        for len in 0..64 {
            let content = Bytes::from(vec![7; len]);
            let shorter = zstd::bulk::compress(&content, LEVEL).unwrap().len() < len;
            let (codec, kept) = Codec::Zstd.pack(content);
            assert_eq!(
                (codec == ZSTD, kept.len() < len),
                (shorter, shorter),
                "{len}"
            );
            packed += usize::from(shorter);
        }
        assert!((1..63).contains(&packed));
    }

    #[test]
    fn content_has_bounds() {
        let (codec, packed) = Codec::Zstd.pack(Bytes::from(vec![7; FRAME_OCTETS_MAX + 1]));
        let text = |found: Result<Bytes, FormatError>| found.unwrap_err().to_string();
        assert_eq!(
            text(unpack(codec, &packed, usize::MAX)),
            "octets of content: expected at most 2097152; found 2097153"
        );
        assert_eq!(
            text(unpack(0, &Bytes::from_static(b"four"), 3)),
            "octets of content: expected at most 3; found 4"
        );
        assert!(unpack(0, &Bytes::from_static(b"four"), 4).is_ok());
        assert_eq!(
            text(unpack(2, &packed, 1)),
            "codec of a frame: expected 0 (plain) or 1 (zstd); found 2"
        );
    }

    #[test]
    fn malformed_compression_is_refused() {
        let (_, packed) = Codec::Zstd.pack(Bytes::from(vec![7; 1_000]));
        for cut in 0..packed.len() {
            assert!(unpack(1, &packed.slice(..cut), 1_000).is_err(), "{cut}");
        }
        // A frame that does not name the length of its content: FCS flag 0, no single segment.
        let nameless = Bytes::from_static(b"\x28\xb5\x2f\xfd\x00\x58\x19\x00\x00abc");
        assert!(unpack(1, &nameless, 1_000).is_err());
    }
}
