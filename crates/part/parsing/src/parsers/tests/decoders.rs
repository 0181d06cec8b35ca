//! Texts asked for of processes of every manner.

use std::sync::atomic::{AtomicUsize, Ordering};

use vere_mime::Zone;
use vere_mime::wire::Question;

use super::*;
use crate::decoders::{Decoders, Sought};

const WORD: &[u8] = b"MESSAGE";

fn sought(body: u64, octets: &[u8]) -> Sought {
    Sought {
        body,
        zones: 0x7F,
        own: Vec::new(),
        record: Parsed::of(octets).encode(),
        octets: octets.to_vec(),
    }
}

/// One that breaks the processes between others.
fn three() -> [Sought; 3] {
    [
        sought(1, OTHER),
        sought(2, MESSAGE),
        sought(3, b"\r\nno\r\n"),
    ]
}

/// Decoders, and how many processes were started.
fn counted(manner: &str, patience: Duration) -> (Decoders, Arc<AtomicUsize>) {
    let (launch, count) = (launch(manner), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&count);
    let launch = Launch::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        launch.command()
    });
    (Decoders::launched_by(launch, patience), count)
}

fn hold(decoders: &Decoders) -> Vec<Option<bool>> {
    let question = Question::Zones(WORD);
    decoders.hold(question, &three()).unwrap()
}

/// How many texts each message is said to have.
fn texts(decoders: &Decoders) -> Vec<Option<usize>> {
    let given = decoders.texts(&three()).unwrap();
    let count = |texts: &Option<Texts>| Some(texts.as_ref()?.iter().count());
    given.iter().map(count).collect()
}

#[test]
fn many_threads_have_their_messages_looked_into() {
    let decoders = decoders();
    assert_eq!(decoders.hold(Question::Texts, &[]).unwrap(), []);
    assert_eq!(texts(&decoders), [Some(3), Some(7), Some(1)]);
    std::thread::scope(|scope| {
        for thread in 0..6_u64 {
            let decoders = &decoders;
            scope.spawn(move || {
                for round in 0..20_u64 {
                    let text = |number: u64| format!("\r\n{}", "x".repeat(number as usize * 97));
                    let all: Vec<_> = (0..40)
                        .map(|number| sought(number, text(number * thread).as_bytes()))
                        .collect();
                    let what = b"X".repeat((round * 97 + 1) as usize);
                    let held = decoders.hold(Question::Zones(&what), &all).unwrap();
                    let has = |number: u64| Some(number * thread > round);
                    assert_eq!(held, (0..40).map(has).collect::<Vec<_>>());
                }
            });
        }
    });
    assert!(decoders.parsers.0.state().under_way.is_empty());
    let large = sought(9, &[b"\r\n".as_slice(), &vec![b'm'; 20 << 20]].concat());
    let field = Question::Field {
        name: "Subject",
        what: b"",
    };
    assert_eq!(decoders.hold(field, &[large]).unwrap(), [Some(false)]);
    decoders.rest();
    assert!(decoders.parsers.0.state().idle.is_empty());
}

#[test]
fn a_message_that_ends_its_process_is_known_and_others_are_told_of() {
    for manner in ENDING {
        let (decoders, count) = counted(manner, FOR_EVER);
        assert_eq!(hold(&decoders), [Some(true), None, Some(false)], "{manner}");
        // All together, and twice the one alone; the last is there for the others.
        let launched = count.load(Ordering::Relaxed);
        assert!(launched <= 4, "{manner}: {launched}");
        // It is not tried again, whatever is asked, and by whom.
        let beside = decoders.beside(1);
        assert_eq!(texts(&decoders), [Some(3), None, Some(1)], "{manner}");
        assert_eq!(texts(&beside), [Some(3), None, Some(1)], "{manner}");
        assert!(count.load(Ordering::Relaxed) <= launched + 2, "{manner}");
        let (decoders, _) = counted(manner, FOR_EVER);
        assert_eq!(texts(&decoders), [Some(3), None, Some(1)], "{manner}");
    }
}

/// Who asks is put off some times, for the machine may be busy; then others have their answers.
#[test]
fn a_process_that_says_nothing_is_not_waited_for() {
    let is_not_waited_for = |manner: &'static str| {
        let (decoders, _) = counted(manner, Duration::from_millis(500));
        let said = (0..20).find_map(|asked| Some((asked, decoders.texts(&three()).ok()?)));
        let (put_off, said) = said.unwrap();
        // On a busy machine others may be too late as well.
        assert!(put_off >= 2, "{manner}: {put_off}");
        assert!(said.len() == 3 && said[1].is_none(), "{manner}");
        // Who asks once is not put off.
        let (decoders, _) = counted(manner, Duration::from_millis(500));
        let said = decoders.never_put_off().texts(&three()).unwrap();
        assert!(said[1].is_none(), "{manner}");
    };
    // Nothing but waiting.
    std::thread::scope(|scope| {
        for manner in SILENT {
            scope.spawn(move || is_not_waited_for(manner));
        }
    });
}

/// A busy machine is no fault of the message: when there is time again, it is decoded.
#[test]
fn a_message_that_was_late_is_decoded_later() {
    // All together, and twice the one alone; the last is there for the others.
    let launch = launch_until("hangs for now", 3);
    let decoders = Decoders::launched_by(launch, Duration::from_secs(2));
    let error = decoders.texts(&three()).unwrap_err();
    assert!(error.0.to_string().contains("in time"), "{error:?}");
    assert!(!decoders.is_unbroken());
    assert_eq!(texts(&decoders), [Some(3), Some(7), Some(1)]);
    assert!(decoders.is_unbroken(), "what was late before is forgotten");

    // Also when it was given up for some time.
    let launch = launch_until("hangs for now", 3);
    let decoders = Decoders::launched_by(launch, Duration::from_secs(2)).never_put_off();
    let said = decoders.texts(&three()).unwrap();
    assert!(said[1].is_none());
    assert_eq!(texts(&decoders)[1], None, "it is not tried again at once");
    let again = decoders.trying_again_after(Duration::ZERO);
    assert_eq!(texts(&again), [Some(3), Some(7), Some(1)]);
}

/// The index asks about a recipient's own fields and the message with them as two.
#[test]
fn a_message_that_is_asked_about_twice_at_once_is_late_once() {
    let (decoders, _) = counted("hangs", Duration::from_millis(200));
    let twice = [sought(2, MESSAGE), sought(2, MESSAGE)];
    let put_off = (0..20).find(|_| decoders.texts(&twice).is_ok());
    assert_eq!(put_off, Some(2));
}

#[test]
fn processes_that_nobody_asks_are_ended() {
    let decoders = decoders();
    assert_eq!(hold(&decoders), [Some(true), Some(true), Some(false)]);
    let idle = || decoders.parsers.0.state().idle.len();
    decoders.rest_unused(FOR_EVER);
    assert_eq!(idle(), 1);
    decoders.rest_unused(Duration::ZERO);
    assert_eq!(idle(), 0);
    assert_eq!(hold(&decoders), [Some(true), Some(true), Some(false)]);
}

/// Whoever ended or stopped them may do so again or not: it is no fault of the message.
#[test]
fn a_message_whose_processes_are_ended_by_others_is_not_given_up() {
    for manner in ["is killed", "is stopped"] {
        let (decoders, _) = counted(manner, Duration::from_secs(1));
        let error = decoders.texts(&three()).unwrap_err();
        assert!(
            error.0.to_string().contains("killed"),
            "{manner}: {error:?}"
        );
        assert!(decoders.is_unbroken(), "{manner}");
    }
}

#[test]
fn a_process_that_dies_once_makes_no_difference_to_texts() {
    let decoders = Decoders::launched_by(launch_dying_once(), FOR_EVER);
    assert_eq!(hold(&decoders), [Some(true), Some(true), Some(false)]);
    assert!(decoders.is_unbroken());
}

#[test]
fn without_a_process_nothing_is_said_of_texts() {
    for program in ["/nonexistent/program", "true"] {
        let launch = Launch::new(move || Command::new(program));
        let decoders = Decoders::launched_by(launch, FOR_EVER);
        assert!(decoders.texts(&three()).is_err(), "{program}");
        assert!(decoders.is_unbroken());
    }
}

/// Every zone is told by number.
#[test]
fn zones_have_bits() {
    let decoders = decoders();
    for zone in Zone::ALL {
        let mut one = sought(1, b"To: message\r\n\r\nmessage\r\n");
        one.zones = 1 << zone as u8;
        let has = matches!(zone, Zone::Body | Zone::Header | Zone::To);
        let held = decoders.hold(Question::Zones(WORD), &[one]).unwrap();
        assert_eq!(held, [Some(has)], "{zone:?}");
    }
}
