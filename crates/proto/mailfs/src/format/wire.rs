//! Numbers and texts in octets: little-endian numbers, and `v`, seven bits an octet, lowest first.

use super::error::FormatError;

/// Bits before the last octet of the longest `v`.
const V_SHIFT_MAX: u32 = 63;

/// Takes fields from the front of octets; each field is checked before memory is taken.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `octets`, which errors call `what`.
    pub(crate) const fn new(what: &'static str, octets: &'a [u8]) -> Self {
        Self { what, rest: octets }
    }

    /// Octets left.
    pub(crate) const fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn octets(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        let (field, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or_else(|| self.short(count))?;
        self.rest = rest;
        Ok(field)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (field, rest) = self.rest.split_first_chunk().ok_or_else(|| self.short(N))?;
        self.rest = rest;
        Ok(*field)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FormatError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, FormatError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, FormatError> {
        self.array().map(i64::from_le_bytes)
    }

    /// A `v` of the shortest form.
    pub(crate) fn v(&mut self) -> Result<u64, FormatError> {
        let mut value: u64 = 0;
        for shift in (0..=V_SHIFT_MAX).step_by(7) {
            let octet = self.u8()?;
            let bits = u64::from(octet & 0x7f);
            let shifted = bits.checked_shl(shift).unwrap_or(0);
            let longer = shift > 0 && octet == 0;
            if shifted.checked_shr(shift) != Some(bits) || longer {
                return Err(self.overlong());
            }
            value |= shifted;
            if octet < 0x80 {
                return Ok(value);
            }
        }
        Err(self.overlong())
    }

    /// A count or length of at most `max`, as a `v`.
    pub(crate) fn v_within(
        &mut self,
        what: &'static str,
        max: usize,
    ) -> Result<usize, FormatError> {
        let found = self.v()?;
        match usize::try_from(found) {
            Ok(count) if count <= max => Ok(count),
            _ => Err(FormatError::Above {
                what,
                max: max as u64,
                found,
            }),
        }
    }

    /// Octets after their length.
    pub(crate) fn counted(
        &mut self,
        what: &'static str,
        max: usize,
    ) -> Result<&'a [u8], FormatError> {
        let count = self.v_within(what, max)?;
        self.octets(count)
    }

    /// Octets that must be zero.
    pub(crate) fn zeros(&mut self, count: usize) -> Result<(), FormatError> {
        if self.octets(count)?.iter().all(|octet| *octet == 0) {
            return Ok(());
        }
        Err(FormatError::Form {
            what: self.what,
            expected: "zeros in reserved octets",
        })
    }

    /// The version at the front of a format, which must be 1.
    pub(crate) fn version(&mut self, what: &'static str) -> Result<(), FormatError> {
        match self.u8()? {
            1 => Ok(()),
            found => Err(FormatError::Unknown {
                what,
                expected: "version 1",
                found: found.into(),
            }),
        }
    }

    /// All octets left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Succeeds when no octet is left.
    pub(crate) const fn end(&self) -> Result<(), FormatError> {
        match self.rest.len() {
            0 => Ok(()),
            found => Err(FormatError::Behind {
                what: self.what,
                found,
            }),
        }
    }

    const fn short(&self, expected: usize) -> FormatError {
        FormatError::Short {
            what: self.what,
            expected,
            found: self.rest.len(),
        }
    }

    const fn overlong(&self) -> FormatError {
        FormatError::Form {
            what: self.what,
            expected: "a number of up to 64 bits in its shortest form",
        }
    }
}

/// Appends a `v`.
pub(crate) fn put_v(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes().first().copied().unwrap_or(0) | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes().first().copied().unwrap_or(0));
}

/// Appends octets after their length.
pub(crate) fn put_counted(out: &mut Vec<u8>, octets: &[u8]) {
    put_v(out, octets.len() as u64);
    out.extend_from_slice(octets);
}

/// Refuses a count above its bound.
pub(crate) const fn within(
    what: &'static str,
    found: usize,
    max: usize,
) -> Result<(), FormatError> {
    if found <= max {
        return Ok(());
    }
    Err(FormatError::Above {
        what,
        max: max as u64,
        found: found as u64,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_numbers() {
        for (value, octets) in [
            (0, &b"\x00"[..]),
            (1, b"\x01"),
            (127, b"\x7f"),
            (128, b"\x80\x01"),
            (300, b"\xac\x02"),
            (16_383, b"\xff\x7f"),
            (16_384, b"\x80\x80\x01"),
            (u64::MAX, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ] {
            let mut out = Vec::new();
            put_v(&mut out, value);
            assert_eq!(out, octets);
            let mut reader = Reader::new("test", octets);
            assert_eq!((reader.v(), reader.left()), (Ok(value), 0));
        }
    }

    #[test]
    fn overlong_numbers_are_refused() {
        for octets in [
            &b"\x80\x00"[..],
            b"\xff\x00",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80\x01",
        ] {
            let found = Reader::new("test", octets).v();
            assert!(matches!(found, Err(FormatError::Form { .. })), "{found:?}");
        }
        let short = FormatError::Short {
            what: "test",
            expected: 1,
            found: 0,
        };
        assert_eq!(Reader::new("test", b"\x80").v(), Err(short));
    }

    #[test]
    fn lengths_are_checked_before_the_octets() {
        let mut octets = Vec::new();
        put_v(&mut octets, u64::MAX);
        let found = Reader::new("test", &octets).counted("key", 300);
        let text = found.map_err(|error| error.to_string());
        assert_eq!(
            text,
            Err("key: expected at most 300; found 18446744073709551615".into())
        );
        assert_eq!(
            Reader::new("test", b"\x02ab!").counted("key", 2),
            Ok(&b"ab"[..])
        );
        assert!(Reader::new("test", b"\x03ab").counted("key", 3).is_err());
    }

    #[test]
    fn reserved_octets_and_ends() {
        let mut reader = Reader::new("test", b"\0\0\x01");
        assert_eq!(reader.zeros(2), Ok(()));
        assert_eq!(
            reader.end().map_err(|error| error.to_string()),
            Err("test: expected the end; found 1 more octets".into())
        );
        assert_eq!(reader.clone().version("version of a test"), Ok(()));
        assert!(reader.zeros(1).is_err());
        assert_eq!(reader.end(), Ok(()));
    }

    proptest! {
        #[test]
        fn numbers_there_and_back(value: u64, behind: Vec<u8>) {
            let mut octets = Vec::new();
            put_v(&mut octets, value);
            octets.extend_from_slice(&behind);
            let mut reader = Reader::new("test", &octets);
            prop_assert_eq!(reader.v(), Ok(value));
            prop_assert_eq!(reader.rest(), &behind[..]);
        }

        #[test]
        fn a_number_that_reads_has_one_form(octets in proptest::collection::vec(any::<u8>(), 0..12)) {
            let mut reader = Reader::new("test", &octets);
            if let Ok(value) = reader.v() {
                let mut again = Vec::new();
                put_v(&mut again, value);
                prop_assert_eq!(&octets[..octets.len() - reader.left()], &again[..]);
            }
        }
    }
}
