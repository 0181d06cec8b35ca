//! Every script of the tree against the bare machine, in one piece and octet by octet.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod listening;

use std::path::{Path, PathBuf};

use vere_script::{Script, Verdict, bare};

fn scripts() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts");
    let mut scripts = Vec::new();
    for (name, least) in [("smtp", 50), ("imap", 15)] {
        let before = scripts.len();
        let entries = std::fs::read_dir(folder.join(name)).unwrap();
        scripts.extend(
            entries
                .map(|entry| entry.unwrap().path())
                .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())),
        );
        assert!(
            scripts.len() - before > least,
            "scripts are missing from {}/{name}",
            folder.display()
        );
    }
    scripts.sort();
    scripts
}

fn run_all(pieces: bare::Pieces) {
    let mut failures = String::new();
    for (path, text) in scripts() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let result = Script::parse(&name, &text)
            .map_err(|error| error.to_string())
            .and_then(|script| bare::run(&script, pieces).map_err(|error| error.to_string()));
        match result {
            Ok(Verdict::Passed) => {}
            Ok(Verdict::Skipped(_)) if pieces == bare::Pieces::Octets => {}
            Ok(Verdict::Skipped(reason)) => {
                failures.push_str(&format!("{name} skipped: {reason}\n"))
            }
            Err(error) => failures.push_str(&error),
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn in_one_piece() {
    run_all(bare::Pieces::Whole);
}

#[test]
fn octet_by_octet() {
    run_all(bare::Pieces::Octets);
}

/// A script says at its top what it shows and by which standard.
#[test]
fn every_script_names_its_source() {
    for (path, text) in scripts() {
        assert_eq!(path.extension().unwrap(), "script", "{}", path.display());
        let top: Vec<&str> = text
            .lines()
            .take_while(|line| line.starts_with('#'))
            .collect();
        let sources = [
            "RFC ",
            "CVE-",
            "draft-",
            "proxy-protocol",
            "XCLIENT_README",
            "RELIABILITY",
        ];
        assert!(top.len() >= 2, "{}", path.display());
        let named = sources.iter().any(|source| top.concat().contains(source));
        assert!(named, "{}", path.display());
    }
}
