//! The server of block lists, asked by the programs that ask it in the field: dig, kdig, and resolvers in front.

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::harness::{
    Child, Options, System, assert_has, free_address, program, run, signal, vere, wait_for,
    wait_until,
};

pub(crate) const ZONE: &str = "bl.example.org";
const LIST: &str = "\
$SOA 3000 ns.example.org hostmaster.example.org 7 600 300 86400 60
$NS 3000 ns.example.org
:127.0.0.3:Listed, see https://example.org/$
192.0.2.7
192.0.2.128/25
";

/// `vere dnsbl serve` on a free port, with one list.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) process: Child,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts the server with further lines of its section.
    pub(crate) fn start(lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("list"), LIST).unwrap();
        let address = free_address();
        let text = format!(
            "[dnsbl]\nlisten = [\"{address}\"]\nthreads = 2\n{lines}\n\
             [[dnsbl.zone]]\nname = \"{ZONE}\"\ndata = [\"ip4set:list\"]\n"
        );
        let config = Options::write_smallest(folder.path(), &text);
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut command = vere();
        command.args(["dnsbl", "serve", "-c"]).arg(config);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let mut server = Self {
            address,
            process: Child::spawn(&mut command),
            folder,
        };
        server.wait_ready();
        server
    }

    fn wait_ready(&mut self) {
        wait_for("the server", || {
            if let Some(status) = self.process.ended() {
                panic!("the server ended with {status}:\n{}", self.log());
            }
            self.log().contains("block lists served").then_some(())
        });
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn wait_log(&self, part: &str) {
        wait_until(part, || self.log().contains(part));
    }

    /// Puts another list in the place of the file, in one step.
    fn replace(&self, text: &str) {
        let new = self.folder.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.folder.path().join("list")).unwrap();
    }

    /// Runs dig or kdig against the server.
    fn dig(&self, program: &Path, words: &str) -> String {
        asked(program, self.address, words)
    }
}

fn asked(program: &Path, server: SocketAddr, words: &str) -> String {
    run(Command::new(program)
        .arg(format!("@{}", server.ip()))
        .args(["-p", &server.port().to_string()])
        .args(words.split_whitespace()))
}

/// A query in wire form.
pub(crate) fn query(id: u16, name: &str, kind: u16) -> Vec<u8> {
    let mut packet = id.to_be_bytes().to_vec();
    packet.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        packet.push(label.len() as u8);
        packet.extend(label.bytes());
    }
    packet.push(0);
    packet.extend(kind.to_be_bytes());
    packet.extend([0, 1]);
    packet
}

#[test]
fn dig_reads_addresses_maps_and_texts() {
    let Some(dig) = program("dig") else { return };
    let server = Server::start("");
    for transport in [
        "+notcp",
        "+tcp",
        "+bufsize=512",
        "+noedns +nocookie",
        "+ednsopt=65001:beef",
        "+dnssec",
    ] {
        let short = |question: &str| {
            server
                .dig(&dig, &format!("+short {transport} {question}"))
                .trim()
                .to_owned()
        };
        assert_eq!(
            short(&format!("7.2.0.192.{ZONE} A")),
            "127.0.0.3",
            "{transport}"
        );
        assert_eq!(short(&format!("0.2.0.192.{ZONE} AAAA")), "100::");
        let all = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        assert_eq!(short(&format!("1.2.0.192.{ZONE} AAAA")), all);
        let text = "\"Listed, see https://example.org/192.0.2.7\"";
        assert_eq!(short(&format!("7.2.0.192.{ZONE} TXT")), text);
        assert_eq!(short(&format!("{ZONE} NS")), "ns.example.org.");
        assert_eq!(short(&format!("2.0.0.127.{ZONE} A")), "127.0.0.2");
        assert_eq!(short(&format!("1.0.0.127.{ZONE} A")), "");
    }
    let negative = server.dig(&dig, &format!("8.2.0.192.{ZONE} A"));
    assert_has(
        &negative,
        &[
            "NXDOMAIN",
            "flags: qr aa rd",
            "\t60\tIN\tSOA\tns.example.org.",
        ],
    );
    let nodata = server.dig(&dig, &format!("0.2.0.192.{ZONE} A"));
    assert_has(&nodata, &["NOERROR", "ANSWER: 0", "AUTHORITY: 1"]);
    // dig complains where the question does not come back as it was sent.
    let mixed = server.dig(&dig, "7.2.0.192.bL.ExAmPlE.oRg A");
    assert_has(
        &mixed,
        &[
            "7.2.0.192.bL.ExAmPlE.oRg.\tIN\tA",
            "7.2.0.192.bL.ExAmPlE.oRg. 2100",
        ],
    );
    let refused = server.dig(&dig, "7.2.0.192.example.net A");
    assert_has(&refused, &["REFUSED"]);
    let version = server.dig(&dig, &format!("+edns=1 +noednsneg {ZONE} SOA"));
    assert_has(&version, &["BADVERS"]);
    let transfer = server.dig(&dig, &format!("{ZONE} AXFR"));
    assert_has(&transfer, &["Transfer failed"]);
}

#[test]
fn kdig_gets_cookies_and_several_answers_over_one_connection() {
    let Some(kdig) = program("kdig") else { return };
    let server = Server::start("");
    let said = server.dig(
        &kdig,
        &format!("+cookie=0123456789abcdef 7.2.0.192.{ZONE} A"),
    );
    assert_has(&said, &["NOERROR", "127.0.0.3", "COOKIE"]);
    assert!(!said.contains("WARNING"), "{said}");
    let questions = format!("+tcp +keepopen 7.2.0.192.{ZONE} A 8.2.0.192.{ZONE} A");
    let said = server.dig(&kdig, &questions);
    assert_has(&said, &["127.0.0.3", "NXDOMAIN"]);
}

/// A resolver in front of the server; ends on drop.
struct Resolver {
    address: SocketAddr,
    _process: Child,
    _folder: tempfile::TempDir,
}

impl Resolver {
    fn start(program: &Path, words: &[&str], text: impl Fn(&Path, u16) -> String) -> Self {
        let (folder, address) = (tempfile::tempdir().unwrap(), free_address());
        let config = folder.path().join("resolver.conf");
        std::fs::write(&config, text(folder.path(), address.port())).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new(program);
        command.args(words).arg(&config);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let mut process = Child::spawn(&mut command);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        wait_for("the resolver", || {
            if let Some(status) = process.ended() {
                let log = std::fs::read_to_string(folder.path().join("log"));
                panic!("the resolver ended with {status}: {log:?}");
            }
            // An answer of any kind.
            let asks = socket.send_to(&query(1, "localhost", 1), address).is_ok();
            (asks && socket.recv(&mut [0; 512]).is_ok()).then_some(())
        });
        Self {
            address,
            _process: process,
            _folder: folder,
        }
    }

    fn unbound(server: SocketAddr) -> Option<Self> {
        let program = program("unbound")?;
        let text = |folder: &Path, port: u16| {
            format!(
                "server:\n directory: \"{0}\"\n pidfile: \"\"\n chroot: \"\"\n username: \"\"\n\
                 use-syslog: no\n do-daemonize: no\n interface: 127.0.0.1@{port}\n do-ip6: no\n\
                 do-not-query-localhost: no\n module-config: iterator\n num-threads: 1\n\
                 qname-minimisation: yes\n qname-minimisation-strict: yes\n use-caps-for-id: yes\n\
                 local-zone: \"example.org\" nodefault\n\
                 stub-zone:\n name: \"{ZONE}\"\n stub-addr: {1}@{2}\n stub-prime: no\n\
                 remote-control:\n control-enable: no\n",
                folder.display(),
                server.ip(),
                server.port()
            )
        };
        Some(Self::start(&program, &["-d", "-p", "-c"], text))
    }

    fn named(server: SocketAddr) -> Option<Self> {
        let program = program("named")?;
        let text = |folder: &Path, port: u16| {
            format!(
                "options {{ directory \"{0}\"; pid-file \"{0}/pid\"; session-keyfile none; lock-file none;\n\
                 listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion yes;\n\
                 dnssec-validation no; qname-minimization strict; empty-zones-enable no;\n\
                 allow-query {{ any; }}; }};\ncontrols {{ }};\n\
                 zone \"{ZONE}\" {{ type forward; forward only; forwarders {{ {1} port {2}; }}; }};\n",
                folder.display(),
                server.ip(),
                server.port()
            )
        };
        Some(Self::start(&program, &["-g", "-n", "1", "-c"], text))
    }
}

#[test]
fn resolvers_in_front_find_everything_and_keep_what_is_not_there() {
    let Some(dig) = program("dig") else { return };
    let server = Server::start("");
    let resolvers = [
        Resolver::unbound(server.address),
        Resolver::named(server.address),
    ];
    for resolver in resolvers.into_iter().flatten() {
        let ask = |question: &str| asked(&dig, resolver.address, question);
        let short = |question: &str| ask(&format!("+short {question}")).trim().to_owned();
        // The address that is not listed comes first: a denial that is too wide would hide the map.
        assert_eq!(short(&format!("0.2.0.192.{ZONE} A")), "");
        assert_eq!(short(&format!("0.2.0.192.{ZONE} AAAA")), "100::");
        assert_eq!(short(&format!("7.2.0.192.{ZONE} A")), "127.0.0.3");
        assert_has(&short(&format!("7.2.0.192.{ZONE} TXT")), &["192.0.2.7"]);
        let all = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        assert_eq!(short(&format!("1.2.0.192.{ZONE} AAAA")), all);
        let denied = ask(&format!("9.2.0.192.{ZONE} A"));
        let soa = denied.lines().find(|line| line.contains("SOA")).unwrap();
        let ttl: u32 = soa.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(denied.contains("NXDOMAIN") && ttl <= 60, "{denied}");
    }
}

#[test]
fn a_reload_under_load_misses_no_answer() {
    let server = Server::start("rate_exempt = [\"127.0.0.0/8\"]");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| ask_until(server.address, &stop)))
            .collect();
        for round in 1..=20 {
            server.replace(&format!("{LIST}198.51.100.{round}\n"));
            signal(server.process.id(), Signal::SIGHUP);
            wait_until("the reload", || {
                server.log().matches("zone loaded").count() > round
            });
        }
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            let (asked, answered) = client.join().unwrap();
            assert!(asked > 100);
            assert_eq!(asked, answered);
        }
    });
    let mut answer = [0; 512];
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket
        .send_to(
            &query(1, &format!("20.100.51.198.{ZONE}"), 1),
            server.address,
        )
        .unwrap();
    socket.recv(&mut answer).unwrap();
    assert_eq!((answer[3] & 0xf, answer[7]), (0, 1));
}

/// Asks one question after the other; returns how many were asked and how many answered as they should.
fn ask_until(server: SocketAddr, stop: &AtomicBool) -> (u32, u32) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let (mut asked, mut answered) = (0, 0);
    let mut answer = [0; 512];
    while !stop.load(Ordering::Relaxed) {
        asked += 1;
        let packet = query(asked as u16, &format!("7.2.0.192.{ZONE}"), 1);
        socket.send(&packet).unwrap();
        match socket.recv(&mut answer) {
            Ok(count)
                if answer[..2] == packet[..2] && answer[..count].ends_with(&[127, 0, 0, 3]) =>
            {
                answered += 1;
            }
            _ => {}
        }
    }
    (asked, answered)
}

#[test]
fn a_wrong_file_keeps_the_old_data_and_is_named() {
    let Some(dig) = program("dig") else { return };
    let server = Server::start("check_interval = \"1s\"");
    server.replace(&format!("{LIST}192.0.2.300\n"));
    // Without a signal: the server looks for changes.
    server.wait_log("zone not loaded, old data remain");
    assert_has(&server.log(), &["list: line 6: expected "]);
    let ask = |address: &str| server.dig(&dig, &format!("+short {address}.{ZONE} A"));
    assert_eq!(ask("7.2.0.192").trim(), "127.0.0.3");
    server.replace(&format!("{LIST}192.0.2.8\n"));
    wait_until("the new data", || ask("8.2.0.192").trim() == "127.0.0.3");
    std::fs::remove_file(server.folder.path().join("list")).unwrap();
    wait_until("the missing file", || server.log().contains("cannot read "));
    assert_eq!(ask("8.2.0.192").trim(), "127.0.0.3");
}

/// The sandbox knows the folders of the start alone.
#[test]
fn a_folder_that_is_new_since_the_start_needs_a_restart() {
    let server = Server::start("");
    let is_bounded = server.log().lines().any(|line| {
        let held = line.split("missing").next().unwrap_or_default();
        line.contains("is confined") && held.contains("files")
    });
    if !is_bounded {
        return crate::harness::skip("landlock", "the kernel has none");
    }
    let folder = server.folder.path();
    let config = folder.join("vere.toml");
    let settings = std::fs::read_to_string(&config).unwrap();
    let late = tempfile::tempdir().unwrap();
    let file = late.path().join("list");
    let more = format!(
        "{settings}[[dnsbl.zone]]\nname = \"late.example.org\"\ndata = [\"ip4set:{}\"]\n",
        file.display()
    );
    std::fs::write(&file, LIST).unwrap();
    std::fs::write(&config, more).unwrap();
    signal(server.process.id(), Signal::SIGHUP);
    server.wait_log("zone not loaded, zone is not served");
    let expected = format!(
        "{} was none of them: restart to read it",
        late.path().display()
    );
    assert_has(&server.log(), &[&expected, &file.display().to_string()]);
}

#[test]
fn without_any_zone_the_server_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let zone = format!("{ZONE}:ip4set:{}", missing.display());
    let mut command = vere();
    command.current_dir(folder.path());
    command.args([
        "dnsbl",
        "serve",
        "--listen",
        &free_address().to_string(),
        "--zone",
        &zone,
    ]);
    let said = crate::harness::fails_with(&mut command, 1);
    assert_has(&said, &["cannot read ", "no zone can be read"]);
}

#[test]
fn a_system_with_the_section_serves_lists() {
    let Some(dig) = program("dig") else { return };
    let folder = tempfile::tempdir().unwrap();
    let list: PathBuf = folder.path().join("list");
    std::fs::write(&list, LIST).unwrap();
    let (address, metrics) = (free_address(), free_address());
    let zone = format!(
        "[[dnsbl.zone]]\nname = \"{ZONE}\"\ndata = [\"ip4set:{}\"]\n",
        list.display()
    );
    let options = Options::default()
        .set("dnsbl.listen", &format!("[\"{address}\"]"))
        .set("metrics.dnsbl", &format!("\"{metrics}\""))
        .table(&zone);
    let system = System::start(&options);
    let ask = |name: &str| {
        asked(&dig, address, &format!("+short {name}.{ZONE} A"))
            .trim()
            .to_owned()
    };
    wait_until("the first answer", || ask("7.2.0.192") == "127.0.0.3");
    std::fs::write(&list, format!("{LIST}198.51.100.1\n")).unwrap();
    system.signal(Signal::SIGHUP);
    wait_until("the reload", || ask("1.100.51.198") == "127.0.0.3");
    // The role dies, and another takes its place with the same sockets.
    system.kill_and_wait("dnsbl");
    wait_until("the new process", || ask("7.2.0.192") == "127.0.0.3");
    wait_until("the count of queries", || {
        let text = run(Command::new("curl").args(["-s", &format!("http://{metrics}/metrics")]));
        let line = format!(
            "vere_dnsbl_queries_total{{transport=\"udp\",zone=\"{ZONE}\",type=\"a\",answer=\"positive\"}}"
        );
        let entries = format!("vere_dnsbl_zone_entries{{zone=\"{ZONE}\"}} 3\n");
        text.contains(&line) && text.contains(&entries)
    });
}
