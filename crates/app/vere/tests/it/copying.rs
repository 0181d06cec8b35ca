//! COPY of many messages: other clients have their turn, and the copy is whole or absent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Options, System};
use crate::imap::{Imap, start_with_store, with_store};

const ALICE: &str = "alice@example.org";
/// 131,072 messages are copied in 132 pieces.
const DOUBLINGS: usize = 17;

/// The answer of STATUS, behind the name.
fn status(session: &mut Imap, mailbox: &str) -> String {
    let said = session.ok(&format!("STATUS {mailbox} (MESSAGES HIGHESTMODSEQ)"));
    let begin = said.find('(').expect("a status");
    let end = said[begin..].find(')').expect("its end");
    said[begin..begin + end].to_owned()
}

/// One user copied four million messages at once, and everybody else waited for seconds.
#[test]
fn others_are_answered_while_many_messages_are_copied() {
    let (options, ports) = with_store(Options::default());
    let most = (1 << (DOUBLINGS + 1)) + 1;
    let options = options.set("quota.messages_max", &most.to_string());
    let _system = System::start(&options);
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    alice.append("INBOX", "Subject: x\r\n\r\ny\r\n");
    alice.ok("SELECT INBOX");
    for _ in 0..DOUBLINGS {
        alice.ok("COPY 1:* INBOX");
    }
    let mut bob = Imap::login(ports.imap, "bob@example.org", "secret");
    let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let (answers, slowest, took) = thread::scope(|scope| {
        let other = scope.spawn(|| {
            let (mut answers, mut slowest) = (0, Duration::ZERO);
            while !done.load(Ordering::SeqCst) {
                let asked = Instant::now();
                bob.ok("STATUS INBOX (MESSAGES)");
                slowest = slowest.max(asked.elapsed());
                let counts = begun.load(Ordering::SeqCst) && !done.load(Ordering::SeqCst);
                answers += usize::from(counts);
            }
            (answers, slowest)
        });
        begun.store(true, Ordering::SeqCst);
        let began = Instant::now();
        let said = alice.ok("COPY 1:* INBOX");
        let took = began.elapsed();
        done.store(true, Ordering::SeqCst);
        // As a single copy all the same.
        let half = 1 << DOUBLINGS;
        let uids = format!(" 1:{half} {}:{}]", half + 1, 2 * half);
        assert!(said.contains(&uids), "{said}");
        let (answers, slowest) = other.join().expect("the other one");
        (answers, slowest, took)
    });
    eprintln!("COPY took {took:?}; {answers} answers meanwhile, the slowest after {slowest:?}");
    // In a single turn, a client would wait for most of the time.
    assert!(slowest * 2 < took && answers >= 5, "{answers}: {slowest:?}");

    // A copy without space is refused before any change.
    let before = status(&mut alice, "INBOX");
    let said = alice.command("COPY 1:* INBOX");
    assert!(said.contains("NO [OVERQUOTA]"), "{said}");
    assert_eq!(status(&mut alice, "INBOX"), before);
}

#[test]
fn a_copy_that_fails_in_its_middle_leaves_nothing() {
    let (_system, ports) = start_with_store(Options::default());
    let mut alice = Imap::login(ports.imap, ALICE, "secret");
    let text = "Subject: x\r\n\r\ny\r\n";
    // A mailbox with the largest possible number of keywords.
    alice.ok("CREATE Full");
    let keywords: Vec<String> = (0..64).map(|number| format!("k{number}")).collect();
    alice.append(&format!("Full ({})", keywords.join(" ")), text);
    alice.ok("CREATE Empty");
    alice.append("INBOX", text);
    alice.ok("SELECT INBOX");
    for _ in 0..11 {
        alice.ok("COPY 1:* INBOX");
    }
    // A message of the last piece has another keyword.
    alice.append("INBOX (more)", text);
    alice.ok("NOOP");
    let said = alice.command("COPY 1:* Full");
    assert!(said.contains(" NO "), "{said}");
    assert!(status(&mut alice, "Full").starts_with("(MESSAGES 1 "));
    assert!(status(&mut alice, "INBOX").starts_with("(MESSAGES 2049 "));
    // Messages moved before are moved, and no message is in both mailboxes.
    let said = alice.command("MOVE 1:* Full");
    assert!(said.contains(" NO "), "{said}");
    assert!(status(&mut alice, "Full").starts_with("(MESSAGES 2001 "));
    assert!(status(&mut alice, "INBOX").starts_with("(MESSAGES 49 "));
    alice.ok("MOVE 1:* Empty");
    assert!(status(&mut alice, "Empty").starts_with("(MESSAGES 49 "));
}
