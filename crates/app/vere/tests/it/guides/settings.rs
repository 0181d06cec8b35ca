//! Guides about a new system, its names and its accounts.

use super::Operator;
use crate::harness::{Options, System, run, vere};
use crate::imap::start_with_store;

#[test]
fn a_domain_on_a_machine_is_set_up() {
    let system = System::start(&Options::default());
    system.add_account("you@example.org");
    system.submit_about("friend@elsewhere.example", &["you@example.org"], "one");
    let made = system.directory.path().join("made");
    let quickstart = format!("vere quickstart --self-signed --dir {}", made.display());
    let texts = [
        ("mail.your.example", "mail.example.org"),
        ("your.example", "example.org"),
        ("/etc/vere/", &*format!("{}/", made.display())),
        ("/var/lib/vere", &*format!("{}/data", made.display())),
        ("vere quickstart", &*quickstart),
    ];
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        operator.follow("vps");
    }
}

/// The page shows the records of a system with keys, a certificate by ACME, and an account for reports.
#[test]
fn records_of_a_domain_are_printed() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut quickstart = vere();
    quickstart.args(["quickstart", "you@example.org", "--acme", "--dir"]);
    run(quickstart
        .arg(folder.path())
        .args(["--address", "198.51.100.7"]));
    let config = folder.path().join("vere.toml");
    if let Some(mut operator) = Operator::with(folder.path(), &config, &[], &[]) {
        operator.follow("dns");
    }
}

/// The page begins with no domain of that name.
#[test]
fn accounts_come_and_go() {
    let (system, _) = start_with_store(Options::default());
    let texts = [
        ("example.org", "new.example"),
        ("example.net", "other.example"),
    ];
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        operator.follow("accounts");
    }
}
