//! The data of a zone, and the questions that they answer.

use std::net::IpAddr;
use std::sync::Arc;

use super::dataset::Dataset;
use super::head::Head;
use super::kind::Kind;
use super::name;
use super::records::{Record, Records};
use super::value::Value;
use crate::{Map, MapName};

/// All datasets of a zone, in the order of their files.
#[derive(Debug, Default)]
pub struct ZoneData {
    pub(super) head: Head,
    pub(super) datasets: Vec<Arc<Dataset>>,
    pub(super) records: Records,
    pub(super) subzones: Vec<(Box<[u8]>, Self)>,
}

impl ZoneData {
    /// The values of an address from each dataset in order, after the rules of the format. A mapped IPv4 address in
    /// IPv6 form stands for the IPv4 address.
    pub fn values(&self, address: IpAddr) -> impl Iterator<Item = &Value> {
        let address = address.to_canonical();
        let datasets = self.datasets.iter();
        datasets.flat_map(move |dataset| dataset.values(address))
    }

    /// The values of a name below the zone, lower case, in wire form without the root.
    pub fn name_values<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a Value> {
        self.name_entries(name).map(|(_, value)| value)
    }

    /// The values of a name, as [`Self::name_values`] has them, each with the name of the entry: the subject of its
    /// text. For an entry such as `*.example.com` that is `example.com`.
    pub fn name_entries<'a>(
        &'a self,
        name: &'a [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a Value)> {
        let datasets = self.datasets.iter();
        datasets.flat_map(move |dataset| dataset.name_values(name))
    }

    /// The listed neighbours of a map: all neighbours with values.
    #[must_use]
    pub fn map(&self, name: MapName) -> Map {
        let maps = self.datasets.iter().map(|dataset| dataset.map(name));
        maps.fold(Map::EMPTY, Map::union)
    }

    /// Whether any address of a network is listed; `prefix` counts bits of the network's family, and more than the
    /// family has are as many as it has.
    #[must_use]
    pub fn has_within(&self, network: IpAddr, prefix: u8) -> bool {
        let prefix = u32::from(prefix);
        self.datasets.iter().any(|dataset| match network {
            IpAddr::V4(network) => {
                let hosts = u32::MAX.checked_shr(prefix).unwrap_or(0);
                let first = network.to_bits() & !hosts;
                dataset.has_v4(first, first | hosts)
            }
            IpAddr::V6(network) => {
                let hosts = u128::MAX.checked_shr(prefix).unwrap_or(0);
                let first = network.to_bits() & !hosts;
                dataset.has_v6(first, first | hosts)
            }
        })
    }

    /// Whether a listed name, a record or a subzone lies below a name, lower case, in wire form without the root.
    #[must_use]
    pub fn has_name_below(&self, name: &[u8]) -> bool {
        let listed = |dataset: &Arc<Dataset>| dataset.names.any_below(name);
        let subzone =
            |(zone, _): &(Box<[u8]>, Self)| zone.len() > name.len() && is_below(zone, name);
        self.datasets.iter().any(listed)
            || self.records.any_below(name)
            || self.subzones.iter().any(subzone)
    }

    /// The records of a name below the zone, lower case, in wire form without the root; the empty name is the zone's.
    #[must_use]
    pub fn records(&self, name: &[u8]) -> &[Record] {
        self.records.find(name)
    }

    /// The subzones of combined datasets: the name below the zone, in wire form without the root, and the data. A
    /// question belongs to the closest subzone alone; the head of the upper zone counts.
    pub fn subzones(&self) -> impl Iterator<Item = (&[u8], &Self)> {
        self.subzones.iter().map(|(name, zone)| (&**name, zone))
    }

    /// The special entries of the files.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Whether a dataset is one of names.
    #[must_use]
    pub fn has_names(&self) -> bool {
        self.datasets
            .iter()
            .any(|dataset| dataset.kind == Kind::DnSet)
    }

    /// The number of entries, those of subzones included: listed addresses, ranges of addresses and names as they lie in memory,
    /// without those that others hide, and records.
    #[must_use]
    pub fn entries(&self) -> usize {
        let own = self.datasets.iter().map(|dataset| dataset.entries());
        let parts = self.subzones.iter().map(|(_, part)| part.entries());
        own.chain(parts).sum::<usize>() + self.records.all().len()
    }

    /// Octets of memory that the sets need, those of subzones included. A set of several zones counts in each.
    #[must_use]
    pub fn memory(&self) -> usize {
        let own = self.datasets.iter().map(|dataset| dataset.memory());
        let parts = self.subzones.iter().map(|(_, part)| part.memory());
        own.chain(parts).sum()
    }
}

/// Whether a name ends with the labels of another.
fn is_below(name: &[u8], above: &[u8]) -> bool {
    name::reversed(name).starts_with(&name::reversed(above))
}
