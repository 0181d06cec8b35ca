//! The whole content of a zone, for dumps, conversions and statistics.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::addresses::{Addresses, Family, V4, V6};
use super::dataset::Dataset;
use super::records::Record;
use super::spans::{Entry, Spans};
use super::value::Value;
use super::zone::ZoneData;

impl ZoneData {
    /// Calls a function for each range of listed IPv4 addresses, in order: first and last address, and their values.
    /// Ranges do not overlap.
    pub fn each_v4(&self, mut range: impl FnMut(Ipv4Addr, Ipv4Addr, &[&Value])) {
        self.each_range::<V4>(
            |dataset| &dataset.v4,
            |first, last, values| range(first.into(), last.into(), values),
        );
    }

    /// Calls a function for each range of listed IPv6 addresses, as [`Self::each_v4`] does.
    pub fn each_v6(&self, mut range: impl FnMut(Ipv6Addr, Ipv6Addr, &[&Value])) {
        self.each_range::<V6>(
            |dataset| &dataset.v6,
            |first, last, values| range(first.into(), last.into(), values),
        );
    }

    /// Calls a function for each name of each dataset: the name in wire form without the root, whether the entry is for
    /// all names below instead, and its values. An entry without values takes the name out of its dataset.
    pub fn each_name(&self, mut entry: impl FnMut(&[u8], bool, &[&Value])) {
        for dataset in &self.datasets {
            for (name, below, listing) in dataset.names.iter() {
                let values: Vec<&Value> = dataset.listed(listing).collect();
                entry(&name, below, &values);
            }
        }
    }

    /// The records of all names.
    #[must_use]
    pub fn all_records(&self) -> &[Record] {
        self.records.all()
    }

    fn each_range<F: Family>(
        &self,
        of: impl Fn(&Dataset) -> &Addresses<F>,
        mut range: impl FnMut(F::Address, F::Address, &[&Value]),
    ) {
        let mut values = Vec::new();
        if let [dataset] = self.datasets.as_slice() {
            of(dataset).each(|first, last, listing| {
                values.clear();
                values.extend(dataset.listed(Some(listing)));
                range(first, last, &values);
            });
            return;
        }
        let (spans, sources) = overlaid(&self.datasets, of);
        for (first, last, source) in spans.iter() {
            values.clear();
            for (dataset, listing) in sources.get(source as usize).into_iter().flatten() {
                let dataset = self.datasets.get(*dataset);
                values.extend(
                    dataset
                        .into_iter()
                        .flat_map(|dataset| dataset.listed(Some(*listing))),
                );
            }
            range(first, last, &values);
        }
    }
}

/// The places of datasets, each with a listing of its own.
type Sources = Vec<(usize, u32)>;

/// The ranges of several datasets over each other: each has the place of its sources.
fn overlaid<F: Family>(
    datasets: &[Arc<Dataset>],
    of: impl Fn(&Dataset) -> &Addresses<F>,
) -> (Spans<F::Address>, Vec<Sources>) {
    let mut known = HashMap::new();
    let mut pairs = Vec::new();
    let mut entries = Vec::new();
    for (place, dataset) in datasets.iter().enumerate() {
        of(dataset).each(|start, end, listing| {
            let value = *known.entry((place, listing)).or_insert_with(|| {
                pairs.push((place, listing));
                pairs.len() as u32 - 1
            });
            entries.push(Entry {
                start,
                end,
                level: 0,
                value,
            });
        });
    }
    let mut groups: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut sources: Vec<Sources> = Vec::new();
    let spans = Spans::of(entries, |values| {
        *groups.entry(values.to_vec()).or_insert_with(|| {
            let pairs = values.iter().filter_map(|value| pairs.get(*value as usize));
            sources.push(pairs.copied().collect());
            sources.len() as u32 - 1
        })
    });
    (spans, sources)
}
