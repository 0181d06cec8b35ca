//! Packs of open commits: a merge may bring their rows into the chain, so that no collection removes their mails before.

use std::collections::HashSet;

use vere_ports::storage::Storage;

use super::super::state::Volume;
use super::scan::packs_of;
use crate::rows::Key;

impl<S: Storage> Volume<S> {
    /// Packs that rows of commits name which nobody has merged, stranded ones too.
    pub(super) fn packs_of_open(&self) -> HashSet<u64> {
        let open = self.follow.outside.iter();
        let open = open.filter(|(id, _)| self.follow.is_open(**id));
        let mut packs = HashSet::new();
        for row in open.flat_map(|(_, outside)| &outside.found.record.rows) {
            if let Ok(Key::Pack(pack)) = Key::decode(&row.key) {
                packs.insert(pack);
            }
            let value = row.value.as_deref().unwrap_or_default();
            packs.extend(packs_of(&row.key, value).iter().map(|pack| pack.0));
        }
        packs
    }
}
