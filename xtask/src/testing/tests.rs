use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::Binary;

/// A program that behaves like a test binary.
fn program(folder: &Path, script: &str) -> Binary {
    let program = folder.join("program");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    Binary {
        name: "a it".to_owned(),
        program,
        arguments: Vec::new(),
        threads: 1,
        folder: folder.to_owned(),
    }
}

#[test]
fn messages_of_cargo_name_test_binaries() {
    let message = |is_test: bool| {
        serde_json::json!({"reason": "compiler-artifact", "manifest_path": "/w/crates/app/vere/Cargo.toml",
            "target": {"kind": ["test"], "name": "it"}, "profile": {"test": is_test},
            "executable": "/w/target/debug/deps/it-1"})
    };
    let binary = Binary::of(&message(true)).unwrap();
    assert_eq!(binary.name, "vere it");
    assert_eq!(binary.folder, Path::new("/w/crates/app/vere"));
    assert_eq!(binary.program, Path::new("/w/target/debug/deps/it-1"));
    assert_eq!(Binary::of(&message(false)), None);
    assert_eq!(
        Binary::of(&serde_json::json!({"reason": "build-finished", "success": true})),
        None
    );
}

#[test]
fn binaries_run_in_the_folder_of_their_package() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "[ \"$PWD\" = \"$CARGO_MANIFEST_DIR\" ] && echo 'test result: ok. 2 passed; 0 failed;'";
    let summary = program(folder.path(), script).run();
    assert_eq!(summary.failure(), None);
    let said = summary.to_string();
    assert!(said.contains(" s  a it, all its tests\n"), "{said}");
    assert!(said.ends_with("\n2 passed, 0 failed, 0 skipped"), "{said}");
}

/// A failure behind the result counts, and a process that is left behind with the output is not waited for.
#[test]
fn an_end_with_a_failure_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo 'test result: ok. 2 passed; 0 failed;'; sleep 60 & echo $! >left; exit 3";
    let summary = program(folder.path(), script).run();
    assert_eq!(summary.failure().unwrap(), "a it: exit status: 3");
    let left = std::fs::read_to_string(folder.path().join("left")).unwrap();
    std::process::Command::new("kill")
        .arg(left.trim())
        .status()
        .unwrap();
}
