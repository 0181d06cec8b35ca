//! `vere dns check` of the records that `vere quickstart` prints, served by a real name server.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{
    Authority, Named, Options, Signing, System, assert_has, free_address, program, quoted, vere,
};

/// The address that the machine is said to have.
const ADDRESS: &str = "198.51.100.7";

/// The output of a command as JSON, and its exit code.
fn json(words: &[&str]) -> (Value, Option<i32>) {
    let output = vere().args(words).output().expect("the command runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (value, output.status.code())
}

/// A system made by quickstart, and its records as lines of a zone.
struct Started {
    folder: TempDir,
    records: Vec<String>,
}

impl Started {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let dir = folder.path().join("system");
        let dir = dir.to_str().expect("a path in UTF-8");
        let (value, _) = json(&[
            "quickstart",
            "you@example.org",
            "--dir",
            dir,
            "--acme",
            "--address",
            ADDRESS,
            "--json",
        ]);
        let rows = value["dns"].as_array().expect("records").iter();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let records = rows.map(|row| {
            let ttl = row["ttl"].as_u64().expect("a number");
            let [name, kind, value] = ["name", "type", "value"].map(|field| text(&row[field]));
            format!("{name} {ttl} IN {kind} {value}")
        });
        let records = records.collect();
        Self { folder, records }
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("system/vere.toml")
    }

    /// The findings while these records are served, each as name of the check and remedy; `None` without BIND.
    fn findings(&self, records: &[String]) -> Option<Vec<(String, String)>> {
        let zones = tempfile::tempdir().expect("a directory");
        let own = records.join("\n");
        let names = "7.100.51.198.in-addr IN PTR mail.example.org.".to_owned();
        let served = BTreeMap::from([
            ("org", (Signing::None, own)),
            ("arpa", (Signing::None, names)),
        ]);
        let named = Named::start(zones.path(), &served)?;
        let config = with_server(&self.config(), &named);
        let config = config.to_str().expect("a path in UTF-8");
        let words = [
            "dns",
            "check",
            "--records-only",
            "--address",
            ADDRESS,
            "--json",
            "-c",
            config,
        ];
        let (value, code) = json(&words);
        assert_eq!(value[0]["domain"], "example.org");
        let rows = value[0]["checks"].as_array().expect("checks").iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let found: Vec<_> = rows
            .filter(|row| row["level"] != "ok")
            .map(|row| (text(&row["check"]), text(&row["remedy"])))
            .collect();
        assert_eq!(
            code,
            Some(if found.is_empty() { 0 } else { 3 }),
            "{value:#}"
        );
        Some(found)
    }
}

#[test]
fn bind_takes_the_block_that_is_printed_again() {
    let started = Started::new();
    let config = started.config();
    let mut settings = std::fs::read_to_string(&config).expect("the settings");
    // Root on a machine without a web server has the section.
    if !settings.contains("[web]") {
        settings += "\n[web]\n";
    }
    std::fs::write(&config, settings).expect("the settings");
    let path = config.to_str().expect("a path in UTF-8");
    let words = ["dns", "records", "-c", path, "--address", ADDRESS];
    let printed = vere().args(words).output().expect("the command runs");
    let block = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert_has(
        &block,
        &[
            ADDRESS,
            "v=spf1",
            "k=rsa",
            "_imaps._tcp.example.org.",
            "mta-sts.example.org.",
            "v=STSv1; id=",
            "autoconfig.example.org.",
        ],
    );
    let Some(program) = program("named-checkzone") else {
        return;
    };
    let zone = started.folder.path().join("zone");
    let head =
        "@ 3600 IN SOA ns hostmaster 1 3600 600 86400 300\n@ 3600 IN NS ns\nns IN A 127.0.0.1\n";
    std::fs::write(&zone, head.to_owned() + &block).expect("the zone");
    let mut check = Command::new(program);
    let checked = check.args([
        "-k",
        "fail",
        "-m",
        "fail",
        "-n",
        "fail",
        "-S",
        "fail",
        "example.org",
    ]);
    let checked = checked.arg(&zone).output().expect("the command runs");
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}\n{block}");
    // The records are those of the first time, and of the names of the web server.
    let (again, _) = json(&[&words[..], &["--json"]].concat());
    let again = again.as_array().expect("records");
    assert_eq!(again.len(), block.lines().count());
    let spaced = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = block.lines().map(spaced).collect();
    for record in &started.records {
        assert!(lines.contains(&spaced(record)), "{record} in {block}");
    }
}

/// The settings with another name server.
fn with_server(config: &Path, named: &Named) -> PathBuf {
    let mut text = std::fs::read_to_string(config).expect("the settings");
    let _ = write!(text, "\n[resolver]\nservers = [\"{}\"]\n", named.address);
    let path = config.with_file_name("checked.toml");
    std::fs::write(&path, text).expect("the settings");
    path
}

#[test]
fn the_records_of_quickstart_pass_and_each_missing_one_is_asked_for() {
    let started = Started::new();
    let Some(found) = started.findings(&started.records) else {
        return;
    };
    assert_eq!(found, [], "{:#?}", started.records);
    // Without the record of this kind and text the check has the record in its remedy.
    for (kind, part, check) in [
        (" A ", ADDRESS, "host"),
        (" MX ", "mail.example.org.", "mx"),
        (" TXT ", "v=spf1", "spf"),
        (" TXT ", "v=DMARC1", "dmarc"),
        (" TXT ", "k=ed25519", "dkim"),
    ] {
        let is_it = |line: &String| line.contains(kind) && line.contains(part);
        let others: Vec<String> = started
            .records
            .iter()
            .filter(|line| !is_it(line))
            .cloned()
            .collect();
        assert_eq!(others.len() + 1, started.records.len(), "{kind}{part}");
        let found = started.findings(&others).expect("BIND");
        let remedy = found.iter().find(|(name, _)| name == check);
        let (_, remedy) = remedy.unwrap_or_else(|| panic!("{check}: {found:?}"));
        assert!(remedy.contains(part), "{check}: {remedy}");
    }
    for (from, to, check) in [
        (
            "issue \"letsencrypt.org\"",
            "issue \"ca.example.net\"",
            "caa",
        ),
        ("0 1 2993 mail", "0 1 993 mail", "srv"),
        ("0 1 993 mail", "0 1 2993 mail", "srv"),
    ] {
        let changed: Vec<String> = started
            .records
            .iter()
            .map(|line| line.replace(from, to))
            .collect();
        // The port depends on who runs the test.
        if check == "srv" && changed == started.records {
            continue;
        }
        let found = started.findings(&changed).expect("BIND");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, check);
    }
}

/// The host itself receives the mail of its domain, so that its own queues never lead there.
#[test]
fn the_host_and_its_certificate_are_seen_from_the_host_itself() {
    let authority = Authority::new();
    let options = Options::default()
        .certificate(&authority.sign("mx", &["mx.example.org"]))
        .set("delivery.ca", &quoted(&authority.ca))
        .record("mx.example.org A 127.0.0.1")
        .record("example.org MX 10 mx.example.org");
    let system = System::start(&options);
    let checked = |port: u16| {
        let folder = tempfile::tempdir().expect("a directory");
        let options = options.clone().set("delivery.port", &port.to_string());
        let config = System::write_config(folder.path(), &options);
        let config = config.to_str().expect("a path in UTF-8");
        let words = ["dns", "check", "example.org", "--json", "-c", config];
        let (value, _) = json(&[&words[..], &["--address", "127.0.0.1"]].concat());
        let rows = value[0]["checks"].as_array().expect("checks").clone();
        let level = |check: &str| {
            let row = rows.iter().find(|row| row["check"] == check)?;
            row["level"].as_str().map(str::to_owned)
        };
        (level("port 25 in"), level("certificate"))
    };
    let ok = || Some("ok".to_owned());
    assert_eq!(checked(system.smtp.port()), (ok(), ok()));
    let nobody = free_address().port();
    assert_eq!(checked(nobody), (Some("critical".to_owned()), None));
}

/// Answers each HTTPS request with the directory of a CA; returns the port.
fn serve_directory(config: &Arc<ServerConfig>, text: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let config = Arc::clone(config);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("TLS");
            let mut stream = StreamOwned::new(connection, stream);
            let length = text.len();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{text}");
            // A client that disconnects is no failure of the test.
            let _ = Read::read(&mut stream, &mut [0; 4096]);
            let _ = Write::write_all(&mut stream, answer.as_bytes());
            stream.conn.send_close_notify();
            let _ = Write::flush(&mut stream);
        }
    });
    port
}

/// The CA of the settings is known by the names in its directory; only letsencrypt.org was known.
#[test]
fn the_authority_of_the_settings_is_asked_for_its_names() {
    let authority = Authority::new();
    let config = authority.sign("directory", &["localhost"]).server(&[]);
    let port = serve_directory(&config, r#"{"meta":{"caaIdentities":["ca.example.net"]}}"#);
    let found = |record: &str| {
        let options = Options::default()
            .set("acme.directory", &format!("\"https://localhost:{port}/\""))
            .set("acme.root", &quoted(&authority.ca))
            .record(record);
        let folder = tempfile::tempdir().expect("a directory");
        let config = System::write_config(folder.path(), &options);
        let config = config.to_str().expect("a path in UTF-8");
        let words = ["dns", "check", "example.org", "--json", "-c", config];
        let (value, _) = json(&words);
        let mut rows = value[0]["checks"].as_array().expect("checks").iter();
        let row = rows.find(|row| row["check"] == "caa").expect("the check");
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        (text("level"), text("text"))
    };
    let (level, _) =
        found("mx.example.org CAA 0 issue \"ca.example.net; validationmethods=http-01\"");
    assert_eq!(level, "ok");
    let (level, text) = found("mx.example.org CAA 0 issue \"letsencrypt.org\"");
    assert_eq!(level, "critical");
    assert_has(&text, &["forbids ca.example.net"]);
}

/// The command was silent for minutes, with a row for each look-up without an answer.
#[test]
fn name_servers_that_do_not_answer_end_the_check() {
    let mute = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = mute.local_addr().expect("its address");
    let folder = tempfile::tempdir().expect("a directory");
    let config = folder.path().join("vere.toml");
    let text = format!(
        "version = 1\nhostname = \"mx.example.org\"\ndata = \"data\"\n[resolver]\nservers = [\"{address}\"]\n"
    );
    std::fs::write(&config, text).expect("the settings");
    let config = config.to_str().expect("a path in UTF-8");
    let begun = Instant::now();
    let (value, code) = json(&["dns", "check", "example.org", "--json", "-c", config]);
    assert!(begun.elapsed() < Duration::from_secs(70), "{value:#}");
    assert_eq!(code, Some(3));
    let rows = value[0]["checks"].as_array().expect("checks");
    assert_eq!(rows.len(), 1, "{value:#}");
    let text = |key: &str| rows[0][key].as_str().unwrap_or_default().to_owned();
    assert_has(&text("text"), &["the name servers do not answer"]);
    assert_has(&text("remedy"), &["[resolver] servers", "firewall"]);
}

/// Records of a mistyped domain were asked for as if the domain were one of this system.
#[test]
fn a_domain_of_others_is_told_first_and_a_text_that_is_no_domain_is_refused() {
    let started = Started::new();
    let config = started.config();
    let config = config.to_str().expect("a path in UTF-8");
    let zone = started.folder.path().join("zone");
    std::fs::write(&zone, "").expect("the zone");
    let checked = started.folder.path().join("system/checked.toml");
    let text = std::fs::read_to_string(config).expect("the settings");
    let text = format!("{text}\n[resolver]\nzone = {}\n", quoted(&zone));
    std::fs::write(&checked, text).expect("the settings");
    let checked = checked.to_str().expect("a path in UTF-8");
    let words = ["--records-only", "--json", "-c", checked];
    let (value, code) = json(&[&["dns", "check", "exmaple.org"], &words[..]].concat());
    assert_eq!(code, Some(3));
    let row = &value[0]["checks"][0];
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    assert_eq!(text("text"), "exmaple.org is not a domain of this system");
    assert_has(
        &text("remedy"),
        &["check example.org", "vere domain add exmaple.org"],
    );
    let mut command = vere();
    command.args(["dns", "check", "bad domain"]).args(words);
    let output = command.output().expect("the command runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is not a domain name"), "{said}");
}
