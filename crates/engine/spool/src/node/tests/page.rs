//! The session on the protocol's page, octet by octet: by it a client is written that shares no code with this.

use vere_spoolwire::{
    Change, Charter, DEFAULT_ACCOUNT, Hello, Incarnation, Role, SharedSecret, encode_change,
    encode_create,
};

use super::peer::{encoded, request};
use super::*;
use crate::testing::node_output;

const PAGE: &str = include_str!("../../../../../../docs/internals/spoolwire.md");

/// Octets that count up from a number.
fn counting(from: u8) -> [u8; 32] {
    std::array::from_fn(|at| from + at as u8)
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// What the owner sends after the GREETING.
fn said(greeting: &Greeting, secret: &SharedSecret) -> Vec<Vec<u8>> {
    let hello = Hello {
        acknowledged: Txn(0),
        version: VERSION,
        role: Role::Owner,
        owner: 1,
        epoch: 0,
        logged: true,
        group: "gateway",
        account: DEFAULT_ACCOUNT,
        charter: Charter::OWN,
        nonce: counting(0x40),
        proof: [0; 32],
    };
    let hello = hello.sign(greeting, secret);
    let (queue, id) = (QueueId(0), RecordId(1));
    let put = Change::Put {
        queue,
        id,
        meta: b"m",
        body: Some(b"hello"),
    };
    let fetch = Request::Fetch {
        queue,
        from: id,
        records: 10,
        octets: 4096,
    };
    vec![
        encoded(|out| hello.encode(out)),
        encoded(|out| encode_create(out, Txn(1), queue, "q", QueueLimits::UNLIMITED)),
        encoded(|out| encode_change(out, Txn(2), &put, 0)),
        request(fetch, 1),
        encoded(|out| encode_change(out, Txn(3), &Change::Delete { queue, id }, 0)),
    ]
}

#[test]
fn the_session_of_the_page_is_spoken() {
    let secret = SharedSecret::new(counting(0));
    let mut node = Node::<MemoryLog>::new(
        NodeConfig::new(secret.clone()),
        Incarnation(0x0102_0304_0506_0708),
        None,
    );
    let id = node.accept(counting(0x20), now()).unwrap();
    let mut session = Vec::new();
    let answer = |node: &mut Node<MemoryLog>| {
        let octets = node_output(node, id, usize::MAX);
        node.sent(id, octets.len());
        octets
    };
    let octets = answer(&mut node);
    let frame = Frame::read(&octets, 1024).unwrap().unwrap();
    let greeting = Greeting::decode(&frame).unwrap();
    session.push(format!("node {}", hex(&octets)));
    for octets in said(&greeting, &secret) {
        node.buffer(id)[..octets.len()].copy_from_slice(&octets);
        node.received(id, octets.len(), now());
        session.push(format!("owner {}", hex(&octets)));
        session.push(format!("node {}", hex(&answer(&mut node))));
    }
    let without_blanks = |text: &str| text.split_whitespace().collect::<String>();
    let session = session.join("\n");
    let found = without_blanks(PAGE).contains(&without_blanks(&session));
    assert!(found, "the page lacks:\n{session}");
}
