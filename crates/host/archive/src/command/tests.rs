use std::fs;
use std::path::Path;

use serde_json::Value;
use vere_units::Timestamp;

use super::*;
use crate::read::{Page, Query};
use crate::tests::{at, content, folder, found, octets, written};
use crate::{EntryId, Kind};

/// What a command wrote: result and notes.
struct Written<T> {
    result: Result<T, CommandError>,
    out: Vec<u8>,
    notes: String,
}

impl<T> Written<T> {
    fn text(&self) -> String {
        String::from_utf8(self.out.clone()).unwrap()
    }
}

fn run<T>(
    command: impl FnOnce(&mut dyn Write, &mut dyn Write) -> Result<T, CommandError>,
) -> Written<T> {
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let result = command(&mut out, &mut notes);
    let notes = String::from_utf8(notes).unwrap();
    Written { result, out, notes }
}

fn finding(folder: &Path, query: Query, limit: u64, json: bool) -> Written<crate::SearchSummary> {
    let options = FindOptions {
        folder: folder.to_owned(),
        query,
        page: Page {
            limit,
            ..Page::default()
        },
        json,
    };
    run(|out, notes| find(&options, at(3_600_000), out, notes))
}

#[test]
fn a_table_for_people() {
    let folder = folder();
    written(folder.path(), 0..4);
    let table = finding(folder.path(), Query::default(), 3, false);
    let summary = table.result.as_ref().unwrap();
    assert_eq!(summary.found, 3);
    let expected = "\
ENTRY                          AGE  KIND        SIZE  TRACE          SOURCE           ORIGINATOR -> RECIPIENTS
2026-11-29/1305@64             1 h  message      0 B  1";
    let text = table.text();
    assert!(text.starts_with(expected), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[1].ends_with("  peer:mta0        C=GB;S=From0 -> C=GB;S=To0;G=N0"),
        "{text}"
    );
    assert!(
        lines[3].ends_with("  peer:mta0        - -> C=GB;S=To2;G=N0 and 2 more"),
        "{text}"
    );
    let more = summary.more.unwrap();
    assert_eq!(
        table.notes,
        format!("3 entries shown, more exist: continue with --after {more}\n")
    );
}

#[test]
fn json_for_programs() {
    let folder = folder();
    written(folder.path(), 0..3);
    let rows = finding(folder.path(), Query::default(), 100, true);
    let value: Value = serde_json::from_slice(&rows.out).unwrap();
    assert_eq!(value.as_array().unwrap().len(), 3);
    let expected = serde_json::json!({
        "entry": value[2]["entry"], "at": "2026-11-29T13:05:02.000Z", "trace": value[2]["trace"], "kind": "report",
        "identifier": "id2", "about": "id1", "source": "peer:mta0", "destinations": ["file:user2"], "content_type": "22",
        "recipients": ["C=GB;S=To2;G=N0", "C=GB;S=To2;G=N1", "C=GB;S=To2;G=N2"], "octets": 2,
    });
    assert_eq!(value[2], expected);
    assert!(
        value[2]["entry"]
            .as_str()
            .unwrap()
            .parse::<EntryId>()
            .is_ok()
    );
    let nothing = Query {
        source: Some("local".to_owned()),
        ..Query::default()
    };
    let none = finding(folder.path(), nothing.clone(), 100, true);
    assert_eq!(
        (none.text().as_str(), none.result.unwrap().found),
        ("[]\n", 0)
    );
    let none = finding(folder.path(), nothing, 100, false);
    assert!(matches!(none.result, Err(CommandError::NothingFound)));
}

#[test]
fn a_wrong_directory_is_told() {
    let folder = folder();
    let missing = folder.path().join("missing");
    let said = finding(&missing, Query::default(), 1, false)
        .result
        .unwrap_err()
        .to_string();
    assert!(
        said.starts_with("no archive in ") && said.contains("missing"),
        "{said}"
    );
    let options = VerifyOptions {
        folder: missing.clone(),
        json: false,
    };
    assert!(matches!(
        run(|out, _| verify(&options, out)).result,
        Err(CommandError::NoArchive(_))
    ));
    let exported = exporting(
        &missing,
        ExportWhat::Query(Box::default(), Page::default()),
        ExportTo::Tar,
    );
    assert!(matches!(exported.result, Err(CommandError::NoArchive(_))));
}

fn probes() -> Query {
    Query {
        kind: Some(Kind::Probe),
        ..Query::default()
    }
}

fn exporting(folder: &Path, what: ExportWhat, to: ExportTo) -> Written<Exported> {
    let options = ExportOptions {
        folder: folder.to_owned(),
        what,
        to,
    };
    run(|out, notes| export(&options, out, notes))
}

#[test]
fn one_entry_goes_to_the_output_as_it_came() {
    let folder = folder();
    written(folder.path(), 0..30);
    let all = found(folder.path(), &Query::default(), &Page::default());
    let (number, id) = all[23];
    let one = exporting(folder.path(), ExportWhat::Entry(id), ExportTo::Output);
    assert_eq!((one.out, one.notes.as_str()), (octets(number), ""));
    assert_eq!(
        one.result.unwrap(),
        Exported {
            written: 1,
            octets: 23,
            ..Exported::default()
        }
    );
    let by = |query| {
        exporting(
            folder.path(),
            ExportWhat::Query(Box::new(query), Page::default()),
            ExportTo::Output,
        )
    };
    let one = by(Query {
        identifier: Some("id29".to_owned()),
        ..Query::default()
    });
    assert_eq!(one.out, octets(29));
    let several = by(Query {
        kind: Some(Kind::Probe),
        ..Query::default()
    });
    assert!(matches!(several.result, Err(CommandError::Several)) && several.out.is_empty());
    let none = by(Query {
        identifier: Some("id30".to_owned()),
        ..Query::default()
    });
    assert!(matches!(none.result, Err(CommandError::NothingFound)));
    let beside = EntryId { offset: 65, ..id };
    let missing = exporting(folder.path(), ExportWhat::Entry(beside), ExportTo::Output);
    assert!(matches!(
        missing.result,
        Err(CommandError::Read(ReadError::Missing(_)))
    ));
}

#[test]
fn a_directory_gets_a_file_each_and_keeps_what_it_has() {
    let folder = folder();
    let (archive, place) = (
        folder.path().join("archive"),
        folder.path().join("out/deep"),
    );
    written(&archive, 0..30);
    let what = || ExportWhat::Query(Box::new(probes()), Page::default());
    let exported = exporting(&archive, what(), ExportTo::Folder(place.clone()));
    assert_eq!(
        (exported.result.unwrap().written, exported.notes.as_str()),
        (10, "10 entries written\n")
    );
    let mut names: Vec<_> = fs::read_dir(&place)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort_unstable();
    assert_eq!(names.len(), 10);
    let all = found(
        &archive,
        &Query {
            kind: Some(Kind::Probe),
            ..Query::default()
        },
        &Page::default(),
    );
    for (number, id) in &all {
        let trace = crate::tests::entry(*number).trace;
        let file = place.join(format!("{}-{trace}.p1", id.file_stem()));
        assert_eq!(fs::read(&file).unwrap(), octets(*number));
    }
    // One is changed, one is gone.
    fs::write(&names[0], b"mine").unwrap();
    fs::remove_file(&names[1]).unwrap();
    let again = exporting(&archive, what(), ExportTo::Folder(place));
    assert_eq!(again.notes, "1 entry written, 9 files already existed\n");
    assert_eq!(fs::read(&names[0]).unwrap(), b"mine");
    assert!(names[1].exists());
    let taken = exporting(&archive, what(), ExportTo::Folder(names[0].clone()));
    assert!(matches!(taken.result, Err(CommandError::File { .. })));
}

#[test]
fn damaged_entries_are_left_out() {
    let folder = folder();
    let (archive, place) = (folder.path().join("archive"), folder.path().join("out"));
    written(&archive, 20..25);
    let all = found(&archive, &Query::default(), &Page::default());
    let segment = archive.join("2026-11-29/1305.seg");
    let mut octets = fs::read(&segment).unwrap();
    let place_of_content = all[3].1.offset as usize - 1;
    octets[place_of_content] ^= 1;
    fs::write(&segment, octets).unwrap();
    assert!(content(&archive, all[2].1).is_err());
    let what = || ExportWhat::Query(Box::default(), Page::default());
    let some = exporting(&archive, what(), ExportTo::Folder(place.clone()));
    assert_eq!(
        some.result.unwrap_err().to_string(),
        "1 entry left out: damaged"
    );
    assert!(
        some.notes.ends_with("4 entries written\n"),
        "{}",
        some.notes
    );
    assert_eq!(fs::read_dir(&place).unwrap().count(), 4);
    let tar = exporting(&archive, what(), ExportTo::Tar);
    assert!(matches!(tar.result, Err(CommandError::LeftOut(_))));
    assert_eq!(tar.out.len(), 4 * 1_024 + 1_024);
    let one = exporting(&archive, ExportWhat::Entry(all[2].1), ExportTo::Output);
    assert!(one.result.is_err() && one.out.is_empty());
}

/// `tar` is on every machine that builds this; it reads what was written.
#[test]
fn a_tar_stream_is_read_by_tar() {
    let folder = folder();
    let (archive, place) = (folder.path().join("archive"), folder.path().join("out"));
    written(&archive, 0..60);
    let what = ExportWhat::Query(Box::default(), Page::default());
    let exported = exporting(&archive, what, ExportTo::Tar);
    assert_eq!(exported.result.unwrap().written, 60);
    fs::create_dir(&place).unwrap();
    let file = folder.path().join("all.tar");
    fs::write(&file, &exported.out).unwrap();
    let tar = std::process::Command::new("tar")
        .arg("-xf")
        .arg(&file)
        .arg("-C")
        .arg(&place)
        .output()
        .unwrap();
    assert!(tar.status.success() && tar.stderr.is_empty(), "{tar:?}");
    let all = found(&archive, &Query::default(), &Page::default());
    for (number, id) in all {
        let expected = crate::tests::entry(number);
        let file = place.join(format!("{}-{}.p1", id.file_stem(), expected.trace));
        assert_eq!(fs::read(&file).unwrap(), octets(number));
        let modified = fs::metadata(&file).unwrap().modified().unwrap();
        let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(
            Timestamp::from_millis(since.as_millis() as u64),
            expected.at
        );
    }
}

#[test]
fn a_verification_says_ok_or_what_is_wrong() {
    let folder = folder();
    written(folder.path(), 0..70);
    let with = |json| {
        let options = VerifyOptions {
            folder: folder.path().to_owned(),
            json,
        };
        run(|out, _| verify(&options, out))
    };
    let octets: u64 = (0..70).map(|number| octets(number).len() as u64).sum();
    assert_eq!(
        with(false).text(),
        format!(
            "1 day, 2 segments, 70 entries, {}: OK\n",
            text::size(octets)
        )
    );
    let value: Value = serde_json::from_slice(&with(true).out).unwrap();
    assert_eq!(
        (&value["entries"], &value["damaged"]),
        (&Value::from(70), &Value::from(false))
    );
    let segment = folder.path().join("2026-11-29/1306.seg");
    let mut octets = fs::read(&segment).unwrap();
    *octets.last_mut().unwrap() ^= 1;
    fs::write(&segment, octets).unwrap();
    let told = with(false);
    assert_eq!(
        told.result.as_ref().unwrap_err().to_string(),
        "archive damaged: 1 issue"
    );
    let text = told.text();
    assert!(
        text.starts_with("2026-11-29/1306: entry at ") && text.ends_with(": damaged\n"),
        "{text}"
    );
    assert!(
        text.contains(": content damaged\n1 day, 2 segments, 69 entries, "),
        "{text}"
    );
    let value: Value = serde_json::from_slice(&with(true).out).unwrap();
    assert_eq!(
        (&value["issues"][0]["loss"], &value["damaged"]),
        (&Value::from(true), &Value::from(true))
    );
}
