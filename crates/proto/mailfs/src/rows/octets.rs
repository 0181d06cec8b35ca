//! Numbers and lengths in rows.

/// A row that no version of the format has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}; found {found}")]
pub struct RowError {
    /// The wanted octets.
    pub expected: &'static str,
    /// The octets in the row.
    pub found: String,
}

impl RowError {
    /// A field that is not as wanted.
    #[must_use]
    pub fn new(expected: &'static str, found: impl Into<String>) -> Self {
        Self {
            expected,
            found: found.into(),
        }
    }
}

/// Reads a row from its beginning.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(octets: &'a [u8]) -> Self {
        Self { rest: octets }
    }

    pub(super) fn take(
        &mut self,
        octets: usize,
        expected: &'static str,
    ) -> Result<&'a [u8], RowError> {
        let Some((taken, rest)) = self.rest.split_at_checked(octets) else {
            return Err(RowError::new(expected, left(self.rest.len())));
        };
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        expected: &'static str,
    ) -> Result<[u8; N], RowError> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(RowError::new(expected, left(self.rest.len())));
        };
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self, expected: &'static str) -> Result<u8, RowError> {
        self.array(expected).map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self, expected: &'static str) -> Result<u16, RowError> {
        self.array(expected).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, expected: &'static str) -> Result<u32, RowError> {
        self.array(expected).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, expected: &'static str) -> Result<u64, RowError> {
        self.array(expected).map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self, expected: &'static str) -> Result<i64, RowError> {
        self.array(expected).map(i64::from_le_bytes)
    }

    /// A number of seven bits an octet, lowest first, in its shortest form.
    pub(super) fn variable(&mut self, expected: &'static str) -> Result<u64, RowError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let octet = self.u8(expected)?;
            let bits = u64::from(octet & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(RowError::new(expected, "a number above 64 bits"));
            }
            value |= bits << shift;
            if octet & 0x80 == 0 {
                if octet == 0 && shift > 0 {
                    return Err(RowError::new(expected, "a number with a needless octet"));
                }
                return Ok(value);
            }
        }
        Err(RowError::new(expected, "a number above 64 bits"))
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Refuses octets behind the last field.
    pub(super) fn end(self) -> Result<(), RowError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(RowError::new("the row's end", left(self.rest.len())))
    }
}

fn left(octets: usize) -> String {
    format!("{octets} octets")
}

/// Appends a number of seven bits an octet, lowest first.
pub(super) fn put_variable(row: &mut Vec<u8>, mut value: u64) {
    loop {
        let bits = u8::try_from(value & 0x7f).unwrap_or(0x7f);
        value >>= 7;
        if value == 0 {
            row.push(bits);
            return;
        }
        row.push(bits | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_have_one_form() {
        for (value, octets) in [
            (0, vec![0]),
            (127, vec![0x7f]),
            (128, vec![0x80, 1]),
            (
                u64::MAX,
                vec![255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
            ),
        ] {
            let mut row = Vec::new();
            put_variable(&mut row, value);
            assert_eq!(row, octets);
        }
        let longer = Reader::new(&[0x80, 0]).variable("a length");
        assert_eq!(
            longer.unwrap_err().to_string(),
            "expected a length; found a number with a needless octet"
        );
        let above = [255, 255, 255, 255, 255, 255, 255, 255, 255, 2];
        assert!(Reader::new(&above).variable("a length").is_err());
        assert!(Reader::new(&[0xff; 12]).variable("a length").is_err());
    }

    proptest! {
        #[test]
        fn a_number_comes_back(value: u64) {
            let mut row = Vec::new();
            put_variable(&mut row, value);
            let mut reader = Reader::new(&row);
            prop_assert_eq!(reader.variable("a number").unwrap(), value);
            prop_assert!(reader.end().is_ok());
        }
    }
}
