//! A dataset to be searched.

use std::collections::HashMap;
use std::net::IpAddr;

use super::addresses::{Addresses, V4, V6};
use super::kind::Kind;
use super::names::Names;
use super::records::Records;
use super::value::Value;
use crate::{Map, MapName};

/// A listing with this bit is the place of a group of values, otherwise of a single value.
const GROUP: u32 = 1 << 31;

/// The listings of addresses with several values, each group once.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) all: Vec<Box<[u32]>>,
    places: HashMap<Box<[u32]>, u32>,
}

impl Groups {
    /// The listing for the values of an address or name.
    pub(super) fn listing(&mut self, values: &[u32]) -> u32 {
        if let [value] = values {
            return *value;
        }
        if let Some(place) = self.places.get(values) {
            return *place;
        }
        let place = GROUP | self.all.len() as u32;
        self.all.push(values.into());
        self.places.insert(values.into(), place);
        place
    }
}

/// A dataset to be searched.
#[derive(Debug)]
pub(super) struct Dataset {
    pub(super) kind: Kind,
    pub(super) values: Vec<Value>,
    pub(super) groups: Vec<Box<[u32]>>,
    pub(super) v4: Addresses<V4>,
    pub(super) v6: Addresses<V6>,
    pub(super) names: Names,
    pub(super) records: Records,
}

impl Dataset {
    /// The values of an address.
    pub(super) fn values(&self, address: IpAddr) -> impl Iterator<Item = &Value> {
        let listing = match address {
            IpAddr::V4(address) => self.v4.find(address.to_bits()),
            IpAddr::V6(address) => self.v6.find(address.to_bits()),
        };
        self.listed(listing)
    }

    /// The values of a name, each with the name of its entry.
    pub(super) fn name_values<'a>(
        &'a self,
        name: &'a [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a Value)> {
        let found = self.names.find(name);
        let entry = found.map_or(name, |(_, entry)| entry);
        let values = self.listed(found.map(|(listing, _)| listing));
        values.map(move |value| (entry, value))
    }

    /// The values of a listing.
    pub(super) fn listed(&self, listing: Option<u32>) -> impl Iterator<Item = &Value> {
        let (one, many): (_, &[u32]) = match listing {
            Some(group) if group & GROUP != 0 => {
                let group = self.groups.get((group & !GROUP) as usize);
                (None, group.map_or(&[], |values| values))
            }
            one => (one, &[]),
        };
        let places = one.into_iter().chain(many.iter().copied());
        places.filter_map(|place| self.values.get(place as usize))
    }

    /// Adds the listed neighbours of a map.
    pub(super) fn map(&self, name: MapName) -> Map {
        let mut listed = Map::EMPTY;
        match name {
            MapName::V4(prefix) => {
                let first = prefix << 7;
                self.v4.parts(first, first | 0x7f, |start, end, value| {
                    listed.set(start as u8, end as u8, value);
                });
            }
            MapName::V6(prefix) => {
                let first = prefix << 7;
                self.v6.parts(first, first | 0x7f, |start, end, value| {
                    // A neighbour is the first address of its network.
                    let Some(start) = neighbour_from(start) else {
                        return;
                    };
                    let end = (end >> 64) as u64;
                    if start <= end {
                        listed.set(start as u8, end as u8, value);
                    }
                });
            }
        }
        listed
    }

    /// Whether an address from `first` to `last` is listed.
    pub(super) fn has_v4(&self, first: u32, last: u32) -> bool {
        self.v4.any_between(first, last)
    }

    /// Whether an address from `first` to `last` is listed.
    pub(super) fn has_v6(&self, first: u128, last: u128) -> bool {
        self.v6.any_between(first, last)
    }

    /// The number of entries in the sets.
    pub(super) const fn entries(&self) -> usize {
        self.v4.len() + self.v6.len() + self.names.len()
    }

    /// Octets of memory.
    pub(super) fn memory(&self) -> usize {
        let texts = self
            .values
            .iter()
            .map(|value| value.template().map_or(0, str::len));
        let values = size_of_val(self.values.as_slice()) + texts.sum::<usize>();
        let groups: usize = self.groups.iter().map(|group| 16 + 4 * group.len()).sum();
        let sets = self.v4.memory() + self.v6.memory() + self.names.memory();
        values + groups + sets
    }
}

/// The first network of 64 bits whose first address is not below an address.
fn neighbour_from(address: u128) -> Option<u64> {
    let network = (address >> 64) as u64;
    match address as u64 {
        0 => Some(network),
        _ => network.checked_add(1),
    }
}
