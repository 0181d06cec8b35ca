//! Inodes known to the kernel, each with the number of look-ups.
//!
//! A kernel with enough memory forgets no inode: with 1,000,000 files the table is the longest of a mount. So an entry has 16
//! octets, and the homes of folders lie apart.

use std::collections::HashMap;

use vere_ports::files::Inode;

use crate::rows::Home;

/// Inodes known to the kernel.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Look-ups still known to the kernel. A number at the bound stays: the mount then knows the inode until the unmount.
    counts: HashMap<Inode, u32>,
    /// The homes of folders.
    homes: HashMap<Inode, Home>,
}

impl Lookups {
    /// Whether the kernel knows an inode.
    pub(super) fn has(&self, inode: Inode) -> bool {
        self.counts.contains_key(&inode)
    }

    /// A further look-up of a file, or of a folder with a home.
    pub(super) fn add(&mut self, inode: Inode, home: Option<Home>) {
        let count = self.counts.entry(inode).or_insert(0);
        if *count == 0
            && let Some(home) = home
        {
            self.homes.insert(inode, home);
        }
        *count = count.saturating_add(1);
    }

    /// The kernel has forgotten some look-ups. Returns whether no look-up is left.
    pub(super) fn remove(&mut self, inode: Inode, lookups: u64) -> bool {
        let Some(count) = self.counts.get_mut(&inode).filter(|of| **of < u32::MAX) else {
            return false;
        };
        *count = count.saturating_sub(u32::try_from(lookups).unwrap_or(u32::MAX));
        *count == 0 && self.counts.remove(&inode).is_some()
    }

    /// Inodes that the kernel knows, with the homes of folders.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Inode, Option<Home>)> + '_ {
        let known = self.counts.keys();
        known.map(|inode| (*inode, self.homes.get(inode).copied()))
    }

    /// Takes the home of a folder forgotten by the kernel.
    pub(super) fn take_home(&mut self, inode: Inode) -> Option<Home> {
        self.homes.remove(&inode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Inode = Inode(5);
    const FOLDER: Inode = Inode(6);

    #[test]
    fn an_inode_is_known_until_the_last_look_up_is_forgotten() {
        let mut lookups = Lookups::default();
        for _ in 0..3 {
            lookups.add(FILE, None);
            lookups.add(FOLDER, Some(7));
        }
        let mut known: Vec<_> = lookups.iter().collect();
        known.sort_unstable();
        assert_eq!(known, [(FILE, None), (FOLDER, Some(7))]);
        assert!(!lookups.remove(FILE, 2) && lookups.has(FILE));
        assert!(lookups.remove(FILE, 1) && !lookups.has(FILE));
        assert!(!lookups.remove(FILE, 1));
        assert!(lookups.remove(FOLDER, u64::MAX));
        assert_eq!(lookups.take_home(FOLDER), Some(7));
        assert_eq!(lookups.take_home(FOLDER), None);
    }

    /// Beyond the bound the number is not known any more, so the inode stays.
    #[test]
    fn a_number_at_its_bound_stays() {
        let mut lookups = Lookups::default();
        lookups.counts.insert(FILE, u32::MAX - 1);
        lookups.add(FILE, None);
        lookups.add(FILE, None);
        assert!(!lookups.remove(FILE, 1) && !lookups.remove(FILE, u64::MAX));
        assert!(lookups.has(FILE));
    }

    /// 17 octets for each of 2^21 places: 36 MB with 1,000,000 files.
    #[test]
    fn an_entry_has_16_octets() {
        assert_eq!(size_of::<(Inode, u32)>(), 16);
    }
}
