//! The gateway API: the same talk octet by octet, lines within their bound, and one answer for each tag and delivery.

use bytes::Bytes;

use vere_attach::{
    Ask, Bounds, Client, ClientEvent, Deliver, Done, Fate, LINE_OCTETS_MAX, PeerRow, Recipient,
    Server, ServerEvent,
};

/// A gateway and a submitter, and faults.
pub(super) const SERVER_SEEDS: &[&[u8]] = &[
    b"{\"attach\":{\"version\":1,\"name\":\"aftn\",\"window\":2}}\n{\"done\":{\"id\":\"0\",\"result\":\"delivered\"}}\n",
    b"{\"attach\":{\"version\":1}}\n{\"submit\":{\"tag\":\"1\",\"octets\":2}}\nab{\"ask\":{\"tag\":\"2\",\"peers\":true}}\n",
    b"{\"attach\":{\"version\":1,\"name\":\"a\"}}\n{\"done\":{\"id\":\"0\",\"results\":[{\"place\":0,\"result\":\"failed\",\"status\":\"5.1.1\",\"said\":\"no\"},{\"place\":1,\"result\":\"deferred\"}]}}\n{\"probe\":{\"tag\":\"p\",\"originator\":\"S=J;C=GB\",\"recipients\":[]}}\n",
    b"{\"attach\":{\"version\":1}}\n{\"submit\":{\"tag\":\"1\",\"message\":{\"originator\":\"S=J;C=GB\",\"recipients\":[\"S=S;C=GB\"],\"priority\":\"urgent\"},\"octets\":1}}\nx{\"done\":{\"id\":\"0\"}}\n",
];

/// Answers, deliveries, and faults.
pub(super) const CLIENT_SEEDS: &[&[u8]] = &[
    b"{\"attached\":{\"version\":1,\"mta\":\"m\",\"domain\":\"d\",\"octets_max\":9,\"tags_max\":2}}\n{\"submitted\":{\"tag\":\"1\",\"identifier\":\"i\",\"id\":\"t\"}}\n{\"answer\":{\"tag\":\"3\",\"peers\":[{\"name\":\"p\",\"state\":\"open\"}],\"more\":true}}\n",
    b"{\"attached\":{\"version\":1,\"mta\":\"m\",\"domain\":\"d\",\"octets_max\":9,\"tags_max\":2}}\n{\"deliver\":{\"id\":\"7\",\"trace\":\"t\",\"kind\":\"report\",\"identifier\":\"i\",\"recipients\":[{\"place\":0,\"address\":\"a\"}],\"octets\":2}}\nab{\"refused\":{\"tag\":\"2\",\"error\":\"no\"}}\n",
    b"{\"refused\":{\"error\":\"the MTA stops\"}}\n",
];

const BOUNDS: Bounds = Bounds {
    octets_max: 64,
    tags_max: 2,
    output_max: 4_096,
};

/// Takes what a client says.
pub(super) fn server(octets: &[u8]) {
    let whole = serve([octets].into_iter());
    assert_eq!(serve(octets.chunks(1)), whole, "the same, octet by octet");
}

/// Takes what a server says.
pub(super) fn client(octets: &[u8]) {
    let whole = attach([octets].into_iter());
    assert_eq!(attach(octets.chunks(1)), whole, "the same, octet by octet");
}

/// Events and output of a server whose host answers everything at once.
fn serve<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<ServerEvent>, Vec<u8>) {
    let mut server = Server::new(BOUNDS);
    let (mut events, mut output) = (Vec::new(), Vec::new());
    for piece in pieces {
        server.receive(piece);
        while let Some(event) = server.event() {
            answer(&mut server, &event, events.len());
            events.push(event);
            while let Some(piece) = server.output() {
                output.extend_from_slice(&piece);
            }
        }
    }
    let ends = events
        .iter()
        .filter(|event| matches!(event, ServerEvent::End(_)));
    assert_eq!(ends.count(), usize::from(server.has_ended()));
    lines(&output);
    (events, output)
}

fn answer(server: &mut Server, event: &ServerEvent, number: usize) {
    match event {
        ServerEvent::Attach { .. } => server.attached("mta1", "/ADMD=A/C=GB/"),
        ServerEvent::Done { id, results, .. } => {
            assert!(!server.unanswered().any(|waiting| waiting == id));
            let places: Vec<u32> = results.iter().map(|result| result.place).collect();
            assert_eq!(places, [0, 1]);
        }
        ServerEvent::Submit { tag, octets, .. } => {
            assert!(octets.len() <= 64);
            server.submitted(tag, "i", "t");
        }
        ServerEvent::Probe(probe) => server.refuse(&probe.tag, true, &probe.originator),
        ServerEvent::Ask(ask) => {
            let name = ask.after.clone().unwrap_or_default();
            let row = PeerRow {
                name,
                ..PeerRow::default()
            };
            server.answer_peers(&ask.tag, vec![row], ask.peers);
        }
        ServerEvent::End(_) => assert!(server.has_ended()),
    }
    if server.room() > 0 {
        let recipient = |place| Recipient {
            place,
            address: "S=S;C=GB".to_owned(),
        };
        let deliver = Deliver {
            id: number.to_string(),
            recipients: vec![recipient(0), recipient(1)],
            ..Deliver::default()
        };
        let given = server.deliver(deliver, vec![Bytes::from_static(b"\n{")]);
        assert_eq!(given, Ok(()));
    }
}

/// Every line is within its bound, and a frame of the other side.
fn lines(mut output: &[u8]) {
    while let Some(end) = output.iter().position(|octet| *octet == b'\n') {
        assert!(end <= LINE_OCTETS_MAX);
        let delivers = output.starts_with(b"{\"deliver\":");
        output = &output[end + 1 + if delivers { 2 } else { 0 }..];
    }
    assert!(output.is_empty(), "a line without an end");
}

/// Events and output of a gateway with three tags, which answers deliveries at once.
fn attach<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<ClientEvent>, Vec<u8>) {
    let mut client = Client::new(BOUNDS);
    let (mut events, mut output) = (Vec::new(), Vec::new());
    let ask = Ask {
        tag: "3".to_owned(),
        peers: true,
        after: None,
    };
    let begun = [
        client.attach(Some("aftn"), 2),
        client.submit("1", None, Bytes::new()),
        client.submit("2", None, Bytes::new()),
        client.ask(ask),
    ];
    assert_eq!(begun, [Ok(()); 4]);
    // Input without octets has no pieces octet by octet, and the requests are output all the same.
    for piece in std::iter::once(&[][..]).chain(pieces) {
        client.receive(piece);
        while let Some(event) = client.event() {
            if let ClientEvent::Deliver { deliver, octets } = &event {
                assert_eq!(u64::try_from(octets.len()), Ok(deliver.octets));
                // An id may be so long that the answer is longer than a line.
                let _ = client.done(Done::all(&deliver.id, Fate::Delivered));
            }
            events.push(event);
        }
        while let Some(piece) = client.output() {
            output.extend_from_slice(&piece);
        }
    }
    let ends = events
        .iter()
        .filter(|event| matches!(event, ClientEvent::End(_)));
    assert!(ends.count() <= 1);
    (events, output)
}
