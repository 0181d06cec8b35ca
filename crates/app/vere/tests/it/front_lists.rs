//! Lists of clients: rbldnsd, lists with maps, lists that hold still, a resolver between. Tests choose their clients by PROXY
//! headers.

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use vere_faults::names::{A, AAAA, NameServer, Said, TXT, code, text};

use crate::front::{for_strangers, with_front};
use crate::harness::{
    Child, Options, Session, System, assert_has, free_address, program, signal, skip, vere,
    wait_for, wait_until,
};
use crate::metrics::wait_lines;
use crate::proxy::start_behind_proxy;

/// A front behind a load balancer, whose lists are asked at a name server.
pub(crate) fn asking(server: SocketAddr, lists: &[&str]) -> Options {
    let options = for_strangers()
        .set("proxy.networks", "[\"127.0.0.0/8\"]")
        .set("front.connections_per_minute", "0")
        .set("resolver.servers", &format!("[\"{server}\"]"))
        .set("front.lists.timeout", "\"5s\"");
    let sections = lists.iter().map(|lines| format!("[[front.list]]\n{lines}"));
    sections.fold(options, |options, section| options.table(&section))
}

pub(crate) fn served(answer: impl Fn(&str, u16) -> Said + Send + 'static) -> NameServer {
    NameServer::start(answer).expect("a name server")
}

/// A connection of a client, in a transaction.
fn begun(system: &System, client: &str) -> Session {
    let mut session = Session::open(system.smtp).expect("a connection");
    let header = format!("PROXY TCP4 {client} 192.0.2.25 4711 25\r\n");
    session.send(header.as_bytes());
    session.expect("220");
    session.command("EHLO client.example.net", "250");
    session.command("MAIL FROM:<a@example.net>", "250");
    session
}

/// The reply to a recipient.
pub(crate) fn reply(system: &System, client: &str) -> String {
    let mut session = begun(system, client);
    session.send(b"RCPT TO:<alice@example.org>\r\n");
    session.reply()
}

#[track_caller]
fn assert_reply(system: &System, client: &str, expected: &str) {
    let reply = reply(system, client);
    assert!(reply.starts_with(expected), "{client}: {reply}");
}

const TAKEN: &str = "250 2.1.5";

/// A list with maps: the test entry, 192.0.2.1 and 192.0.2.7.
fn mapped(name: &str, kind: u16) -> Said {
    let map = |bits: u16| Ipv6Addr::new(bits, 0, 0, 0, 0, 0, 0, 0).octets().to_vec();
    match (name, kind) {
        ("0.0.0.127.bl.test", AAAA) => Said::Records(300, vec![map(0x2000)]),
        ("0.2.0.192.bl.test", AAAA) => Said::Records(300, vec![map(0x4100)]),
        ("1.2.0.192.bl.test", TXT) => Said::Records(300, vec![text("see https://bl.test/\u{1b}")]),
        // Names above existing names: resolvers ask about all levels.
        _ if name.split('.').count() < 6 => Said::NoData(300),
        _ => Said::NoSuchName(300),
    }
}

#[test]
fn a_listed_client_is_refused_and_its_neighbours_are_not() {
    let server = served(mapped);
    let endpoint = free_address();
    let options = asking(server.address, &["zone = \"bl.test\""])
        .set("metrics.front", &format!("\"{endpoint}\""));
    let system = start_behind_proxy(&options);
    system.wait_log(&["list serves maps", "bl.test"]);
    let refusal = "550 5.7.1 client [192.0.2.1] is listed by bl.test; see https://bl.test/?";
    let mut session = begun(&system, "192.0.2.1");
    for _ in 0..2 {
        let reply = session.command("RCPT TO:<nobody@example.org>", "550 5.7.1");
        assert_eq!(reply.trim_end(), refusal);
    }
    assert_reply(
        &system,
        "192.0.2.7",
        "550 5.7.1 client [192.0.2.7] is listed by bl.test\r\n",
    );
    for neighbour in [0, 2, 3, 6, 8, 127] {
        assert_reply(&system, &format!("192.0.2.{neighbour}"), TAKEN);
    }
    assert_reply(&system, "10.0.0.1", TAKEN);
    system.wait_log(&["client on lists", "192.0.2.1", "bl.test=1"]);
    system.wait_log(&["front refused", "5.7.1", "192.0.2.1"]);
    // The map came once, and nobody was asked about single addresses.
    assert_eq!(server.count("0.2.0.192.bl.test", AAAA), 1);
    let is_of_check = |name: &str| name.to_ascii_lowercase().ends_with(".0.0.127.bl.test");
    let mut asked = server.asked().into_iter();
    assert!(asked.all(|asked| asked.kind != A || is_of_check(&asked.name)));
    wait_lines(
        endpoint,
        &[
            "vere_front_decisions_total{reason=\"listed\"} 3",
            "vere_front_questions_total{kind=\"lists\",result=\"refused\"} 2",
            "vere_list_listed_total{list=\"bl.test\"} 2",
            "vere_list_hits_total{list=\"bl.test\"} 7",
            // Four of the check, the map, two texts.
            "vere_list_queries_total{list=\"bl.test\"} 7",
            "vere_list_cache_entries 3",
        ],
    );
    let (code, told) = query(&system, &["192.0.2.1"]);
    assert_eq!(
        (code, &told["verdict"], &told["sum"]),
        (4, &"refused".into(), &1.into())
    );
    let list = &told["lists"][0];
    assert_eq!(
        (&list["answer"], &list["by"]),
        (&"listed".into(), &"map".into())
    );
    assert_eq!(list["map"], serde_json::json!(["0.2.0.192", 1]));
    assert_eq!(
        (&list["text"], &list["broker"]),
        (&"see https://bl.test/?".into(), &"hit: the map".into())
    );
    let (code, told) = query(&system, &["192.0.9.1"]);
    assert_eq!((code, &told["lists"][0]["broker"]), (0, &"miss".into()));
    let (code, told) = query(&system, &["127.0.0.2", "--list", "other.test"]);
    assert_eq!((code, &told["front_asks"]), (0, &false.into()));
    assert_eq!(
        told["lists"][0]["broker"],
        "not a list of the running system"
    );
}

/// `vere dnsbl query`: the exit code and the answer.
fn query(system: &System, arguments: &[&str]) -> (i32, serde_json::Value) {
    let output = vere()
        .args(["dnsbl", "query", "--json", "-c"])
        .arg(&system.config)
        .args(arguments)
        .output()
        .expect("the command");
    let told = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code().expect("a code"), value)
}

#[test]
fn without_a_configuration_a_list_is_asked_by_its_name() {
    let server = served(mapped);
    let folder = tempfile::tempdir().expect("a directory");
    let output = vere()
        .current_dir(folder.path())
        .env_remove("VERE_CONFIG")
        .args([
            "dnsbl",
            "query",
            "192.0.2.1",
            "--list",
            "bl.test",
            "--server",
        ])
        .arg(server.address.to_string())
        .output()
        .expect("the command");
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let told = String::from_utf8_lossy(&output.stdout);
    assert_has(
        &told,
        &[
            "client      192.0.2.1\n",
            "list        bl.test  weight 1\n",
            "  answer    listed\n",
            "  map       bit 1 of 0.2.0.192\n",
            "  text      see https://bl.test/?\n",
            "sum         1 (threshold 1)\n",
            "verdict     mail would be refused for good\n",
        ],
    );
}

#[test]
fn settings_of_lists_change_while_the_system_runs() {
    let server = served(|name, kind| match (name, kind) {
        ("1.2.0.192.good.test" | "1.2.0.192.bad.test", A) => Said::Records(300, vec![code(2)]),
        ("2.2.0.192.bad.test", A) => Said::Records(300, vec![code(9)]),
        _ => Said::NoSuchName(300),
    });
    let bad = "zone = \"bad.test\"\nname = \"no-key.test\"\nanswers = [\"127.0.0.[2..4]\"]";
    let system = start_behind_proxy(&asking(server.address, &[bad]));
    assert_reply(
        &system,
        "192.0.2.1",
        "550 5.7.1 client [192.0.2.1] is listed by no-key.test\r\n",
    );
    assert_reply(&system, "192.0.2.2", TAKEN);
    let good = "zone = \"good.test\"\nweight = -1";
    system.reconfigure(&asking(server.address, &[bad, good]));
    wait_until("a list in favour", || {
        reply(&system, "192.0.2.1").starts_with(TAKEN)
    });
    let deferring = asking(server.address, &[bad]).set("front.lists.treatment", "\"defer\"");
    system.reconfigure(&deferring);
    wait_until("another treatment", || {
        reply(&system, "192.0.2.1").starts_with("450 4.7.1 client [192.0.2.1] is listed by")
    });
    system.reconfigure(&asking(server.address, &[bad]).set("front.lists.treatment", "\"note\""));
    wait_until("no treatment", || {
        reply(&system, "192.0.2.1").starts_with(TAKEN)
    });
    // Each of these systems has asked once: the answers outlive the settings.
    assert_eq!(server.count("1.2.0.192.bad.test", A), 1);
}

#[test]
fn a_silent_list_delays_nobody_for_long() {
    let server = served(|name, kind| match (name, kind) {
        _ if name.ends_with(".dead.test") => Said::Silence,
        ("1.2.0.192.bl.test", A) => Said::Records(300, vec![code(2)]),
        _ => Said::NoSuchName(300),
    });
    let lists = ["zone = \"dead.test\"", "zone = \"bl.test\""];
    let options = asking(server.address, &lists).set("front.lists.timeout", "\"1s\"");
    let system = start_behind_proxy(&options);
    assert_reply(
        &system,
        "192.0.2.1",
        "550 5.7.1 client [192.0.2.1] is listed by bl.test\r\n",
    );
    assert_reply(&system, "192.0.2.2", TAKEN);
    system.reconfigure(&options.set("front.lists.unavailable", "\"defer\""));
    wait_until("another treatment", || {
        reply(&system, "192.0.2.3").starts_with("451 4.4.3")
    });
    assert_reply(&system, "192.0.2.1", "550 5.7.1");
    wait_until("a rest", || {
        reply(&system, "192.0.2.4");
        system
            .log()
            .contains("list does not answer, asked now and then only")
    });
}

/// The domain of a dead list was bought, and every name in it exists: no mail is refused by it, whatever the way of asking.
#[test]
fn a_list_of_everybody_refuses_nobody() {
    let server = served(|name, kind| match (name, kind) {
        ("1.2.0.192.bl.test", A) => Said::Records(300, vec![code(2)]),
        _ if !name.ends_with(".dead.test") => Said::NoSuchName(300),
        (_, A) => Said::Records(300, vec![code(2)]),
        (_, AAAA) => Said::Records(300, vec![vec![0xff; 16]]),
        _ => Said::Records(300, vec![text("for sale")]),
    });
    for maps in ["no", "auto", "yes"] {
        let dead = format!("zone = \"dead.test\"\nmaps = \"{maps}\"");
        let endpoint = free_address();
        let options = asking(
            server.address,
            &[&dead, "zone = \"bl.test\"\nmaps = \"no\""],
        )
        .set("metrics.front", &format!("\"{endpoint}\""));
        let system = start_behind_proxy(&options);
        assert_reply(&system, "192.0.2.2", TAKEN);
        assert_reply(
            &system,
            "192.0.2.1",
            "550 5.7.1 client [192.0.2.1] is listed by bl.test",
        );
        system.wait_log(&[
            "list lists 127.0.0.1, and so everybody: left out",
            "dead.test",
        ]);
        system.wait_log(&["list does not list the test address 127.0.0.2", "bl.test"]);
        wait_lines(
            endpoint,
            &[
                "vere_list_untrusted_total{list=\"dead.test\"} 2",
                "vere_list_untrusted_total{list=\"bl.test\"} 0",
                "vere_list_listed_total{list=\"dead.test\"} 0",
            ],
        );
        let (code, told) = query(&system, &["192.0.2.2"]);
        let [dead, good] = [&told["lists"][0], &told["lists"][1]];
        assert_eq!((code, &told["sum"]), (0, &0.into()));
        let left_out = "left out: lists 127.0.0.1, and so everybody";
        assert_eq!(
            (&dead["answer"], &dead["broker"]),
            (&left_out.into(), &left_out.into())
        );
        assert_eq!(
            (&dead["lacks_test_entry"], &good["lacks_test_entry"]),
            (&false.into(), &true.into())
        );
    }
}

/// A list of rbldnsd in a directory that its user may read.
fn rbldnsd(folder: &Path) -> Option<(Child, SocketAddr)> {
    use std::os::unix::fs::PermissionsExt as _;
    let rbldnsd = program("rbldnsd")?;
    if !nix::unistd::geteuid().is_root() {
        skip("rbldnsd", "needs the user root, whom it leaves");
        return None;
    }
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder, open).expect("permissions");
    let data = folder.join("data");
    let entries = ":127.0.0.2:see https://bl.test/?$\n192.0.2.1\n198.51.100.0/24 :4:a network\n";
    std::fs::write(&data, entries).expect("the data");
    let address = free_address();
    let mut command = Command::new(rbldnsd);
    command
        .args(["-n", "-u", "nobody", "-b"])
        .arg(format!("127.0.0.1/{}", address.port()))
        .arg(format!("bl.test:ip4set:{}", data.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut process = Child::spawn(&mut command);
    wait_answer(address, &mut process);
    Some((process, address))
}

/// Waits for an answer of any kind.
fn wait_answer(address: SocketAddr, process: &mut Child) {
    const QUESTION: &[u8] = b"\0\x07\0\0\0\x01\0\0\0\0\0\0\x02bl\x04test\0\0\x06\0\x01";
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let patience = Some(Duration::from_millis(200));
    socket.set_read_timeout(patience).expect("a time");
    wait_for("a name server", || {
        assert_eq!(process.ended(), None, "the name server has ended");
        let asks = socket.send_to(QUESTION, address).is_ok();
        (asks && socket.recv(&mut [0; 512]).is_ok()).then_some(())
    });
}

#[test]
fn rbldnsd_is_a_list_without_maps() {
    let folder = tempfile::tempdir().expect("a directory");
    let Some((_process, address)) = rbldnsd(folder.path()) else {
        return;
    };
    let system = start_behind_proxy(&asking(address, &["zone = \"bl.test\""]));
    assert_reply(
        &system,
        "192.0.2.1",
        "550 5.7.1 client [192.0.2.1] is listed by bl.test; see https://bl.test/?192.0.2.1\r\n",
    );
    assert_reply(
        &system,
        "198.51.100.77",
        "550 5.7.1 client [198.51.100.77] is listed by bl.test; a network\r\n",
    );
    assert_reply(&system, "192.0.2.2", TAKEN);
    let (code, told) = query(&system, &["198.51.100.77"]);
    let list = &told["lists"][0];
    assert_eq!((code, &list["by"]), (4, &"address".into()));
    assert_eq!(list["codes"], serde_json::json!(["127.0.0.4"]));
    assert_eq!(list["broker"], "hit: the answer about this address");
}

/// Debian's unbound between the broker and the list, with random case and minimal names of its own.
#[test]
fn a_resolver_stands_between() {
    let Some(unbound) = program("unbound") else {
        return;
    };
    let server = served(mapped);
    let folder = tempfile::tempdir().expect("a directory");
    let address = free_address();
    let settings = format!(
        "server:\n directory: \"{0}\"\n pidfile: \"\"\n chroot: \"\"\n username: \"\"\n use-syslog: no\n\
         do-daemonize: no\n interface: 127.0.0.1@{1}\n do-ip6: no\n do-not-query-localhost: no\n\
         module-config: iterator\n num-threads: 1\n qname-minimisation: yes\n use-caps-for-id: yes\n\
         local-zone: \"test\" nodefault\n\
         stub-zone:\n name: \"bl.test\"\n stub-addr: {2}@{3}\n\
         remote-control:\n control-enable: no\n",
        folder.path().display(),
        address.port(),
        server.address.ip(),
        server.address.port(),
    );
    let file = folder.path().join("unbound.conf");
    std::fs::write(&file, settings).expect("the settings");
    let mut command = Command::new(unbound);
    command.args(["-d", "-p", "-c"]).arg(&file);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Child::spawn(&mut command);
    wait_answer(address, &mut process);
    let system = start_behind_proxy(&asking(address, &["zone = \"bl.test\""]));
    system.wait_log(&["list serves maps", "bl.test"]);
    let refused = "550 5.7.1 client [192.0.2.1] is listed by bl.test; see https://bl.test/?\r\n";
    for _ in 0..3 {
        assert_reply(&system, "192.0.2.1", refused);
        assert_reply(&system, "192.0.2.9", TAKEN);
        // An absent map is as good an answer.
        assert_reply(&system, "198.51.100.9", TAKEN);
    }
    assert_eq!(server.count("0.2.0.192.bl.test", AAAA), 1);
    assert_eq!(server.count("0.100.51.198.bl.test", AAAA), 1);
}

/// Our own server: one client is listed, its 127 neighbours are not, and a list that changes reaches the front once the kept map
/// has ended.
#[test]
fn our_server_has_maps() {
    let folder = tempfile::tempdir().expect("a directory");
    let data = folder.path().join("data");
    let write = |entries: &str| {
        let text = format!("$TTL 1\n:2:see https://bl.test/$\n{entries}");
        std::fs::write(folder.path().join("new"), text).expect("the data");
        std::fs::rename(folder.path().join("new"), &data).expect("the data in their place");
    };
    write("192.0.2.1\n");
    let address = free_address();
    let mut command = vere();
    command
        .args(["dnsbl", "serve", "--listen"])
        .arg(address.to_string())
        .arg("--zone")
        .arg(format!("bl.test:ip4set:{}", data.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut process = Child::spawn(&mut command);
    wait_answer(address, &mut process);
    let list = "zone = \"bl.test\"";
    let options = asking(address, &[list]).set("front.lists.ttl_min", "\"0s\"");
    let system = start_behind_proxy(&options);
    system.wait_log(&["list serves maps", "bl.test"]);
    let refusal = |last: u8| {
        format!(
            "550 5.7.1 client [192.0.2.{last}] is listed by bl.test; see https://bl.test/192.0.2.{last}\r\n"
        )
    };
    assert_reply(&system, "192.0.2.1", &refusal(1));
    for last in (0..128).filter(|last| *last != 1) {
        assert_reply(&system, &format!("192.0.2.{last}"), TAKEN);
    }
    assert_reply(&system, "192.0.2.129", TAKEN);
    let (code, told) = query(&system, &["192.0.2.1"]);
    assert_eq!((code, &told["lists"][0]["by"]), (4, &"map".into()));
    write("192.0.2.2\n");
    assert!(signal(process.id(), Signal::SIGHUP), "the server runs");
    wait_until("the changed list", || {
        reply(&system, "192.0.2.2").starts_with(&refusal(2))
    });
    assert_reply(&system, "192.0.2.1", TAKEN);
}

/// Nobody asks about relaying and allowed clients.
#[test]
fn known_clients_are_not_asked_about() {
    let server = served(|name, _| match name {
        "1.0.0.127.bl.test" => Said::NoSuchName(300),
        _ => Said::Records(300, vec![code(2)]),
    });
    for key in ["relay.networks", "front.allowed_networks"] {
        let options = with_front(asking(
            server.address,
            &["zone = \"bl.test\"\nmaps = \"no\""],
        ))
        .set(key, "[\"192.0.2.0/24\"]");
        let system = start_behind_proxy(&options);
        assert_reply(&system, "192.0.2.1", TAKEN);
        assert_reply(&system, "198.51.100.1", "550 5.7.1 client [198.51.100.1]");
    }
    assert_eq!(server.count("1.2.0.192.bl.test", A), 0);
}
