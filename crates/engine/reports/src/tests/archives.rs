//! Archives: every form that reporters use, damaged ones, and bombs.

use super::made::{JSON, XML, deflated, message, zip};
use crate::archive::{gzip, unpack};
use crate::bounds::{OCTETS_MAX, PACKED_OCTETS_MAX, ZIP_ENTRIES_MAX};
use crate::*;

#[test]
fn every_form_of_a_report_is_read() {
    let aggregate = Report::Aggregate(Aggregate::read(XML.as_bytes()).unwrap().into());
    let tls = Report::Tls(TlsReport::read(JSON.as_bytes()).unwrap().into());
    let bom = [b"\xef\xbb\xbf".as_slice(), XML.as_bytes()].concat();
    for (media, name, file, wanted) in [
        (
            "application/gzip",
            "a.xml.gz",
            gzip(XML.as_bytes()),
            &aggregate,
        ),
        ("application/gzip", "a.xml.gz", gzip(&bom), &aggregate),
        (
            "application/zip",
            "a.zip",
            zip("a.xml", XML.as_bytes(), 8),
            &aggregate,
        ),
        (
            "application/zip",
            "a.zip",
            zip("a.xml", XML.as_bytes(), 0),
            &aggregate,
        ),
        // The type is wrong, or says nothing.
        ("application/zip", "a.zip", gzip(XML.as_bytes()), &aggregate),
        (
            "application/octet-stream",
            "report",
            gzip(XML.as_bytes()),
            &aggregate,
        ),
        ("application/octet-stream", "a.xml", XML.into(), &aggregate),
        ("text/xml", "a.xml", XML.into(), &aggregate),
        ("text/plain", "a.xml", XML.into(), &aggregate),
        (
            "application/tlsrpt+gzip",
            "a.json.gz",
            gzip(JSON.as_bytes()),
            &tls,
        ),
        ("application/tlsrpt+json", "a.json", JSON.into(), &tls),
        (
            "application/zip",
            "a.json.zip",
            zip("a.json", JSON.as_bytes(), 8),
            &tls,
        ),
    ] {
        assert_eq!(
            Report::read(&message(media, name, &file)).as_ref(),
            Ok(wanted),
            "{media} {name}"
        );
        assert_eq!(
            Report::read(&file).as_ref(),
            Ok(wanted),
            "{media} {name} bare"
        );
    }
}

#[test]
fn a_message_without_a_report() {
    for (media, name, file) in [
        ("image/png", "a.png", &b"\x89PNG"[..]),
        ("text/html", "", b"<html></html>"),
        ("application/pdf", "a.pdf", b"%PDF"),
    ] {
        assert_eq!(
            Report::read(&message(media, name, file)),
            Err(ReportError::None),
            "{media}"
        );
    }
    assert_eq!(Report::read(b""), Err(ReportError::None));
    assert_eq!(
        Report::read(b"Subject: x\r\n\r\nhello\r\n"),
        Err(ReportError::None)
    );
    // An archive in an archive stays closed.
    let twice = gzip(&gzip(XML.as_bytes()));
    assert_eq!(Report::read(&twice), Err(ReportError::None));
}

#[test]
fn bombs_end_at_the_bound() {
    let zeros = vec![b' '; OCTETS_MAX + 1];
    let wanted = Err(ReportError::many("octets after decompression", OCTETS_MAX));
    let bomb = gzip(&zeros);
    assert!(bomb.len() < 100_000);
    assert_eq!(unpack(&bomb), wanted);
    assert_eq!(unpack(&zip("a.xml", &zeros, 8)), wanted);
    assert_eq!(
        Report::read(&message("application/gzip", "a.xml.gz", &bomb)),
        Err(ReportError::many("octets after decompression", OCTETS_MAX))
    );
    let mut long = gzip(b"<a/>");
    long.resize(PACKED_OCTETS_MAX + 1, 0);
    assert_eq!(
        unpack(&long),
        Err(ReportError::many("octets of an archive", PACKED_OCTETS_MAX))
    );
}

#[test]
fn sizes_that_lie_are_not_believed() {
    let whole = zip("a.xml", XML.as_bytes(), 8);
    let directory = memchr::memmem::rfind(&whole, b"PK\x01\x02").unwrap();
    let set = |at: usize, octets: &[u8]| {
        let mut changed = whole.clone();
        changed[directory + at..directory + at + octets.len()].copy_from_slice(octets);
        unpack(&changed)
    };
    // The size after decompression is not read at all.
    assert_eq!(set(24, &u32::MAX.to_le_bytes()), Ok(Some(XML.into())));
    for (what, at, octets) in [
        ("compressed size", 20, &u32::MAX.to_le_bytes()[..]),
        ("place of the local header", 42, &u32::MAX.to_le_bytes()),
        ("checksum", 16, &[0; 4]),
        ("encrypted", 8, &[1, 0]),
        ("method", 10, &[14, 0]),
        ("length of the name", 28, &[0xff, 0xff]),
    ] {
        assert!(
            matches!(set(at, octets), Err(ReportError::Archive { .. })),
            "{what}"
        );
    }
    let end = whole.len() - 22;
    let mut empty = whole.clone();
    empty[end + 10] = 0;
    assert!(matches!(unpack(&empty), Err(ReportError::Archive { .. })));
}

#[test]
fn folders_in_an_archive_are_passed_over_up_to_a_bound() {
    let archive = |folders: usize| {
        let file = zip("a.xml", XML.as_bytes(), 8);
        let directory = memchr::memmem::rfind(&file, b"PK\x01\x02").unwrap();
        let entry = &file[directory..file.len() - 22];
        let mut folder = entry.to_vec();
        *folder.last_mut().unwrap() = b'/';
        let mut out = file[..directory].to_vec();
        out.extend(std::iter::repeat_n(folder, folders).flatten());
        out.extend(entry);
        let mut end = file[file.len() - 22..].to_vec();
        end[10..12].copy_from_slice(&(folders as u16 + 1).to_le_bytes());
        out.extend(end);
        unpack(&out)
    };
    assert_eq!(archive(ZIP_ENTRIES_MAX - 1), Ok(Some(XML.into())));
    assert!(matches!(
        archive(ZIP_ENTRIES_MAX),
        Err(ReportError::Archive { .. })
    ));
}

#[test]
fn an_archive_cut_or_flipped_anywhere_is_an_error_or_the_same() {
    let (zipped, zipped_again) = (zip("a.xml", XML.as_bytes(), 8), gzip(XML.as_bytes()));
    for archive in [&zipped, &zipped_again] {
        for end in 0..archive.len() {
            let cut = Report::read(&archive[..end]);
            assert!(cut.is_err(), "{end}: {cut:?}");
        }
        for at in 0..archive.len() {
            let mut flipped = archive.clone();
            flipped[at] ^= 0x55;
            if let Ok(Some(file)) = unpack(&flipped) {
                assert_eq!(file, XML.as_bytes(), "{at}");
            }
        }
    }
    assert!(deflated(b"x").len() > 1);
}
