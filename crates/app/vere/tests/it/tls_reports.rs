//! Reports about TLS: the sessions of a day are counted by the policy of the domain, and each domain that asks gets one report, by mail or
//! https, also where TLS fails.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::clock::FakedClock;
use crate::harness::{
    Authority, Manners, Mx, Options, System, assert_has, program, quoted, run, wait_for, wait_until,
};

/// A second reader of reports: the standard library of Python. Prints the fields that RFC 8460 demands.
const CHECK: &str = r#"
import email, gzip, json, sys
raw = open(sys.argv[1], 'rb').read()
head = {}
if raw[:2] != b'\x1f\x8b':
    mail = email.message_from_bytes(raw)
    parts = mail.get_payload()
    head = {
        'type': mail.get_content_type(), 'report': mail.get_param('report-type'),
        'domain': mail['TLS-Report-Domain'], 'submitter': mail['TLS-Report-Submitter'],
        'required': mail['TLS-Required'], 'part': parts[1].get_content_type(),
        'file': parts[1].get_filename(), 'subject': ' '.join(mail['Subject'].split()),
    }
    raw = parts[1].get_payload(decode=True)
report = json.loads(gzip.decompress(raw).decode())
for key in ('organization-name', 'date-range', 'contact-info', 'report-id', 'policies'):
    assert report[key], key
for policy in report['policies']:
    assert policy['policy']['policy-domain'], policy
    failed = policy['summary']['total-failure-session-count']
    assert failed == sum(one['failed-session-count'] for one in policy.get('failure-details', []))
    assert isinstance(policy['summary']['total-successful-session-count'], int)
print(json.dumps({'head': head, 'report': report}))
"#;

/// The note of mail to a domain that names a failing web server too.
const MAIL_NOTE: &str = "unfetched.test mailto";

/// What a web server gives and got.
#[derive(Debug, Default)]
struct Web {
    /// MTA-STS policies by their host.
    policies: BTreeMap<String, String>,
    /// The bodies of POST requests by path, for paths other than `/moved`.
    posted: Mutex<Vec<(String, Vec<u8>)>>,
    /// Requests to `/moved`.
    moved: Mutex<usize>,
    /// The folder of counts, and the requests to `/moved` before a note of the mail.
    folder: OnceLock<PathBuf>,
    early: Mutex<usize>,
}

impl Web {
    fn start(web: &Arc<Self>, config: &Arc<ServerConfig>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let (web, config) = (Arc::clone(web), Arc::clone(config));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (web, config) = (Arc::clone(&web), Arc::clone(&config));
                // A disconnecting client is no failure of the test.
                std::thread::spawn(move || web.serve(stream, config));
            }
        });
        port
    }

    fn serve(&self, stream: TcpStream, config: Arc<ServerConfig>) -> std::io::Result<()> {
        let connection = ServerConnection::new(config).expect("TLS");
        let mut stream = StreamOwned::new(connection, stream);
        let (mut request, mut piece) = (Vec::new(), [0; 4096]);
        let (head, body) = loop {
            let octets = stream.read(&mut piece)?;
            request.extend_from_slice(&piece[..octets]);
            let end = request.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
                let length = field(&head, "content-length").parse().unwrap_or(0);
                if request.len() >= end + 4 + length {
                    break (head, request[end + 4..].to_vec());
                }
            }
            if octets == 0 {
                return Ok(());
            }
        };
        let answer = self.answer(&head, body);
        stream.write_all(answer.as_bytes())?;
        stream.conn.send_close_notify();
        stream.flush()
    }

    fn answer(&self, head: &str, body: Vec<u8>) -> String {
        let of = |status: &str, more: &str, text: &str| {
            let length = text.len();
            format!("HTTP/1.1 {status}\r\n{more}content-length: {length}\r\n\r\n{text}")
        };
        let target = head.split(' ').nth(1).unwrap_or_default();
        if head.starts_with("get ") {
            let host = field(head, "host");
            return match self.policies.get(host) {
                Some(policy) => of("200 OK", "content-type: text/plain\r\n", policy),
                None => of("404 Not Found", "", ""),
            };
        }
        assert_eq!(field(head, "content-type"), "application/tlsrpt+gzip");
        if target == "/moved" {
            let folder = self.folder.get().expect("a system");
            if !counts_in(folder).concat().contains(MAIL_NOTE) {
                *self.early.lock().expect("no panic") += 1;
            }
            *self.moved.lock().expect("no panic") += 1;
            return of("302 Found", "location: /v1\r\n", "");
        }
        let mut posted = self.posted.lock().expect("no panic");
        posted.push((target.to_owned(), body));
        of("201 Created", "", "thanks")
    }

    fn posted(&self) -> Vec<(String, Vec<u8>)> {
        self.posted.lock().expect("no panic").clone()
    }
}

/// A field of the head of a request in lower case.
fn field<'a>(head: &'a str, name: &str) -> &'a str {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .find(|(key, _)| *key == name)
        .map_or("", |(_, value)| value)
}

/// Domains with next hops at addresses of their own.
struct World {
    authority: Authority,
    web: Arc<Web>,
    good: Mx,
    bad: Mx,
    clear: Mx,
    unfetched: Mx,
    web_port: u16,
}

impl World {
    fn new() -> Self {
        let authority = Authority::new();
        let certified = |address: &str, name: &str| {
            let certificate = Some(authority.sign(name, &[name]));
            let manners = Manners {
                certificate,
                ..Manners::default()
            };
            Mx::start_on(address, manners)
        };
        let good = certified("127.0.2.1:0", "mx.good.test");
        let port = good.port();
        let bad = certified(&format!("127.0.2.2:{port}"), "mx.other.test");
        let clear = Mx::start_on(&format!("127.0.2.3:{port}"), Manners::default());
        let unfetched = certified(&format!("127.0.2.4:{port}"), "mx.unfetched.test");
        let policy = |name: &str| {
            let text = format!("version: STSv1\nmode: enforce\nmx: mx.{name}\nmax_age: 86400\n");
            (format!("mta-sts.{name}"), text)
        };
        let web = Arc::new(Web {
            policies: ["good.test", "bad.test"].map(policy).into(),
            ..Web::default()
        });
        let names = ["good", "bad", "unfetched"].map(|name| format!("mta-sts.{name}.test"));
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.push("web.test");
        let config = authority.sign("web", &names).server(&[]);
        let web_port = Web::start(&web, &config);
        Self {
            authority,
            web,
            good,
            bad,
            clear,
            unfetched,
            web_port,
        }
    }

    fn options(&self) -> Options {
        let web = format!("https://web.test:{}", self.web_port);
        let mut options = Options::default()
            .set("delivery.port", &self.good.port().to_string())
            .set("delivery.mta_sts_port", &self.web_port.to_string())
            .set("delivery.ca", &quoted(&self.authority.ca))
            .set("reports.tls", "\"daily\"")
            .set("reports.organization", "\"Example & Sons\"")
            .set("reports.contact", "\"tls@example.org\"")
            .route("relayed.test", self.clear.address, "")
            .record("web.test A 127.0.0.1");
        for (name, address, is_sts, rua) in [
            ("good.test", "127.0.2.1", true, "mailto:a@good.test"),
            ("bad.test", "127.0.2.2", true, "mailto:a@bad.test"),
            ("clear.test", "127.0.2.3", false, &format!("{web}/v1")),
            (
                "unfetched.test",
                "127.0.2.4",
                true,
                &format!("{web}/moved,mailto:a@unfetched.test,ftp://x.test"),
            ),
            ("quiet.test", "127.0.2.3", false, ""),
        ] {
            options = options
                .record(&format!("{name} MX 10 mx.{name}"))
                .record(&format!("mx.{name} A {address}"));
            if is_sts {
                options = options
                    .record(&format!("mta-sts.{name} A 127.0.0.1"))
                    .record(&format!("_mta-sts.{name} TXT v=STSv1; id=1;"));
            }
            if !rua.is_empty() {
                options = options.record(&format!("_smtp._tls.{name} TXT v=TLSRPTv1; rua={rua}"));
            }
        }
        // Two records are none.
        options
            .record("_smtp._tls.quiet.test TXT v=TLSRPTv1; rua=mailto:a@good.test")
            .record("_smtp._tls.quiet.test TXT v=TLSRPTv1; rua=mailto:b@good.test")
    }
}

/// The offset of a clock with noon of the day before yesterday.
fn noon() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.expect("a clock behind 1970").as_secs();
    format!("-{}", seconds % 86_400 + 36 * 3_600)
}

fn submit(system: &System, to: &str) {
    system.submit_about("alice@example.org", &[to], "a");
}

/// The lines of the files of the gateway.
pub(crate) fn counts(system: &System) -> Vec<String> {
    counts_in(&system.directory.path().join("data/reports"))
}

fn counts_in(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    // A file that is written anew leaves another name.
    let texts = files.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
    let all: String = texts.collect();
    all.lines().map(str::to_owned).collect()
}

/// Waits until sessions of a domain were counted with all these words.
pub(crate) fn wait_counted(system: &System, domain: &str, words: &[&str]) {
    let domain = format!("\"domain\":\"{domain}\"");
    wait_until(&format!("counts with {domain} and {words:?}"), || {
        let is_one =
            |line: &String| line.contains(&domain) && words.iter().all(|word| line.contains(word));
        counts(system).iter().any(is_one)
    });
}

/// The report mails at a next hop.
fn reports(mx: &Mx) -> Vec<String> {
    let texts = mx.messages().into_iter().map(|seen| seen.text);
    texts
        .filter(|text| text.contains("TLS-Report-Domain:"))
        .collect()
}

/// A report by the reader of the product, and by Python where there is one.
fn read(system: &System, report: &[u8]) -> (Value, Option<Value>) {
    let file = system.directory.path().join("report");
    std::fs::write(&file, report).expect("the report");
    let path = file.to_str().expect("a path");
    let read = system.json(&["reports", "read", path]);
    let other = program("python3").map(|python| {
        let printed = run(Command::new(python).args(["-c", CHECK, path]));
        serde_json::from_str(&printed).expect("JSON")
    });
    (read["tls"][0].clone(), other)
}

/// Sessions of a day by domain: all policies and failures that need no signed zone.
fn observe(system: &System) {
    for _ in 0..2 {
        submit(system, "a@good.test");
    }
    for to in ["bad", "clear", "unfetched", "quiet", "relayed"] {
        submit(system, &format!("a@{to}.test"));
    }
    wait_counted(
        system,
        "good.test",
        &["\"Sts\"", "mode: enforce", "\"failure\":null"],
    );
    wait_counted(
        system,
        "bad.test",
        &["\"Sts\"", "CertificateHostMismatch", "mx.bad.test"],
    );
    wait_counted(
        system,
        "clear.test",
        &["\"NotFound\"", "StartTlsNotSupported"],
    );
    wait_counted(
        system,
        "unfetched.test",
        &["\"Sts\"", "StsPolicyFetchError"],
    );
    wait_counted(system, "quiet.test", &["StartTlsNotSupported"]);
    let all = counts(system).concat();
    assert!(!all.contains("relayed.test"), "a next hop of the settings");
}

fn check_mail(system: &System, world: &World, report: &str) {
    assert_has(
        report,
        &[
            "From: postmaster@mx.example.org",
            "Subject: Report Domain: bad.test",
            "TLS-Report-Domain: bad.test",
            "TLS-Required: No",
        ],
    );
    let (ours, python) = read(system, report.as_bytes());
    assert_eq!(ours["domain"], "bad.test", "{ours}");
    assert_eq!(ours["policies"][0]["policy"], "sts");
    assert_eq!(ours["policies"][0]["successes"], 0);
    assert_eq!(ours["failures"][0]["failure"], "certificate-host-mismatch");
    assert_eq!(ours["failures"][0]["mx"], "mx.bad.test");
    let Some(python) = python else {
        return;
    };
    let head = &python["head"];
    let file = head["file"].as_str().expect("a name");
    assert!(file.starts_with("mx.example.org!bad.test!"), "{file}");
    assert!(file.ends_with(".json.gz"), "{file}");
    for (key, expected) in [
        ("type", "multipart/report"),
        ("report", "tlsrpt"),
        ("domain", "bad.test"),
        ("submitter", "mx.example.org"),
        ("required", "No"),
        ("part", "application/tlsrpt+gzip"),
    ] {
        assert_eq!(head[key], expected, "{head}");
    }
    let report = &python["report"];
    assert_eq!(report["organization-name"], "Example & Sons");
    assert_eq!(report["contact-info"], "tls@example.org");
    let policy = &report["policies"][0];
    assert_eq!(policy["policy"]["mx-host"], json!(["mx.bad.test"]));
    let lines = &policy["policy"]["policy-string"];
    let expected = [
        "version: STSv1",
        "mode: enforce",
        "max_age: 86400",
        "mx: mx.bad.test",
    ];
    assert_eq!(*lines, json!(expected));
    let failure = &policy["failure-details"][0];
    assert_eq!(failure["receiving-ip"], world.bad.address.ip().to_string());
    assert!(
        failure["sending-mta-ip"]
            .as_str()
            .is_some_and(|ip| ip.starts_with("127."))
    );
}

fn a_day(couriers: &str) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(clock) = FakedClock::in_folder(directory.path()) else {
        return;
    };
    clock.set(&noon());
    let world = World::new();
    let options = world.options().set("delivery.courier_processes", couriers);
    let mut system = System::start_as(directory, &options, |command, _| clock.command(command));
    let folder = system.directory.path().join("data/reports");
    world.web.folder.set(folder).expect("one system");
    observe(&system);
    assert!(world.web.posted().is_empty() && reports(&world.good).is_empty());
    // The clock is right after the kill, and so the day is over.
    system.crash();
    let bad = wait_for("a report where TLS fails", || {
        reports(&world.bad).into_iter().next()
    });
    // A second kill while reports are on the way.
    system.crash();
    check_mail(&system, &world, &bad);
    let posted = wait_for("a report over https", || {
        world.web.posted().into_iter().next()
    });
    assert_eq!(posted.0, "/v1");
    let (ours, _) = read(&system, &posted.1);
    assert_eq!(ours["domain"], "clear.test", "{ours}");
    assert_eq!(ours["policies"][0]["policy"], "no-policy-found");
    assert_eq!(ours["failures"][0]["failure"], "starttls-not-supported");
    let good = wait_for("a report about success", || {
        reports(&world.good).into_iter().next()
    });
    let (ours, _) = read(&system, good.as_bytes());
    assert_eq!(ours["policies"][0]["failures"], 0, "{ours}");
    assert!(ours["policies"][0]["successes"].as_u64() > Some(0));
    let unfetched = wait_for("a report beside a failing web server", || {
        reports(&world.unfetched).into_iter().next()
    });
    let (ours, _) = read(&system, unfetched.as_bytes());
    assert_eq!(
        ours["failures"][0]["failure"], "sts-policy-fetch-error",
        "{ours}"
    );
    system.wait_log(&["report cannot be sent yet", "unfetched.test", "302"]);
    wait_until("a note of the part that was sent", || {
        counts(&system).concat().contains(MAIL_NOTE)
    });
    assert_eq!(*world.web.early.lock().expect("no panic"), 0);
    // The failed part is tried again after a restart, and the other part is not sent again.
    let moved = *world.web.moved.lock().expect("no panic");
    let sent = reports(&world.unfetched).len();
    system.crash();
    wait_until("another attempt", || {
        *world.web.moved.lock().expect("no panic") > moved
    });
    submit(&system, "a@good.test");
    wait_until("further counts", || {
        reports(&world.good).len() + 3 <= world.good.messages().len()
    });
    assert_eq!(reports(&world.unfetched).len(), sent);
    for (what, number) in [
        ("bad", reports(&world.bad).len()),
        ("good", reports(&world.good).len()),
        ("unfetched", sent),
        ("web", world.web.posted().len()),
    ] {
        assert!((1..=2).contains(&number), "{what}: {number}");
    }
    let about_reports = |line: &String| line.contains("TLS-Report") || line.contains("\"mailto");
    assert!(!counts(&system).iter().any(about_reports));
}

#[test]
fn a_domain_hears_of_the_sessions_of_its_day() {
    a_day("0");
}

#[test]
fn sessions_of_couriers_are_reported_too() {
    a_day("2");
}

#[test]
fn a_reload_switches_counting_on() {
    let world = World::new();
    let options = world.options();
    let system = System::start(&options.clone().set("reports.tls", "\"off\""));
    submit(&system, "a@good.test");
    world.good.wait_messages(1);
    assert!(!system.directory.path().join("data/reports").exists());
    system.reconfigure(&options);
    wait_until("counts", || {
        submit(&system, "a@clear.test");
        counts(&system).concat().contains("\"clear.test\"")
    });
    assert!(!counts(&system).concat().contains("\"good.test\""));
}
