//! `vere dnsbl stats`: how large a list is, and how its addresses lie.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;
use vere_dnsbl::data::ZoneData;
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;
use vere_process::wording::size;

use super::source::SourceArgs;
use vere_process::json::printed;

/// Addresses of a /24.
const NETWORK: usize = 256;

/// Count what a list has: addresses, networks, maps, memory, and listed addresses per /24.
///
/// The distribution shows how many neighbours one answer with a map tells apart.
///
/// Example: vere dnsbl stats drop.txt
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct StatsArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Print JSON: an object with `ipv4` (`ranges`, `addresses`, `networks_24`, `maps`, and `per_network_24`, the
    /// number of /24s for each number of listed addresses), `ipv6`, `names` and `records`.
    #[arg(long)]
    json: bool,
}

/// Counts of the blocks of one size that ranges touch, in order.
#[derive(Debug)]
pub(super) struct Blocks<F> {
    /// Bits of an address below the block.
    below: u32,
    open: Option<(u32, u64)>,
    each: F,
}

impl<F: FnMut(u32, u64)> Blocks<F> {
    /// Calls a function for each block with listed addresses: the upper bits, and the number of addresses.
    pub(super) fn new(below: u32, each: F) -> Self {
        Self {
            below,
            open: None,
            each,
        }
    }

    /// Takes the next range.
    pub(super) fn range(&mut self, first: u32, last: u32) {
        let (from, until) = (first >> self.below, last >> self.below);
        for block in from..=until {
            let base = block << self.below;
            let start = first.max(base);
            let end = last.min(base + ((1 << self.below) - 1));
            let count = u64::from(end - start) + 1;
            match &mut self.open {
                Some((open, sum)) if *open == block => *sum += count,
                _ => {
                    self.close();
                    self.open = Some((block, count));
                }
            }
        }
    }

    /// Ends the last block.
    pub(super) fn close(&mut self) {
        if let Some((block, count)) = self.open.take() {
            (self.each)(block, count);
        }
    }
}

/// What a list has.
#[derive(Debug)]
struct Stats {
    v4_ranges: u64,
    v4_addresses: u64,
    v4_maps: u64,
    /// The number of /24s with so many listed addresses.
    per_network: Vec<u64>,
    v6_ranges: u64,
    v6_networks: u128,
    names: u64,
    records: u64,
    memory: u64,
}

impl Stats {
    fn of(zone: &ZoneData) -> Self {
        let mut stats = Self {
            v4_ranges: 0,
            v4_addresses: 0,
            v4_maps: 0,
            per_network: vec![0; NETWORK + 1],
            v6_ranges: 0,
            v6_networks: 0,
            names: 0,
            records: zone.all_records().len() as u64,
            memory: zone.memory() as u64,
        };
        let mut networks = Blocks::new(8, |_, count| {
            if let Some(networks) = stats.per_network.get_mut(count as usize) {
                *networks += 1;
            }
        });
        let mut maps = Blocks::new(7, |_, _| stats.v4_maps += 1);
        zone.each_v4(|first, last, _| {
            let (first, last) = (first.to_bits(), last.to_bits());
            stats.v4_ranges += 1;
            stats.v4_addresses += u64::from(last - first) + 1;
            networks.range(first, last);
            maps.range(first, last);
        });
        networks.close();
        maps.close();
        let mut counted = None;
        zone.each_v6(|first, last, _| {
            let (first, last) = (first.to_bits() >> 64, last.to_bits() >> 64);
            stats.v6_ranges += 1;
            stats.v6_networks += last - first + u128::from(counted != Some(first));
            counted = Some(last);
        });
        zone.each_name(|_, _, values| stats.names += u64::from(!values.is_empty()));
        stats
    }

    fn networks(&self) -> u64 {
        self.per_network.iter().sum()
    }

    /// The distribution by powers of two: bounds, number of /24s, and the share of /24s up to the upper bound.
    fn distribution(&self) -> Vec<(usize, usize, u64, f64)> {
        let all = self.networks().max(1) as f64;
        let mut below = 0;
        let bounds = (0..=8).map(|power| (1 << power, (2 << power) - 1));
        bounds
            .map(|(from, until): (usize, usize)| {
                let until = until.min(NETWORK);
                let counts = self.per_network.get(from..=until).unwrap_or_default();
                let count = counts.iter().sum();
                below += count;
                (from, until, count, below as f64 / all)
            })
            .collect()
    }

    fn json(&self) -> serde_json::Value {
        let counts = self.per_network.iter().enumerate();
        let counts = counts.filter(|(_, networks)| **networks > 0);
        let per_network: Vec<_> = counts
            .map(|(addresses, networks)| json!({ "addresses": addresses, "networks": networks }))
            .collect();
        json!({
            "ipv4": {
                "ranges": self.v4_ranges,
                "addresses": self.v4_addresses,
                "networks_24": self.networks(),
                "maps": self.v4_maps,
                "per_network_24": per_network,
            },
            "ipv6": { "ranges": self.v6_ranges, "networks_64": self.v6_networks.to_string() },
            "names": self.names,
            "records": self.records,
            "memory": self.memory,
        })
    }

    fn text(&self) -> String {
        let mut text = format!(
            "IPv4   {} in {}, {}, {} of a /25\n",
            counted(self.v4_addresses, "address", "addresses"),
            counted(self.v4_ranges, "range", "ranges"),
            counted(self.networks(), "/24", "/24s"),
            counted(self.v4_maps, "map", "maps"),
        );
        let _ = writeln!(
            text,
            "IPv6   {} in {}",
            counted(self.v6_ranges, "range", "ranges"),
            counted(self.v6_networks, "/64", "/64s"),
        );
        let _ = writeln!(
            text,
            "names  {}, {}",
            counted(self.names, "name", "names"),
            counted(self.records, "record", "records"),
        );
        let _ = writeln!(text, "memory {}", size(self.memory));
        if self.networks() > 0 {
            text += "\nlisted per /24       /24s   share at most so many\n";
            for (from, until, count, share) in self.distribution() {
                let bounds = match from == until {
                    true => from.to_string(),
                    false => format!("{from}-{until}"),
                };
                let _ = writeln!(text, "{bounds:<14} {count:>10}   {:>5.1} %", 100.0 * share);
            }
        }
        text
    }
}

/// A number with its noun.
fn counted(count: impl Into<u128>, one: &str, several: &str) -> String {
    let count = count.into();
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Runs the command.
///
/// # Errors
/// When a file cannot be read or has an error.
pub(super) fn run(args: &StatsArgs) -> Result<Outcome, Failure> {
    let zone = args.source.read()?;
    let stats = Stats::of(&zone);
    let text = stats.text();
    Ok(Outcome::Print(printed(args.json, stats.json(), text)))
}
