//! The side of a gateway.

use bytes::Bytes;

use crate::{
    Ask, Bounds, Client, ClientEvent, Done, Fate, Fault, LINE_OCTETS_MAX, Message, Misuse, Probe,
};

const ATTACHED: &[u8] =
    b"{\"attached\":{\"version\":1,\"mta\":\"m\",\"domain\":\"d\",\"octets_max\":9,\"tags_max\":2}}\n";

fn bounds() -> Bounds {
    Bounds {
        octets_max: 10,
        ..Bounds::default()
    }
}

fn attached(name: Option<&str>) -> Client {
    let mut client = Client::new(bounds());
    client.attach(name, 1).unwrap();
    client.receive(ATTACHED);
    assert!(matches!(client.event(), Some(ClientEvent::Attached(_))));
    while client.output().is_some() {}
    client
}

fn fault(client: &mut Client, octets: &[u8]) -> String {
    client.receive(octets);
    let event = client.event();
    let Some(ClientEvent::End(fault)) = event else {
        panic!("{event:?}");
    };
    client.receive(ATTACHED);
    assert_eq!(client.event(), None);
    assert_eq!(client.submit("9", None, Bytes::new()), Err(Misuse::Ended));
    fault.to_string()
}

#[test]
fn calls_out_of_turn_write_nothing() {
    let mut client = Client::new(bounds());
    let ask = || Ask {
        tag: "1".to_owned(),
        peers: true,
        after: None,
    };
    assert_eq!(client.ask(ask()), Err(Misuse::Attach));
    client.attach(None, 1).unwrap();
    assert_eq!(client.attach(None, 1), Err(Misuse::Attach));
    client.ask(ask()).unwrap();
    assert_eq!(client.ask(ask()), Err(Misuse::Tag));
    assert_eq!(client.probe(Probe::default()), Err(Misuse::Tag));
    let long = "x".repeat(65);
    assert_eq!(client.submit(&long, None, Bytes::new()), Err(Misuse::Tag));
    assert_eq!(
        client.done(Done::all("1", Fate::Failed)),
        Err(Misuse::Delivery)
    );
    let message = Message {
        subject: Some("x".repeat(LINE_OCTETS_MAX)),
        ..Message::default()
    };
    assert_eq!(
        client.submit("2", Some(message), Bytes::new()),
        Err(Misuse::LineTooLong)
    );
    client.submit("2", None, Bytes::from_static(b"A")).unwrap();
    let pieces: Vec<Bytes> = std::iter::from_fn(|| client.output()).collect();
    assert_eq!(
        String::from_utf8(pieces.concat()).unwrap(),
        "{\"attach\":{\"version\":1}}\n{\"ask\":{\"tag\":\"1\",\"peers\":true}}\n{\"submit\":{\"tag\":\"2\",\"octets\":1}}\nA"
    );
}

#[test]
fn a_server_that_breaks_the_rules_is_noticed() {
    let deliver = |id: &str, octets: usize| {
        let line = format!(
            r#"{{"deliver":{{"id":"{id}","trace":"t","kind":"probe","identifier":"i","recipients":[],"octets":{octets}}}}}"#
        );
        line + "\n" + &"x".repeat(octets)
    };
    let mut fresh = Client::new(bounds());
    fresh.attach(None, 1).unwrap();
    let early = "{\"submitted\":{\"tag\":\"1\",\"identifier\":\"i\",\"id\":\"t\"}}\n";
    assert_eq!(
        fault(&mut fresh, early.as_bytes()),
        "expected attached or refused; found submitted"
    );
    let table = [
        (
            String::from_utf8_lossy(ATTACHED).into_owned(),
            "expected deliver, submitted, answer or refused; found attached",
        ),
        (
            early.to_owned(),
            "submitted: expected a tag without an answer",
        ),
        (
            "{\"answer\":{\"tag\":\"1\"}}\n".to_owned(),
            "answer: expected a tag without an answer",
        ),
        (
            "{\"refused\":{\"tag\":\"1\",\"error\":\"no\"}}\n".to_owned(),
            "refused: expected a tag without an answer",
        ),
        (
            "{\"refused\":{\"error\":\"the MTA stops\"}}\n".to_owned(),
            "the MTA stops",
        ),
        (
            "{\"attach\":{}}\n".to_owned(),
            "expected attached, refused, deliver, submitted or answer; found \"attach\"",
        ),
        (
            deliver("1", 0),
            "deliver: expected at most as many deliveries as the window has",
        ),
        (
            deliver("1", 11),
            "deliver: expected at most 10 octets; found 11",
        ),
    ];
    for (line, error) in table {
        assert_eq!(fault(&mut attached(None), line.as_bytes()), error);
    }
    let mut gateway = attached(Some("aftn"));
    gateway.receive(deliver("1", 10).as_bytes());
    let event = gateway.event();
    assert!(matches!(event, Some(ClientEvent::Deliver { octets, .. }) if octets.len() == 10));
    let more = deliver("2", 0);
    assert!(fault(&mut gateway, more.as_bytes()).starts_with("deliver: expected at most"));
    let mut other = Client::new(bounds());
    other.attach(None, 1).unwrap();
    let version = b"{\"attached\":{\"version\":2,\"mta\":\"m\",\"domain\":\"d\",\"octets_max\":9,\"tags_max\":2}}\n";
    other.receive(version);
    let expected = Fault::Version {
        expected: 1,
        found: 2,
    };
    assert_eq!(other.event(), Some(ClientEvent::End(expected)));
}

#[test]
fn a_delivery_is_answered_once() {
    let mut client = attached(Some("aftn"));
    client.receive(
        b"{\"deliver\":{\"id\":\"7\",\"trace\":\"t\",\"kind\":\"report\",\"identifier\":\"i\",\"recipients\":[],\"octets\":0,\"new\":1}}\n",
    );
    assert!(matches!(client.event(), Some(ClientEvent::Deliver { .. })));
    client.done(Done::all("7", Fate::Delivered)).unwrap();
    assert_eq!(
        client.done(Done::all("7", Fate::Delivered)),
        Err(Misuse::Delivery)
    );
    assert_eq!(
        client.output().unwrap(),
        "{\"done\":{\"id\":\"7\",\"result\":\"delivered\"}}\n"
    );
}
