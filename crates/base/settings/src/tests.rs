mod acme;
mod filters;
mod front_lists;
mod judging;
mod lines;
mod nodes;
mod outgoing;
mod refused;
mod sending;
mod volumes;
mod web;
mod x400;

use proptest::prelude::*;

use super::*;

const MINIMAL: &str = "version = 1\nhostname = \"mx.example.org\"\n";

fn parse(rest: &str) -> Result<Settings, ConfigErrors> {
    Settings::parse(&format!("{MINIMAL}{rest}"), "/etc/vere/vere.toml")
}

/// The errors as `line key` with the whole text, for a file that starts with the minimal one.
fn errors(rest: &str) -> Vec<(usize, String, String)> {
    let errors = parse(rest).expect_err(rest);
    let one = |e: &ConfigError| (e.line, e.key.clone(), e.to_string());
    errors.errors().iter().map(one).collect()
}

/// Asserts that there is exactly one error, on that line, with that key and words.
fn one_error(rest: &str, line: usize, key: &str, words: &str) {
    let found = errors(rest);
    assert_eq!(found.len(), 1, "{rest}: {found:?}");
    let (at, name, text) = &found[0];
    assert_eq!((*at, name.as_str()), (line, key), "{rest}: {text}");
    assert!(text.contains(words), "{rest}: {text:?} lacks {words:?}");
}

#[test]
fn the_example_file_is_accepted_with_and_without_its_route() {
    let text = include_str!("../../../../docs/examples/vere.toml");
    let (before, route) = text.split_once("# [[route]]").unwrap();
    let with_route = format!("{before}[[route]]{}", route.replace("\n# ", "\n"));
    for text in [text, &with_route] {
        let parsed = Settings::parse(text, "/etc/vere/vere.toml");
        assert!(parsed.is_ok(), "{parsed:?}");
    }
}

#[test]
fn smallest_file_is_two_lines_and_has_every_default() {
    let settings = parse("").unwrap();
    assert_eq!(settings.hostname, "mx.example.org");
    assert_eq!(settings.data.to_str(), Some("/var/lib/vere"));
    assert_eq!(settings.smtp.listen, ["[::]:25".parse().unwrap()]);
    assert!(settings.relay.networks.is_empty(), "never an open relay");
    assert_eq!(settings.acme, None);
    assert_eq!(settings.metrics.listen, None);
    assert_eq!(settings.limits.recipients_max, 1_000);
    assert_eq!(settings.delivery.retry.len(), 5);
    assert_eq!(
        settings.delivery.maildir,
        "/var/lib/vere/maildir/{domain}/{local}"
    );
    assert_eq!(
        settings.control.socket.to_str(),
        Some("/var/lib/vere/control.sock")
    );
    let store = DirectoryStore::File("/var/lib/vere/directory.toml".into());
    assert_eq!(settings.directory.store, store);
    let folder = Register::File("/var/lib/vere/register".into());
    assert_eq!(settings.cluster.register, folder);
    assert_eq!(settings.spool.replicas_min, 1);
    assert_eq!(settings.spool.nodes.len(), 2);
    assert_eq!(settings.spool.replicas, 2);
    assert_eq!(
        settings.spool.nodes[0].data.to_str(),
        Some("/var/lib/vere/spool/a")
    );
}

const WORKING: &str = r#"version = 1
hostname = "MX.Example.org"
data = "data"
user = "vere"
[submission]
listen = ["[::]:587"]
[submissions]
listen = ["[::]:465"]
[tls]
certificate = "tls/cert.pem"
key = "/etc/ssl/key.pem"
[[route]]
domain = "*"
next_hop = "[2001:db8::1]:2525"
"#;

#[test]
fn whole_server_fits_under_20_lines_and_paths_start_at_the_file() {
    assert!(WORKING.lines().count() < 20);
    let settings = Settings::parse(WORKING, "/etc/vere/vere.toml").unwrap();
    assert_eq!(settings.hostname, "mx.example.org");
    assert_eq!(settings.data.to_str(), Some("/etc/vere/data"));
    let files = settings.tls.default.unwrap();
    assert_eq!(files.certificate.to_str(), Some("/etc/vere/tls/cert.pem"));
    assert_eq!(files.key.to_str(), Some("/etc/ssl/key.pem"));
    assert_eq!(
        settings.spool.secret.to_str(),
        Some("/etc/vere/data/spool.key")
    );
    let next_hop = NextHop::Host {
        host: "2001:db8::1".to_owned(),
        port: 2525,
    };
    assert_eq!(settings.routes[0].next_hop, next_hop);
    let bare = Settings::parse(WORKING, "vere.toml").unwrap();
    assert_eq!(bare.data.to_str(), Some("data"));
}

const EVERY_SECTION: &str = r#"[xclient]
networks = ["127.0.0.1"]
[acme]
contact = ["mailto:postmaster@example.org"]
root = "pebble.pem"
[resolver]
servers = ["127.0.0.1:5300"]
zone = "zone"
[directory]
store = "sqlite:directory.db"
subaddress_separator = ""
[delivery]
tls = "required"
port = 2526
[[route]]
domain = "Example.net"
next_hop = "Relay.example.net"
username = "me"
password = "very secret"
[[route]]
domain = ".example.net"
next_hop = "192.0.2.1:24"
protocol = "lmtp"
tls = "off"
[[route]]
domain = "*"
next_hop = "mx"
[spool]
durability = "replicated"
[[spool.node]]
name = "a"
listen = "127.0.0.1:2600"
[[spool.node]]
name = "b"
listen = "127.0.0.1:2601"
data = "/mnt/b"
tls = "required"
[spool.tls]
certificate = "n.pem"
key = "n.key"
ca = "/etc/ca.pem"
[cluster]
register = "etcd"
lease = "30s"
[cluster.etcd]
endpoints = ["https://e1.example.org:2379", "http://[::1]:2379"]
ca = "etcd.pem"
certificate = "c.pem"
key = "c.key"
user = "mail"
password_file = "etcd.password"
[[tls.sni]]
name = "mail.example.org"
certificate = "m.pem"
key = "m.key"
[log]
level = "debug"
format = "json"
"#;

#[test]
fn every_section_together() {
    let settings = parse(EVERY_SECTION).unwrap();
    let acme = settings.acme.as_ref().unwrap();
    assert_eq!(acme.domains, ["mx.example.org"]);
    assert_eq!(
        acme.root.as_deref(),
        Some(std::path::Path::new("/etc/vere/pebble.pem"))
    );
    assert_eq!(
        settings.directory.store,
        DirectoryStore::Sqlite("/etc/vere/directory.db".into())
    );
    assert_eq!(settings.directory.subaddress_separator, None);
    let first = settings.route("EXAMPLE.net").unwrap();
    let host = NextHop::Host {
        host: "relay.example.net".to_owned(),
        port: 2526,
    };
    assert_eq!((&first.next_hop, first.tls), (&host, TlsMode::Required));
    let below = settings.route("a.b.example.NET").unwrap();
    assert_eq!((below.protocol, below.tls), (Protocol::Lmtp, TlsMode::Off));
    assert_eq!(
        settings.route("badexample.net").unwrap().next_hop,
        NextHop::Mx
    );
    assert_eq!(settings.spool.replicas_min, 2);
    assert_eq!(
        settings.spool.nodes[0].data.to_str(),
        Some("/var/lib/vere/spool/a")
    );
    let tls = settings.spool.tls.as_ref().unwrap();
    assert_eq!(tls.files.certificate.to_str(), Some("/etc/vere/n.pem"));
    assert_eq!(tls.files.key.to_str(), Some("/etc/vere/n.key"));
    assert_eq!(tls.ca.to_str(), Some("/etc/ca.pem"));
    let wanted = [settings.spool.nodes[0].tls, settings.spool.nodes[1].tls];
    assert_eq!(wanted, [LineTls::Auto, LineTls::Required]);
    assert_eq!(
        settings.tls.sni[0].files.key.to_str(),
        Some("/etc/vere/m.key")
    );
    let cluster = &settings.cluster;
    assert_eq!(
        (cluster.lease.to_string(), cluster.skew.to_string()),
        ("30s".to_owned(), "2s".to_owned())
    );
    let Register::Etcd(etcd) = &cluster.register else {
        panic!("{cluster:?}");
    };
    assert_eq!((etcd.endpoints.len(), etcd.prefix.as_str()), (2, "vere"));
    let certificate = etcd.certificate.as_ref().unwrap();
    assert_eq!(certificate.key.to_str(), Some("/etc/vere/c.key"));
    let login = ("mail".to_owned(), "/etc/vere/etcd.password".into());
    assert_eq!(etcd.login, Some(login));
    assert_eq!(
        (settings.log.level, settings.log.format),
        (LogLevel::Debug, LogFormat::Json)
    );
    assert!(
        !format!("{settings:?}").contains("very secret"),
        "secrets stay out of logs"
    );
}

#[test]
fn the_mta_of_x400_has_a_level_of_its_own_in_the_log() {
    let level = |lines: &str| {
        let text = format!(
            "version = 1\nhostname = \"mx.example.org\"\n[log]\nlevel = \"debug\"\n\
             [x400]\nlisten = [\"127.0.0.1:1102\"]\ndomain = \"C=GB; A=Carrier\"\n{lines}"
        );
        let settings = Settings::parse(&text, "vere.toml").unwrap();
        assert_eq!(settings.log_level_of("gateway"), LogLevel::Debug);
        settings.log_level_of("x400")
    };
    assert_eq!(level(""), LogLevel::Error);
    assert_eq!(level("log_level = \"info\"\n"), LogLevel::Info);
}

#[test]
fn version_is_asked_for_and_only_1_is_read() {
    let text = "hostname = \"mx.example.org\"\n";
    let found = Settings::parse(text, "f").unwrap_err().to_string();
    assert_eq!(
        found,
        "f:1: version: is missing; add this first line: version = 1"
    );
    // Nothing else is said about a file that is written for a program not yet known.
    let found = Settings::parse("\nversion = 2\nnew_key = true\n", "f")
        .unwrap_err()
        .to_string();
    assert_eq!(
        found,
        "f:2: version: expected version 1 of the file; found 2"
    );
    let found = Settings::parse("version = \"1\"\nhostname = \"a.b\"\n", "f").unwrap_err();
    assert!(
        found
            .to_string()
            .contains("expected the number 1; found a string"),
        "{found}"
    );
}

#[test]
fn networks_of_proxies_and_of_xclient_are_apart_unless_told() {
    let parse = |xclient: &str, proxy: &str, more: &str| {
        let networks = format!(
            "[xclient]\nnetworks = [\"{xclient}\"]\n{more}\n[proxy]\nnetworks = [\"{proxy}\"]\n"
        );
        Settings::parse(&format!("{WORKING}{networks}"), "vere.toml")
    };
    for (xclient, proxy) in [
        ("10.0.0.0/8", "10.1.2.3"),
        ("10.1.2.3", "10.0.0.0/8"),
        ("::1", "::/0"),
    ] {
        let error = parse(xclient, proxy, "").unwrap_err().to_string();
        assert!(
            error.contains("shares addresses with proxy.networks"),
            "{error}"
        );
        parse(xclient, proxy, "proxy_overlap = \"allowed\"").unwrap();
    }
    parse("10.0.0.0/8", "192.0.2.0/24", "").unwrap();
    parse("127.0.0.1", "::1", "").unwrap();
}

#[test]
fn hostile_host_names_are_refused() {
    let label = "a".repeat(64);
    for name in [
        "",
        ".",
        "a..b",
        "-a.org",
        "a-.org",
        "a b.org",
        "bücher.de",
        "10.0.0.1",
        "a_b.c",
        &label,
    ] {
        let text = format!("version = 1\nhostname = \"{name}\"\n");
        let found = Settings::parse(&text, "f").unwrap_err();
        assert_eq!(found.errors()[0].line, 2, "{name}");
        assert!(
            matches!(found.errors()[0].problem, Problem::NotAllowed { .. }),
            "{name}"
        );
    }
}

#[test]
fn everything_wrong_is_said_at_once_in_order() {
    let text = "version = 1\n\
                datta = \"x\"\n\
                [limits]\n\
                recipients_max = 1\n\
                hops_max = \"x\"\n\
                [[route]]\n\
                next_hop = \"a b\"\n";
    let found = Settings::parse(text, "f.toml").unwrap_err();
    let lines: Vec<(usize, &str)> = found
        .errors()
        .iter()
        .map(|e| (e.line, e.key.as_str()))
        .collect();
    let wanted = [
        (1, "hostname"),
        (2, "datta"),
        (4, "limits.recipients_max"),
        (5, "limits.hops_max"),
        (6, "route[1].domain"),
        (7, "route[1].next_hop"),
    ];
    assert_eq!(lines, wanted);
    assert_eq!(found.to_string().lines().count(), 6);
    assert!(
        found
            .to_string()
            .lines()
            .all(|line| line.starts_with("f.toml:"))
    );
}

#[test]
fn broken_toml_has_lines() {
    let found = errors("data = \"a\ndata = [1,\nbad key = 3\n");
    assert!(found.iter().all(|(line, ..)| *line >= 3), "{found:?}");
    for text in [
        "\u{0}",
        "[",
        "[[",
        "a.b.c",
        "= 1",
        "version = 1_",
        "\u{feff}",
        "version = 1e9",
    ] {
        assert!(Settings::parse(text, "f").is_err(), "{text:?}");
    }
}

#[test]
fn hostile_files_are_bounded() {
    let deep = format!("data = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse(&deep).is_err());
    let large = format!("# {}", "x".repeat(16 << 20));
    assert!(matches!(
        parse(&large).unwrap_err().errors()[0].problem,
        Problem::TooLarge(..)
    ));
    let long = "x".repeat(5_000);
    let found = errors(&format!("data = \"{long}\"\n"));
    assert!(
        found[0].2.len() < 300,
        "messages stay short: {}",
        found[0].2
    );
}

#[test]
fn secrets_are_not_in_messages() {
    let found =
        errors("[[route]]\ndomain = \"*\"\nnext_hop = \"a\"\npassword = \"hunter\\u0001\"\n");
    assert!(!found[0].2.contains("hunter"), "{}", found[0].2);
}

#[test]
fn changes_tell_live_from_restart() {
    let old = parse("").unwrap();
    assert!(old.changes(&old.clone()).is_empty());
    let spelled = parse("[limits]\nmessage_size_max = \"51200 KiB\"\n").unwrap();
    assert_eq!(
        old, spelled,
        "a default that is written out changes nothing"
    );
    let new = parse(
        "data = \"/srv\"\n[limits]\nerrors_max = 5\n[[route]]\ndomain = \"*\"\nnext_hop = \"a\"\n",
    )
    .unwrap();
    let changes = old.changes(&new);
    assert_eq!(changes.restart, ["data"]);
    let live = [
        "limits.errors_max",
        "route[1].call_ahead",
        "route[1].domain",
        "route[1].next_hop",
        "route[1].password_in_clear",
        "route[1].protocol",
    ];
    assert_eq!(changes.live, live);
    assert_eq!(new.changes(&old), changes, "removed keys count as well");
}

/// A quotation mark too many makes the lines that follow part of the value of another key.
#[test]
fn a_value_of_several_lines_is_not_quoted() {
    let route = "[[route]]\ndomain = \"a.example\"\nnext_hop = \"b.example\"\n";
    let text =
        format!("{MINIMAL}{route}username = \"\"\"me\"\npassword = \"very secret\"\n\"\"\"\n");
    let errors = Settings::parse(&text, "f").unwrap_err().to_string();
    assert!(
        errors.contains(
            "route[1].username: the text: expected at most 4096 bytes without control characters"
        ),
        "{errors}"
    );
    assert!(!errors.contains("secret"), "{errors}");
}

proptest! {
    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        let _ = Settings::parse(&text, "f");
        let _ = parse(&text);
    }

    /// A right file with one stretch of it replaced comes near to every check.
    #[test]
    fn damaged_files_are_answered(at in 0..EVERY_SECTION.len(), cut in 0..40_usize, new in "[\\[\\]=\"{}a-z0-9.\n -]{0,12}") {
        let mut text = format!("{MINIMAL}{EVERY_SECTION}");
        let start = MINIMAL.len() + at;
        text.replace_range(start..(start + cut).min(text.len()), &new);
        if let Err(errors) = Settings::parse(&text, "f") {
            let lines = text.lines().count().max(1);
            // A cut may have made the secret's text the value of another key.
            let secret = text.contains("password = \"very secret\"");
            prop_assert!(!errors.errors().is_empty());
            for error in errors.errors() {
                prop_assert!((1..=lines + 1).contains(&error.line), "{error}");
                let told = error.to_string().contains("very secret");
                prop_assert!(!(secret && told), "{error}");
            }
        }
    }
}

#[test]
fn table_is_sound() {
    let mut names = std::collections::BTreeSet::new();
    for section in table::sections() {
        assert!(names.insert(section.name), "{} stands twice", section.name);
        if let Some((parent, _)) = section.name.rsplit_once('.') {
            assert!(
                names.contains(parent),
                "{} stands before its parent",
                section.name
            );
        }
        let mut options = std::collections::BTreeSet::new();
        for option in section.options {
            assert!(
                options.insert(option.name),
                "{}.{}",
                section.name,
                option.name
            );
            assert!(
                !option.text.contains('|') && option.text.ends_with('.'),
                "{}",
                option.name
            );
        }
    }
}

#[test]
fn reference_in_docs_is_the_one_of_the_table() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference");
    for (name, of) in [("config.md", File::System), ("volume.md", File::Volume)] {
        let path = std::path::Path::new(folder).join(name);
        let wanted = reference(of);
        if std::env::var_os("VERE_WRITE_REFERENCE").is_some() {
            std::fs::write(&path, &wanted).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            found == wanted,
            "{name} differs; write it by: cargo xtask generated --write"
        );
    }
}
