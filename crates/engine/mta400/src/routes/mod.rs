//! Routing (X.411 clause 14.3, routing decision): O/R addresses to destinations, by longest match.
//!
//! A row has the upper part of addresses, in the order C, A, P, O, OU1 to OU4, then the names of users. The longest
//! matching row counts. A row can stand for a whole address alone, and then precedes all rows for upper parts.

mod explain;
mod fault;

use std::collections::{BTreeMap, BTreeSet};

use vere_x400::{AddressKey, Attribute, Attributes};

pub use explain::Explanation;
pub use fault::{RouteError, RouteFault};

use crate::Destination;

/// The address of a row for every address.
pub const EVERY: &str = "*";
/// The target of a row for addresses without users, such as the rest of a local domain.
pub const UNKNOWN: &str = "unknown";

/// A row of the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteSetting {
    /// The upper part of addresses in a text form, or [`EVERY`].
    pub address: String,
    /// A [`Destination`], or [`UNKNOWN`].
    pub to: String,
    /// Whether the row stands for the address alone, without longer addresses.
    pub whole: bool,
}

/// The known names for targets of rows.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// The peers.
    pub peers: BTreeSet<String>,
    /// The local users.
    pub users: BTreeSet<String>,
    /// The gateways.
    pub gateways: BTreeSet<String>,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The number in the settings, from 1.
    pub number: usize,
    /// The upper part of addresses.
    pub key: AddressKey,
    /// Whether the row stands for the address alone.
    pub whole: bool,
    /// The destination; `None` for addresses without users.
    pub to: Option<Destination>,
}

/// The rows for one key.
#[derive(Debug, Clone, Default)]
struct Entry {
    whole: Option<Row>,
    below: Option<Row>,
}

/// The table.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    /// By the texts of the keys.
    entries: BTreeMap<String, Entry>,
}

impl Routes {
    /// Makes the table.
    ///
    /// # Errors
    /// [`RouteError`] for the first row that is unreadable, unreachable or repeated, or has an unknown target.
    pub fn new(settings: &[RouteSetting], names: &Names) -> Result<Self, RouteError> {
        let mut routes = Self::default();
        for (number, setting) in (1..).zip(settings) {
            let added = row(number, setting, names).and_then(|row| routes.add(row));
            added.map_err(|fault| RouteError {
                number,
                address: setting.address.clone(),
                fault,
            })?;
        }
        Ok(routes)
    }

    /// The row for an address.
    #[must_use]
    pub fn find(&self, address: &AddressKey) -> Option<&Row> {
        let whole = self
            .entries
            .get(address.as_str())
            .and_then(|entry| entry.whole.as_ref());
        whole.or_else(|| {
            address
                .prefixes()
                .find_map(|prefix| self.entries.get(prefix)?.below.as_ref())
        })
    }

    /// The rows in the order of the keys.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.entries
            .values()
            .flat_map(|entry| entry.whole.iter().chain(&entry.below))
    }

    fn add(&mut self, row: Row) -> Result<(), RouteFault> {
        let entry = self.entries.entry(row.key.as_str().to_owned()).or_default();
        let place = if row.whole {
            &mut entry.whole
        } else {
            &mut entry.below
        };
        match place {
            Some(other) if other.to == row.to => Err(RouteFault::Twice(other.number)),
            Some(other) => Err(RouteFault::Contradiction(other.number, target(&other.to))),
            None => {
                *place = Some(row);
                Ok(())
            }
        }
    }
}

fn target(to: &Option<Destination>) -> String {
    to.as_ref()
        .map_or_else(|| UNKNOWN.to_owned(), Destination::to_string)
}

fn row(number: usize, setting: &RouteSetting, names: &Names) -> Result<Row, RouteFault> {
    Ok(Row {
        number,
        key: key(setting)?,
        whole: setting.whole,
        to: destination(&setting.to, names)?,
    })
}

fn key(setting: &RouteSetting) -> Result<AddressKey, RouteFault> {
    if setting.address == EVERY {
        let whole = setting.whole;
        return (!whole)
            .then(AddressKey::default)
            .ok_or(RouteFault::EveryWhole);
    }
    let attributes: Attributes = setting.address.parse().map_err(RouteFault::Address)?;
    if setting.whole {
        return Ok(AddressKey::of(&attributes));
    }
    // Every address with a country has an ADMD, if only an ADMD of spaces: a row without ADMD matches no address.
    let has = |attribute| attributes.get(attribute).is_some();
    let lower = attributes.iter().any(|(one, _)| one != Attribute::Country)
        || !attributes.domain_defined.is_empty();
    if has(Attribute::Country) && !has(Attribute::Administration) && lower {
        return Err(RouteFault::Administration);
    }
    Ok(AddressKey::of_part(&attributes))
}

fn destination(text: &str, names: &Names) -> Result<Option<Destination>, RouteFault> {
    if text == UNKNOWN {
        return Ok(None);
    }
    let destination: Destination = text.parse()?;
    let known = match &destination {
        Destination::Peer(name) => names.peers.contains(name),
        Destination::File(name) | Destination::Store(name) => names.users.contains(name),
        Destination::Gateway(name) => names.gateways.contains(name),
    };
    if known {
        Ok(Some(destination))
    } else {
        Err(RouteFault::NotThere(destination))
    }
}
