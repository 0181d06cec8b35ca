//! `vere doctor`, `vere support-bundle`, DANE in `vere dns check`, and commands about single accounts, beside real systems.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::harness::{
    Authority, Child, Manners, Mx, Named, Options, Session, Signing, System, free_address, quoted,
    vere, wait_until,
};

/// A command on these settings: its output as JSON, and its exit code.
fn json(config: &Path, words: &[&str]) -> (Value, Option<i32>) {
    let mut command = vere();
    command.args(words).arg("--json").arg("-c").arg(config);
    let output = command.output().expect("the command runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (value, output.status.code())
}

/// The rows of a check in all sections, as level and text.
fn rows(value: &Value, check: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let sections = value["sections"].as_array().expect("sections").iter();
    let rows = sections.flat_map(|section| section["checks"].as_array().expect("checks"));
    let rows = rows.filter(|row| row["check"] == check);
    rows.map(|row| (text(&row["level"]), text(&row["text"])))
        .collect()
}

#[test]
fn the_doctor_sees_a_running_and_a_stopped_system() {
    let mut system = System::start(&Options::default());
    let doctor = |config: &Path| json(config, &["doctor", "--no-dns"]);
    let (value, code) = doctor(&system.config);
    let expected = match value["level"].as_str() {
        Some("ok") => 0,
        Some("warning") => 1,
        _ => 2,
    };
    assert_eq!(code, Some(expected), "{value:#}");
    let of = |check: &str| rows(&value, check);
    assert_eq!(of("settings")[0].0, "ok", "{value:#}");
    assert_eq!(
        of("ports"),
        [(
            "ok".to_owned(),
            "the running system holds its ports".to_owned()
        )]
    );
    assert_eq!(of("sync").len(), 1, "{value:#}");
    for check in [
        "clock",
        "kernel",
        "disk",
        "memory",
        "descriptors",
        "permissions",
        "user",
    ] {
        assert!(!of(check).is_empty(), "{check}: {value:#}");
    }
    system.end();
    let other = TcpListener::bind(system.smtp).expect("the port of the system");
    let (value, code) = doctor(&system.config);
    assert_eq!(code, Some(2), "{value:#}");
    let (level, text) = rows(&value, "ports").remove(0);
    assert_eq!(level, "critical", "{text}");
    assert!(
        text.contains(&format!("process {}", std::process::id())),
        "{text}"
    );
    assert!(
        rows(&value, "status")[0].1.contains("not running"),
        "{value:#}"
    );
    drop(other);
    std::fs::write(&system.config, "version = 1\nhostnam = 5\n").expect("the settings");
    let (value, code) = doctor(&system.config);
    assert_eq!(code, Some(2));
    assert!(
        rows(&value, "settings")[0].1.contains("hostnam"),
        "{value:#}"
    );
    assert!(
        !rows(&value, "kernel").is_empty(),
        "the machine is examined all the same"
    );
}

/// Status and doctor asked for a mail system beside the node, and to stop the node for good.
#[test]
fn a_machine_with_a_node_alone_needs_no_mail_system() {
    let authority = Authority::new();
    let files = authority.sign("own", &["n"]);
    let address = free_address();
    let text = format!(
        "[spool.tls]\ncertificate = {}\nkey = {}\nca = {}\n\
         [[spool.node]]\nname = \"n\"\nlisten = \"{address}\"\ntls = \"required\"\n",
        quoted(&files.certificate),
        quoted(&files.key),
        quoted(&authority.ca)
    );
    let config = Options::write_smallest(authority.folder(), &text);
    std::fs::create_dir(authority.folder().join("data")).expect("a folder");
    let remedy = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (value, code) = json(&config, &["status"]);
    assert_eq!(code, Some(2), "{value:#}");
    let finding = &value["findings"][0];
    let text = remedy(&finding["text"]);
    assert!(
        text.starts_with("the spool node n does not answer"),
        "{text}"
    );
    let text = remedy(&finding["remedy"]);
    assert!(text.contains("vere spool serve --node n"), "{text}");
    let (value, _) = json(&config, &["doctor"]);
    assert_eq!(
        rows(&value, "ports"),
        [("ok".to_owned(), "1 are free".to_owned())]
    );
    let mut command = vere();
    command.args(["spool", "serve", "--node", "n", "-c"]);
    command.arg(&config).stderr(Stdio::null());
    let _node = Child::spawn(&mut command);
    wait_until("the node", || TcpStream::connect(address).is_ok());
    let (value, _) = json(&config, &["status"]);
    assert_eq!(value["nodes"][0]["error"], Value::Null, "{value:#}");
    let texts = value["findings"].to_string();
    assert!(
        !texts.contains("not running") && !texts.contains("node n"),
        "{texts}"
    );
    let (value, _) = json(&config, &["doctor"]);
    let expected = format!("the running node n holds {address}");
    assert_eq!(rows(&value, "ports"), [("ok".to_owned(), expected)]);
    assert!(rows(&value, "dns").is_empty(), "{value:#}");
}

#[test]
fn a_bundle_of_a_running_system_has_no_secret() {
    let address = free_address();
    let system = System::start(
        &Options::to(address).set("metrics.listen", &format!("\"{}\"", free_address())),
    );
    system.submit_about("alice@example.org", &["x@example.com"], "one");
    let mut text = std::fs::read_to_string(&system.config).expect("the settings");
    text += "\n[[route]]\ndomain = \"planted.example\"\nnext_hop = \"127.0.0.1:9\"\nusername = \"u\"\n\
             password = \"PLANTED-password\"\n";
    std::fs::write(&system.config, text).expect("the settings");
    system.command(&["reload"]);
    let data = system.directory.path().join("data");
    let key = std::fs::read_to_string(data.join("spool.key")).expect("the key");
    let directory = std::fs::read_to_string(data.join("directory.toml")).expect("accounts");
    let hash = directory
        .lines()
        .find_map(|line| line.strip_prefix("password = "));
    let hash = hash.expect("a hash").trim_matches('"');
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("case.tar.gz");
    let file = file.to_str().expect("a path in UTF-8");
    let (value, code) = json(&system.config, &["support-bundle", file, "--no-dns"]);
    assert_eq!(code, Some(0), "{value:#}");
    let unpacked = Command::new("tar")
        .args(["-xzf", file, "-C"])
        .arg(folder.path())
        .status();
    assert!(unpacked.expect("tar").success());
    let made = value["parts"].as_array().expect("parts").iter();
    for part in made.filter(|part| part["reason"].is_null()) {
        let name = part["name"].as_str().expect("a name");
        let text = std::fs::read_to_string(folder.path().join("vere-support").join(name));
        let text = text.expect("a text");
        for secret in ["PLANTED", key.trim(), hash] {
            assert!(!text.contains(secret), "{secret} in {name}");
        }
    }
    for name in [
        "status.json",
        "queues.json",
        "metrics.txt",
        "spool.json",
        "groups.json",
        "settings-in-force.toml",
    ] {
        let path = folder.path().join("vere-support").join(name);
        assert!(path.exists(), "{name}: {value:#}");
    }
}

#[test]
fn a_disabled_account_loses_its_sessions_and_keeps_its_password() {
    for store in ["file:{data}/users.toml", "sqlite:{data}/users.db"] {
        let options = Options::default()
            .unset("relay.networks")
            .set("directory.store", &format!("{store:?}"));
        let system = System::start(&options);
        system.command(&["domain", "add", "example.org"]);
        system.add_account("alice@example.org");
        // NUL alice@example.org NUL secret.
        let plain = "AUTH PLAIN AGFsaWNlQGV4YW1wbGUub3JnAHNlY3JldA==";
        let mut session = Session::greeted(system.submission);
        session.command(plain, "235 2.7.0");
        let said = system.command(&["account", "disable", "alice@example.org"]);
        assert!(said.contains("alice@example.org is disabled"), "{said}");
        session.send(b"MAIL FROM:<alice@example.org>\r\n");
        assert!(session.rest().starts_with("421 4.7.0 "), "{store}");
        let mut refused = Session::greeted(system.submission);
        refused.command(plain, "535 5.7.8");
        let shown = system.json(&["account", "show", "alice@example.org"]);
        assert_eq!(shown["login"], "disabled");
        let resolved = system.json(&["resolve", "alice@example.org"]);
        assert_eq!(
            (&resolved[0]["accepted"], &resolved[0]["kind"]),
            (&true.into(), &"account".into())
        );
        system.command(&["account", "enable", "alice@example.org"]);
        let mut again = Session::greeted(system.submission);
        again.command(plain, "235 2.7.0");
    }
}

/// A domain in a zone whose host shows the certificate, and the TLSA record.
fn dane_zone(ip: &str, port: u16, tlsa: &str) -> String {
    format!("dane IN MX 10 mx.dane\nmx.dane IN A {ip}\n_{port}._tcp.mx.dane IN TLSA {tlsa}\n")
}

#[test]
fn tlsa_records_are_compared_with_the_certificate_that_is_shown() {
    let authority = Authority::new();
    let files = authority.sign("dane", &["mx.dane.good"]);
    let host = Mx::start_on(
        "127.0.1.91:0",
        Manners {
            certificate: Some(files.clone()),
            ..Manners::default()
        },
    );
    let digest = |der: &[u8]| -> String {
        Sha256::digest(der)
            .iter()
            .map(|octet| format!("{octet:02x}"))
            .collect()
    };
    let right = format!("3 0 1 {}", digest(&files.der));
    let wrong = format!("3 0 1 {}", digest(b"another"));
    let checked = |tlsa: &str, signing: Signing| -> Option<(String, String, String)> {
        let folder = tempfile::tempdir().expect("a directory");
        let zone = dane_zone("127.0.1.91", host.port(), tlsa);
        let named = Named::start(folder.path(), &BTreeMap::from([("good", (signing, zone))]))?;
        let config = folder.path().join("vere.toml");
        let text = format!(
            "version = 1\nhostname = \"mx.dane.good\"\ndata = \"data\"\n[delivery]\nport = {}\n[resolver]\n\
             servers = [\"{}\"]\ntrust_anchor = {:?}\n",
            host.port(),
            named.address,
            named.trust_anchor
        );
        std::fs::write(&config, text).expect("the settings");
        let words = [
            "dns",
            "check",
            "dane.good",
            "--probe",
            "dane.good",
            "--address",
            "127.0.1.91",
        ];
        let (value, _) = json(&config, &words);
        let rows = value[0]["checks"].as_array().expect("checks");
        let row = rows.iter().find(|row| row["check"] == "dane");
        let row = row.unwrap_or_else(|| panic!("{value:#}"));
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        Some((text("level"), text("text"), text("remedy")))
    };
    let Some((level, text, _)) = checked(&right, Signing::Good) else {
        return;
    };
    assert_eq!(level, "ok", "{text}");
    assert!(text.contains("is that of _"), "{text}");
    let (level, text, remedy) = checked(&wrong, Signing::Good).expect("BIND");
    assert_eq!(level, "critical", "{text}");
    assert!(remedy.contains("TLSA 3 1 1 "), "{remedy}");
    let (level, text, remedy) = checked(&right, Signing::None).expect("BIND");
    assert_eq!(level, "warning", "{text}");
    assert!(remedy.contains("sign the zone"), "{remedy}");
    let (level, text, remedy) =
        checked(&format!("1 0 1 {}", digest(&files.der)), Signing::Good).expect("BIND");
    assert_eq!(level, "warning", "{text}");
    assert!(remedy.contains("TLSA 3 1 1 "), "{remedy}");
}
