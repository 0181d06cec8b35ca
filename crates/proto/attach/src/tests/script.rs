//! A server under test: lines in, lines out.

use bytes::Bytes;

use crate::{Bounds, Server, ServerEvent};

/// Small bounds, so that tests reach them.
pub(super) const BOUNDS: Bounds = Bounds {
    octets_max: 1_000,
    tags_max: 2,
    output_max: 4_096,
};

/// All output as text.
pub(super) fn said(server: &mut Server) -> String {
    let pieces: Vec<Bytes> = std::iter::from_fn(|| server.output()).collect();
    String::from_utf8(pieces.concat()).unwrap()
}

/// Gives a line, and takes the event.
pub(super) fn say(server: &mut Server, line: &str) -> Option<ServerEvent> {
    server.receive(line.as_bytes());
    server.receive(b"\n");
    server.event()
}

/// A server whose client is attached.
pub(super) fn attached(line: &str) -> Server {
    let mut server = Server::new(BOUNDS);
    assert!(matches!(
        say(&mut server, line),
        Some(ServerEvent::Attach { .. })
    ));
    server.attached("mta1", "/ADMD=A/C=GB/");
    assert_eq!(
        said(&mut server),
        "{\"attached\":{\"version\":1,\"mta\":\"mta1\",\"domain\":\"/ADMD=A/C=GB/\",\"octets_max\":1000,\"tags_max\":2}}\n"
    );
    server
}

/// A server with the gateway `aftn`.
pub(super) fn gateway() -> Server {
    attached(r#"{"attach":{"version":1,"name":"aftn"}}"#)
}

/// A server with a submitter.
pub(super) fn submitter() -> Server {
    attached(r#"{"attach":{"version":1}}"#)
}

/// The error of a connection that ended, as the client reads it.
pub(super) fn end(server: &mut Server, line: &str) -> String {
    let event = say(server, line);
    let Some(ServerEvent::End(fault)) = event else {
        panic!("{line}: {event:?}");
    };
    let value: serde_json::Value = serde_json::from_str(&said(server)).unwrap();
    let error = value["refused"]["error"].as_str().unwrap().to_owned();
    assert_eq!(error, fault.to_string());
    assert!(server.has_ended() && !server.wants_input());
    assert_eq!(say(server, "{}"), None);
    error
}
