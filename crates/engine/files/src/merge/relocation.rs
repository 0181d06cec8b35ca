//! Compaction moves chunks and changes no content: rows of extents get other places, and sizes, lengths and the version of the
//! content stay. A file written anew lies in new pieces as well. Such a change is no change of a file to the merge. The
//! winner's places count on both sides; places of the loser's are dropped where the winner has touched the file, and a later
//! collection moves the chunks again.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use vere_ports::files::Inode;

use crate::rows::{
    Extent, InodeRow, Key, Run, decode_extents, encode_extents, extents_prefix, inode_key,
};
use crate::tree::{Side, Sides};

/// New places of chunks, by the places before.
pub type Places = HashMap<Extent, Extent>;

/// The changes of two sides without those that only move chunks.
pub(super) struct Content<'a> {
    pub(super) ours: Cow<'a, Sides>,
    pub(super) theirs: Cow<'a, Sides>,
    /// Where the winner has moved chunks.
    pub(super) places: Places,
    /// Rows of files written anew by the winner and changed by the loser: the base of the rows of the loser.
    pub(super) restored: Vec<(Vec<u8>, Option<Bytes>)>,
}

impl<'a> Content<'a> {
    /// `dirty` are files with octets of the loser's that no row tells.
    pub(super) fn of(ours: &'a Sides, theirs: &'a Sides, dirty: &BTreeSet<Inode>) -> Self {
        let mut content = Self {
            ours: Cow::Borrowed(ours),
            theirs: Cow::Borrowed(theirs),
            places: Places::new(),
            restored: Vec::new(),
        };
        for inode in laid_out_anew(theirs) {
            content.settle_layout(inode);
        }
        for (inode, places) in moved(theirs) {
            content.places.extend(places);
            content.take_theirs(inode);
        }
        let moved_by_us = moved(ours).into_iter().map(|(inode, _)| inode);
        for inode in moved_by_us.chain(laid_out_anew(ours)) {
            let is_touched = has_rows(theirs, inode);
            let is_written = dirty.contains(&inode) && has_rows(&content.theirs, inode);
            if is_touched && !is_written {
                content.drop_ours(inode);
            }
        }
        content.move_ours();
        content
    }

    /// The winner has written a file anew, with the content as it was. Rows of the loser's with another content count; else the
    /// winner's do.
    fn settle_layout(&mut self, inode: Inode) {
        let ours_is_content =
            !extents_of(&self.ours, inode).is_empty() && !is_layout(&self.ours, inode);
        if !ours_is_content {
            self.drop_ours(inode);
        }
        for key in extents_of(&self.theirs, inode) {
            let side = self.theirs.to_mut().remove(&key);
            if let Some(side) = side.filter(|_| ours_is_content) {
                self.restored.push((key, side.base));
            }
        }
    }

    /// The winner's new places of a file are what both sides begin with.
    fn take_theirs(&mut self, inode: Inode) {
        for key in extents_of(&self.theirs, inode) {
            let now = self.theirs.get(&key).and_then(|side| side.now.clone());
            if self.ours.contains_key(&key)
                && let Some(ours) = self.ours.to_mut().get_mut(&key)
            {
                ours.base = now;
            }
            self.theirs.to_mut().remove(&key);
        }
    }

    fn drop_ours(&mut self, inode: Inode) {
        for key in extents_of(&self.ours, inode) {
            self.ours.to_mut().remove(&key);
        }
    }

    /// What the loser's rows name is named where the winner has it.
    fn move_ours(&mut self) {
        if self.places.is_empty() {
            return;
        }
        let mut changed = Vec::new();
        for (key, side) in self.ours.iter() {
            let (Ok(Key::Extents { offset, .. }), Some(now)) = (Key::decode(key), &side.now) else {
                continue;
            };
            let Ok(mut runs) = decode_extents(offset, now) else {
                continue;
            };
            if replace(&mut runs, &self.places) {
                changed.push((key.clone(), encode_extents(&runs)));
            }
        }
        for (key, now) in changed {
            if let Some(side) = self.ours.to_mut().get_mut(&key) {
                side.now = Some(now.into());
            }
        }
    }
}

/// Puts new places into runs. Returns whether a run has changed.
fn replace(runs: &mut [Run], places: &Places) -> bool {
    let mut is_changed = false;
    for run in runs {
        if let Some(place) = run.extent.and_then(|extent| places.get(&extent)) {
            run.extent = Some(*place);
            is_changed = true;
        }
    }
    is_changed
}

/// Files of which a side has moved chunks and changed no content.
fn moved(sides: &Sides) -> Vec<(Inode, Places)> {
    let of = |inode: Inode| Some((inode, places_of(sides, inode)?));
    written(sides).into_iter().filter_map(of).collect()
}

/// Files whose rows of extents a side has changed.
fn written(sides: &Sides) -> Vec<Inode> {
    let mut files: Vec<Inode> = Vec::new();
    for key in sides.keys() {
        if let Ok(Key::Extents { inode, .. }) = Key::decode(key)
            && files.last() != Some(&inode)
        {
            files.push(inode);
        }
    }
    files
}

/// The new places of a file's chunks; none if the content has changed.
fn places_of(sides: &Sides, inode: Inode) -> Option<Places> {
    if let Some(side) = sides.get(&inode_key(inode)[..]) {
        let [base, now] = [&side.base, &side.now].map(|row| InodeRow::decode(row.as_deref()?).ok());
        let (base, now) = (base?, now?);
        if (base.size, base.generation) != (now.size, now.generation) {
            return None;
        }
    }
    let mut places = Places::new();
    for key in extents_of(sides, inode) {
        let (Key::Extents { offset, .. }, side) = (Key::decode(&key).ok()?, sides.get(&key)?)
        else {
            return None;
        };
        places.extend(places_of_row(offset, side)?);
    }
    Some(places)
}

fn places_of_row(offset: u64, side: &Side) -> Option<Places> {
    let base = decode_extents(offset, side.base.as_deref()?).ok()?;
    let now = decode_extents(offset, side.now.as_deref()?).ok()?;
    if base.len() != now.len() {
        return None;
    }
    let mut places = Places::new();
    for (base, now) in base.iter().zip(&now) {
        if (base.length, base.skip) != (now.length, now.skip) {
            return None;
        }
        match (base.extent, now.extent) {
            (Some(base), Some(now)) if base != now => {
                places.insert(base, now);
            }
            (base, now) if base == now => {}
            _ => return None,
        }
    }
    Some(places)
}

/// Files written anew by a side: rows of extents change, and the version of the content stays.
fn laid_out_anew(sides: &Sides) -> Vec<Inode> {
    let mut files = written(sides);
    files.retain(|inode| is_layout(sides, *inode) && places_of(sides, *inode).is_none());
    files
}

/// Whether a side has changed rows of extents and no content: every change of content changes the version.
fn is_layout(sides: &Sides, inode: Inode) -> bool {
    let Some(side) = sides.get(&inode_key(inode)[..]) else {
        return true;
    };
    let [base, now] = [&side.base, &side.now].map(|row| InodeRow::decode(row.as_deref()?).ok());
    match (base, now) {
        (Some(base), Some(now)) => (base.size, base.generation) == (now.size, now.generation),
        _ => false,
    }
}

fn extents_of(sides: &Sides, inode: Inode) -> Vec<Vec<u8>> {
    let prefix = extents_prefix(inode);
    let rows = sides.range(prefix.to_vec()..);
    let rows = rows.take_while(|(key, _)| key.starts_with(&prefix));
    rows.map(|(key, _)| key.clone()).collect()
}

/// Whether a side has changed the content or the attributes of a file.
fn has_rows(sides: &Sides, inode: Inode) -> bool {
    sides.contains_key(&inode_key(inode)[..]) || !extents_of(sides, inode).is_empty()
}
