//! Answers of rspamd.

use super::MESSAGE;
use crate::{Bounds, Change, Failure, Outcome, Verdict, apply, read_rspamd_answer};

fn read(json: &str) -> Result<Outcome, Failure> {
    read_rspamd_answer(json.as_bytes(), &Bounds::default(), MESSAGE)
}

#[test]
fn actions_have_their_verdicts() {
    let text = |action: &str, more: &str| {
        format!(r#"{{"action":"{action}","messages":{{"smtp_message":"no\r\nmore"}}{more}}}"#)
    };
    let says = || "no  more".to_owned();
    for (action, more, verdict) in [
        ("no action", "", Verdict::Accept),
        ("greylist", "", Verdict::Accept),
        ("soft reject", "", Verdict::Defer(says())),
        ("reject", "", Verdict::Reject(says())),
        (
            "reject",
            r#","milter":{"reject":"discard"}"#,
            Verdict::Quarantine(says()),
        ),
        ("reject", r#","milter":{"no_action":true}"#, Verdict::Accept),
        ("quarantine", "", Verdict::Quarantine(says())),
        ("discard", "", Verdict::Quarantine(says())),
    ] {
        assert_eq!(
            read(&text(action, more)).unwrap().verdict,
            verdict,
            "{action}"
        );
    }
    assert_eq!(read(&text("x", "")), Err(Failure::Action("x".to_owned())));
}

#[test]
fn headers_are_removed_added_and_changed() {
    let outcome = read(
        r#"{"action":"rewrite subject","subject":"[spam] one","score":5.5,"required_score":15,
        "symbols":{"B":{"score":1},"A":{"name":"A","score":-0.5,"options":["x","y"]}},
        "milter":{"remove_headers":{"X-A":-1,"From":[0],"X-A-None":3},
        "add_headers":{"X-New":{"value":"a\n\tb","order":0},"X-Two":["1",{"value":"2","order":-1}]},
        "add_rcpt":["<new@d.example>"],"del_rcpt":["c@d.example"],"change_from":""}}"#,
    )
    .unwrap();
    let names: Vec<&str> = outcome
        .symbols
        .iter()
        .map(|symbol| symbol.name.as_str())
        .collect();
    assert_eq!(names, ["A", "B"]);
    assert_eq!((outcome.score, outcome.required), (Some(5.5), Some(15.0)));
    let expected =
        "X-New: a\r\n\tb\r\nSubject: [spam] one\r\nX-A: 1\r\nX-Two: 1\r\nX-Two: 2\r\n\r\nbody\r\n";
    assert_eq!(
        String::from_utf8(apply(MESSAGE, &outcome.changes)).unwrap(),
        expected
    );
    assert!(
        outcome
            .changes
            .contains(&Change::DeleteRecipient("c@d.example".to_owned()))
    );
    let marked = read(r#"{"action":"add header"}"#).unwrap();
    assert!(
        apply(MESSAGE, &marked.changes)
            .windows(13)
            .any(|part| part == b"X-Spam: Yes\r\n")
    );
}

#[test]
fn answers_are_bounded() {
    let symbols: Vec<String> = (0..1001).map(|n| format!(r#""S{n}":{{}}"#)).collect();
    let many = format!(
        r#"{{"action":"reject","symbols":{{{}}}}}"#,
        symbols.join(",")
    );
    assert!(matches!(read(&many), Err(Failure::Many { max: 1000, .. })));
    let headers: Vec<String> = (0..257).map(|n| format!(r#""H{n}":"v""#)).collect();
    let many = format!(
        r#"{{"action":"add header","milter":{{"add_headers":{{{}}}}}}}"#,
        headers.join(",")
    );
    assert!(matches!(read(&many), Err(Failure::Many { max: 256, .. })));
    let long = format!(
        r#"{{"action":"reject","symbols":{{"{}":{{}}}}}}"#,
        "é".repeat(200)
    );
    assert_eq!(read(&long).unwrap().symbols[0].name.len(), 256);
    assert!(matches!(
        read(&" ".repeat(1024 * 1024 + 1)),
        Err(Failure::Long(_))
    ));
    assert!(matches!(read(&"[".repeat(100_000)), Err(Failure::Json(_))));
    let split = r#"{"action":"add header","milter":{"add_headers":{"X":"a\nBcc: b"}}}"#;
    assert!(matches!(read(split), Err(Failure::Field(_))));
}
