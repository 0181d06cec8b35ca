//! The matching row of an address with the reason, for `vere x400 route TEST`.

use std::fmt;

use vere_x400::AddressKey;

use super::{EVERY, Routes, Row, target};

/// The matching row of an address, and the shorter rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation<'a> {
    /// The normalised address.
    pub key: AddressKey,
    /// The matching row.
    pub row: Option<&'a Row>,
    /// Shorter rows for the address, longest first.
    pub shorter: Vec<&'a Row>,
}

impl Routes {
    /// Explains the row for an address.
    #[must_use]
    pub fn explain(&self, address: &AddressKey) -> Explanation<'_> {
        let row = self.find(address);
        let matching = address.prefixes().filter_map(|prefix| {
            let below = self.entries.get(prefix)?.below.as_ref()?;
            Some(below).filter(|below| Some(*below) != row)
        });
        Explanation {
            key: address.clone(),
            row,
            shorter: matching.collect(),
        }
    }
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "address: {}", self.key)?;
        match self.row {
            None => writeln!(out, "no row matches: the recipient is not known")?,
            Some(row) if row.to.is_none() => {
                writeln!(out, "{}: the recipient is not known", matched(row))?;
            }
            Some(row) => writeln!(out, "{}: {}", matched(row), target(&row.to))?,
        }
        for row in &self.shorter {
            writeln!(out, "  instead of {}: {}", matched(row), target(&row.to))?;
        }
        Ok(())
    }
}

fn matched(row: &Row) -> String {
    let depth = row.key.depth();
    let key = if depth == 0 {
        EVERY.to_owned()
    } else {
        row.key.to_string()
    };
    match (row.whole, depth) {
        (true, _) => format!("row {} ({key}), the whole address", row.number),
        (false, 1) => format!("row {} ({key}), 1 attribute", row.number),
        (false, depth) => format!("row {} ({key}), {depth} attributes", row.number),
    }
}
