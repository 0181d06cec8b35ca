//! What is written is read again.

use proptest::prelude::*;
use vere_mime::Parsed;
use vere_units::Timestamp;

use super::made;
use crate::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn aggregate_reports_come_back(report in made::aggregate()) {
        prop_assert_eq!(Aggregate::read(report.to_xml().as_bytes()), Ok(report));
    }

    #[test]
    fn tls_reports_come_back(report in made::tls()) {
        prop_assert_eq!(TlsReport::read(report.to_json().as_bytes()), Ok(report));
    }

    #[test]
    fn messages_come_back(report in made::aggregate(), tls in made::tls(), at in 0..4_000_000_000_000_u64) {
        let to = ["reports@example.org".to_owned(), "more+x@example.net".to_owned()];
        let sender = Sender { from: "dmarc@mx.example.net", to: &to, submitter: "mx.example.net", at: Timestamp::from_millis(at) };
        for report in [Report::Aggregate(report.into()), Report::Tls(tls.into())] {
            let mail = Mail::of(&report, &sender).unwrap();
            prop_assert!(mail.octets.split(|octet| *octet == b'\n').all(|line| line.len() <= 998 && !line.contains(&0)));
            prop_assert!(mail.octets.is_ascii());
            prop_assert_eq!(Report::read(&mail.octets), Ok(report));
        }
    }
}

#[test]
fn header_of_a_message() {
    let Report::Aggregate(mut report) = Report::read(made::XML.as_bytes()).unwrap() else {
        panic!("an aggregate report");
    };
    report.id = "20260504.example.org@mx.example.net".to_owned();
    let to = ["reports@example.org".to_owned()];
    let sender = Sender {
        from: "dmarc@example.net",
        to: &to,
        submitter: "mx.example.net",
        at: Timestamp::from_millis(1_777_939_200_000),
    };
    let mail = Mail::of(&Report::Aggregate(report), &sender).unwrap();
    assert_eq!(
        mail.filename,
        "mx.example.net!example.org!1777852800!1777939199.xml.gz"
    );
    let text = String::from_utf8(mail.octets.clone()).unwrap();
    let header = text.split("\r\n\r\n").next().unwrap();
    assert_eq!(
        header,
        "From: dmarc@example.net\r\nTo: reports@example.org\r\nSubject: Report Domain: example.org\r\n \
         Submitter: mx.example.net\r\n Report-ID: <20260504.example.org@mx.example.net>\r\n\
         Date: Tue, 05 May 2026 00:00:00 +0000\r\nMessage-ID: <20260504.example.org@mx.example.net>\r\n\
         Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=\"=_report_31d2c4a0\""
            .replace("31d2c4a0", &text[text.find("=_report_").unwrap() + 9..][..8])
    );
    let parts = Parsed::of(&mail.octets).parts;
    assert!(parts.iter().any(|part| part.is("application", "gzip")));
}

#[test]
fn names_of_strangers_do_not_enter_the_header() {
    let sender = |to: &'static str| (to, [to.to_owned()]);
    let report = Report::read(made::XML.as_bytes()).unwrap();
    let with = |report: &Report, to: &[String], from: &str, submitter: &str| {
        let at = Timestamp::ZERO;
        Mail::of(
            report,
            &Sender {
                from,
                to,
                submitter,
                at,
            },
        )
    };
    for wrong in [
        "a@b\r\nX: y",
        "a b@c.example",
        "a,b@c.example",
        "<a@b.example>",
        "a@",
        "@b",
        "a..b@c.example",
        "a@b..c",
    ] {
        let (_, to) = sender(wrong);
        assert!(
            matches!(
                with(&report, &to, "a@b.example", "b.example"),
                Err(MailError::Address(_))
            ),
            "{wrong}"
        );
    }
    let (_, to) = sender("a@b.example");
    assert!(with(&report, &to, "a@b.example", "b.example").is_ok());
    assert!(matches!(
        with(&report, &to, "a@b.example", "b\"x"),
        Err(MailError::Domain(_))
    ));
    let Report::Aggregate(aggregate) = report else {
        panic!("an aggregate report")
    };
    let of = |domain: &str, id: &str| {
        let mut report = aggregate.clone();
        domain.clone_into(&mut report.policy.domain);
        id.clone_into(&mut report.id);
        with(&Report::Aggregate(report), &to, "a@b.example", "b.example")
    };
    assert!(matches!(of("a b", "1"), Err(MailError::Domain(_))));
    for id in ["", "a b", "a>b", "a@b@c", "a\r\nb"] {
        assert!(
            matches!(of("b.example", id), Err(MailError::Identifier(_))),
            "{id}"
        );
    }
}
