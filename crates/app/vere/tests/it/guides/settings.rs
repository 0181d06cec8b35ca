//! Guides about a new system, its names and its accounts.

use super::Operator;
use crate::harness::{Options, System, run, vere};
use crate::imap::start_with_store;
use crate::web::Setup;

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

#[test]
fn settings_take_effect() {
    let system = System::start(&Options::default());
    system.configure(&Options::default().set("limits.message_size_max", "\"100 KiB\""));
    let config = system.config.display().to_string();
    let texts = [("/etc/vere/vere.toml", &*config)];
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        operator.place("/etc/systemd/system", "units");
        operator.follow("settings");
        let made = operator.path("units/vere.service.d/memory.conf");
        let made = std::fs::read_to_string(made).expect("a file for systemd");
        assert!(made.contains("MemoryMax="), "{made}");
    }
}

/// What a machine lacks depends on the machine; the codes are those of `vere status`.
#[test]
fn a_machine_is_looked_at() {
    const FINDINGS: &[(&str, &[i32])] = &[("vere doctor", &[0, 1, 2])];
    let system = System::start(&Options::default().record("elsewhere.example A 127.0.0.1"));
    if let Some(mut operator) = Operator::of(&system, &[], FINDINGS) {
        operator.follow("doctor");
    }
}

/// No record of the page's keys is in the DNS, so that one key is activated as on the page, and the other waits.
#[test]
fn keys_for_signatures_come_and_change() {
    const NOT_SEEN: &[(&str, &[i32])] = &[("vere dkim activate", &[3])];
    let options = Options::default().record("elsewhere.example A 127.0.0.1");
    let system = System::start(&options.set("dkim.when_unavailable", "\"defer\""));
    let Some(mut operator) = Operator::of(&system, &[], NOT_SEEN) else {
        return;
    };
    let begins = |command: &str, with: &[&str]| with.iter().any(|one| command.starts_with(one));
    operator.follow_where("dkim", |command| {
        begins(command, &["vere dkim keygen", "vere dkim activate"])
    });
    let keys = system.rows(&["dkim", "list"]);
    let of_rsa = |key: &&serde_json::Value| key["algorithm"] == "rsa-sha256";
    let selector = keys.iter().find(of_rsa).expect("a key of RSA")["selector"].as_str();
    let selector = ["--selector", selector.expect("a name"), "--force"];
    system.command(&[&["dkim", "activate", "example.org"][..], &selector].concat());
    operator.follow_where("dkim", |command| begins(command, &["vere dkim list"]));
    system.command(&["dkim", "activate", "example.org", "--force"]);
    operator.follow_where("dkim", |command| begins(command, &["vere dkim rotate"]));
    let keys = system.rows(&["dkim", "list"]);
    let waiting = keys.iter().filter(|key| key["state"] == "waits").count();
    assert_eq!((keys.len(), waiting), (4, 2), "{keys:?}");
}

#[test]
fn mail_programs_find_the_settings() {
    let setup = Setup::new();
    let options = setup.options.clone().set("web.mta_sts", "\"testing\"");
    let system = System::start(&options);
    let curl = format!(
        "curl -sS --noproxy '*' --cacert {} --connect-to ::{} ",
        setup.authority.ca.display(),
        setup.https
    );
    let texts = [("curl ", &*curl), ("mail.example.org", "mx.example.org")];
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        operator.follow("web");
    }
}
