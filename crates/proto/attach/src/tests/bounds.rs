//! Hostile sides meet bounds.

use bytes::Bytes;

use super::script::{BOUNDS, end, gateway, said, say, submitter};
use crate::{
    ADDRESS_OCTETS_MAX, Deliver, DeliverError, ERROR_OCTETS_MAX, Fate, LINE_OCTETS_MAX, PeerRow,
    RECIPIENTS_MAX, Recipient, SAID_OCTETS_MAX, Server, ServerEvent,
};

fn recipients(count: u32, address: &str) -> Vec<Recipient> {
    (0..count)
        .map(|place| Recipient {
            place,
            address: address.to_owned(),
        })
        .collect()
}

#[test]
fn a_line_of_the_longest_length_is_read_and_a_longer_one_is_not() {
    let line = |octets: usize| {
        let frame = r#"{"attach":{"version":1}}"#;
        frame.to_owned() + &" ".repeat(octets - frame.len())
    };
    let mut server = Server::new(BOUNDS);
    assert!(say(&mut server, &line(LINE_OCTETS_MAX)).is_some());
    let error = "expected a line of at most 262144 octets; found a longer line";
    assert_eq!(
        end(&mut Server::new(BOUNDS), &line(LINE_OCTETS_MAX + 1)),
        error
    );
    let mut server = Server::new(BOUNDS);
    for _ in 0..64 {
        server.receive(&[b' '; 4_096]);
        assert_eq!(server.event(), None);
    }
    server.receive(b" ");
    assert!(matches!(server.event(), Some(ServerEvent::End(_))));
}

#[test]
fn frames_wait_while_too_many_tags_have_no_answer() {
    let mut server = submitter();
    for tag in ["1", "2", "3"] {
        server.receive(format!("{{\"submit\":{{\"tag\":\"{tag}\",\"octets\":0}}}}\n").as_bytes());
    }
    assert!(server.event().is_some() && server.wants_input());
    assert!(server.event().is_some() && !server.wants_input());
    assert_eq!(server.event(), None);
    server.submitted("2", "i", "t");
    assert!(server.wants_input());
    assert!(matches!(server.event(), Some(ServerEvent::Submit { tag, .. }) if tag == "3"));
}

#[test]
fn a_client_that_reads_nothing_is_not_read() {
    let mut server = submitter();
    let mut rounds = 0;
    while server.wants_input() {
        say(&mut server, r#"{"ask":{"tag":"1"}}"#).unwrap();
        server.refuse("1", false, &"no ".repeat(400));
        rounds += 1;
    }
    assert!((4..=6).contains(&rounds), "{rounds}");
    let text = said(&mut server);
    assert!(server.wants_input());
    let longest = text.lines().map(str::len).max().unwrap();
    assert!(longest < ERROR_OCTETS_MAX + 64, "{longest}");
    // A delivery stops no reading: the client may be writing a long frame.
    let mut server = gateway();
    let deliver = Deliver {
        id: "1".to_owned(),
        ..Deliver::default()
    };
    server
        .deliver(deliver, vec![Bytes::from(vec![0; 100_000])])
        .unwrap();
    assert!(server.wants_input());
}

#[test]
fn recipients_beyond_a_frame_wait_for_the_next_one() {
    let short = recipients(501, "S=Smith;C=GB");
    assert_eq!(Deliver::fitting(&short), RECIPIENTS_MAX);
    let long = recipients(100, &"é".repeat(ADDRESS_OCTETS_MAX));
    let fitting = Deliver::fitting(&long);
    assert!((30..32).contains(&fitting), "{fitting}");
    let worst = recipients(20, &"\u{1}".repeat(2 * ADDRESS_OCTETS_MAX));
    assert_eq!(Deliver::fitting(&worst), 5);
    assert_eq!(
        (Deliver::fitting(&[]), Deliver::fitting(&worst[..1])),
        (0, 1)
    );

    let mut server = gateway();
    let deliver = |recipients: &[Recipient]| Deliver {
        id: "1".to_owned(),
        originator: Some("\u{1}".repeat(100_000)),
        recipients: recipients.to_vec(),
        ..Deliver::default()
    };
    assert_eq!(
        server.deliver(deliver(&worst), Vec::new()),
        Err(DeliverError::Recipients)
    );
    server.deliver(deliver(&worst[..5]), Vec::new()).unwrap();
    let line = said(&mut server);
    assert!(line.len() < LINE_OCTETS_MAX, "{}", line.len());
}

#[test]
fn results_of_all_recipients_of_a_frame_fit_in_a_line() {
    let mut server = gateway();
    let recipients = recipients(500, "S=Smith;C=GB");
    let deliver = Deliver {
        id: "1".to_owned(),
        recipients,
        ..Deliver::default()
    };
    server.deliver(deliver, Vec::new()).unwrap();
    let said = "ä".repeat(SAID_OCTETS_MAX);
    let result = |place| {
        format!(
            r#"{{"place":{place},"result":"failed","status":"5.111.111","said":"{}"}}"#,
            &said[..SAID_OCTETS_MAX]
        )
    };
    let results: Vec<String> = (0..500).map(result).collect();
    let line = format!(
        r#"{{"done":{{"id":"1","results":[{}]}}}}"#,
        results.join(",")
    );
    let Some(ServerEvent::Done { results, .. }) = say(&mut server, &line) else {
        panic!("results");
    };
    assert_eq!(results.len(), 500);
}

#[test]
fn what_a_gateway_says_is_cut() {
    let mut server = gateway();
    let deliver = Deliver {
        id: "1".to_owned(),
        recipients: recipients(1, "S=S;C=GB"),
        ..Deliver::default()
    };
    server
        .deliver(deliver, vec![Bytes::from_static(b"x")])
        .unwrap();
    let line = format!(
        r#"{{"done":{{"id":"1","result":"failed","said":"x{}"}}}}"#,
        "ä".repeat(1_000)
    );
    let Some(ServerEvent::Done { results, .. }) = say(&mut server, &line) else {
        panic!("results");
    };
    assert_eq!(
        (results[0].result, results[0].said.len()),
        (Fate::Failed, SAID_OCTETS_MAX - 1)
    );
}

#[test]
fn errors_quote_little_of_what_a_client_said() {
    let kind = "k".repeat(10_000);
    let error = end(&mut Server::new(BOUNDS), &format!("{{\"{kind}\":{{}}}}"));
    assert!(error.len() < 200, "{}", error.len());
    let error = end(
        &mut Server::new(BOUNDS),
        &format!(r#"{{"attach":{{"version":"{kind}"}}}}"#),
    );
    assert!(error.len() < 300, "{}", error.len());
}

#[test]
fn deep_values_of_unknown_fields_are_passed_over_without_a_deep_stack() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let line = format!(r#"{{"attach":{{"version":1,"x":{open}{close}}}}}"#);
    assert!(matches!(
        say(&mut Server::new(BOUNDS), &line),
        Some(ServerEvent::Attach { .. })
    ));
}

#[test]
fn a_long_list_of_peers_comes_in_parts() {
    let row = |number: usize| PeerRow {
        name: format!("mta{number:05}"),
        last_error: Some("\u{1}".repeat(100)),
        ..PeerRow::default()
    };
    let mut server = submitter();
    say(&mut server, r#"{"ask":{"tag":"1","peers":true}}"#).unwrap();
    server.answer_peers("1", (0..10_000).map(row).collect(), false);
    let line = said(&mut server);
    assert!(line.len() <= LINE_OCTETS_MAX, "{}", line.len());
    let answer: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(answer["answer"]["more"], true);
    let rows = answer["answer"]["peers"].as_array().unwrap().len();
    assert!((300..500).contains(&rows), "{rows}");
}
