//! The MTA's side.

use bytes::Bytes;

use super::script::{BOUNDS, attached, end, gateway, said, say, submitter};
use crate::{
    Ask, Deliver, DeliverError, Fate, Message, PeerRow, PlaceResult, Priority, Probe, Recipient,
    Reports, Server, ServerEvent,
};

fn delivery(id: &str, places: &[u32]) -> Deliver {
    Deliver {
        id: id.to_owned(),
        trace: "01HXYZ0000000".to_owned(),
        identifier: "[/ADMD=A/C=GB/;1]".to_owned(),
        originator: Some("S=Jones;A=A;C=GB".to_owned()),
        recipients: places
            .iter()
            .map(|place| Recipient {
                place: *place,
                address: format!("S=Smith{place};A=A;C=GB"),
            })
            .collect(),
        content_type: Some("22".to_owned()),
        ..Deliver::default()
    }
}

#[test]
fn a_gateway_gets_a_message_and_says_what_became_of_it() {
    let mut server = gateway();
    assert_eq!(server.room(), 1);
    let apdu = vec![
        Bytes::from_static(b"ab"),
        Bytes::new(),
        Bytes::from_static(b"c"),
    ];
    server.deliver(delivery("1", &[0, 3]), apdu).unwrap();
    assert_eq!(
        said(&mut server),
        "{\"deliver\":{\"id\":\"1\",\"trace\":\"01HXYZ0000000\",\"kind\":\"message\",\
         \"identifier\":\"[/ADMD=A/C=GB/;1]\",\"originator\":\"S=Jones;A=A;C=GB\",\"recipients\":[\
         {\"place\":0,\"address\":\"S=Smith0;A=A;C=GB\"},{\"place\":3,\"address\":\"S=Smith3;A=A;C=GB\"}],\
         \"content_type\":\"22\",\"octets\":3}}\nabc"
    );
    assert_eq!(
        (server.room(), server.unanswered().collect()),
        (0, vec!["1"])
    );
    let event = say(
        &mut server,
        r#"{"done":{"id":"1","results":[{"place":3,"result":"failed","status":"5.1.1","said":"no such user"},{"place":0,"result":"delivered"}]}}"#,
    );
    let expected = |place, result, status: &str, said: &str| PlaceResult {
        place,
        result,
        status: status.to_owned(),
        said: said.to_owned(),
    };
    let results = vec![
        expected(0, Fate::Delivered, "2.0.0", ""),
        expected(3, Fate::Failed, "5.1.1", "no such user"),
    ];
    let id = "1".to_owned();
    let expected = ServerEvent::Done {
        id,
        results,
        own_reports: false,
    };
    assert_eq!(event, Some(expected));
    assert_eq!((server.room(), server.unanswered().count()), (1, 0));
}

#[test]
fn one_result_stands_for_all_others() {
    let mut server = gateway();
    server
        .deliver(delivery("1", &[0, 1, 2]), Vec::new())
        .unwrap();
    let line = r#"{"done":{"id":"1","result":"deferred","said":"busy","own_reports":true,"results":[{"place":1,"result":"delivered"}]}}"#;
    let Some(ServerEvent::Done {
        results,
        own_reports: true,
        ..
    }) = say(&mut server, line)
    else {
        panic!("results");
    };
    let short: Vec<_> = results
        .iter()
        .map(|one| (one.place, one.result, &*one.status, &*one.said))
        .collect();
    assert_eq!(
        short,
        [
            (0, Fate::Deferred, "4.0.0", "busy"),
            (1, Fate::Delivered, "2.0.0", ""),
            (2, Fate::Deferred, "4.0.0", "busy")
        ]
    );
}

#[test]
fn results_have_to_fit_the_delivery() {
    let table = [
        (
            r#"{"done":{"id":"2","result":"delivered"}}"#,
            r#"done: expected the id of a delivery without an answer; found "2""#,
        ),
        (
            r#"{"done":{"id":"1"}}"#,
            "done: expected a result for place 0; found none",
        ),
        (
            r#"{"done":{"id":"1","results":[{"place":0,"result":"delivered"},{"place":0,"result":"failed"}]}}"#,
            "done: expected one result for place 0; found two",
        ),
        (
            r#"{"done":{"id":"1","result":"delivered","results":[{"place":9,"result":"delivered"}]}}"#,
            "done: expected a place of the delivery; found 9",
        ),
        (
            r#"{"done":{"id":"1","result":"delivered","status":"5.0.0"}}"#,
            r#"done: expected a status such as 2.0.0 for place 0; found "5.0.0""#,
        ),
        (
            r#"{"done":{"id":"1","result":"failed","status":"5.1.1234"}}"#,
            r#"done: expected a status such as 5.0.0 for place 0; found "5.1.1234""#,
        ),
        (
            r#"{"done":{"id":"1","result":"failed","status":"51.1"}}"#,
            r#"done: expected a status such as 5.0.0 for place 0; found "51.1""#,
        ),
        (
            r#"{"done":{"id":"1","result":"lost"}}"#,
            "done: expected one of `delivered`, `deferred`, `failed`; found `lost`",
        ),
        (
            r#"{"done":{"result":"failed"}}"#,
            "done: expected the field `id`; found none",
        ),
    ];
    for (line, error) in table {
        let mut server = gateway();
        server.deliver(delivery("1", &[0]), Vec::new()).unwrap();
        said(&mut server);
        assert_eq!(end(&mut server, line), error);
        // The host defers what waits.
        assert_eq!(server.unanswered().collect::<Vec<_>>(), ["1"]);
    }
}

#[test]
fn a_delivery_has_one_answer() {
    let mut server = gateway();
    server.deliver(delivery("1", &[0]), Vec::new()).unwrap();
    said(&mut server);
    let line = r#"{"done":{"id":"1","result":"delivered"}}"#;
    assert!(matches!(
        say(&mut server, line),
        Some(ServerEvent::Done { .. })
    ));
    let error = end(&mut server, line);
    assert!(error.starts_with("done: expected the id"), "{error}");
}

#[test]
fn the_window_bounds_deliveries() {
    let mut server = attached(r#"{"attach":{"version":1,"name":"aftn","window":2}}"#);
    server.deliver(delivery("1", &[0]), Vec::new()).unwrap();
    assert_eq!(
        server.deliver(delivery("1", &[0]), Vec::new()),
        Err(DeliverError::Id)
    );
    server.deliver(delivery("2", &[0]), Vec::new()).unwrap();
    let third = || delivery("3", &[0]);
    assert_eq!(
        server.deliver(third(), Vec::new()),
        Err(DeliverError::WindowFull)
    );
    say(&mut server, r#"{"done":{"id":"2","result":"delivered"}}"#).unwrap();
    server.deliver(third(), Vec::new()).unwrap();
    assert_eq!(server.unanswered().collect::<Vec<_>>(), ["1", "3"]);
}

#[test]
fn only_gateways_get_deliveries() {
    let refused = Err(DeliverError::NotAttached);
    let mut fresh = Server::new(BOUNDS);
    assert_eq!(fresh.deliver(delivery("1", &[0]), Vec::new()), refused);
    let mut server = submitter();
    assert_eq!(
        (
            server.room(),
            server.deliver(delivery("1", &[0]), Vec::new())
        ),
        (0, refused)
    );
    let error = end(&mut server, r#"{"done":{"id":"1","result":"delivered"}}"#);
    assert_eq!(error, "expected submit, probe or ask; found done");
}

#[test]
fn submissions_are_answered_once_in_any_order() {
    let mut server = submitter();
    let fields = r#"{"submit":{"tag":"a","message":{"originator":"S=J;C=GB","recipients":["S=S;C=GB"],"subject":"x","priority":"non-urgent","deferred_until":"2026-11-29T12:00:00Z","reports":"all","new":[1]},"octets":2,"later":{}}}"#;
    server.receive(fields.as_bytes());
    server.receive(b"\nh");
    assert_eq!(server.event(), None);
    server.receive(b"i{\"submit\":{\"tag\":\"b\",\"octets\":1}}\nA");
    let message = Message {
        originator: "S=J;C=GB".to_owned(),
        recipients: vec!["S=S;C=GB".to_owned()],
        subject: Some("x".to_owned()),
        priority: Priority::NonUrgent,
        deferred_until: Some("2026-11-29T12:00:00Z".to_owned()),
        reports: Reports::All,
        ..Message::default()
    };
    assert_eq!(
        server.event(),
        Some(ServerEvent::Submit {
            tag: "a".to_owned(),
            message: Some(Box::new(message)),
            octets: Bytes::from_static(b"hi"),
        })
    );
    assert_eq!(
        server.event(),
        Some(ServerEvent::Submit {
            tag: "b".to_owned(),
            message: None,
            octets: Bytes::from_static(b"A"),
        })
    );
    server.refuse("b", true, "the spool is full");
    server.submitted("a", "[/ADMD=A/C=GB/;1]", "01HXYZ0000000");
    server.submitted("a", "again", "again");
    server.refuse("c", false, "never asked");
    assert_eq!(
        said(&mut server),
        "{\"refused\":{\"tag\":\"b\",\"temporary\":true,\"error\":\"the spool is full\"}}\n\
         {\"submitted\":{\"tag\":\"a\",\"identifier\":\"[/ADMD=A/C=GB/;1]\",\"id\":\"01HXYZ0000000\"}}\n"
    );
    // The tag can be used again.
    assert!(say(&mut server, r#"{"submit":{"tag":"a","octets":0}}"#).is_some());
}

#[test]
fn probes_and_questions_have_tags_too() {
    let mut server = submitter();
    let line = r#"{"probe":{"tag":"1","originator":"S=J;C=GB","recipients":["S=S;C=GB"],"content_octets":10}}"#;
    let probe = Probe {
        tag: "1".to_owned(),
        originator: "S=J;C=GB".to_owned(),
        recipients: vec!["S=S;C=GB".to_owned()],
        content_octets: Some(10),
        ..Probe::default()
    };
    assert_eq!(
        say(&mut server, line),
        Some(ServerEvent::Probe(Box::new(probe)))
    );
    let ask = Ask {
        tag: "2".to_owned(),
        peers: true,
        after: None,
    };
    let line = r#"{"ask":{"tag":"2","peers":true}}"#;
    assert_eq!(say(&mut server, line), Some(ServerEvent::Ask(ask)));
    let row = PeerRow {
        name: "mta2".to_owned(),
        queued: 3,
        oldest_s: Some(60),
        ..PeerRow::default()
    };
    server.answer_peers("2", vec![row], false);
    assert_eq!(
        said(&mut server),
        "{\"answer\":{\"tag\":\"2\",\"peers\":[{\"name\":\"mta2\",\"state\":\"idle\",\"associations_in\":0,\
         \"associations_out\":0,\"queued\":3,\"oldest_s\":60,\"next_attempt_s\":null,\"last_error\":null,\
         \"last_error_s\":null}]}}\n"
    );
}

#[test]
fn nothing_is_read_while_the_host_decides_about_attach() {
    let mut server = Server::new(BOUNDS);
    server.receive(b"{\"attach\":{\"version\":1}}\n{\"ask\":{\"tag\":\"1\",\"peers\":true}}\n");
    assert!(matches!(
        server.event(),
        Some(ServerEvent::Attach {
            name: None,
            window: 1
        })
    ));
    assert!(server.event().is_none() && !server.wants_input());
    server.attached("mta1", "d");
    assert!(matches!(server.event(), Some(ServerEvent::Ask(_))));
    server.attached("mta1", "d");
    assert_eq!(said(&mut server).lines().count(), 1);
}

#[test]
fn a_host_can_refuse_attach_and_end_a_connection() {
    let mut server = Server::new(BOUNDS);
    say(&mut server, r#"{"attach":{"version":1,"name":"other"}}"#).unwrap();
    server.end("expected a gateway of the settings; found other");
    server.end("twice");
    server.attached("mta1", "d");
    assert_eq!(
        said(&mut server),
        "{\"refused\":{\"error\":\"expected a gateway of the settings; found other\"}}\n"
    );
    assert!(server.has_ended() && server.event().is_none());
    let mut server = submitter();
    say(&mut server, r#"{"submit":{"tag":"a","octets":0}}"#).unwrap();
    server.end("the MTA stops");
    server.submitted("a", "x", "y");
    assert_eq!(
        said(&mut server),
        "{\"refused\":{\"error\":\"the MTA stops\"}}\n"
    );
    assert_eq!(server.end_of_input(), Ok(()));
}

#[test]
fn a_submission_that_is_coming_is_given_up() {
    let mut server = submitter();
    server.receive(b"{\"submit\":{\"tag\":\"a\",\"octets\":6}}\nab");
    assert_eq!((server.event(), server.coming()), (None, Some(2)));
    assert_eq!(server.give_up(true, "not now"), None);
    assert_eq!(server.coming(), None);
    assert_eq!(
        said(&mut server),
        "{\"refused\":{\"tag\":\"a\",\"temporary\":true,\"error\":\"not now\"}}\n"
    );
    // The rest belongs to the frame that is gone.
    assert!(server.end_of_input().is_err());
    server.receive(b"cd");
    assert_eq!(server.event(), None);
    server.receive(b"ef{\"ask\":{\"tag\":\"a\"}}\n");
    assert!(matches!(server.event(), Some(ServerEvent::Ask(ask)) if ask.tag == "a"));
    assert!(server.end_of_input().is_ok());
    // Another frame uses none of its octets.
    server.refuse("a", false, "no");
    server.receive(b"{\"ask\":{\"tag\":\"b\",\"octets\":2}}\n1");
    assert_eq!((server.event(), server.coming()), (None, Some(1)));
    let event = server.give_up(true, "not now");
    assert!(matches!(event, Some(ServerEvent::Ask(ask)) if ask.tag == "b"));
    server.receive(b"2");
    assert!(server.event().is_none() && server.end_of_input().is_ok());
}

#[test]
fn a_submission_that_is_given_up_keeps_the_rules() {
    let mut server = submitter();
    server.receive(
        b"{\"submit\":{\"tag\":\"a\",\"octets\":0}}\n{\"submit\":{\"tag\":\"a\",\"octets\":6}}\n",
    );
    assert!(server.event().is_some());
    assert_eq!((server.event(), server.coming()), (None, Some(0)));
    let event = server.give_up(true, "not now");
    assert!(matches!(event, Some(ServerEvent::End(_))) && server.has_ended());
}
