//! Everything found so far.

use crate::figures::Figures;
use crate::output::{Header, note};

/// Everything found so far.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) header: Header,
    pub(super) figures: Figures,
    /// Wrong and missing answers, a line each.
    pub(super) troubles: Vec<String>,
}

impl Results {
    /// Reports a trouble at once and in the results.
    pub(super) fn trouble(&mut self, text: String) {
        note(&text);
        self.troubles.push(text);
    }
}
