//! Both sides, connected by octets that come in any pieces.

use bytes::Bytes;

use crate::{
    Ask, Bounds, Client, ClientEvent, Deliver, Done, Fate, Message, PeerRow, Probe, Recipient,
    Server, ServerEvent,
};

/// Carries octets both ways, some at a time, until nothing moves; collects events.
struct Pair {
    server: Server,
    client: Client,
    step: usize,
    heard: Vec<ClientEvent>,
    asked: Vec<ServerEvent>,
}

impl Pair {
    fn new(step: usize) -> Self {
        Self {
            server: Server::new(Bounds::default()),
            client: Client::new(Bounds::default()),
            step,
            heard: Vec::new(),
            asked: Vec::new(),
        }
    }

    fn settle(&mut self) {
        loop {
            let to_server: Vec<Bytes> = std::iter::from_fn(|| self.client.output()).collect();
            let to_client: Vec<Bytes> = std::iter::from_fn(|| self.server.output()).collect();
            let quiet = to_server.is_empty() && to_client.is_empty();
            for octets in to_server.concat().chunks(self.step) {
                self.server.receive(octets);
                while let Some(event) = self.server.event() {
                    if let ServerEvent::Attach { .. } = event {
                        self.server.attached("mta1", "/ADMD=A/C=GB/");
                    }
                    self.asked.push(event);
                }
            }
            for octets in to_client.concat().chunks(self.step) {
                self.client.receive(octets);
                self.heard
                    .extend(std::iter::from_fn(|| self.client.event()));
            }
            if quiet {
                return;
            }
        }
    }
}

fn message() -> Message {
    Message {
        originator: "S=J;C=GB".to_owned(),
        recipients: vec!["S=S;C=GB".to_owned()],
        return_content: true,
        ..Message::default()
    }
}

fn probe() -> Probe {
    Probe {
        tag: "p".to_owned(),
        ..Probe::default()
    }
}

fn ask() -> Ask {
    Ask {
        tag: "a".to_owned(),
        peers: true,
        after: Some("mta1".to_owned()),
    }
}

/// A client that attached, submitted a message and a probe, and asked.
fn asked(step: usize) -> Pair {
    let mut pair = Pair::new(step);
    pair.client.attach(Some("aftn"), 2).unwrap();
    let text = Bytes::from(vec![b'\n'; 3_000]);
    pair.client
        .submit("m", Some(message()), text.clone())
        .unwrap();
    pair.client.probe(probe()).unwrap();
    pair.client.ask(ask()).unwrap();
    pair.settle();
    let expected = [
        ServerEvent::Attach {
            name: Some("aftn".to_owned()),
            window: 2,
        },
        ServerEvent::Submit {
            tag: "m".to_owned(),
            message: Some(Box::new(message())),
            octets: text,
        },
        ServerEvent::Probe(Box::new(probe())),
        ServerEvent::Ask(ask()),
    ];
    assert_eq!(pair.asked, expected);
    pair
}

#[test]
fn the_sides_understand_each_other_octet_by_octet() {
    for step in [1, 7, 10_000] {
        let mut pair = asked(step);
        let rows = vec![PeerRow::default()];
        pair.server.answer_peers("a", rows.clone(), true);
        pair.server.refuse("p", false, "no");
        pair.server.submitted("m", "i", "t");
        let deliver = Deliver {
            id: "1".to_owned(),
            recipients: vec![Recipient::default()],
            about: Some("x".to_owned()),
            ..Deliver::default()
        };
        let apdu = vec![Bytes::from_static(b"AB"), Bytes::from(vec![0; 2_000])];
        pair.server.deliver(deliver.clone(), apdu.clone()).unwrap();
        pair.settle();
        assert!(
            matches!(&pair.heard[1], ClientEvent::Answer(answer) if answer.peers == Some(rows) && answer.more)
        );
        assert!(matches!(&pair.heard[2], ClientEvent::Refused { tag, .. } if tag == "p"));
        assert!(matches!(&pair.heard[3], ClientEvent::Submitted(one) if one.tag == "m"));
        let Some(ClientEvent::Deliver {
            deliver: got,
            octets,
        }) = pair.heard.get(4)
        else {
            panic!("{:?}", pair.heard);
        };
        let expected = Deliver {
            octets: 2_002,
            ..deliver
        };
        assert_eq!((&**got, octets.to_vec()), (&expected, apdu.concat()));

        pair.client.done(Done::all("1", Fate::Delivered)).unwrap();
        pair.settle();
        assert!(matches!(pair.asked.last(), Some(ServerEvent::Done { id, .. }) if id == "1"));
        pair.server.end("the MTA stops");
        pair.settle();
        assert!(matches!(pair.heard.last(), Some(ClientEvent::End(_))));
    }
}
