//! The list of a backup, from a place that strangers may have written to.
//!
//! The octets are read as they are, and as the JSON of a list with a true checksum. A list that is read is written and
//! read again without a difference, and no file of a list leads out of the directory of a restore.

use std::path::{Component, Path};

use vere_backup_list::{Manifest, Piece};

const DATA: &str = "/var/lib/vere";

pub(crate) const SEEDS: &[&[u8]] = &[
    b"vere-backup-manifest 1 0000",
    br#"{"version":1,"number":7,"made":1,"program":"0","host":"h","data":"/d","config":"/c","log":null,"files":[],"queues":{"included":false,"messages":null}}"#,
    br#"{"version":1,"number":7,"made":1,"program":"0","host":"h","data":"/d","config":"/c","log":{"id":"00","synced":9,"files":[{"name":"0000000000000040.log","mark":{"inode":1,"born":2,"modified":3,"changed":4},"tail":"00","pieces":[[1,"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"]]}]},"files":[{"root":"outside","path":"/etc/../x","mode":384,"octets":1,"mark":{"inode":1,"born":null,"modified":-3,"changed":4},"pieces":[]}],"queues":{"included":false,"messages":12}}"#,
];

pub(crate) fn list(octets: &[u8]) {
    check(octets);
    let end = octets.iter().rposition(|octet| *octet != b'\n');
    let text = &octets[..end.map_or(0, |end| end + 1)];
    let hash = blake3::hash(text).to_hex();
    check(&[format!("vere-backup-manifest 1 {hash}\n").as_bytes(), text].concat());
}

fn check(octets: &[u8]) {
    let Ok(list) = Manifest::decode(octets) else {
        return;
    };
    assert!(list.pieces().all(Piece::is_valid));
    let again = list.encode().unwrap_or_default();
    assert_eq!(Manifest::decode(&again).ok().as_ref(), Some(&list));
    for path in list
        .files
        .iter()
        .filter_map(|file| file.below(Path::new(DATA), "restored"))
    {
        let is_below = path.starts_with(DATA) && path != Path::new(DATA);
        assert!(is_below && !path.components().any(|part| part == Component::ParentDir));
    }
}
