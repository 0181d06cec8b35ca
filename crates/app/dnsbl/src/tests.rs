//! The commands, from the words of a command line to files and output.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command as Process;

use clap::Parser;
use serde_json::Value as Json;
use tempfile::TempDir;
use vere_dnsbl::data::{Kind, ZoneData, name_text};
use vere_process::failure::Failure;
use vere_process::outcome::Outcome;

use super::DnsblCommand;

/// Entries of all forms over each other, with a value that has variables.
const SET: &str = "$SOA 0 ns1.ex.com admin.ex.com 7 2h 2h 1w 1h\n$NS 1w ns1.ex.com\n$TTL 1h\n\
                   $TIMESTAMP 2026:11:28:01:02:03 +1d\n$1 see $\n:3:default $ $1\n10.0.0.0/20\n!10.0.1.0/24\n\
                   10.0.0.1 :4:own $$ \"quoted\" \\ text\n10.0.0.1 :5:\n10.0.2.5-10.0.3.4 :3:default $ $1\n10.0.0.9\n\
                   !10.0.0.77\n11/8\n";

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: DnsblCommand,
}

fn parsed(words: &[&str]) -> DnsblCommand {
    let words = ["dnsbl"].iter().chain(words);
    let line = Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    line.command
}

fn run(words: &[&str]) -> Result<Outcome, Failure> {
    match parsed(words) {
        DnsblCommand::Import(args) => super::import::run(&args),
        DnsblCommand::Stats(args) => super::stats::run(&args),
        DnsblCommand::Dump(args) => super::written(super::dump::run(&args, &mut Vec::new())),
        DnsblCommand::Map(args) => super::written(super::hitmap::run(&args, &mut Vec::new())),
        other => panic!("{other:?}"),
    }
}

/// What `import` and `stats` print.
fn printed(words: &[&str]) -> String {
    match run(words) {
        Ok(Outcome::Print(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn failure(words: &[&str]) -> String {
    match run(words) {
        Err(failure) => failure.to_string(),
        other => panic!("{other:?}"),
    }
}

/// What `dump` and `map` print.
fn written(words: &[&str]) -> Vec<u8> {
    let mut output = Vec::new();
    let done = match parsed(words) {
        DnsblCommand::Dump(args) => super::dump::run(&args, &mut output),
        DnsblCommand::Map(args) => super::hitmap::run(&args, &mut output),
        other => panic!("{other:?}"),
    };
    done.expect("an output");
    output
}

fn file(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("a path").to_owned()
}

fn zone(path: &str, kind: Kind) -> ZoneData {
    let mut builder = ZoneData::build();
    let text = std::fs::read(path).expect("a file");
    let done = builder.add(kind, path, text.as_slice());
    done.unwrap_or_else(|error| panic!("{error}"));
    builder.finish()
}

/// Every range and name of a zone with its answers, for a subject.
fn listing(zone: &ZoneData) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    let answers = |values: &[&vere_dnsbl::data::Value]| {
        let answer = |value: &&vere_dnsbl::data::Value| {
            format!("{} {:?}", value.address, value.text_for("subject"))
        };
        let mut answers: Vec<String> = values.iter().map(answer).collect();
        answers.sort();
        answers
    };
    zone.each_v4(|first, last, values| {
        all.insert(format!("{first}-{last}"), answers(values));
    });
    zone.each_v6(|first, last, values| {
        all.insert(format!("{first}-{last}"), answers(values));
    });
    zone.each_name(|name, below, values| {
        all.insert(format!("{} {below}", name_text(name)), answers(values));
    });
    all
}

#[test]
fn an_imported_list_has_the_same_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        (Kind::Ip4Set, SET, Kind::Ip4Set),
        (
            Kind::Cidr,
            "1.10.16.0/20 ; SBL\n1.10.32.0/20\n1.10.16.5\n::1\n2001:db8::/33\n2001:db8:8000::/33\n0.0.0.0/0\n",
            Kind::Combined,
        ),
        (
            Kind::Ip6Trie,
            ":4:six $\n2001:db8::/32\n!2001:db8:1::/48\n2001:db8:1:2::3 :5\n",
            Kind::Ip6Trie,
        ),
        (
            Kind::DnSet,
            ":4:name $\n.example.com\n!www.example.com\nplain.example :5:other\n",
            Kind::DnSet,
        ),
    ];
    for (kind, text, written) in cases {
        let input = file(&folder, &format!("list.{kind}"), text);
        let output = folder.path().join(format!("out.{written}"));
        let output = output.to_str().expect("a path");
        let report = printed(&["import", &input, "--output", output, "--json"]);
        let report: Json = serde_json::from_str(&report).expect("JSON");
        assert_eq!(report["format"], written.name(), "{report}");
        let (before, after) = (zone(&input, kind), zone(output, written));
        assert_eq!(listing(&before), listing(&after), "{kind}");
        assert_eq!(before.head(), after.head(), "{kind}");
        // A list that was imported already remains as it is.
        if written != Kind::Combined {
            let first = std::fs::read(output).expect("a file");
            let again = folder.path().join(format!("again.{written}"));
            let again = again.to_str().expect("a path");
            printed(&["import", output, "--output", again]);
            assert_eq!(first, std::fs::read(again).expect("a file"), "{kind}");
        }
    }
}

#[test]
fn an_import_merges_and_counts_and_refuses() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = file(
        &folder,
        "drop.txt",
        "192.0.2.0/25\n192.0.2.128/25\n192.0.2.7\nwhat\n192.0.2.7\n",
    );
    let output = file(&folder, "drop.ip4set", "10.0.0.1\n");
    let error = failure(&["import", &input, "--output", &output]);
    let expected =
        format!("{input}: line 4: expected an IPv4 address, network or range; found \"what\"");
    assert_eq!(error, expected);
    // The old file remains.
    assert_eq!(std::fs::read(&output).expect("a file"), b"10.0.0.1\n");
    let report = printed(&["import", &input, "--skip-errors", "--output", &output]);
    assert_eq!(
        report,
        format!(
            "read 4 entries from 1 file; refused 1 line; wrote 1 entry to {output}\n  {expected}\n"
        )
    );
    let text = std::fs::read_to_string(&output).expect("a file");
    assert!(text.ends_with("\n:127.0.0.2:\n192.0.2.0/24\n"), "{text}");
    let others = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(others, 2);
    let generic = file(&folder, "list.generic", "www A 127.0.0.1\n");
    let error = failure(&["import", &generic, "--output", &output]);
    assert!(
        error.starts_with("expected a list of addresses or names; found"),
        "{error}"
    );
}

#[test]
fn a_dump_has_networks_or_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = file(
        &folder,
        "list.combined",
        "$DATASET ip4set:a @\n:2:a $\n10.0.0.0-10.0.0.8\n$DATASET ip4set:b @\n10.0.0.8 :3:b\n\
         $DATASET ip6trie @\n2001:db8::/32\n$DATASET dnset names\n.example.com\n\
         $DATASET generic @\nwww 60 A 127.0.0.1\n",
    );
    let text = String::from_utf8(written(&["dump", &input])).expect("UTF-8");
    assert_eq!(text, "10.0.0.0/29\n10.0.0.8\n2001:db8::/32\n");
    let json = written(&["dump", &input, "--as", "json"]);
    let json: Json = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["ipv4"][0]["last"], "10.0.0.7", "{json}");
    assert_eq!(json["ipv4"][1]["values"][0]["txt"], "a $", "{json}");
    assert_eq!(json["ipv4"][1]["values"][1]["a"], "127.0.0.3", "{json}");
    assert_eq!(json["records"][0]["ttl"], 60, "{json}");
    let names = &json["subzones"][0]["data"]["names"];
    assert_eq!(names[1]["name"], "*.example.com", "{json}");
}

/// What named-checkzone makes of a zone file: a line for each record. `None` where the program is missing.
fn checked(folder: &Path, text: &[u8]) -> Option<String> {
    let (input, output) = (folder.join("zone"), folder.join("zone.checked"));
    std::fs::write(&input, text).expect("a file");
    let checked = Process::new("named-checkzone")
        .args(["-i", "none", "-D", "-o"])
        .args([&output])
        .arg("bl.example.org")
        .arg(&input)
        .output();
    let Ok(checked) = checked else {
        let note = "skipped: zone files of dumps: named-checkzone is not installed\n";
        // The standard output of a passing test is not shown.
        let _ = std::io::stderr().write_all(note.as_bytes());
        return None;
    };
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(
        checked.status.success(),
        "{said}{}",
        String::from_utf8_lossy(text)
    );
    let records = std::fs::read_to_string(output).expect("a file");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(records.lines().map(|line| words(line) + "\n").collect())
}

#[test]
fn named_loads_a_dump() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = file(&folder, "list", SET);
    let source = format!("bl.example.org:ip4set:{input}");
    let text = written(&["dump", &source, "--as", "bind"]);
    let names = file(
        &folder,
        "list.combined",
        "$DATASET ip6trie @\n2001:db8::/30 :2:six $\n::1 # local\n$DATASET dnset:n @\n\
         .example.com :4:name $\n!www.example.com\na\\046b.example :5:x\n$DATASET generic www @\n@ MX 10 mx.ex.com\n\
         @ A 127.0.0.9\nwww TXT \"a \\ b\"\n",
    );
    let plain = written(&["dump", &names, "--as", "bind", "--zone", "bl.example.org."]);
    let Some(records) = checked(folder.path(), &text) else {
        return;
    };
    let has = |records: &str, line: &str| assert!(records.contains(line), "{line} in {records}");
    has(
        &records,
        "bl.example.org. 3600 IN SOA ns1.ex.com. admin.ex.com. 7 7200 7200 604800 3600\n",
    );
    has(&records, "bl.example.org. 604800 IN NS ns1.ex.com.\n");
    has(&records, "1.0.0.10.bl.example.org. 3600 IN A 127.0.0.4\n");
    has(&records, "1.0.0.10.bl.example.org. 3600 IN A 127.0.0.5\n");
    has(
        &records,
        "1.0.0.10.bl.example.org. 3600 IN TXT \"own $ \\\"quoted\\\" \\\\ text\"\n",
    );
    has(
        &records,
        "*.15.0.10.bl.example.org. 3600 IN TXT \"default 10.0.15.0/24 see $\"\n",
    );
    has(&records, "*.11.bl.example.org. 3600 IN A 127.0.0.3\n");
    assert!(!records.contains("\n77.0.0.10.bl"), "{records}");
    let records = checked(folder.path(), &plain).expect("named-checkzone");
    has(
        &records,
        "*.8.b.d.0.1.0.0.2.bl.example.org. 2100 IN A 127.0.0.2\n",
    );
    has(
        &records,
        "*.b.b.d.0.1.0.0.2.bl.example.org. 2100 IN TXT \"six 2001:dbb::/32\"\n",
    );
    has(
        &records,
        "*.example.com.bl.example.org. 2100 IN TXT \"name example.com\"\n",
    );
    has(
        &records,
        "www.example.com.bl.example.org. 2100 IN TYPE65280 \\# 0\n",
    );
    has(
        &records,
        "a\\.b.example.bl.example.org. 2100 IN A 127.0.0.5\n",
    );
    has(&records, "bl.example.org. 2100 IN MX 10 mx.ex.com.\n");
    has(&records, "www.bl.example.org. 2100 IN A 127.0.0.9\n");
}

#[test]
fn statistics_have_the_distribution_of_addresses() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = file(
        &folder,
        "list",
        "10.0.0.1\n10.0.0.200\n10.0.1.0/24\n10.0.2.3\n10.0.2.4/31\n10.1.0.0/23\n2001:db8::/62\n2001:db8::5\n",
    );
    let report = printed(&["stats", &input, "--json"]);
    let json: Json = serde_json::from_str(&report).expect("JSON");
    assert_eq!(json["ipv4"]["addresses"], 2 + 256 + 3 + 512, "{json}");
    assert_eq!(json["ipv4"]["networks_24"], 5, "{json}");
    assert_eq!(json["ipv4"]["maps"], 2 + 2 + 1 + 4, "{json}");
    let expected = serde_json::json!([
        { "addresses": 2, "networks": 1 },
        { "addresses": 3, "networks": 1 },
        { "addresses": 256, "networks": 3 },
    ]);
    assert_eq!(json["ipv4"]["per_network_24"], expected);
    assert_eq!(json["ipv6"]["networks_64"], "4", "{json}");
    let text = printed(&["stats", &input]);
    assert!(text.contains("773 addresses in "), "{text}");
    let one = printed(&["stats", &file(&folder, "one", "192.0.2.1\n")]);
    assert!(
        one.starts_with(
            "IPv4   1 address in 1 range, 1 /24, 1 map of a /25\nIPv6   0 ranges in 0 /64s\n"
        ),
        "{one}"
    );
    assert!(
        text.contains("\n256                     3   100.0 %\n"),
        "{text}"
    );
    assert!(
        text.contains("\n2-3                     2    40.0 %\n"),
        "{text}"
    );
}

#[test]
fn a_map_is_a_file_or_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let input = file(&folder, "list", "192.0.0.0/16\n10.0.0.0/8\n");
    let picture = folder.path().join("map.png");
    let picture = picture.to_str().expect("a path");
    written(&[
        "map",
        &input,
        "--network",
        "192.0.0.0/8",
        "--output",
        picture,
    ]);
    let octets = std::fs::read(picture).expect("a picture");
    assert!(octets.starts_with(b"\x89PNG\r\n\x1a\n"));
    let text = |words: &[&str]| String::from_utf8(written(words)).expect("UTF-8");
    let one = text(&["map", &input, "--network", "192/8"]);
    let lines: Vec<_> = one.lines().collect();
    assert_eq!(lines.len(), 32, "{one}");
    assert!(lines[0].chars().all(|shade| shade == '█'), "{one}");
    assert!(lines[1].chars().all(|shade| shade == ' '), "{one}");
    let whole = text(&["map", &input]);
    assert!(
        !whole.lines().nth(1).expect("a line").trim().is_empty(),
        "{whole}"
    );
    let error = Line::try_parse_from(["dnsbl", "map", "list", "--network", "10.0.0.0/9"]);
    let error = error.expect_err("a /9").to_string();
    assert!(
        error.contains("expected a /8 such as 192.0.0.0/8; found 10.0.0.0/9"),
        "{error}"
    );
}
