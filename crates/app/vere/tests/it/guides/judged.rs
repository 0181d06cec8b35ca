//! Guides about mail that was judged, here and by others.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use vere_faults::names::{A, Said, TXT, code, text};

use super::Operator;
use crate::front_lists::{asking, reply, served};
use crate::harness::{Child, Options, Session, System, free_address, program, wait_until};
use crate::imap::start_with_store;
use crate::judging::{id_of, judged, message, send};
use crate::proxy::start_behind_proxy;
use crate::quarantine::{count, forged, keeping};
use crate::quarantine_learning::{ALICE, WEIGHTS, news};
use crate::received_reports::dmarc_mail;

#[test]
fn a_list_is_asked_about_a_client() {
    let server = served(|name, kind| match (name, kind) {
        ("1.2.0.192.bl.example.org", A) => Said::Records(300, vec![code(2)]),
        ("1.2.0.192.bl.example.org", TXT) => {
            Said::Records(300, vec![text("see https://bl.example.org/?192.0.2.1")])
        }
        _ => Said::NoSuchName(300),
    });
    let options = asking(server.address, &["zone = \"bl.example.org\"\nweight = 2"]);
    let system = start_behind_proxy(&options.set("front.lists.threshold", "2"));
    // The front asks first, and its broker remembers.
    let refused = reply(&system, "192.0.2.1");
    assert!(refused.starts_with("550 5.7.1"), "{refused}");
    const LISTED: &[(&str, &[i32])] = &[("vere dnsbl query", &[4])];
    if let Some(mut operator) = Operator::of(&system, &[], LISTED) {
        operator.follow("block-lists");
    }
}

/// Settings of rspamd in a folder: a worker that answers, and one that learns.
fn rspamd(folder: &Path, normal: SocketAddr, controller: SocketAddr) -> Command {
    let at = folder.display();
    let settings = format!(
        "options {{ tempdir = \"{at}\"; pidfile = \"{at}/pid\"; filters = \"\"; url_tld = \"{at}/tld\"; control_socket = \"{at}/control\"; }}\n\
         logging {{ type = \"file\"; filename = \"{at}/log\"; level = \"error\"; }}\n\
         lang_detection {{ languages = \"{at}/none\"; }}\n\
         actions {{ reject = 15; add_header = 6; }}\n\
         worker \"normal\" {{ bind_socket = \"{normal}\"; count = 1; }}\n\
         worker \"controller\" {{ bind_socket = \"{controller}\"; count = 1; }}\n"
    );
    fs::write(folder.join("rspamd.conf"), settings).expect("room");
    fs::write(folder.join("tld"), "example\n").expect("room");
    let mut rspamd = Command::new("rspamd");
    rspamd
        .args(["-f", "-i", "-c"])
        .arg(folder.join("rspamd.conf"));
    rspamd
}

/// The message has the line that every installation refuses (GTUBE).
#[test]
fn a_filter_is_asked_about_a_message() {
    if program("rspamd").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (normal, controller) = (free_address(), free_address());
    let mut peer = Child::spawn_quiet(&mut rspamd(folder.path(), normal, controller));
    wait_until("rspamd", || TcpStream::connect(normal).is_ok());
    let filter = format!(
        "[[filter]]\nname = \"rspamd\"\nkind = \"rspamd\"\naddress = \"{normal}\"\nlearn_address = \"{controller}\"\n"
    );
    let config = Options::write_smallest(folder.path(), &filter);
    let address = normal.to_string();
    let texts = [("127.0.0.1:11333", &*address)];
    if let Some(mut operator) = Operator::with(folder.path(), &config, &texts, &[]) {
        let test = [
            "XJS*C4JDBQADN1.NSBN3*2IDNEN*",
            "GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X",
        ];
        let message = format!("Subject: a test\r\n\r\n{}\r\n", test.concat());
        fs::write(operator.path("message.eml"), message).expect("room");
        operator.follow("filters");
    }
    // Its workers end with it.
    peer.stop(Duration::from_secs(10));
}

#[test]
fn a_verdict_is_explained() {
    let system = System::start(&judged("reject_at = 5\n"));
    let message = message("boss@forged.test");
    let reply = send(&system, "a@forged.test", &[ALICE], &message);
    assert!(reply.starts_with("550 5.7.1"), "{reply}");
    let texts = [("1M8J2P8V1YQ80", &*id_of(&reply))];
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        operator.follow("judgement");
    }
}

#[test]
fn messages_leave_the_quarantine() {
    let system = System::start(&keeping(WEIGHTS));
    let [one, two] = [(); 2].map(|()| forged(&system));
    let three = news(&system, &[ALICE]);
    assert_eq!(count(&system), 3);
    let texts = [
        ("release ID --learn", &*format!("release {three} --learn")),
        ("refuse ID", &*format!("refuse {two}")),
        (" ID", &*format!(" {one}")),
        ("news@shop.example", "news@good.test"),
    ];
    if let Some(mut operator) = Operator::of(&system, &texts, &[]) {
        operator.follow("quarantine");
        let raw = fs::read_to_string(operator.path("message.eml")).expect("the message");
        assert!(raw.contains("boss@forged.test"), "{raw}");
        assert_eq!(count(&system), 0);
    }
}

/// The account of the page gets a report, which the page sums up; files have the same report.
#[test]
fn reports_are_summed_up() {
    let (system, _) = start_with_store(Options::default());
    let Some(mut operator) = Operator::of(&system, &[], &[]) else {
        return;
    };
    let makes_account = |command: &str| command.starts_with("vere account add");
    operator.follow_where("reports", makes_account);
    let (account, report) = ("reports@example.org", dmarc_mail());
    let mut session = Session::greeted(system.smtp);
    session.submit("noreply@reporter.example", &[account], &report);
    let text = report.replace('\r', "");
    fs::write(operator.path("report.eml"), &text).expect("a file");
    let mbox = format!("From noreply@reporter.example Mon Nov 30 10:00:00 2026\n{text}");
    fs::write(operator.path("saved.mbox"), mbox).expect("a file");
    for folder in ["new", "cur", "tmp"] {
        fs::create_dir_all(operator.path("Maildir").join(folder)).expect("a directory");
    }
    fs::write(operator.path("Maildir/new/1.mail"), &text).expect("a file");
    wait_reports(&system, account);
    operator.follow_where("reports", |command| !makes_account(command));
}

/// Waits until the report of the account is in the mail store.
fn wait_reports(system: &System, account: &str) {
    wait_until("the report", || {
        system.json(&["reports", "--account", account])["reports"] == 1
    });
}
