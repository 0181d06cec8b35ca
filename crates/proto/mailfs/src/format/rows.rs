//! Rows in records: keys and values with their bounds.

use super::bounds::{KEY_OCTETS_MAX, ROW_OCTETS_MAX, ROWS_MAX, VALUE_OCTETS_MAX};
use super::error::FormatError;
use super::wire::{Reader, put_counted, within};

/// The sum of the octets of rows, checked as rows come.
#[derive(Debug, Default)]
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn count(found: usize) -> Result<(), FormatError> {
        within("rows", found, ROWS_MAX)
    }

    fn take(&mut self, octets: usize) -> Result<(), FormatError> {
        self.0 = self.0.saturating_add(octets);
        within("octets of rows", self.0, ROW_OCTETS_MAX)
    }

    pub(super) fn put_key(&mut self, out: &mut Vec<u8>, key: &[u8]) -> Result<(), FormatError> {
        within("octets of a key", key.len(), KEY_OCTETS_MAX)?;
        self.take(key.len())?;
        put_counted(out, key);
        Ok(())
    }

    pub(super) fn put_value(&mut self, out: &mut Vec<u8>, value: &[u8]) -> Result<(), FormatError> {
        within("octets of a value", value.len(), VALUE_OCTETS_MAX)?;
        self.take(value.len())?;
        put_counted(out, value);
        Ok(())
    }

    pub(super) fn key(&mut self, reader: &mut Reader<'_>) -> Result<Vec<u8>, FormatError> {
        let key = reader.counted("octets of a key", KEY_OCTETS_MAX)?;
        self.take(key.len())?;
        Ok(key.to_vec())
    }

    pub(super) fn value(&mut self, reader: &mut Reader<'_>) -> Result<Vec<u8>, FormatError> {
        let value = reader.counted("octets of a value", VALUE_OCTETS_MAX)?;
        self.take(value.len())?;
        Ok(value.to_vec())
    }
}
