//! What is left of a log that was cut.

use super::*;

/// What was not synced is lost.
pub(super) struct Nothing;

impl Fate for Nothing {
    fn pick(&mut self, bound: usize) -> usize {
        bound - 1
    }
}

/// A log whose newest segment is not synced, behind one in a file that was used before and holds something
/// behind its end. With the name of that file, and where the end is.
fn rolled_in_a_used_file() -> (Bench, String, usize) {
    let mut bench = Bench::with_reserve(100);
    for number in 0..200 {
        let newest = bench.log.newest();
        bench.append(&entry(number));
        if bench.log.newest() > newest {
            let name = segment_name(newest);
            let end = bench.log.segments[bench.log.segments.len() - 2].len as usize;
            let file = bench.disk.file(&name).unwrap();
            if file.iter().skip(end).any(|octet| *octet != 0) {
                return (bench, name, end);
            }
        }
        bench.sync();
        bench.log.remove_before(bench.log.newest()).unwrap();
        bench.log.keep_house();
        run_waiting(&bench.waiting);
    }
    panic!("no file was used again");
}

fn files(disk: &MemoryDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.list().unwrap().into_iter();
    let logs = names.filter(|name| name.ends_with(".log"));
    logs.map(|name| (name.clone(), disk.file(&name).unwrap()))
        .collect()
}

/// Only the head of the next segment says that what lies behind the end of one means nothing. When that
/// segment goes, for the rest of its head is not there, so does what it had hidden: the log is as if it had
/// never been begun, lastingly, and opens again to the same octets.
#[test]
fn a_segment_that_is_the_last_again_ends_with_zeros() {
    let (bench, name, end) = rolled_in_a_used_file();
    let (before, _) = open(&bench.disk.copy()).unwrap();
    let newest = segment_name(bench.log.newest());
    let mut torn = bench.disk.file(&newest).unwrap();
    let payload = torn.iter_mut().skip(HEAD_LEN).take(b"head".len());
    payload.for_each(|octet| *octet = 0);
    let disk = bench.disk.copy();
    disk.set_file(&newest, Some(torn));

    let (reader, _) = open(&disk).unwrap();
    assert_eq!(reader.entries, before.entries, "nothing is lost");
    disk.crash(&mut Nothing);
    assert!(disk.file(&newest).is_none());
    let last = disk.file(&name).unwrap();
    assert!(last.iter().skip(end).all(|octet| *octet == 0));

    let opened = files(&disk);
    let (reader, mut bench) = open(&disk).unwrap();
    assert_eq!(reader.entries, before.entries);
    assert_eq!(files(&disk), opened, "nothing is left to repair");

    // What comes next is the only thing behind it.
    bench.append(b"next");
    bench.sync();
    let (reader, _) = open(&disk).unwrap();
    let next = (before.entries.last().unwrap().0, b"next".to_vec());
    assert_eq!(reader.entries, [before.entries, vec![next]].concat());
}
