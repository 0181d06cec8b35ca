//! Where each folder of a past state goes. Rows of different times may name a folder twice, below itself, or not at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use vere_ports::files::Inode;

use super::facts::Facts;
use crate::rows::Home;

/// Folders by homes.
pub(super) fn owners(facts: &Facts) -> HashMap<Home, u64> {
    let folders = facts.nodes.iter().filter(|(_, node)| node.is_folder());
    let mut owners = HashMap::new();
    for (inode, node) in folders {
        // The root folder comes first.
        owners.entry(node.home).or_insert(*inode);
    }
    owners
}

/// Gives each folder a single entry: in the parent by the folder's row, if possible. A folder in a circle
/// gets no entry.
pub(super) fn hang(facts: &mut Facts, owners: &HashMap<Home, u64>) {
    let mut above = BTreeMap::new();
    for (inode, homes) in &facts.folders {
        let Some(node) = facts.nodes.get(inode).filter(|node| node.is_folder()) else {
            continue;
        };
        let is_parent = |home: &&Home| owners.get(*home) == Some(&node.parent);
        let is_known = |home: &&Home| owners.contains_key(*home);
        let mut homes = homes.iter();
        let best = homes.clone().find(is_parent);
        let best = best.or_else(|| homes.clone().find(is_known));
        above.extend(best.or_else(|| homes.next()).map(|home| (*inode, *home)));
    }
    above.remove(&Inode::ROOT.0);
    let mut sound: BTreeSet<u64> = BTreeSet::new();
    for start in above.keys().copied().collect::<Vec<_>>() {
        let mut path = BTreeSet::new();
        let mut at = start;
        while !sound.contains(&at) {
            if !path.insert(at) {
                // The path is a circle.
                above.remove(&at);
                break;
            }
            let home = above.get(&at);
            match home.and_then(|home| owners.get(home)) {
                Some(folder) => at = *folder,
                None => break,
            }
        }
        sound.append(&mut path);
    }
    for (inode, node) in &mut facts.nodes {
        node.above = above.get(inode).copied();
    }
}

/// Marks the folder of a home as needed, and all folders above.
pub(super) fn need(facts: &mut Facts, owners: &HashMap<Home, u64>, home: Home) {
    let mut home = Some(home);
    while let Some(folder) = home.and_then(|home| owners.get(&home)) {
        let Some(node) = facts.nodes.get_mut(folder) else {
            return;
        };
        if std::mem::replace(&mut node.is_needed, true) {
            return;
        }
        home = node.above;
    }
}
