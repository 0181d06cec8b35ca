//! rspamd, ClamAV, OpenDKIM, and a milter by libmilter that asks for every change. Each program runs in a fresh folder and ends with
//! the test; a test whose program is missing says so and passes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{MESSAGE, ask, filter, outcome, session};
use crate::{
    Address, Asked, Clamd, Class, Failure, Filter, Kind, Rspamd, Verdict, apply,
    apply_to_recipients,
};

/// A program that listens at `socket` in a fresh folder.
pub(super) struct Peer {
    folder: TempDir,
    child: Child,
}

impl Drop for Peer {
    /// SIGTERM first: rspamd ends its workers then, and SIGKILL would leave the workers behind.
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").arg(pid).status();
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub(super) fn filter(&self, kind: Kind) -> Filter {
        filter(kind, Address::Unix(self.socket()), Duration::from_secs(30))
    }
}

pub(super) fn program(name: &str, package: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let found = folders
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        let note = format!("{name} is not installed (apt-get install {package})");
        skip(&note);
    }
    found
}

pub(super) fn skip(why: &str) {
    let thread = std::thread::current();
    println!("skipped: {}: {why}", thread.name().unwrap_or("a test"));
}

/// Starts a program and waits for the socket. `arguments` are made from the folder, when the folder is filled.
pub(super) async fn start(program: &Path, prepare: impl FnOnce(&Path) -> Vec<String>) -> Peer {
    let folder = tempfile::Builder::new().prefix("vf").tempdir().unwrap();
    let arguments = prepare(folder.path());
    let log = fs::File::create(folder.path().join("out")).unwrap();
    let child = Command::new(program)
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut peer = Peer { folder, child };
    let begun = Instant::now();
    while tokio::net::UnixStream::connect(peer.socket())
        .await
        .is_err()
    {
        let out = || fs::read_to_string(peer.folder.path().join("out")).unwrap_or_default();
        assert!(
            peer.child.try_wait().unwrap().is_none(),
            "{program:?} ended: {}",
            out()
        );
        assert!(
            begun.elapsed() < Duration::from_secs(90),
            "{program:?}: {}",
            out()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    peer
}

pub(super) fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn rspamd_refuses_gtube_and_accepts_others() {
    let Some(program) = program("rspamd", "rspamd") else {
        return;
    };
    let peer = start(&program, |folder| {
        let at = folder.display();
        let settings = format!(
            "options {{ tempdir = \"{at}\"; pidfile = \"{at}/pid\"; filters = \"\"; url_tld = \"{at}/tld\";\n\
             control_socket = \"{at}/control\"; dns {{ nameserver = [\"127.0.0.1:9\"]; timeout = 0.1s; retransmits = 1; }} }}\n\
             logging {{ type = \"file\"; filename = \"{at}/log\"; level = \"error\"; }}\n\
             lang_detection {{ languages = \"{at}/none\"; }}\n\
             actions {{ reject = 15; add_header = 6; greylist = 4; }}\n\
             worker \"normal\" {{ bind_socket = \"{at}/socket\"; count = 1; }}\n\
             worker \"controller\" {{ bind_socket = \"{at}/controller\"; password = \"pass\"; enable_password = \"pass\"; secure_ip = []; count = 1; }}\n"
        );
        fs::write(folder.join("rspamd.conf"), settings).unwrap();
        fs::write(folder.join("tld"), "example\n").unwrap();
        vec!["-f".into(), "-i".into(), "-c".into(), format!("{at}/rspamd.conf")]
    })
    .await;
    let filter = peer.filter(Kind::Rspamd(Rspamd::default()));
    let clean = outcome(&filter, MESSAGE).await;
    assert_eq!(clean.verdict, Verdict::Accept, "{clean:?}");
    let gtube = [
        "XJS*C4JDBQADN1.NSBN3*2IDNEN*",
        "GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X",
    ]
    .concat();
    let spam = [MESSAGE, gtube.as_bytes(), b"\r\n"].concat();
    let spam = outcome(&filter, &spam).await;
    assert_eq!(
        spam.verdict,
        Verdict::Reject("Gtube pattern".to_owned()),
        "{spam:?}"
    );
    assert_eq!(
        (spam.action.as_str(), spam.required),
        ("reject", Some(15.0))
    );
    assert!(
        spam.symbols.iter().any(|symbol| symbol.name == "GTUBE"),
        "{spam:?}"
    );
    // The normal worker does not learn; the controller does, and asks no client of a Unix socket for a password.
    let learned = filter.learn(&MESSAGE.into(), Class::Spam).await;
    assert!(
        matches!(learned, Err(Failure::Status { .. })),
        "{learned:?}"
    );
    let mut terms = filter.terms().clone();
    terms.address = Address::Unix(peer.folder.path().join("controller"));
    let controller = Filter::new(terms);
    for class in [Class::Ham, Class::Spam] {
        assert_eq!(controller.learn(&MESSAGE.into(), class).await, Ok(()));
    }
}

#[tokio::test]
async fn clamd_finds_the_test_file() {
    let Some(program) = program("clamd", "clamav-daemon") else {
        return;
    };
    let eicar = [
        r"X5O!P%@AP[4\PZX54(P^)7CC)7}$",
        "EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*",
    ]
    .concat();
    let peer = start(&program, |folder| {
        let at = folder.display();
        fs::create_dir(folder.join("db")).unwrap();
        let hex: String = eicar.bytes().map(|octet| format!("{octet:02x}")).collect();
        fs::write(folder.join("db/test.ndb"), format!("Test.Eicar:0:*:{hex}\n")).unwrap();
        let settings = format!(
            "DatabaseDirectory {at}/db\nLocalSocket {at}/socket\nForeground yes\nStreamMaxLength 512K\nTemporaryDirectory {at}\n"
        );
        fs::write(folder.join("clamd.conf"), settings).unwrap();
        texts(&["-c", "clamd.conf"])
    })
    .await;
    let filter = peer.filter(Kind::Clamd(Clamd));
    assert!(filter.version().await.unwrap().starts_with("ClamAV "));
    assert_eq!(outcome(&filter, MESSAGE).await.verdict, Verdict::Accept);
    let infected = outcome(&filter, &[MESSAGE, eicar.as_bytes(), b"\r\n"].concat()).await;
    assert_eq!(infected.virus.as_deref(), Some("Test.Eicar.UNOFFICIAL"));
    let text = "virus found: Test.Eicar.UNOFFICIAL".to_owned();
    assert_eq!(infected.verdict, Verdict::Reject(text));
    let long = ask(&filter, &vec![b'x'; 1024 * 1024]).await;
    assert_eq!(long, Asked::Unavailable(Failure::StreamLong));
}

#[tokio::test]
async fn opendkim_signs() {
    let (Some(program), Some(openssl)) = (
        program("opendkim", "opendkim"),
        program("openssl", "openssl"),
    ) else {
        return;
    };
    let peer = start(&program, |folder| {
        let at = folder.display();
        let made = Command::new(openssl)
            .args(["genrsa", "-out"])
            .arg(folder.join("key.pem"))
            .arg("2048")
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        let settings = format!(
            "Socket local:{at}/socket\nDomain b.example\nSelector sel\nKeyFile {at}/key.pem\nMode s\nBackground no\n\
             Canonicalization simple/simple\nInternalHosts 0.0.0.0/0\nRequireSafeKeys no\nSyslog no\n"
        );
        fs::write(folder.join("conf"), settings).unwrap();
        texts(&["-f", "-x", "conf"])
    })
    .await;
    let filter = peer.filter(Kind::Milter);
    for _ in 0..3 {
        let signed = outcome(&filter, MESSAGE).await;
        assert_eq!(signed.verdict, Verdict::Accept);
        let message = String::from_utf8(apply(MESSAGE, &signed.changes)).unwrap();
        assert!(
            message.starts_with("DKIM-Signature: v=1; a=rsa-sha256; c=simple/simple; d=b.example;"),
            "{message}"
        );
        assert!(message.ends_with(std::str::from_utf8(MESSAGE).unwrap()));
    }
}

/// A message with this subject and two fields of a name.
pub(super) fn about(subject: &str) -> Vec<u8> {
    let body = "body\r\n".repeat(30_000);
    format!("Subject: {subject}\r\nX-A: 1\r\nX-B: gone\r\nX-A: 2\r\n\r\n{body}").into_bytes()
}

pub(super) async fn python() -> Option<Peer> {
    let program = program("python3", "python3")?;
    let has = Command::new(&program)
        .args(["-c", "import Milter"])
        .stderr(Stdio::null())
        .status();
    if !has.is_ok_and(|status| status.success()) {
        skip("the module Milter is not installed (apt-get install python3-milter)");
        return None;
    }
    let peer = start(&program, |folder| {
        fs::write(folder.join("wishes.py"), include_str!("wishes.py")).unwrap();
        texts(&["wishes.py", "socket"])
    });
    Some(peer.await)
}

#[tokio::test]
async fn a_milter_asks_for_every_change() {
    let Some(peer) = python().await else {
        return;
    };
    let filter = peer.filter(Kind::Milter);
    let message = about("change");
    let changed = outcome(&filter, &message).await;
    assert_eq!(changed.verdict, Verdict::Accept);
    let body = "new body\r\n".repeat(20_000);
    let expected = format!(
        "X-Folded: one\r\n\ttwo\r\nSubject: change\r\nX-A: 1\r\nX-A: changed\r\n\
         X-Seen: mx.example 192.0.2.7 mail.example helo.example <a@b.example> <c@d.example> <e@d.example> {}\r\n\
         X-New: added\r\n\r\n{body}",
        30_000 * 6
    );
    assert_eq!(
        String::from_utf8(apply(&message, &changed.changes)).unwrap(),
        expected
    );
    let (path, to) = apply_to_recipients("a@b.example", session().recipients, &changed.changes);
    assert_eq!(path, "other@b.example");
    assert_eq!(to, ["c@d.example", "new@d.example"]);
}

#[tokio::test]
async fn a_milter_decides_on_kept_connections() {
    let Some(peer) = python().await else {
        return;
    };
    let filter = peer.filter(Kind::Milter);
    for _ in 0..2 {
        for (subject, verdict) in [
            ("one", Verdict::Accept),
            (
                "reject",
                Verdict::Reject("5.7.1 first 5.7.1 100% no".to_owned()),
            ),
            ("two", Verdict::Accept),
            ("defer", Verdict::Defer(String::new())),
            (
                "discard",
                Verdict::Quarantine("discarded by the filter".to_owned()),
            ),
            (
                "quarantine",
                Verdict::Quarantine("to be looked at".to_owned()),
            ),
            ("three", Verdict::Accept),
        ] {
            assert_eq!(
                outcome(&filter, &about(subject)).await.verdict,
                verdict,
                "{subject}"
            );
        }
    }
    let refused = crate::Session {
        recipients: &["c@d.example", "refused@d.example"],
        ..session()
    };
    let Asked::Answered(refused) = filter.ask(&about("one").into(), &refused).await else {
        panic!("no answer");
    };
    let text = "5.1.1 not here (recipient <refused@d.example>)".to_owned();
    assert_eq!(refused.verdict, Verdict::Reject(text));
    // A message that kills the filter, on a connection that was kept before.
    let killed = ask(&filter, &about("die")).await;
    let Asked::Unavailable(Failure::Closed(_) | Failure::Broken { .. } | Failure::Connect { .. }) =
        killed
    else {
        panic!("{killed:?}");
    };
}
