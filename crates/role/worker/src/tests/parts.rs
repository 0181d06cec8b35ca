//! The text of a long message, which goes ahead.

use std::net::IpAddr;
use std::rc::Rc;

use vere_handoff::message::{Answer, Frame, PART_OCTETS_MAX, Part};
use vere_smtp::refusal::Refusal;
use vere_smtp::server::Server;

use super::{Intake, OPENING, message, run, say, session};
use crate::gateway::{Beside, Gateway};
use crate::parts::Aside;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));
/// Memory of a worker, of which an eighth is the text from which parts go ahead.
const MEMORY: usize = 8_000;

fn aside(gateway: &Rc<Gateway>) -> Aside {
    Aside::new(Rc::clone(gateway), CLIENT, MEMORY, false)
}

/// A client amid its text.
fn sending() -> Server {
    session(&[OPENING, b"DATA\r\n"].concat())
}

/// Lines of so many octets.
fn lines(octets: usize) -> Vec<u8> {
    let line = b"0123456789abcdef0123456789abcdef0123456789abcdef\r\n";
    let mut lines = line.repeat(octets / line.len());
    let rest = octets - lines.len();
    lines.extend_from_slice(&line[line.len() - rest..]);
    lines
}

/// Sends what has come, as long as `answers` takes; the part waits for its answer.
async fn take<T>(
    (aside, server): (&mut Aside, &mut Server),
    answers: impl AsyncFnOnce() -> T,
) -> T {
    let ((), told) = tokio::join!(aside.take(server), answers());
    told
}

async fn next_part(intake: &mut Intake) -> (Part, Vec<u8>) {
    match intake.next().await {
        (Frame::Part(part), octets) => (part, octets),
        (other, _) => panic!("{other:?}"),
    }
}

async fn keep(intake: &mut Intake) -> (Part, Vec<u8>) {
    let (part, octets) = next_part(intake).await;
    let number = part.number;
    intake.say(&Answer::Kept { number }).await;
    (part, octets)
}

/// Has the gateway say that the parts are lost, and waits until the worker has heard.
async fn lose(intake: &mut Intake, (number, ends): (u64, bool), aside: &Aside) {
    intake.say(&Answer::Gone { number, ends }).await;
    aside.called().await;
}

#[test]
fn a_long_text_goes_ahead_and_the_message_follows() {
    run(async {
        let (gateway, mut intake) = Intake::pair();
        let (mut aside, mut server) = (aside(&gateway), sending());
        say(&mut server, &lines(999));
        aside.take(&mut server).await;
        assert_eq!((server.aside(), server.message_memory()), (0, 999));
        say(&mut server, b"\r\n");
        let both = (&mut aside, &mut server);
        let (first, octets) = take(both, async || keep(&mut intake).await).await;
        assert_eq!(
            (first.place, first.client, octets.len()),
            (0, CLIENT, 1_001)
        );
        assert_eq!(octets[..999], lines(999));
        // A few further octets wait in memory.
        say(&mut server, &lines(500));
        aside.take(&mut server).await;
        assert_eq!((server.aside(), server.message_memory()), (1_001, 500));
        say(&mut server, &lines(600));
        let both = (&mut aside, &mut server);
        let (second, octets) = take(both, async || keep(&mut intake).await).await;
        assert_eq!((second.number, second.place), (first.number, 1_001));
        assert_eq!(octets, [lines(500), lines(600)].concat());
        let (_, whole) = say(&mut server, b"end\r\n.\r\n");
        let beside = Beside {
            gathered: None,
            may_relay: false,
            spf: None,
            number: aside.finish(),
        };
        assert_eq!(beside.number, Some(first.number));
        let stored = async {
            let (Frame::Message(prefix), octets) = intake.next().await else {
                panic!("no message");
            };
            assert_eq!((prefix.number, prefix.ahead), (first.number, 2_101));
            assert_eq!(&octets[prefix.head..], b"end\r\n");
            let (number, id) = (prefix.number, "AB".to_owned());
            intake.say(&Answer::Stored { number, id }).await;
        };
        let (id, ()) = tokio::join!(gateway.store(whole.unwrap(), beside), stored);
        assert_eq!(id, Ok("AB".to_owned()));
        // The gateway is told to forget nothing.
        drop((aside, gateway));
        assert_eq!(intake.rest().await, b"");
    });
}

/// The header of a judged message stays in memory, and counts there until the message ends.
#[test]
fn what_is_gathered_of_a_long_text_counts_as_memory_of_the_message() {
    run(async {
        let (gateway, mut intake) = Intake::pair();
        let mut aside = Aside::new(Rc::clone(&gateway), CLIENT, MEMORY, true);
        let mut server = sending();
        say(&mut server, &lines(1_200));
        let both = (&mut aside, &mut server);
        take(both, async || keep(&mut intake).await).await;
        let held = server.message_memory();
        assert!((2_400..10_000).contains(&held), "{held}");
        say(&mut server, &lines(500));
        aside.take(&mut server).await;
        assert_eq!(server.message_memory(), held + 500);
        server.refuse_for_room();
        assert_eq!(server.message_memory(), 0);
    });
}

#[test]
fn the_client_waits_for_the_answer_to_each_part() {
    run(async {
        let (gateway, mut intake) = Intake::pair();
        let mut aside = Aside::new(Rc::clone(&gateway), CLIENT, usize::MAX, false);
        let mut server = sending();
        let text = lines(PART_OCTETS_MAX + 50);
        say(&mut server, &text);
        {
            let sent = aside.take(&mut server);
            tokio::pin!(sent);
            let (first, mut octets) = tokio::select! {
                () = &mut sent => panic!("without an answer"),
                part = next_part(&mut intake) => part,
            };
            assert_eq!((first.place, first.octets), (0, PART_OCTETS_MAX));
            let number = first.number;
            let answers = async {
                intake.say(&Answer::Kept { number }).await;
                next_part(&mut intake).await
            };
            let (second, rest) = tokio::select! {
                () = &mut sent => panic!("without an answer"),
                part = answers => part,
            };
            assert_eq!(
                (second.number, second.place),
                (number, PART_OCTETS_MAX as u64)
            );
            octets.extend_from_slice(&rest);
            assert!(octets == text);
            intake.say(&Answer::Kept { number }).await;
            sent.await;
        }
        assert_eq!(server.aside(), text.len() as u64);
    });
}

#[test]
fn parts_of_a_message_that_does_not_come_are_forgotten() {
    run(async {
        let (gateway, mut intake) = Intake::pair();
        let (mut aside, mut server) = (aside(&gateway), session(OPENING));
        say(&mut server, b"BDAT 1000\r\n");
        say(&mut server, &lines(1_000));
        let both = (&mut aside, &mut server);
        let (part, _) = take(both, async || keep(&mut intake).await).await;
        say(&mut server, b"RSET\r\n");
        aside.take(&mut server).await;
        let number = part.number;
        assert_eq!(intake.next().await.0, Frame::Forget { number });
        assert_eq!(aside.finish(), None);
        // A session that ends lets go as well; the next message has another number.
        say(&mut server, &[&OPENING[21..], b"DATA\r\n"].concat());
        say(&mut server, &lines(1_000));
        let both = (&mut aside, &mut server);
        let (next, _) = take(both, async || keep(&mut intake).await).await;
        assert_ne!(next.number, number);
        aside.close();
        let number = next.number;
        assert_eq!(intake.next().await.0, Frame::Forget { number });
    });
}

#[test]
fn a_message_whose_parts_are_lost_is_refused() {
    run(async {
        let (gateway, mut intake) = Intake::pair();
        let (mut aside, mut server) = (aside(&gateway), sending());
        say(&mut server, &lines(1_000));
        let both = (&mut aside, &mut server);
        let (part, _) = take(both, async || keep(&mut intake).await).await;
        lose(&mut intake, (part.number, false), &aside).await;
        aside.take(&mut server).await;
        assert_eq!(aside.finish(), None);
        let (replies, message) = say(&mut server, b"end\r\n.\r\n");
        assert!(replies.starts_with("452 4.3.1"), "{replies}");
        assert_eq!(message, None);
    });
}

#[test]
fn a_client_that_is_too_slow_is_sent_away() {
    run(async {
        let (gateway, mut intake) = Intake::pair();
        let (mut aside, mut server) = (aside(&gateway), sending());
        say(&mut server, &lines(1_000));
        // The answer to the part is that its message is lost.
        let both = (&mut aside, &mut server);
        take(both, async || {
            let (part, _) = next_part(&mut intake).await;
            let (number, ends) = (part.number, true);
            intake.say(&Answer::Gone { number, ends }).await;
        })
        .await;
        assert!(server.is_closing());
        let (replies, _) = say(&mut server, b"");
        assert!(replies.starts_with("421 4."), "{replies}");
    });
}

#[test]
fn parts_are_lost_with_the_connection() {
    run(async {
        let (gateway, mut intake) = Intake::pair();
        let (mut aside, mut server) = (aside(&gateway), sending());
        say(&mut server, &lines(1_000));
        let both = (&mut aside, &mut server);
        take(both, async || keep(&mut intake).await).await;
        drop(intake);
        aside.called().await;
        aside.take(&mut server).await;
        let (replies, _) = say(&mut server, b"end\r\n.\r\n");
        assert!(replies.starts_with("452 4.3.1"), "{replies}");
        // A message that begins later is refused at once.
        let (mut later, mut server) = (super::parts::aside(&gateway), sending());
        say(&mut server, &lines(1_000));
        later.take(&mut server).await;
        assert_eq!(server.aside(), 0);
        let beside = Beside {
            gathered: None,
            may_relay: false,
            spf: None,
            number: None,
        };
        let refused = gateway.store(message("x"), beside).await;
        assert_eq!(refused, Err(Refusal::LocalError));
    });
}
