//! Tokens and messages of machines that join: a decoded value encodes to an equal value.

use vere_joinwire::Token;
use vere_joinwire::message::{Reply, Request};

/// A token, and a message of each kind.
pub(super) const SEEDS: &[&[u8]] = &[
    b"vere1-BMAAAgEKMgcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk3Uvrr",
    b"\0\0\0\x06\"done\"",
    b"\0\0\0\x32{\"join\":{\"version\":1,\"secret\":\"0a\",\"request\":\"x\"}}",
    b"\0\0\0\x0a\"recorded\"",
    b"\0\0\0\x10{\"refused\":\"no\"}",
    b"\0\0\0\xcf{\"accepted\":{\"node\":\"b\",\"listen\":\"192.0.2.2:2600\",\"gateway\":\"g\",\"certificate\":\"\",\"ca\":\"\",\"key\":\"\",\"durability\":\"synced\",\"queues_max\":16,\"groups_max\":1,\"accounts\":[{\"name\":\"a\",\"makes_groups\":true,\"key\":\"\"}]}}",
];

/// Reads octets as a token and as messages of both sides.
pub(super) fn run(octets: &[u8]) {
    if let Ok(text) = std::str::from_utf8(octets)
        && let Ok(token) = text.parse::<Token>()
    {
        assert_eq!(token.reveal().parse(), Ok(token));
    }
    if let Some(request) = Request::decode(octets) {
        assert!(
            Request::decode(&request.encode()) == Some(request),
            "a request"
        );
    }
    if let Some(reply) = Reply::decode(octets) {
        assert!(Reply::decode(&reply.encode()) == Some(reply), "a reply");
    }
}
