//! The encoding of values: a version followed by the fields, little-endian.

/// Writes a value.
#[derive(Debug)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(version: u8) -> Self {
        Self(vec![version])
    }

    pub(super) fn u8(self, number: u8) -> Self {
        self.octets(&[number])
    }

    pub(super) fn u16(self, number: u16) -> Self {
        self.octets(&number.to_le_bytes())
    }

    pub(super) fn u32(self, number: u32) -> Self {
        self.octets(&number.to_le_bytes())
    }

    pub(super) fn u64(self, number: u64) -> Self {
        self.octets(&number.to_le_bytes())
    }

    /// Seven bits an octet, the lowest first; the high bit says that more follow.
    pub(super) fn variable(mut self, mut number: u64) -> Self {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    pub(super) fn octets(mut self, octets: &[u8]) -> Self {
        self.0.extend_from_slice(octets);
        self
    }

    /// 0, or the length plus one and the octets.
    pub(super) fn optional(self, octets: Option<&[u8]>) -> Self {
        match octets {
            None => self.variable(0),
            Some(octets) => self.variable(octets.len() as u64 + 1).octets(octets),
        }
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a value; `None` for a value that ends too early.
#[derive(Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// `None` for another version.
    pub(super) fn new(octets: &'a [u8], version: u8) -> Option<Self> {
        let (found, rest) = octets.split_first()?;
        (*found == version).then_some(Self(rest))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.chunk().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    pub(super) fn variable(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let octet = self.u8()?;
            number |= u64::from(octet & 0x7f) << shift;
            if octet < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn optional(&mut self) -> Option<Option<&'a [u8]>> {
        match self.variable()?.checked_sub(1) {
            None => Some(None),
            Some(length) => self.take(usize::try_from(length).ok()?).map(Some),
        }
    }
}
