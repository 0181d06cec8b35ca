//! Files with listed addresses, in the format `ip4set` of rbldnsd.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::net::Ipv4Addr;
use std::path::Path;

use super::questions::VALUE;
use super::random::Random;
use super::trace;

/// The head of each file: the authority of the zone, so that the absence of an address has its SOA record.
const HEAD: &str = "$TTL 86400\n$SOA 3600 ns.bl.test hostmaster.bl.test 1 600 300 86400 300\n$NS 3600 ns.bl.test\n";

/// How addresses lie in networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// As in Figure 12.
    Neighbours,
    /// Anywhere.
    Uniform,
}

impl Shape {
    /// The words of the shape in figures.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Neighbours => "as Figure 12",
            Self::Uniform => "without locality",
        }
    }

    /// So many different addresses.
    pub(super) fn addresses(self, count: usize, seed: u64) -> Vec<Ipv4Addr> {
        let mut random = Random::new(seed);
        let mut all = Vec::with_capacity(count);
        match self {
            Self::Neighbours => {
                // Each turn has networks of all sizes.
                let mut known = std::collections::HashSet::new();
                while all.len() < count {
                    let networks = trace::neighbourhoods(trace::NETWORKS, &mut random);
                    let fresh = networks
                        .into_iter()
                        .filter(|network| known.insert(network[0].to_bits() >> 8));
                    all.extend(fresh.flatten());
                }
                all.truncate(count);
            }
            Self::Uniform => {
                let mut known = std::collections::HashSet::with_capacity(count);
                while known.len() < count {
                    known.insert(trace::address(&mut random));
                }
                all.extend(known);
                all.sort_unstable();
            }
        }
        all
    }
}

/// Writes a file with addresses in place of an older file; no reader sees half a file.
pub(super) fn write(file: &Path, addresses: &[Ipv4Addr]) -> io::Result<()> {
    let fresh = file.with_extension("new");
    let mut out = BufWriter::new(File::create(&fresh)?);
    writeln!(out, "{HEAD}:{VALUE}:Listed, see https://bl.test/?$")?;
    for address in addresses {
        writeln!(out, "{address}")?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?;
    fs::rename(fresh, file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_shape_has_different_addresses_and_only_one_has_neighbours() {
        let of = |shape: Shape| {
            let all = shape.addresses(20_000, 9);
            let different: HashSet<_> = all.iter().collect();
            assert_eq!((all.len(), different.len()), (20_000, 20_000));
            let networks = all.iter().map(|one| one.to_bits() >> 8);
            networks.collect::<HashSet<_>>().len()
        };
        assert!(of(Shape::Neighbours) < 4_000);
        assert!(of(Shape::Uniform) > 19_900);
    }

    #[test]
    fn a_file_has_its_head_and_a_line_for_each_address() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list");
        for count in [1, 2] {
            let addresses = &[Ipv4Addr::new(20, 0, 0, 1), Ipv4Addr::new(20, 0, 0, 2)];
            write(&file, &addresses[..count]).unwrap();
            let text = fs::read_to_string(&file).unwrap();
            assert_eq!(text.lines().count(), 4 + count, "{text}");
            assert!(text.ends_with(&format!("\n20.0.0.{count}\n")), "{text}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
