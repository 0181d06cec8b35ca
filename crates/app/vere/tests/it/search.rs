//! The findings of SEARCH, beside the findings of Python's email package (`search_oracle.py`), over real mail where
//! available, and over the vectors of `docs/internals/search.md` always.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use vere_bench::Corpus;
use vere_mime::wire::{
    HEAD_OCTETS, Item, Question, Request, answer, holds, plainly_holds, request,
};
use vere_mime::{Parsed, Zone};

use crate::harness::{Options, System, assert_has, output_of, program, run, say, skip, wait_until};
use crate::imap::{Imap, Ports, start_with_store};

const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/search_oracle.py");
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../vectors/search.txt");

/// A number for a longer run, or the usual number.
fn number(variable: &str, ordinary: usize) -> usize {
    let given = std::env::var(variable).ok();
    given.map_or(ordinary, |given| given.parse().expect("a number"))
}

#[test]
fn python_reads_the_vectors_as_we_do() {
    let Some(python) = program("python3") else {
        return;
    };
    say(run(Command::new(python).args([ORACLE, "vectors", VECTORS])).trim());
}

struct Oracle<'a> {
    python: PathBuf,
    ports: &'a Ports,
}

impl Oracle<'_> {
    fn run(&self, action: &str, arguments: &[&str]) {
        let output = output_of(
            Command::new(&self.python)
                .args([ORACLE, action, &self.ports.imap.to_string()])
                .args(arguments),
            "",
        );
        let said = String::from_utf8_lossy(&output.stdout);
        say(said.trim());
        assert!(
            output.status.success(),
            "{action}: {said}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn ask(&self, mailbox: &str, texts: usize, seed: usize) {
        self.run("ask", &[mailbox, &texts.to_string(), &seed.to_string()]);
    }
}

fn corpus(count: usize) -> Option<Corpus> {
    let Some(path) = Corpus::locate().filter(|path| path.exists()) else {
        skip("searching real mail", "no corpus; VERE_CORPUS names one");
        return None;
    };
    Some(Corpus::read(&path, count).expect("the corpus"))
}

/// Real mail, each message behind its length.
fn messages(count: usize, to: &Path) -> Option<usize> {
    let corpus = corpus(count)?;
    let mut file = std::io::BufWriter::new(std::fs::File::create(to).expect("a file"));
    for at in 0..corpus.len() {
        let (message, _) = corpus.message(at);
        file.write_all(&(message.len() as u32).to_le_bytes())
            .expect("room");
        file.write_all(message).expect("room");
    }
    Some(corpus.len())
}

/// The output of a parser.
fn said<'a>(question: Question<'_>, items: impl IntoIterator<Item = Item<'a>>) -> Vec<bool> {
    let frame = request(question, items).expect("a frame");
    let frame = answer(Request::Zones, &frame[HEAD_OCTETS..]).expect("an answer");
    holds(&frame[HEAD_OCTETS..]).expect("whether they hold it")
}

/// For real mail, and for mail cut off behind a found part, the output without a parser equals the output of a
/// parser.
#[test]
fn what_is_plain_is_told_as_a_parser_tells_it() {
    let Some(corpus) = corpus(number("VERE_SEARCH_MESSAGES", 300)) else {
        return;
    };
    let mut told = [0; Zone::ALL.len()];
    for at in 0..corpus.len() {
        let (message, _) = corpus.message(at);
        let record = Parsed::of(message).encode();
        for message in [message, &message[..message.len() / 2]] {
            let items = Zone::ALL.map(|zone| Item {
                zones: 1 << zone as u8,
                own: b"Delivered-To: =?utf-8?q?ann?= <ann@demo.test>\r\n",
                record: &record,
                message,
            });
            for what in ["ON LINUX", "THE", "E", "=", "RE:"] {
                let question = Question::Zones(what.as_bytes());
                for ((item, said), told) in items.iter().zip(said(question, items)).zip(&mut told) {
                    let plainly = plainly_holds(question, item);
                    assert!(plainly.is_none_or(|plainly| plainly == said), "{at} {what}");
                    *told += usize::from(plainly.is_some());
                }
            }
        }
    }
    say(&format!(
        "{} messages, asked 10 times of each zone: {told:?} answers without a parser",
        corpus.len()
    ));
    assert!(told.iter().all(|told| *told > 0));
}

fn segments(system: &System) -> usize {
    let files = std::fs::read_dir(system.directory.path().join("data/store/search"));
    files.map_or(0, |files| files.flatten().count())
}

/// `VERE_SEARCH_MESSAGES` and `VERE_SEARCH_TEXTS` make the run longer, `VERE_SEED` changes the run.
#[test]
fn search_finds_what_python_says() {
    let Some(python) = program("python3") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("messages");
    let Some(count) = messages(number("VERE_SEARCH_MESSAGES", 300), &file) else {
        return;
    };
    let texts = number("VERE_SEARCH_TEXTS", 60);
    let seed = number("VERE_SEED", 1);
    let (mut system, ports) = start_with_store(Options::default());
    let oracle = Oracle {
        python,
        ports: &ports,
    };
    oracle.run("fill", &["Mail", &file.display().to_string()]);
    if count > 100 {
        wait_until("an index", || segments(&system) > 0);
    }
    oracle.ask("Mail", texts, seed);
    oracle.run("churn", &["Mail", "Other", &seed.to_string()]);
    oracle.ask("Mail", texts / 3, seed + 1);
    oracle.ask("Other", texts / 3, seed + 2);
    // Killed, then without an index: the store rebuilds a missing index.
    system.kill();
    std::fs::remove_dir_all(system.directory.path().join("data/store/search")).expect("the index");
    system.start_again();
    oracle.ask("Mail", texts / 6, seed + 3);
    wait_until("the index again", || segments(&system) > 0);
    oracle.ask("Mail", texts / 6, seed + 4);
    let live = explained(&system);
    system.kill();
    let checked = system.command(&["store", "check"]);
    assert!(checked.contains("nothing is wrong"), "{checked}");
    assert_eq!(explained(&system), live, "running and stopped");
}

/// The explanation of a search, and the messages found.
fn explained(system: &System) -> String {
    let said = system.command(&[
        "store",
        "explain",
        "alice@example.org",
        "Mail",
        "BODY free NOT SUBJECT free LARGER 100",
    ]);
    assert_has(&said, &["Body(\"free\"): answered by", "not indexed: "]);
    let found = said
        .lines()
        .find(|line| line.contains(" messages found in "));
    let (_, uids) = found.and_then(|line| line.split_once(": ")).expect("UIDs");
    uids.to_owned()
}

/// What had to be read to answer is indexed afterwards, however small the mailbox.
#[test]
fn what_was_missed_is_indexed() {
    let (system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, "alice@example.org", "secret");
    let append = |alice: &mut Imap, numbers: std::ops::Range<u32>| {
        for number in numbers {
            let from = ["one", "other"][number as usize % 2];
            let text = format!("From: {from}@a.test\r\nSubject: {number}\r\n\r\nfree of it\r\n");
            alice.append("INBOX", &text);
        }
    };
    append(&mut alice, 0..20);
    alice.ok("EXAMINE INBOX");
    let odd: String = (1..=20).step_by(2).map(|n| format!(" {n}")).collect();
    for _ in 0..2 {
        let said = alice.ok("SEARCH FROM one");
        assert!(said.contains(&format!("* SEARCH{odd}\r\n")), "{said}");
        wait_until("an index", || segments(&system) == 1);
    }
    append(&mut alice, 20..28);
    for _ in 0..2 {
        let said = alice.ok("FETCH 21:* BODY.PEEK[HEADER.FIELDS (SUBJECT)]");
        assert_eq!(said.matches("Subject: 2").count(), 8, "{said}");
        wait_until("another", || segments(&system) == 2);
    }
    let said = alice.ok("SEARCH BODY \"e of i\" SUBJECT 27");
    assert!(said.contains("* SEARCH 28\r\n"), "{said}");
}
