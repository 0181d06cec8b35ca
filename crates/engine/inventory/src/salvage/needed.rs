//! The needs of the second reading of a salvage.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::MailId;

/// The mails of the second reading.
#[derive(Debug, Default)]
pub(super) struct Needed {
    /// Pages that are not read yet, by mail.
    pub(super) pages: BTreeMap<MailId, BTreeSet<u32>>,
    /// The number of these mails.
    pub(super) mails: usize,
}
