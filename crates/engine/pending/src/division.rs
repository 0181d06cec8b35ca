//! More rows than one commit has room for go in several. Rows that belong together go together: the names of an inode with the
//! inode, whose links count the names, and the name of a folder with the folder above, whose links count folders. So the rows of a
//! part are a tree with right links, and other mounts see no name without its file.

use std::collections::HashMap;

use vere_ports::files::{FileKind, Inode};

use crate::format::commit::{RowChange, rows_that_fit};
use crate::rows::{Home, InodeRow, Key, decode_entry};

/// The first octet of the keys of rows about the volume.
const VOLUME: u8 = 1;

/// Divides rows, in the order of their keys, into those of the next commit and the keys of the others. `before` has the earlier
/// values. Rows that belong together and are too many for one commit go apart.
#[must_use]
pub fn divide(
    rows: Vec<RowChange>,
    rows_max: usize,
    before: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> (Vec<RowChange>, Vec<Vec<u8>>) {
    if rows.len() <= rows_max && rows_that_fit(&rows) == rows.len() {
        return (rows, Vec::new());
    }
    let mut units = Units::of(&rows);
    units.join_all(&rows, before);
    let firsts: Vec<usize> = (0..rows.len()).map(|row| units.first(row)).collect();
    let turns = rows
        .iter()
        .zip(firsts)
        .map(|(row, first)| (turn(row), first));
    let mut ordered: Vec<((u8, usize), RowChange)> = turns.zip(rows.iter().cloned()).collect();
    ordered.sort_by_key(|(turn, _)| *turn);
    let (turns, rows): (Vec<_>, Vec<_>) = ordered.into_iter().unzip();
    share(&turns, rows, rows_max)
}

/// The first rows as far as they fit, up to the end of a unit where one ends there.
fn share(
    turns: &[(u8, usize)],
    mut rows: Vec<RowChange>,
    rows_max: usize,
) -> (Vec<RowChange>, Vec<Vec<u8>>) {
    // A row alone always fits.
    let room = rows_that_fit(&rows).min(rows_max).max(1);
    let ends = |count: &usize| turns.get(count.wrapping_sub(1)) != turns.get(*count);
    let count = (1..=room).rev().find(ends).unwrap_or(room);
    let rest = rows.split_off(count.min(rows.len()));
    rows.sort_by(|one, other| one.key.cmp(&other.key));
    (rows, rest.into_iter().map(|row| row.key).collect())
}

/// When a row goes: rows of the volume at once, packs before the extents that name them, extents before their files or behind them.
fn turn(row: &RowChange) -> u8 {
    match (Key::decode(&row.key), &row.value) {
        _ if row.key.first() == Some(&VOLUME) => 0,
        (Ok(Key::Entry { .. } | Key::Inode(_) | Key::Unnamed { .. }), _) => 2,
        (Ok(Key::Xattr { .. } | Key::Extents { .. }), Some(_)) => 1,
        (_, Some(_)) => 0,
        (_, None) => 3,
    }
}

/// Rows that go together, by the number of one of them; and who stands for an inode, and for the folder of a home.
struct Units {
    above: Vec<usize>,
    inodes: HashMap<Inode, usize>,
    homes: HashMap<Home, usize>,
}

impl Units {
    fn of(rows: &[RowChange]) -> Self {
        Self {
            above: (0..rows.len()).collect(),
            inodes: HashMap::new(),
            homes: HashMap::new(),
        }
    }

    fn first(&mut self, mut row: usize) -> usize {
        while let Some(above) = self.above.get(row).copied().filter(|above| *above != row) {
            let further = self.above.get(above).copied().unwrap_or(above);
            if let Some(place) = self.above.get_mut(row) {
                *place = further;
            }
            row = above;
        }
        row
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first(one), self.first(other));
        if let Some(place) = self.above.get_mut(one.max(other)) {
            *place = one.min(other);
        }
    }

    fn join_inode(&mut self, row: usize, inode: Inode) {
        let other = *self.inodes.entry(inode).or_insert(row);
        self.join(row, other);
    }

    fn join_home(&mut self, row: usize, home: Home) {
        let other = *self.homes.entry(home).or_insert(row);
        self.join(row, other);
    }

    fn join_all(&mut self, rows: &[RowChange], before: impl Fn(&[u8]) -> Option<Vec<u8>>) {
        for (number, row) in rows.iter().enumerate() {
            let values = || [before(&row.key), row.value.clone()].into_iter().flatten();
            match Key::decode(&row.key) {
                Ok(Key::Inode(inode)) => {
                    self.join_inode(number, inode);
                    let folders = values().filter_map(|value| InodeRow::decode(&value).ok());
                    for folder in folders.filter(InodeRow::is_folder) {
                        self.join_home(number, folder.home_or_device);
                    }
                }
                Ok(Key::Unnamed { inode, .. }) => self.join_inode(number, inode),
                Ok(Key::Entry { home, .. }) => {
                    for entry in values().filter_map(|value| decode_entry(&value).ok()) {
                        self.join_inode(number, entry.inode);
                        if entry.kind == FileKind::Folder {
                            self.join_home(number, home);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::divide;
    use crate::format::commit::RowChange;
    use crate::format::{ROW_OCTETS_MAX, ROWS_MAX, VALUE_OCTETS_MAX};
    use crate::rows::{EntryRow, InodeRow, Key, encode_entry};
    use vere_ports::files::{FileKind, FileTime, Inode};

    const ROOT: Inode = Inode(1);

    fn change(key: &Key<'_>, value: Option<Vec<u8>>) -> RowChange {
        let key = key.encode();
        RowChange { key, value }
    }

    fn name(home: u64, name: &str, to: Option<(u64, FileKind)>) -> RowChange {
        let name = name.as_bytes();
        let row = |(inode, kind)| EntryRow {
            inode: Inode(inode),
            kind,
        };
        change(
            &Key::Entry { home, name },
            to.map(|to| encode_entry(row(to))),
        )
    }

    fn inode(inode: Inode, home: Option<u64>) -> RowChange {
        let time = FileTime::default();
        let row = InodeRow {
            kind: home.map_or(FileKind::File, |_| FileKind::Folder),
            mode: 0o644,
            links: 1,
            uid: 0,
            gid: 0,
            size: 0,
            home_or_device: home.unwrap_or(0),
            parent: 0,
            generation: 0,
            atime: time,
            mtime: time,
            ctime: time,
            btime: time,
            target: Vec::new(),
        };
        change(&Key::Inode(inode), Some(row.encode()))
    }

    fn sorted(rows: impl IntoIterator<Item = RowChange>) -> Vec<RowChange> {
        let mut rows: Vec<RowChange> = rows.into_iter().collect();
        rows.sort_by(|one, other| one.key.cmp(&other.key));
        rows
    }

    fn plain(number: u64, value: Option<Vec<u8>>) -> RowChange {
        change(&Key::Pack(number), value)
    }

    /// The parts of rows, one after the other. `before` are the earlier rows.
    fn parts(rows: &[RowChange], rows_max: usize, before: &[RowChange]) -> Vec<Vec<RowChange>> {
        let mut rows = sorted(rows.iter().cloned());
        let mut parts = Vec::new();
        while !rows.is_empty() {
            let earlier = |key: &[u8]| {
                let mut before = before.iter();
                before.find(|row| row.key == key)?.value.clone()
            };
            let (part, rest) = divide(rows.clone(), rows_max, earlier);
            assert!(part.is_sorted_by(|one, other| one.key < other.key));
            rows.retain(|row| rest.contains(&row.key));
            parts.push(part);
        }
        parts
    }

    #[test]
    fn rows_that_fit_go_together() {
        let none = |_: &[u8]| None;
        let rows: Vec<RowChange> = (0..9).map(|number| plain(number, None)).collect();
        assert_eq!(divide(rows.clone(), 9, none), (rows.clone(), Vec::new()));
        assert_eq!(divide(rows, 8, none).1.len(), 1);
        let rows = (0..=ROWS_MAX as u64).map(|of| plain(of, None)).collect();
        let (first, rest) = divide(rows, usize::MAX, none);
        assert_eq!((first.len(), rest.len()), (ROWS_MAX, 1));
        assert_eq!(divide(Vec::new(), 8, none), (Vec::new(), Vec::new()));
        // Never none.
        let rows = vec![plain(1, None), plain(2, None)];
        assert_eq!(divide(rows, 0, none).0.len(), 1);
    }

    #[test]
    fn octets_count_too() {
        let long = Some(vec![1; VALUE_OCTETS_MAX]);
        let rows = (0..30).map(|number| plain(number, long.clone())).collect();
        let (first, rest) = divide(rows, ROWS_MAX, |_| None);
        assert_eq!(first.len(), ROW_OCTETS_MAX / (VALUE_OCTETS_MAX + 9));
        assert_eq!(first.len() + rest.len(), 30);
    }

    #[test]
    fn packs_go_first_and_removals_last() {
        let extents = |offset| Key::Extents {
            inode: Inode(5),
            offset,
        };
        let (pack, gone) = (plain(7, Some(vec![7])), plain(8, None));
        let new = change(&extents(0), Some(vec![1]));
        let old = change(&extents(1), None);
        let file = inode(Inode(5), None);
        let all = [&old, &file, &new, &gone, &pack].map(Clone::clone);
        let turns: Vec<RowChange> = parts(&all, 1, &[]).concat();
        assert_eq!(turns, [pack, new, file, old, gone]);
    }

    #[test]
    fn an_inode_goes_with_its_names() {
        let of = |number: u64| {
            let named = name(
                0,
                &format!("{:02}", 20 - number),
                Some((number, FileKind::File)),
            );
            [named, inode(Inode(number), None)]
        };
        let all: Vec<RowChange> = (2..12).flat_map(of).collect();
        for part in parts(&all, 5, &[]) {
            assert_eq!(part.len(), if part.len() == 2 { 2 } else { 4 });
            for row in &part {
                if let Ok(Key::Inode(Inode(number))) = Key::decode(&row.key) {
                    assert!(part.contains(&of(number)[0]), "{number}");
                }
            }
        }
        // A removal goes with the inode that the name had, and a move with both names.
        let before: Vec<RowChange> = (2..12).flat_map(of).collect();
        let removed = [
            name(0, "18", None),
            change(&Key::Inode(Inode(2)), None),
            name(0, "17", None),
            name(9, "new", Some((3, FileKind::File))),
            name(0, "16", None),
            name(0, "other", Some((4, FileKind::File))),
        ];
        for part in parts(&removed, 3, &before) {
            assert_eq!(part.len(), 2, "{part:?}");
        }
    }

    /// Names of files in the root folder that come first.
    fn names(count: u64) -> impl Iterator<Item = RowChange> {
        (10..10 + count).map(|of| name(0, &of.to_string(), Some((of, FileKind::File))))
    }

    #[test]
    fn a_folder_goes_with_the_folder_above_and_files_do_not() {
        let linked = [
            inode(ROOT, Some(0)),
            name(0, "d", Some((2, FileKind::Folder))),
            inode(Inode(2), Some(50)),
            name(50, "e", Some((3, FileKind::Folder))),
            inode(Inode(3), Some(60)),
        ];
        let all: Vec<RowChange> = names(2).chain(linked.clone()).collect();
        let found = parts(&all, 6, &[]);
        assert_eq!(found, [sorted(names(2)), sorted(linked.clone())]);
        // A removed folder leaves the folder above with its inode.
        let gone = [
            inode(ROOT, Some(0)),
            name(0, "d", None),
            change(&Key::Inode(Inode(2)), None),
        ];
        let all: Vec<RowChange> = names(2).chain(gone.clone()).collect();
        let found = parts(&all, 4, &linked);
        assert_eq!(found, [sorted(names(2)), sorted(gone)]);
    }

    #[test]
    fn an_open_file_without_a_name_goes_with_its_mark() {
        let unnamed = Key::Unnamed {
            writer: 1,
            inode: Inode(5),
        };
        let open = [change(&unnamed, Some(vec![1])), inode(Inode(5), None)];
        let all: Vec<RowChange> = names(3).chain(open.clone()).collect();
        let found = parts(&all, 4, &[]);
        assert_eq!(found, [sorted(names(3)), sorted(open)]);
    }

    #[test]
    fn rows_of_the_volume_go_first() {
        let slots = (0..4).map(|slot| change(&Key::Slot(slot), (slot > 1).then(|| vec![slot])));
        let packs = (0..8).map(|number| plain(number, Some(vec![1])));
        let all: Vec<RowChange> = slots.chain(packs).collect();
        let parts = parts(&all, 5, &[]);
        assert_eq!(parts[0], all[..5]);
        assert_eq!(parts.len(), 3);
    }

    #[test]
    fn a_unit_beyond_the_room_goes_apart() {
        let folders = (0..6).map(|of| name(0, &of.to_string(), Some((of + 2, FileKind::Folder))));
        let all: Vec<RowChange> = folders.chain([inode(ROOT, Some(0))]).collect();
        let found = parts(&all, 3, &[]);
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 1]);
    }
}
