//! Messages for the gateway and the answers.

use vere_handoff::message::{Answer, Frame, Prefix};
use vere_handoff::question::{Spf, SpfResults};
use vere_smtp::refusal::Refusal;

use super::{Intake, message, run};
use crate::gateway::Beside;

const RESULTS: SpfResults = SpfResults {
    sender: Spf::SoftFail,
    helo: Some(Spf::Neutral),
};
const BESIDE: Beside = Beside {
    gathered: None,
    may_relay: true,
    spf: Some(RESULTS),
    number: None,
};

/// The prefix, the head and the text of a message.
async fn next_message(intake: &mut Intake) -> (Prefix, Vec<u8>, Vec<u8>) {
    let (Frame::Message(prefix), mut head) = intake.next().await else {
        panic!("no message");
    };
    let body = head.split_off(prefix.head);
    (prefix, head, body)
}

#[test]
fn answers_reach_the_messages_that_they_are_about() {
    run(async {
        let (gateway, mut intake) = Intake::pair();
        let stored = async {
            tokio::join!(
                gateway.store(message("one"), BESIDE),
                gateway.store(message("two"), BESIDE),
                gateway.store(message("three"), BESIDE),
                gateway.store(message("four"), BESIDE),
            )
        };
        let answers = async {
            let mut numbers = Vec::new();
            for text in ["one", "two", "three", "four"] {
                let (prefix, head, body) = next_message(&mut intake).await;
                let mut expected = Vec::new();
                message(text).encode_head(&mut expected);
                assert_eq!(head, expected);
                assert_eq!(body, format!("{text}\r\n").as_bytes());
                assert_eq!(
                    (prefix.may_relay, prefix.spf, prefix.ahead),
                    (true, Some(RESULTS), 0)
                );
                numbers.push(prefix.number);
            }
            let [one, two, three, four] = numbers[..] else {
                panic!("{numbers:?}");
            };
            let text = "no".to_owned();
            let refusal = Refusal::StorageFull.number().unwrap();
            for answer in [
                Answer::Site {
                    number: four,
                    permanent: true,
                    text: text.clone(),
                },
                Answer::Refused {
                    number: three,
                    refusal,
                },
                // An unknown refusal stands for a local error.
                Answer::Refused {
                    number: two,
                    refusal: u8::MAX,
                },
                Answer::Stored {
                    number: one,
                    id: "AB".to_owned(),
                },
            ] {
                intake.say(&answer).await;
            }
            Refusal::Site {
                permanent: true,
                text,
            }
        };
        let ((one, two, three, four), site) = tokio::join!(stored, answers);
        assert_eq!(one, Ok("AB".to_owned()));
        assert_eq!(two, Err(Refusal::LocalError));
        assert_eq!(three, Err(Refusal::StorageFull));
        assert_eq!(four, Err(site));
    });
}

/// Short messages that wait are written together, and long ones without a copy.
#[test]
fn texts_of_all_lengths_arrive_whole_and_in_order() {
    run(async {
        let (gateway, mut intake) = Intake::pair();
        let lengths = [1, 6_000, 500, 90, 7_000, 30_000, 2];
        let texts = lengths.map(|lines| "a line\r\n".repeat(lines) + "end");
        let senders = texts.clone().map(|text| {
            let gateway = std::rc::Rc::clone(&gateway);
            tokio::task::spawn_local(async move { gateway.store(message(&text), BESIDE).await })
        });
        for text in texts {
            let (prefix, _, body) = next_message(&mut intake).await;
            assert!(body == format!("{text}\r\n").as_bytes(), "{}", text.len());
            let (number, id) = (prefix.number, String::new());
            intake.say(&Answer::Stored { number, id }).await;
        }
        for sender in senders {
            assert!(sender.await.unwrap().is_ok());
        }
    });
}

#[test]
fn messages_are_taken_when_the_gateway_says_so() {
    run(async {
        let (gateway, mut intake) = Intake::pair();
        assert_eq!(gateway.is_open(), Err(Refusal::ServiceUnavailable));
        let full = Refusal::StorageFull;
        for (said, expected) in [
            (None, Ok(())),
            (full.number(), Err(full)),
            (Some(u8::MAX), Err(Refusal::ServiceUnavailable)),
            (None, Ok(())),
        ] {
            intake.say(&Answer::State(said)).await;
            // The answer to a message comes behind the state.
            let answered = async {
                let (prefix, ..) = next_message(&mut intake).await;
                let (number, id) = (prefix.number, String::new());
                intake.say(&Answer::Stored { number, id }).await;
            };
            let (stored, ()) = tokio::join!(gateway.store(message("x"), BESIDE), answered);
            assert!(stored.is_ok());
            assert_eq!(gateway.is_open(), expected);
        }
        let gone = gateway.gone();
        drop(intake);
        gone.await;
        assert_eq!(gateway.is_open(), Err(Refusal::ServiceUnavailable));
    });
}

#[test]
fn a_message_without_an_answer_is_a_local_error() {
    run(async {
        let (gateway, mut intake) = Intake::pair();
        let end = async {
            next_message(&mut intake).await;
            drop(intake);
        };
        let (stored, ()) = tokio::join!(gateway.store(message("x"), BESIDE), end);
        assert_eq!(stored, Err(Refusal::LocalError));
        let later = gateway.store(message("y"), BESIDE).await;
        assert_eq!(later, Err(Refusal::LocalError));
    });
}
