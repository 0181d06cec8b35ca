//! The web server: mail programs and other systems read what they look for, and hostile clients keep nobody out.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::harness::{
    Authority, Options, System, assert_has, free_address, output_of, program, quoted,
    run_with_input, signal, wait_for, wait_until,
};
use crate::metrics::wait_lines;

const NAMES: [&str; 5] = [
    "mx.example.org",
    "example.org",
    "mta-sts.example.org",
    "autoconfig.example.org",
    "autodiscover.example.org",
];

/// A system with a web server, whose certificate has the names of the local domain.
pub(crate) struct Setup {
    pub(crate) authority: Authority,
    pub(crate) https: SocketAddr,
    http: SocketAddr,
    metrics: SocketAddr,
    pub(crate) options: Options,
}

impl Setup {
    pub(crate) fn new() -> Self {
        let authority = Authority::new();
        let files = authority.sign("mx", &NAMES);
        let [https, http, metrics] = [free_address(), free_address(), free_address()];
        let list = |address: SocketAddr| format!("[\"{address}\"]");
        let options = Options::default()
            .certificate(&files)
            .set("web.https", &list(https))
            .set("web.http", &list(http))
            .set("metrics.web", &format!("\"{metrics}\""));
        Self {
            authority,
            https,
            http,
            metrics,
            options,
        }
    }

    /// curl for a path at a name, with further arguments, and an input as the body of a POST request where `-d @-` asks for it.
    fn curl(&self, url: &str, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new("curl");
        command.args(["-sS", "--noproxy", "*", "--max-time", "60", "--cacert"]);
        command.arg(&self.authority.ca);
        for name in NAMES
            .iter()
            .chain(&["strange.example.com", "mta-sts.added.example"])
        {
            command.args(["--connect-to", &format!("{name}:443:{}", self.https)]);
            command.args(["--connect-to", &format!("{name}:80:{}", self.http)]);
        }
        output_of(command.args(arguments).arg(url), input)
    }

    /// The body of a successful answer.
    fn get(&self, url: &str) -> String {
        let output = self.curl(url, &["--fail"], "");
        assert!(output.status.success(), "{url}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The status of the answer to a POST request, whose body is the output of a command.
    fn fed_by(&self, command: &str) -> String {
        let Self {
            authority, https, ..
        } = self;
        let (ca, url) = (
            authority.ca.display(),
            "https://example.org/autodiscover/autodiscover.xml",
        );
        // The shell waits for curl alone.
        let script = format!(
            "curl -sS --noproxy '*' --max-time 60 --cacert {ca} --connect-to example.org:443:{https} -T . -X POST -o /dev/null \
             -w '%{{http_code}}' {url} < <({command})"
        );
        let output = output_of(Command::new("bash").args(["-c", &script]), "");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The status of an answer, without a look at the certificate.
    fn status(&self, url: &str) -> String {
        let arguments = ["-k", "-o", "/dev/null", "-w", "%{http_code}"];
        String::from_utf8(self.curl(url, &arguments, "").stdout).expect("text")
    }
}

/// Whether curl and Python are there.
fn has_programs() -> bool {
    program("curl").is_some() && program("python3").is_some()
}

/// Runs a program in Python, which reads `input` and asserts what it finds.
fn python(script: &str, input: &str) -> String {
    run_with_input(Command::new("python3").args(["-c", script]), input)
}

const READ_AUTOCONFIG: &str = r#"
import sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.stdin.buffer.read())
assert root.tag == 'clientConfig' and root.get('version') == '1.1'
provider = root.find('emailProvider')
assert provider.get('id') == 'example.org' == provider.find('domain').text
for server, kind in [('incomingServer', 'imap'), ('outgoingServer', 'smtp')]:
    for found in provider.findall(server):
        assert found.get('type') == kind and found.find('username').text == '%EMAILADDRESS%'
        print(server, found.find('hostname').text, found.find('port').text, found.find('socketType').text)
"#;

const READ_AUTODISCOVER: &str = r#"
import sys, xml.etree.ElementTree as tree
space = '{http://schemas.microsoft.com/exchange/autodiscover/outlook/responseschema/2006a}'
root = tree.fromstring(sys.stdin.buffer.read())
account = root.find(space + 'Response').find(space + 'Account')
assert account.find(space + 'Action').text == 'settings'
for found in account.findall(space + 'Protocol'):
    part = lambda name: found.find(space + name).text
    assert part('LoginName') == 'alice@example.org' and part('SSL') == 'on'
    print(part('Type'), part('Server'), part('Port'), part('Encryption'))
"#;

const READ_PROFILE: &str = r#"
import plistlib, sys, uuid
profile = plistlib.loads(sys.stdin.buffer.read())
assert profile['PayloadType'] == 'Configuration' and profile['PayloadVersion'] == 1
account, = profile['PayloadContent']
assert account['PayloadType'] == 'com.apple.mail.managed'
assert account['EmailAddress'] == account['IncomingMailServerUsername'] == "o'neill&co@example.org"
assert account['IncomingMailServerUseSSL'] is True and account['OutgoingPasswordSameAsIncomingPassword'] is True
assert uuid.UUID(account['PayloadUUID']) != uuid.UUID(profile['PayloadUUID'])
for side in ['Incoming', 'Outgoing']:
    print(account[side + 'MailServerHostName'], account[side + 'MailServerPortNumber'])
"#;

const READ_CONTACTS: &str = r#"
import datetime, sys
fields = dict(line.split(': ', 1) for line in sys.stdin.read().splitlines())
end = datetime.datetime.fromisoformat(fields['Expires'].replace('Z', '+00:00'))
left = end - datetime.datetime.now(datetime.timezone.utc)
assert datetime.timedelta(days=30) < left < datetime.timedelta(days=365), left
print(fields['Contact'], fields['Canonical'])
"#;

const REQUEST: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <Autodiscover xmlns=\"http://schemas.microsoft.com/exchange/autodiscover/outlook/requestschema/2006\"><Request>\
    <EMailAddress>alice@example.org</EMailAddress><AcceptableResponseSchema>\
    http://schemas.microsoft.com/exchange/autodiscover/outlook/responseschema/2006a\
    </AcceptableResponseSchema></Request></Autodiscover>";

#[test]
fn mail_programs_find_their_settings() {
    if !has_programs() {
        return;
    }
    let setup = Setup::new();
    let options = setup
        .options
        .clone()
        .set("imaps.listen", &format!("[\"{}\"]", free_address()));
    let system = System::start(&options);
    wait_lines(
        setup.metrics,
        &["vere_web_connections_open{scheme=\"https\"} 0"],
    );
    let imaps = options_port(&system, "imaps");
    let (tls, start_tls) = (system.submissions.port(), system.submission.port());
    let url =
        "https://autoconfig.example.org/mail/config-v1.1.xml?emailaddress=alice%40example.org";
    let found = python(READ_AUTOCONFIG, &setup.get(url));
    assert_eq!(
        found,
        format!(
            "incomingServer mx.example.org {imaps} SSL\noutgoingServer mx.example.org {tls} SSL\n\
             outgoingServer mx.example.org {start_tls} STARTTLS\n"
        )
    );
    // Nobody learns which accounts exist.
    let nobody = url.replace("alice", "nobody");
    assert_eq!(setup.get(&nobody), setup.get(url));
    let post = setup.curl(
        "https://autodiscover.example.org/Autodiscover/Autodiscover.xml",
        &[
            "--fail",
            "-H",
            "Content-Type: text/xml",
            "--data-binary",
            "@-",
        ],
        REQUEST,
    );
    let found = python(READ_AUTODISCOVER, &String::from_utf8_lossy(&post.stdout));
    assert_eq!(
        found,
        format!(
            "IMAP mx.example.org {imaps} SSL\nSMTP mx.example.org {tls} SSL\nSMTP mx.example.org {start_tls} TLS\n"
        )
    );
    let profile =
        setup.get("https://example.org/apple.mobileconfig?email=o%27neill%26co%40example.org");
    let found = python(READ_PROFILE, &profile);
    assert_eq!(
        found,
        format!("mx.example.org {imaps}\nmx.example.org {tls}\n")
    );
    let found = python(
        READ_CONTACTS,
        &setup.get("https://example.org/.well-known/security.txt"),
    );
    assert_eq!(
        found,
        "mailto:postmaster@example.org https://example.org/.well-known/security.txt\n"
    );
    let page = setup.get("https://example.org/");
    assert_has(
        &page,
        &[
            "mx.example.org",
            &format!("<td>{imaps}</td>"),
            "apple.mobileconfig",
        ],
    );
    assert!(!page.contains("<script"), "{page}");
}

/// The port of a service in the file.
fn options_port(system: &System, section: &str) -> u16 {
    let text = std::fs::read_to_string(&system.config).expect("the settings");
    let (_, rest) = text.split_once(&format!("[{section}]")).expect(section);
    let line = rest
        .lines()
        .find_map(|line| line.strip_prefix("listen = [\""));
    let address: SocketAddr = line
        .expect("listen")
        .trim_end_matches("\"]")
        .parse()
        .expect("an address");
    address.port()
}

#[test]
fn the_policy_is_the_one_that_dns_check_fetches_and_follows_a_reload() {
    if !has_programs() {
        return;
    }
    let setup = Setup::new();
    let options = setup
        .options
        .clone()
        .set("delivery.mta_sts_port", &setup.https.port().to_string())
        .set("delivery.ca", &quoted(&setup.authority.ca))
        .record("mta-sts.example.org A 127.0.0.1")
        .record("_mta-sts.example.org TXT v=STSv1; id=1;");
    let system = System::start(&options);
    let row = || {
        let arguments = [
            "dns",
            "check",
            "example.org",
            "--probe",
            "example.org",
            "--json",
            "-c",
        ];
        let output = output_of(
            crate::harness::vere().args(arguments).arg(&system.config),
            "",
        );
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let checks = value[0]["checks"].as_array().expect("checks").clone();
        let row = checks.into_iter().find(|row| row["check"] == "mta-sts");
        row.expect("a row about MTA-STS")
    };
    assert_eq!(row()["level"], "ok", "{}", row());
    assert_has(
        row()["text"].as_str().unwrap_or_default(),
        &["mode testing", "mx.example.org"],
    );
    let url = "https://mta-sts.example.org/.well-known/mta-sts.txt";
    assert_has(
        &setup.get(url),
        &["mode: testing", "mx: mx.example.org", "max_age: 604800"],
    );
    // Senders that hold the policy of another host would not deliver.
    let other = options
        .set("web.mta_sts", "\"enforce\"")
        .set("web.mx", "[\"other.example.org\"]");
    system.reconfigure(&other);
    wait_until("the new policy", || {
        setup.get(url).contains("mx: other.example.org")
    });
    assert_eq!(row()["level"], "critical", "{}", row());
}

#[test]
fn a_domain_is_served_as_long_as_it_is_local() {
    if !has_programs() {
        return;
    }
    let setup = Setup::new();
    let system = System::start(&setup.options);
    let url = "https://mta-sts.added.example/.well-known/mta-sts.txt";
    wait_until("the list of domains", || {
        setup.status(&url.replace("added.example", "example.org")) == "200"
    });
    assert_eq!(setup.status(url), "404");
    system.command(&["domain", "add", "added.example"]);
    wait_until("the new domain", || setup.status(url) == "200");
    system.command(&["domain", "del", "added.example"]);
    wait_until("the end of the domain", || setup.status(url) == "404");
    // HTTP leads to HTTPS for known names alone, and gives nothing else away.
    let led = setup.curl(
        "http://example.org/a?b",
        &["-o", "/dev/null", "-w", "%{http_code} %{redirect_url}"],
        "",
    );
    let port = setup.https.port();
    assert_eq!(
        String::from_utf8_lossy(&led.stdout),
        format!("301 https://example.org:{port}/a?b")
    );
    assert_eq!(setup.status("http://strange.example.com/"), "404");
    assert_eq!(
        setup.status("http://example.org/.well-known/acme-challenge/none"),
        "404"
    );
    let counted =
        "vere_web_requests_total{scheme=\"http\",resource=\"acme_challenge\",status=\"4xx\"} 1";
    wait_lines(setup.metrics, &[counted]);
    // A server that dies is started again.
    let [before] = system.role_pids("web")[..] else {
        panic!("one process");
    };
    assert!(signal(before, Signal::SIGKILL));
    wait_until(
        "another process",
        || matches!(system.role_pids("web")[..], [now] if now != before),
    );
    wait_until("its answers", || {
        setup.status("https://example.org/") == "200"
    });
}

/// Opens a connection from an address of this machine.
fn connect_from(source: [u8; 4], to: SocketAddr) -> TcpStream {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
    let made = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .expect("a socket");
    let [a, b, c, d] = source;
    let raw = std::os::fd::AsRawFd::as_raw_fd(&made);
    bind(raw, &SockaddrIn::new(a, b, c, d, 0)).expect("an address of this machine");
    let SocketAddr::V4(to) = to else {
        panic!("IPv4");
    };
    connect(raw, &SockaddrIn::from(to)).expect("a connection");
    TcpStream::from(made)
}

#[test]
fn idle_connections_keep_nobody_out() {
    if !has_programs() {
        return;
    }
    crate::harness::raise_descriptor_limit();
    let setup = Setup::new();
    // Connections may last, so that only the bounds end them.
    let options = setup
        .options
        .clone()
        .set("web.request_timeout", "\"1m\"")
        .set("web.connection_timeout", "\"10m\"");
    let _system = System::start(&options);
    wait_until("the server", || {
        setup.status("https://example.org/") == "200"
    });
    // 1,000 connections from 50 addresses, 20 allowed for each address, take all places. Half of them are in the clear, half sends a part of a handshake.
    let idle: Vec<TcpStream> = (0..1_000_u32)
        .map(|number| {
            let from = [127, 0, 1, u8::try_from(number / 20 + 1).expect("small")];
            let mut stream = connect_from(from, setup.https);
            if number % 2 == 0 {
                // The client may be closed already.
                let _ = stream.write_all(&[22, 3, 1]);
            }
            stream
        })
        .collect();
    let began = Instant::now();
    for _ in 0..5 {
        assert_eq!(setup.status("https://example.org/"), "200");
    }
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
    wait_lines(
        setup.metrics,
        &["vere_web_connections_total{scheme=\"https\",result=\"evicted\"} 1"],
    );
    // A single address gets no more connections than its share.
    let mut further = connect_from([127, 0, 1, 50], setup.https);
    let mut octet = [0];
    assert!(matches!(further.read(&mut octet), Ok(0) | Err(_)));
    drop(idle);
}

#[test]
fn slow_and_endless_requests_end() {
    if !has_programs() {
        return;
    }
    let setup = Setup::new();
    let options = setup
        .options
        .clone()
        .set("web.request_timeout", "\"1s\"")
        .set("web.connection_timeout", "\"4s\"");
    let _system = System::start(&options);
    wait_until("the server", || {
        setup.status("https://example.org/") == "200"
    });
    // Octet by octet: the header has a time of its own.
    let mut slow = TcpStream::connect(setup.http).expect("a connection");
    let began = Instant::now();
    wait_for("the end of a slow header", || {
        let sent = slow.write_all(b"x");
        std::thread::sleep(Duration::from_millis(100));
        sent.is_err().then_some(())
    });
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    // A body without an end, as fast as the server reads. The answer may get lost behind octets that nobody reads any more: then curl reports 100 Continue, or none.
    let status = setup.fed_by("yes");
    assert!(["413", "100", "000"].contains(&status.as_str()), "{status}");
    // A body that does not come. curl prints the answer at the end of its input.
    assert_eq!(setup.fed_by("exec sleep 5 2>&1"), "408");
    assert_eq!(setup.status("https://example.org/"), "200");
}

/// The web server may connect to nothing. It asks the signer by a socket that outlives both processes.
#[test]
fn handshakes_go_on_after_either_process_is_replaced() {
    if !has_programs() {
        return;
    }
    let setup = Setup::new();
    let system = System::start(&setup.options);
    let page = || setup.get("https://mx.example.org/");
    assert!(page().contains("mx.example.org"));
    let answers = || {
        let arguments = ["--fail", "-o", "/dev/null"];
        let output = setup.curl("https://mx.example.org/", &arguments, "");
        output.status.success()
    };
    for role in ["signer", "web", "signer"] {
        system.signal_role(role, Signal::SIGKILL);
        wait_until(role, answers);
    }
    // What the process may read has no word of the passwords of the settings, and none of its sockets has a name.
    let told = system.directory.path().join("data/web/accepted.toml");
    let told = std::fs::read_to_string(told).expect("the settings");
    assert!(told.contains("[web]") && !told.contains('#'), "{told}");
    system.wait_log(&["web server is confined"]);
}
