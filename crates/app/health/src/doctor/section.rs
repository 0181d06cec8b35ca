//! The checks of an examination by topic.

use crate::finding::Level;
use crate::row::Row;

/// Checks of a topic.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) rows: Vec<Row>,
}

/// The severest level.
pub(crate) fn level(sections: &[Section]) -> Level {
    let rows = sections.iter().flat_map(|section| &section.rows);
    rows.map(|row| row.level).max().unwrap_or(Level::Ok)
}
