//! Rows that cannot be read.

/// A row that is wrong; the call that met the row failed with EIO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The row's key, or the key before the row in question.
    pub key: Vec<u8>,
    /// What is wrong.
    pub what: String,
}
