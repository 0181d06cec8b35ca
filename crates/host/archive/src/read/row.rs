//! An entry inside a segment, and what takes entries and issues.

use std::ops::ControlFlow;

use super::issue::Issue;
use crate::format::Fields;

/// An entry as a reader meets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// The place of its head.
    pub offset: u64,
    /// Octets of the APDU.
    pub octets: u64,
    /// The encoded fields.
    pub meta: &'a [u8],
    /// The fields.
    pub fields: Fields<'a>,
    /// False if the content was compared with its checksum and is damaged.
    pub is_sound: bool,
}

/// Takes entries until it breaks.
pub(crate) type Visit<'a> = dyn FnMut(&Row<'_>) -> ControlFlow<()> + 'a;
/// Takes issues.
pub(crate) type Tell<'a> = dyn FnMut(Issue) + 'a;
