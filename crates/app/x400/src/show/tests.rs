//! Files as people and programs get them.

use bytes::Bytes;
use vere_mta400::{
    Arrival, Mta, Names, Peers, Reports, RouteSetting, Routes, Site, Source, Submission,
};
use vere_x400::Apdu;
use vere_x400::{GlobalDomainIdentifier, Time};

use super::*;

fn mta() -> Mta {
    let domain = GlobalDomainIdentifier::new("GB", "Carrier", Some("Acme")).unwrap();
    let mut names = Names::default();
    names.users.insert("smith".to_owned());
    let row = RouteSetting {
        address: "S=Smith;P=Acme;A=Carrier;C=GB".to_owned(),
        to: "file:smith".to_owned(),
        whole: true,
    };
    Mta {
        site: Site::new(domain, "mta1").unwrap(),
        peers: Peers::default(),
        routes: Routes::new(&[row], &names).unwrap(),
    }
}

fn submission(to: &str) -> Submission {
    Submission {
        originator: "S=Jones;P=Acme;A=Carrier;C=GB".parse().unwrap(),
        recipients: vec![to.parse().unwrap()],
        reports: Reports::All,
        ..Submission::default()
    }
}

fn arrival() -> Arrival<'static> {
    Arrival {
        source: Source::Local,
        at: Time::from_unix(1_777_777_777),
        id: "260504.2",
    }
}

fn message() -> Apdu {
    let mta = mta();
    let submission = submission("S=Smith;P=Acme;A=Carrier;C=GB");
    let message = mta
        .site
        .compose(&submission, "Lunch", "At noon?\r\n", "260504.1")
        .unwrap();
    mta.transfer(Apdu::Message(message), arrival())
        .unwrap()
        .apdu
}

fn report() -> Apdu {
    let mta = mta();
    let submission = submission("S=Nobody;P=Acme;A=Carrier;C=GB");
    let probe = mta.site.probe(&submission, Some(7), "260504.1").unwrap();
    let outcome = mta.transfer(Apdu::Probe(probe), arrival()).unwrap();
    Apdu::Report(outcome.report.unwrap())
}

fn shown(octets: &Bytes, json: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, octets).unwrap();
    run(&ShowArgs { file, json }).unwrap()
}

#[test]
fn a_message_is_shown_with_envelope_heading_and_text() {
    let text = shown(&message().to_bytes(), false);
    for line in [
        "message\n",
        "\n  message-identifier: [/PRMD=Acme/ADMD=Carrier/C=GB/;260504.1]\n",
        "\n  originator-name: S=Jones;",
        "\n  trace-information:\n    /PRMD=Acme/ADMD=Carrier/C=GB/: 2026-05-03T03:09:37Z relayed\n",
        "\n  recipient 1: S=Smith;",
        "\n    subject: Lunch\n",
        "\n      At noon?\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
}

#[test]
fn programs_get_the_same_as_json() {
    let value: serde_json::Value =
        serde_json::from_str(&shown(&message().to_bytes(), true)).unwrap();
    for (place, expected) in [
        ("/kind", "message"),
        ("/identifier", "[/PRMD=Acme/ADMD=Carrier/C=GB/;260504.1]"),
        ("/content_type", "22"),
        ("/priority", "normal"),
        ("/trace/0/arrival", "2026-05-03T03:09:37Z"),
        ("/internal_trace/0/mta", "mta1"),
        ("/recipients/0/indicators/0", "responsibility"),
        ("/ipm/kind", "ipm"),
        ("/ipm/heading/subject", "Lunch"),
        ("/ipm/body/0/type", "ia5-text"),
        ("/ipm/body/0/text", "At noon?\r\n"),
    ] {
        let found = value.pointer(place);
        assert_eq!(
            found.and_then(|found| found.as_str()),
            Some(expected),
            "{place} of {value:#}"
        );
    }
    assert_eq!(value["extensions"], serde_json::json!([]));
    assert_eq!(value["recipients"][0]["number"], 1);
}

#[test]
fn a_report_has_reason_and_diagnostic() {
    let octets = report().to_bytes();
    let text = shown(&octets, false);
    assert!(
        text.contains("\n    diagnostic: unrecognised-OR-name\n"),
        "{text}"
    );
    let value: serde_json::Value = serde_json::from_str(&shown(&octets, true)).unwrap();
    assert_eq!(value["kind"], "report");
    assert_eq!(value["about"], "[/PRMD=Acme/ADMD=Carrier/C=GB/;260504.1]");
    assert_eq!(value["recipients"][0]["diagnostic"], "unrecognised-OR-name");
    assert_eq!(value["content_octets"], serde_json::Value::Null);
}

#[test]
fn a_bare_content_is_shown() {
    let Apdu::Message(message) = message() else {
        panic!("a message");
    };
    let content = message.content.to_bytes();
    let text = shown(&content, false);
    assert!(text.starts_with("this-IPM: "), "{text}");
    let value: serde_json::Value = serde_json::from_str(&shown(&content, true)).unwrap();
    assert_eq!(
        (&value["kind"], &value["heading"]["subject"]),
        (&"ipm".into(), &"Lunch".into())
    );
}

#[test]
fn what_is_neither_is_named_twice() {
    let error = Found::of(&Bytes::from_static(b"From: ann@example.org\r\n")).unwrap_err();
    assert!(error.starts_with(
        "expected a protocol data unit of P1 or a content of type P22; found neither\n"
    ));
    assert!(
        error.contains("\n  as P1: ") && error.contains("\n  as P22: "),
        "{error}"
    );
    let args = ShowArgs {
        file: "/nonexistent".into(),
        json: false,
    };
    let error = run(&args).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nonexistent: "), "{error}");
}

#[test]
fn a_content_that_lies_about_its_type_leaves_the_envelope_readable() {
    let Apdu::Message(mut message) = message() else {
        panic!("a message");
    };
    message.content = vere_x400::Content::new(Bytes::from_static(b"\x04\x01x"));
    let text = shown(&Apdu::Message(message).to_bytes(), false);
    assert!(text.contains("\n  not readable as P22: "), "{text}");
}
