//! Copies of certificates that could be used: a start with broken files uses the copies, and the copies expire.

use std::fs;
use std::path::Path;

use crate::harness::{
    Authority, Files, Options, Session, System, fails_with, output_of, vere, wait_until,
};

struct Setup(Authority);

impl Setup {
    fn sign(&self, name: &str) -> Files {
        self.0.sign(name, &["mx.example.org", "127.0.0.1"])
    }

    fn shown(&self, system: &System) -> Vec<u8> {
        let session = Session::greeted(system.smtp).starttls(&self.0, "mx.example.org");
        session.certificate()
    }
}

fn copies(system: &System) -> Vec<String> {
    let folder = system.directory.path().join("data/accepted");
    let entries = fs::read_dir(folder).expect("the copies");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = entries.map(|entry| name(entry.expect("one"))).collect();
    names.sort();
    names
}

fn breaks(path: &Path) {
    fs::write(path, "garbage").expect("the file");
}

#[test]
fn a_start_with_a_broken_certificate_takes_the_copy_and_says_so() {
    let setup = Setup(Authority::new());
    let files = setup.sign("mx");
    let mut system = System::start(&Options::default().certificate(&files));
    assert_eq!(setup.shown(&system), files.der);
    breaks(&files.key);
    system.restart();
    assert_eq!(setup.shown(&system), files.der);
    system.wait_log(&[
        " error supervisor ",
        "the copy that was used last serves",
        "tls.key",
    ]);
    // An inspection reports the broken files, and no reload succeeds before their repair.
    let output = output_of(vere().arg("check-config").arg("-c").arg(&system.config), "");
    assert!(!output.status.success(), "{output:?}");
    system.reload();
    system.wait_log(&["reload refused", "tls.key"]);
    let mended = setup.sign("mx");
    system.reload();
    wait_until("the new certificate", || setup.shown(&system) == mended.der);
}

#[test]
fn a_copy_serves_nobody_else() {
    let setup = Setup(Authority::new());
    let files = setup.sign("mx");
    let mut system = System::start(&Options::default().certificate(&files));
    let other = setup.sign("other");
    breaks(&other.key);
    system.configure(&Options::default().certificate(&other));
    system.kill();
    let said = fails_with(vere().arg("serve").arg("-c").arg(&system.config), 1);
    assert!(said.contains("tls.key: "), "{said}");
    // The process starts with the settings from before.
    system.configure(&Options::default().certificate(&files));
    system.start_again();
}

#[test]
fn copies_that_no_setting_names_are_removed_by_a_reload_and_by_a_start() {
    let setup = Setup(Authority::new());
    let (own, named) = (setup.sign("mx"), setup.sign("named"));
    let alone = Options::default().certificate(&own);
    let both = alone.clone().certificate_for("b.example.org", &named);
    let mut system = System::start(&both);
    assert_eq!(copies(&system), ["default.pem", "sni-1.pem"]);
    system.reconfigure(&alone);
    wait_until("the end of a copy", || copies(&system) == ["default.pem"]);
    let folder = system.directory.path().join("data/accepted");
    for left in ["sni-7.pem", "spool.pem", "default.new-1"] {
        fs::write(folder.join(left), "a key").expect("the file");
    }
    system.restart();
    assert_eq!(copies(&system), ["default.pem"]);
    system.wait_log(&["copy of a certificate removed", "sni-7.pem"]);
}
