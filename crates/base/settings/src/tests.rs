mod lines;
mod outgoing;

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
    assert_eq!(found.len(), 1, "{found:?}");
    let (at, name, text) = &found[0];
    assert_eq!((*at, name.as_str()), (line, key), "{text}");
    assert!(text.contains(words), "{text:?} lacks {words:?}");
}

/// Checks a table of files with one mistake each.
fn refused(table: &str) {
    for row in table.lines().filter(|row| !row.is_empty()) {
        let [file, key, words] = row.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{row:?} is no row");
        };
        match file.split_once("] ").filter(|_| file.starts_with('[')) {
            Some((section, line)) => one_error(&format!("{section}]\n{line}\n"), 4, key, words),
            None => one_error(&format!("{file}\n"), 3, key, words),
        }
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
fn accounts_on_the_nodes_are_told_apart() {
    let account = |name: &str, secret: &str| {
        format!("[[spool.account]]\nname = \"{name}\"\nsecret = \"{secret}\"\n")
    };
    let long = "n".repeat(33);
    for (file, line, key, words) in [
        (
            account("default", "k"),
            4,
            "spool.account[1].name",
            "spool.secret",
        ),
        (account(&long, "k"), 4, "spool.account[1].name", "32 octets"),
        (
            account("a", "k") + &account("a", "l"),
            7,
            "spool.account[2].name",
            "stands twice",
        ),
        (
            account("a", "k") + &account("b", "k"),
            8,
            "spool.account[2].secret",
            "proves another account",
        ),
    ] {
        one_error(&file, line, key, words);
    }
    let many = vec!["\"a\""; 17].join(", ");
    for (file, key, words) in [
        (
            format!("readers = [{many}]"),
            "spool.readers",
            "more than 16",
        ),
        (
            format!("adopters = [\"{long}\"]"),
            "spool.adopters",
            "32 octets",
        ),
    ] {
        one_error(&format!("[spool]\n{file}\n"), 4, key, words);
    }
}

#[test]
fn a_queue_names_its_readers_once() {
    let many = vec!["\"a\""; 17].join(", ");
    let long = "n".repeat(33);
    let queue = |name: &str, readers: &str| {
        format!("[[spool.queue]]\nname = \"{name}\"\nreaders = [{readers}]\n")
    };
    for (file, line, key, words) in [
        (
            queue("q", ""),
            5,
            "spool.queue[1].readers",
            "expected at least one account",
        ),
        (
            queue("q", &many),
            5,
            "spool.queue[1].readers",
            "more than 16",
        ),
        (
            queue("q", &format!("\"{long}\"")),
            5,
            "spool.queue[1].readers",
            "32 octets",
        ),
        (
            queue("q", "\"a\"") + &queue("q", "\"b\""),
            7,
            "spool.queue[2].name",
            "stands twice",
        ),
    ] {
        one_error(&file, line, key, words);
    }
    let read = parse(&queue("@finished", "\"billing\"")).unwrap();
    let wanted = SpoolQueue {
        name: "@finished".to_owned(),
        readers: vec!["billing".to_owned()],
    };
    assert_eq!(read.spool.queues, [wanted]);
}

#[test]
fn at_a_standby_address_only_its_own_node_answers() {
    let node = |name: &str, listen: u16, standby: u16| {
        format!(
            "[[spool.node]]\nname = \"{name}\"\nlisten = \"127.0.0.1:{listen}\"\n\
             standby = \"127.0.0.1:{standby}\"\n"
        )
    };
    for (nodes, line, key, words) in [
        ([(1, 4), (2, 5)], 0, "", ""),
        ([(1, 2), (2, 5)], 6, "spool.node[1].standby", "node \"b\""),
        ([(1, 4), (2, 1)], 10, "spool.node[2].standby", "node \"a\""),
        ([(1, 1), (2, 5)], 6, "spool.node[1].standby", "listen"),
    ] {
        let [a, b] = nodes;
        let file = node("a", a.0, a.1) + &node("b", b.0, b.1);
        if key.is_empty() {
            assert!(parse(&file).is_ok(), "{:?}", parse(&file));
        } else {
            one_error(&file, line, key, words);
        }
    }
}

#[test]
fn nodes_share_a_log_where_they_are_known_to_share_a_machine() {
    let node = |name: &str, address: &str, runs: &str| {
        format!("[[spool.node]]\nname = \"{name}\"\nlisten = \"{address}\"\nruns = \"{runs}\"\n")
    };
    let places = |file: &str| parse(file).unwrap().spool.log_places();
    assert_eq!(places(""), [0, 0]);
    assert_eq!(places("[spool]\nlog = \"node\"\n"), [0, 1]);
    let nodes = [
        node("a", "127.0.0.1:1", "here"),
        node("b", "192.0.2.1:1", "elsewhere"),
        node("c", "192.0.2.2:1", "elsewhere"),
        node("d", "192.0.2.9:1", "here"),
        node("e", "[::ffff:192.0.2.1]:2", "elsewhere"),
        // Tunnels to wherever.
        node("f", "127.0.0.1:2", "elsewhere"),
        node("g", "127.0.0.1:3", "elsewhere"),
    ];
    assert_eq!(places(&nodes.concat()), [0, 1, 2, 0, 1, 5, 6]);
}

#[test]
fn nodes_in_clear_text_on_a_network_are_known() {
    let node = |rest: &str| format!("[[spool.node]]\nname = \"a\"\n{rest}\n");
    let tls = "[spool.tls]\ncertificate = \"c\"\nkey = \"k\"\nca = \"r\"\n";
    for (file, exposed) in [
        (node("listen = \"192.0.2.1:2600\""), true),
        (node("listen = \"[::]:2600\""), true),
        (
            node("listen = \"127.0.0.1:2600\"\nstandby = \"192.0.2.1:2600\""),
            true,
        ),
        (node("listen = \"127.0.0.1:2600\""), false),
        (node("listen = \"192.0.2.1:2600\"\ntls = \"off\""), false),
        (tls.to_owned() + &node("listen = \"192.0.2.1:2600\""), false),
    ] {
        let settings = parse(&file).unwrap();
        assert_eq!(
            settings.spool.exposed().count(),
            usize::from(exposed),
            "{file}"
        );
    }
    let wants = node("listen = \"127.0.0.1:2600\"\ntls = \"required\"");
    one_error(&wants, 6, "spool.node[1].tls", "[spool.tls]");
    let part = "[spool.tls]\ncertificate = \"c\"\nkey = \"k\"\n";
    one_error(part, 3, "spool.tls.ca", "missing");
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
fn unknown_keys_name_the_nearest() {
    one_error(
        "[limits]\nrecipient_max = 5\n",
        4,
        "limits.recipient_max",
        "is recipients_max",
    );
    one_error("[limtis]\n", 3, "limtis", "the nearest known one is limits");
    one_error(
        "[tls]\n[[tls.snj]]\n",
        4,
        "tls.snj",
        "the nearest known one is sni",
    );
    // The right name in the wrong section.
    one_error(
        "[smtp]\nmessage_size_max = 5\n",
        4,
        "smtp.message_size_max",
        "limits.message_size_max",
    );
    one_error(
        "quite_another_thing = 5\n",
        3,
        "quite_another_thing",
        "unknown key",
    );
    one_error("\"a\\nb\" = 5\n", 3, "\"a\\nb\"", "unknown key");
    one_error(
        "\"limits.hops_max\" = 50\n",
        3,
        "limits.hops_max",
        "unknown key",
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

/// `[section] line of the file => key => words of the error`.
const WRONG_TYPES: &str = r##"
[limits] recipients_max = "9" => limits.recipients_max => expected a number from 100 to 100000; found a string
[limits] message_size_max = 9 => limits.message_size_max => a size such as "10 MiB"
[smtp] listen = "[::]:25" => smtp.listen => expected a list of addresses
[smtp] listen = [25] => smtp.listen => expected a list of addresses with ports such as ["[::]:25"]; found a number
smtp = 3 => smtp => expected a section [smtp]; found a number
route = [1] => route[1] => expected sections [[route]]
[[limits]] => limits => expected a section [limits]; found a list
"##;

#[test]
fn wrong_types_say_what_is_wanted() {
    refused(WRONG_TYPES);
    one_error(
        "[route]\ndomain = \"*\"\n",
        3,
        "route",
        "expected sections [[route]]",
    );
}

/// `[section] line of the file => key => words of the error`.
const NOT_ALLOWED: &str = r##"
[limits] recipients_max = 99 => limits.recipients_max => a number from 100 to 100000
[limits] recipients_max = -1 => limits.recipients_max => a number from 100
[delivery] port = 65536 => delivery.port => a number from 1 to 65535
[limits] message_size_max = "1 B" => limits.message_size_max => from 64 KiB to 2 GiB
[limits] command_timeout = "0s" => limits.command_timeout => from 1s to 1d
[limits] command_timeout = "5" => limits.command_timeout => has no unit
[delivery] retry = [] => delivery.retry => at least one
[delivery] tls = "on" => delivery.tls => "off", "opportunistic", "required"
[relay] networks = ["10.1.0.0/8"] => relay.networks => the network is 10.0.0.0/8
[smtp] listen = ["localhost:25"] => smtp.listen => not a name
user = "../root" => user => must not hold a slash
data = "" => data => must not be empty
data = "a\u0000b" => data => control characters
[delivery] maildir = "{data}/{local}" => delivery.maildir => expected {domain}
[delivery] maildir = "{home}/{domain}/{local}" => delivery.maildir => no other placeholders
[directory] store = "ldap:x" => directory.store => sqlite:PATH
[directory] subaddress_separator = "@" => directory.subaddress_separator => expected one of
[acme] directory = "http://ca" => acme.directory => https://
"##;

#[test]
fn values_out_of_range_say_what_is_allowed() {
    refused(NOT_ALLOWED);
}

#[test]
fn authorities_of_a_web_server_need_one_that_encrypts() {
    for place in [
        "file = \"f\"",
        "webhook = \"http://127.0.0.1/\"\nwebhook_secret = \"s\"",
    ] {
        let text = format!("[records]\nwebhook_ca = \"ca\"\n{place}\n");
        one_error(&text, 4, "records.webhook_ca", "needs an https:// address");
    }
}

#[test]
fn a_cluster_says_what_it_lacks() {
    let etcd = |endpoints: &str, rest: &str| {
        format!("[cluster]\nregister = \"etcd\"\n[cluster.etcd]\nendpoints = [{endpoints}]\n{rest}")
    };
    let many = vec!["\"http://a:1\""; 17].join(",");
    for (endpoints, words) in [
        ("", "has 0, wanted are 1 to 16"),
        (many.as_str(), "has 17"),
        ("\"httpx://a:1\"", "begins neither"),
        ("\"http://a\"", "is not http://HOST:PORT"),
        ("\"https://a:1/v3\"", "is not https://HOST:PORT"),
    ] {
        one_error(&etcd(endpoints, ""), 6, "cluster.etcd.endpoints", words);
    }
    let one = "\"http://192.0.2.1:2379\"";
    for (rest, key, words) in [
        ("user = \"a\"\n", "user", "needs cluster.etcd.password_file"),
        (
            "password_file = \"a\"\n",
            "password_file",
            "needs cluster.etcd.user",
        ),
        ("key = \"a\"\n", "key", "needs cluster.etcd.certificate"),
        (
            "user = \"a\"\npassword_file = \"a\"\n",
            "user",
            "needs https",
        ),
    ] {
        one_error(&etcd(one, rest), 7, &format!("cluster.etcd.{key}"), words);
    }
    let register = "cluster.register";
    one_error(
        "[cluster]\nregister = \"etcd\"\n",
        4,
        register,
        "needs [cluster.etcd]",
    );
    let unused = "[cluster.etcd]\nendpoints = [\"http://a:1\"]\n";
    one_error(unused, 4, "cluster.etcd.endpoints", "has no effect");
    let skew = "[cluster]\nlease = \"3s\"\nskew = \"4s\"\n";
    one_error(skew, 5, "cluster.skew", "is longer than cluster.lease (3s)");
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
fn next_hops() {
    let hop = |text: &str| {
        let text = format!("[[route]]\ndomain = \"*\"\nnext_hop = \"{text}\"\n");
        parse(&text).map(|settings| settings.routes[0].next_hop.clone())
    };
    let host = |host: &str, port| {
        Ok(NextHop::Host {
            host: host.to_owned(),
            port,
        })
    };
    assert_eq!(hop("mx"), Ok(NextHop::Mx));
    assert_eq!(hop("local"), Ok(NextHop::Local));
    assert_eq!(hop("relay.example:2525"), host("relay.example", 2525));
    assert_eq!(hop("relay.example"), host("relay.example", 25));
    assert_eq!(hop("127.0.0.1:2526"), host("127.0.0.1", 2526));
    assert_eq!(hop("[::1]:2526"), host("::1", 2526));
    assert_eq!(hop("[::1]"), host("::1", 25));
    for wrong in [
        "",
        "::1",
        "[::1",
        "[::1]2526",
        "a:0",
        "a:65536",
        "a:b",
        "a b:25",
        "[1.2.3.4]:25",
        ":25",
    ] {
        assert!(hop(wrong).is_err(), "{wrong}");
    }
}

/// `[section] line of the file => key => words of the error`.
const CONTRADICTIONS: &str = r##"
[submissions] listen = ["[::]:465"] => submissions.listen => needs a certificate
[submission] listen = ["[::]:587"] => submission.listen => without a certificate no client can authenticate
[tls] key = "k" => tls.key => needs tls.certificate
[limits] message_size_max = "200 MiB" => limits.message_size_max => more than half
[metrics] listen = "[::]:25" => metrics.listen => twice
[spool] replicas_min = 3 => spool.replicas_min => 3 copies need as many
[spool] replicas = 3 => spool.replicas => there are 2
[spool] as = "east" => spool.as => no [[spool.account]] named "east"
"##;

#[test]
fn contradictions() {
    refused(CONTRADICTIONS);
    one_error(
        "[spool]\nreplicas = 1\nreplicas_min = 2\n",
        5,
        "spool.replicas_min",
        "is more than spool.replicas",
    );
    one_error(
        "[delivery]\nexpire = \"1h\"\n",
        3,
        "delivery.delay_notice",
        "not before",
    );
    let route = "[[route]]\ndomain = \"a.b\"\nnext_hop = \"c.d\"\n";
    one_error(
        &format!("{route}{route}"),
        7,
        "route[2].domain",
        "route[1] is for the same",
    );
    one_error(
        &format!("{route}username = \"u\"\n"),
        6,
        "route[1].username",
        "needs password or password_file",
    );
    let login = "username = \"u\"\npassword = \"p\"\n";
    one_error(
        &format!("{route}{login}"),
        6,
        "route[1].username",
        "needs tls = \"required\"",
    );
    assert!(parse(&format!("{route}{login}tls = \"required\"\n")).is_ok());
    assert!(
        parse("[smtp]\nlisten = [\"[::1]:0\", \"[::1]:0\"]\n").is_ok(),
        "0 is any free port"
    );
    let long = "x".repeat(108);
    one_error(
        &format!("[control]\nsocket = \"/{long}\"\n"),
        4,
        "control.socket",
        "107 octets",
    );
    assert!(
        parse("[auth]\nplaintext_networks = [\"::1\"]\n[submission]\nlisten = [\"[::1]:587\"]\n")
            .is_ok()
    );
}

#[test]
fn node_names_ports_and_folders_differ() {
    let node = "[[spool.node]]\nname = \"a\"\nlisten = \"127.0.0.1:2600\"\n";
    let found = errors(&format!("{node}{node}"));
    let keys: Vec<&str> = found.iter().map(|(_, key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "spool.node[2].data",
            "spool.node[2].name",
            "spool.node[2].listen"
        ]
    );
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
fn broken_toml_and_double_keys_have_lines() {
    one_error("data = \"a\"\ndata = \"b\"\n", 4, "", "duplicate key");
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
    let list = format!("[acme]\ndomains = [{}]\n", "\"a.b\",".repeat(1_001));
    one_error(&list, 4, "acme.domains", "at most 1000");
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
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/reference/config.md"
    );
    let wanted = reference();
    if std::env::var_os("VERE_WRITE_REFERENCE").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/reference/config.md differs; write it by: vere config reference > docs/reference/config.md"
    );
}
