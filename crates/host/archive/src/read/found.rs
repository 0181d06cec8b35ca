//! An entry as callers get it.

use crate::format::Fields;
use crate::name::EntryId;

/// An entry that meets the conditions.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// The entry.
    pub id: EntryId,
    /// Octets of the APDU.
    pub octets: u64,
    /// The fields.
    pub fields: Fields<'a>,
}
