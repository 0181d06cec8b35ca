use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use vere_handoff::delivery::{Request, request_length};
use vere_queue::Envelope;

use super::super::lane::Lane;
use super::*;

/// A line to a scripted courier, and the courier's end of the connection.
fn played() -> (Rc<Line>, UnixStream, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    (Rc::new(Line::default()), near, far)
}

async fn say(to: &mut UnixStream, answer: &Answer) {
    let mut octets = Vec::new();
    answer.encode(&mut octets);
    to.write_all(&octets).await.unwrap();
}

async fn hear(from: &mut UnixStream) -> Vec<u8> {
    frames::read(from, request_length).await.unwrap().unwrap()
}

fn found(number: u64) -> Answer {
    Answer::Found {
        number,
        site: "a:25".to_owned(),
    }
}

async fn ask(lane: &Lane) -> Option<Answer> {
    let find = |number| Request::Find {
        number,
        destination: "example.org",
    };
    lane.ask(find).await
}

/// Sessions of couriers are added up for reports about TLS.
#[tokio::test]
async fn sessions_of_a_courier_are_heard() {
    use vere_handoff::delivery::{TlsFailed, TlsSessions};
    let metrics = OutboundMetrics::default();
    let (line, near, mut far) = played();
    let all = TlsSessions {
        sessions: 3,
        policy: 1,
        domain: "example.org".to_owned(),
        lines: vec!["version: STSv1".to_owned()],
        mx: vec!["mx.example.org".to_owned()],
        failed: Some(TlsFailed {
            kind: 2,
            sender: None,
            receiver: Some("192.0.2.1".parse().unwrap()),
            host: "mx.example.org".to_owned(),
            reason: String::new(),
        }),
    };
    let courier = async {
        for _ in 0..2 {
            say(&mut far, &Answer::Sessions(Box::new(all.clone()))).await;
        }
        drop(far);
    };
    let (_, ended) = tokio::join!(courier, line.serve(near, &metrics));
    assert!(ended.is_ok());
    let (seen, beyond) = metrics.sessions.take();
    let [(seen, times)] = &seen[..] else {
        panic!("{seen:?}")
    };
    assert_eq!((*times, beyond), (6, 0));
    assert_eq!(
        (seen.domain.as_str(), seen.kind.word()),
        ("example.org", "sts")
    );
    let failure = seen.failure.as_ref().unwrap();
    assert_eq!(failure.kind.word(), "certificate-expired");
    assert_eq!(failure.reason, None);
}

#[tokio::test]
async fn a_lost_courier_answers_nobody() {
    let metrics = OutboundMetrics::default();
    let (line, near, mut far) = played();
    let (first, second) = (Lane::new(Rc::clone(&line)), Lane::new(Rc::clone(&line)));
    let courier = async {
        hear(&mut far).await;
        hear(&mut far).await;
        say(&mut far, &found(1)).await;
        drop(far);
    };
    let gateway = async {
        let ended = line.serve(near, &metrics).await;
        assert!(ended.is_ok());
        assert_eq!(line.lose(), 1);
    };
    let (_, _, answered, unanswered) = tokio::join!(courier, gateway, ask(&first), ask(&second));
    assert_eq!((answered, unanswered), (Some(found(1)), None));
    assert!(first.is_lost() && first.is_closed() && second.is_lost());
    assert_eq!(ask(&first).await, None);
    assert!(Lane::new(line).is_lost());
}

#[tokio::test(start_paused = true)]
async fn a_silent_courier_is_given_up_and_a_beating_one_stays() {
    let metrics = OutboundMetrics::default();
    let (line, near, mut far) = played();
    let begun = tokio::time::Instant::now();
    let courier = async {
        for _ in 0..10 {
            say(&mut far, &Answer::Beat).await;
            tokio::time::sleep(SILENCE_MAX / 2).await;
        }
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        () = courier => None,
        ended = line.serve(near, &metrics) => Some(ended),
    };
    let error = ended.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(begun.elapsed() >= SILENCE_MAX * 5);
}

#[tokio::test]
async fn an_answer_without_a_request_ends_the_connection() {
    let metrics = OutboundMetrics::default();
    let (line, near, mut far) = played();
    let lane = Lane::new(Rc::clone(&line));
    // A late answer to a forgotten number is no fault.
    say(&mut far, &found(77)).await;
    say(&mut far, &found(1)).await;
    let ended = line.serve(near, &metrics).await;
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::InvalidData);
    drop(lane);
}

#[tokio::test]
async fn a_close_concerns_the_connection_before_and_a_failure_the_number() {
    let metrics = OutboundMetrics::default();
    let (line, near, mut far) = played();
    let lane = Lane::new(Rc::clone(&line));
    let opened = || Answer::Opened {
        number: 1,
        remote: "mx".to_owned(),
        security: "clear".to_owned(),
    };
    let courier = async {
        hear(&mut far).await;
        say(&mut far, &Answer::Closed { number: 1 }).await;
        say(&mut far, &opened()).await;
        hear(&mut far).await;
        say(&mut far, &Answer::Closed { number: 1 }).await;
        say(&mut far, &Answer::Failed { number: 1 }).await;
        hear(&mut far).await
    };
    let gateway = async {
        let open = |number| Request::Open { number };
        assert_eq!(lane.ask(open).await, Some(opened()));
        assert!(!lane.is_closed());
        assert_eq!(lane.ask(open).await, None);
        assert!(lane.is_lost() && lane.is_closed());
        drop(lane);
        // The other numbers go on.
        let other = Lane::new(Rc::clone(&line));
        other.tell(|number| Request::Quit { number });
        std::future::pending::<()>().await;
    };
    tokio::select! {
        frame = courier => assert_eq!(Request::decode(&frame), Ok(Request::Quit { number: 2 })),
        () = gateway => {}
        ended = line.serve(near, &metrics) => panic!("{ended:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn messages_that_wait_for_room_end_with_the_courier() {
    let line = Rc::new(Line::default());
    let lane = Lane::new(Rc::clone(&line));
    let site = vere_queue::SiteName::made_elsewhere("a:25".to_owned());
    let begun = tokio::time::Instant::now();
    let _held = lane.room(usize::MAX, &site).await.unwrap();
    let lose = async { line.lose() };
    let (waited, _) = tokio::join!(lane.room(1 << 20, &site), lose);
    assert!(waited.is_none());
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_message_arrives_with_envelope_and_text() {
    let metrics = OutboundMetrics::default();
    let (line, near, mut far) = played();
    let lane = Lane::new(Rc::clone(&line));
    let envelope = crate::couriers::tests::envelope();
    let encoded = envelope.encode();
    let body = Bytes::from(vec![b'x'; 200_000]);
    let courier = async {
        let frame = hear(&mut far).await;
        let Ok(Request::Send(message)) = Request::decode(&frame) else {
            panic!("no message");
        };
        assert_eq!(Envelope::decode(message.envelope).unwrap(), envelope);
        assert_eq!(message.body, &body[..]);
        let (number, usable) = (message.number, false);
        say(&mut far, &Answer::Unsent { number, usable }).await;
        let _ = far.read(&mut [0; 1]).await;
    };
    tokio::select! {
        answer = lane.send(&encoded, body.clone(), Duration::from_secs(10)) => {
            assert_eq!(answer, Some(Answer::Unsent { number: 1, usable: false }));
        }
        () = courier => panic!("no answer"),
        ended = line.serve(near, &metrics) => panic!("{ended:?}"),
    }
}
