//! What a client hears of its faults.

use super::script::{BOUNDS, end, gateway, submitter};
use crate::{Fault, Server};

#[test]
fn each_fault_before_attach_is_named() {
    let table = [
        (
            "",
            "frame: expected JSON; found a fault at column 0: EOF while parsing a value",
        ),
        (
            "hello",
            "frame: expected JSON; found a fault at column 1: expected value",
        ),
        (
            "[]",
            "frame: expected an object with one field, the kind of the frame; found sequence",
        ),
        (
            "{}",
            "frame: expected one field, the kind of the frame; found none",
        ),
        (
            r#"{"attach":{"version":1},"ask":{}}"#,
            "frame: expected one field, the kind of the frame; found two",
        ),
        (
            r#"{"attach":1}"#,
            "frame: expected an object as the value of the kind; found integer `1`",
        ),
        (
            r#"{"attach":[1,"aftn"]}"#,
            "frame: expected an object as the value of the kind; found sequence",
        ),
        (
            r#"{"attach":{"octets":-1}}"#,
            "frame: expected u64; found integer `-1`",
        ),
        (
            r#"{"attach":{"octets":1,"octets":2}}"#,
            "frame: expected the field `octets` once; found it twice",
        ),
        (
            r#"{"bind":{}}"#,
            r#"expected attach, done, submit, probe or ask; found "bind""#,
        ),
        (
            r#"{"deliver":{}}"#,
            r#"expected attach, done, submit, probe or ask; found "deliver""#,
        ),
    ];
    for (line, error) in table {
        assert_eq!(end(&mut Server::new(BOUNDS), line), error);
    }
}

#[test]
fn each_fault_of_attach_is_named() {
    let table = [
        (
            r#"{"attach":{}}"#,
            "attach: expected the field `version`; found none",
        ),
        (
            r#"{"attach":{"version":"1"}}"#,
            r#"attach: expected u32; found string "1""#,
        ),
        (
            r#"{"attach":{"version":2}}"#,
            "attach: expected version 1; found 2",
        ),
        (
            r#"{"attach":{"version":1,"window":0}}"#,
            "attach: expected a window of 1 to 64; found 0",
        ),
        (
            r#"{"attach":{"version":1,"window":65}}"#,
            "attach: expected a window of 1 to 64; found 65",
        ),
        (
            r#"{"attach":{"version":1,"name":""}}"#,
            r#"attach: expected a name of 1 to 64 octets; found """#,
        ),
        (
            r#"{"attach":{"version":1,"name":"a\nb"}}"#,
            r#"attach: expected a name of 1 to 64 octets; found "a\nb""#,
        ),
        (r#"{"ask":{"tag":"1"}}"#, "expected attach; found ask"),
        (
            r#"{"submit":{"tag":"1","octets":0}}"#,
            "expected attach; found submit",
        ),
        (
            r#"{"submit":{"tag":"1","octets":1001}}"#,
            "submit: expected at most 1000 octets; found 1001",
        ),
    ];
    for (line, error) in table {
        assert_eq!(end(&mut Server::new(BOUNDS), line), error);
    }
}

#[test]
fn each_fault_after_attach_is_named() {
    let again = r#"{"attach":{"version":1}}"#;
    assert_eq!(
        end(&mut submitter(), again),
        "expected submit, probe or ask; found attach"
    );
    assert_eq!(
        end(&mut gateway(), again),
        "expected done, submit, probe or ask; found attach"
    );
    let long = "x".repeat(65);
    let table = [
        (
            r#"{"ask":{"tag":""}}"#.to_owned(),
            "ask: expected a tag of 1 to 64 octets; found 0",
        ),
        (
            format!(r#"{{"probe":{{"tag":"{long}"}}}}"#),
            "probe: expected a tag of 1 to 64 octets; found 65",
        ),
        (
            r#"{"submit":{"tag":"1"}}"#.to_owned(),
            "submit: expected the field `octets`; found none",
        ),
        (
            r#"{"submit":{"tag":"1","octets":0,"message":{"priority":"high"}}}"#.to_owned(),
            "submit: expected one of `urgent`, `normal`, `non-urgent`; found `high`",
        ),
    ];
    for (line, error) in table {
        assert_eq!(end(&mut submitter(), &line), error);
    }
    let mut server = submitter();
    server.receive(b"{\"ask\":{\"tag\":\"1\"}}\n");
    assert!(server.event().is_some());
    assert_eq!(
        end(&mut server, r#"{"ask":{"tag":"1"}}"#),
        r#"ask: expected a new tag; found "1", which waits for its answer"#
    );
}

#[test]
fn a_connection_that_ends_in_a_frame_was_cut() {
    let mut server = submitter();
    assert_eq!(server.end_of_input(), Ok(()));
    server.receive(b"{");
    assert_eq!(
        (server.event(), server.end_of_input()),
        (None, Err(Fault::Cut))
    );
    let mut server = submitter();
    server.receive(b"{\"submit\":{\"tag\":\"1\",\"octets\":2}}\nA");
    assert_eq!(
        (server.event(), server.end_of_input()),
        (None, Err(Fault::Cut))
    );
    server.receive(b"B");
    assert!(server.event().is_some() && server.end_of_input().is_ok());
}

#[test]
fn octets_of_other_kinds_are_passed_over() {
    let mut server = submitter();
    server.receive(b"{\"ask\":{\"tag\":\"1\",\"octets\":3}}\n{}\n{\"ask\":{\"tag\":\"2\"}}\n");
    assert!(server.event().is_some() && server.event().is_some());
    assert!(!server.has_ended());
}
