//! Reports that mean harm.

use super::made::{JSON, XML};
use crate::bounds::*;
use crate::*;

fn feedback(inner: &str) -> String {
    format!(
        "<feedback><report_metadata/><policy_published><domain>example.org</domain></policy_published>{inner}</feedback>"
    )
}

const ROW: &str = "<row><source_ip>192.0.2.1</source_ip><count>1</count></row>";

#[test]
fn a_report_cut_anywhere_is_an_error() {
    let whole = XML.trim_end();
    for end in 0..whole.len() {
        assert!(
            Aggregate::read(&whole.as_bytes()[..end]).is_err(),
            "{}",
            &whole[..end]
        );
    }
    for end in 0..JSON.len() {
        assert!(TlsReport::read(&JSON.as_bytes()[..end]).is_err(), "{end}");
    }
}

#[test]
fn entities_do_not_expand() {
    let laughs = "<?xml version=\"1.0\"?><!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY lol2 \"&lol;&lol;\">]>\
        <feedback><report_metadata><org_name>&lol2;</org_name></report_metadata></feedback>";
    assert!(matches!(
        Aggregate::read(laughs.as_bytes()),
        Err(ReportError::DocumentType { .. })
    ));
    let file = "<!DOCTYPE feedback SYSTEM \"file:///etc/passwd\"><feedback/>";
    assert!(matches!(
        Aggregate::read(file.as_bytes()),
        Err(ReportError::DocumentType { .. })
    ));
    let inside = feedback("<!DOCTYPE a [<!ENTITY b \"c\">]>");
    assert!(Aggregate::read(inside.as_bytes()).is_err());
    for entity in ["&lol;", "&xxe;", "&#0;", "&#x110000;"] {
        let report = feedback(&format!(
            "<record><auth_results><dkim><domain>{entity}</domain></dkim></auth_results></record>"
        ));
        assert!(
            matches!(
                Aggregate::read(report.as_bytes()),
                Err(ReportError::Xml { .. })
            ),
            "{entity}"
        );
    }
}

#[test]
fn depth_texts_and_numbers_of_elements_are_bounded() {
    let read = |inner: &str| Aggregate::read(feedback(inner).as_bytes());
    let nested = |levels: usize| format!("{}{}", "<a>".repeat(levels), "</a>".repeat(levels));
    assert!(read(&nested(DEPTH_MAX - 1)).is_ok());
    assert_eq!(
        read(&nested(DEPTH_MAX)),
        Err(ReportError::many("levels of XML elements", DEPTH_MAX))
    );
    assert!(read(&"<a>".repeat(1_000_000)).is_err());

    let text = |octets: usize| {
        format!(
            "<record>{ROW}<identifiers><header_from>{}</header_from></identifiers></record>",
            "a".repeat(octets)
        )
    };
    assert!(read(&text(TEXT_OCTETS_MAX)).is_ok());
    assert_eq!(
        read(&text(TEXT_OCTETS_MAX + 1)),
        Err(ReportError::many("octets of a text", TEXT_OCTETS_MAX))
    );
    // The same in pieces.
    let pieces = format!(
        "<record>{ROW}<identifiers><header_from>{}</header_from></identifiers></record>",
        "a&amp;".repeat(TEXT_OCTETS_MAX)
    );
    assert_eq!(
        read(&pieces),
        Err(ReportError::many("octets of a text", TEXT_OCTETS_MAX))
    );
    assert!(read(&" ".repeat(100_000)).is_ok());

    let records = |count: usize| format!("<record>{ROW}</record>").repeat(count);
    assert_eq!(
        read(&records(RECORDS_MAX)).map(|report| report.records.len()),
        Ok(RECORDS_MAX)
    );
    assert_eq!(
        read(&records(RECORDS_MAX + 1)),
        Err(ReportError::many("records", RECORDS_MAX))
    );

    let dkim = |count: usize| {
        format!(
            "<record>{ROW}<auth_results>{}</auth_results></record>",
            "<dkim/>".repeat(count)
        )
    };
    assert!(read(&dkim(RESULTS_MAX)).is_ok());
    assert_eq!(
        read(&dkim(RESULTS_MAX + 1)),
        Err(ReportError::many("DKIM results of a record", RESULTS_MAX))
    );
    let all = dkim(RESULTS_MAX).repeat(RESULTS_ALL_MAX / RESULTS_MAX + 1);
    assert_eq!(
        read(&all),
        Err(ReportError::many(
            "results and reasons of a report",
            RESULTS_ALL_MAX
        ))
    );
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let read = |text: &str| Aggregate::read(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        read("<html/>"),
        "XML: expected the root element feedback; found \"html\""
    );
    assert_eq!(
        read("<feedback/>"),
        "expected the element report_metadata in feedback; found none"
    );
    assert_eq!(
        read(&feedback("<record><row><count>1</count></row></record>")),
        "expected the element source_ip in row; found none"
    );
    assert_eq!(
        read(&feedback(
            "<record><row><source_ip>\u{202e}x\"</source_ip><count>1</count></row></record>"
        )),
        "source_ip: expected an IP address; found \"x\\\"\""
    );
    assert_eq!(
        read(&feedback(
            "<record><row><source_ip>::1</source_ip><count>-1</count></row></record>"
        )),
        "count: expected a number; found \"-1\""
    );
    let json = |text: &str| TlsReport::read(text.as_bytes()).unwrap_err().to_string();
    assert!(
        json("{}").starts_with(
            "expected a TLS report in JSON; found an error: missing field `date-range`"
        )
    );
    assert_eq!(
        json(&JSON.replace("\"sts\"", "\"st\"")),
        "policy-type: expected tlsa, sts or no-policy-found; found \"st\""
    );
    assert_eq!(
        json(&JSON.replace("2016-04-01T00", "2016-04-01-00")),
        "start-datetime: expected a date-time of RFC 3339; found \"2016-04-01-00:00:00Z\""
    );
}

#[test]
fn lists_of_json_are_bounded() {
    let replaced = |from: &str, to: &str| TlsReport::read(JSON.replace(from, to).as_bytes());
    let lines = |count: usize| format!("[{}\"\"]", "\"\",".repeat(count - 1));
    let pattern = "\"*.mail.company-y.example\"},\"summary\"";
    let hosts = |count: usize| replaced(pattern, &format!("{}}},\"summary\"", lines(count)));
    assert_eq!(
        hosts(LINES_MAX).map(|report| report.policies[0].mx.len()),
        Ok(LINES_MAX)
    );
    let error = hosts(LINES_MAX + 1).unwrap_err().to_string();
    assert!(
        error.contains("expected at most 1000 elements of a list; found more"),
        "{error}"
    );

    let failure = "{\"result-type\":\"x\",\"failed-session-count\":1},";
    let failures = |count: usize| {
        replaced(
            "\"failure-details\":[",
            &format!("\"failure-details\":[{}", failure.repeat(count)),
        )
    };
    assert!(failures(FAILURES_MAX - 3).is_ok());
    assert!(failures(FAILURES_MAX).is_err());

    assert!(replaced("Company-X", &"a".repeat(TEXT_OCTETS_MAX)).is_ok());
    assert!(replaced("Company-X", &"a".repeat(TEXT_OCTETS_MAX + 1)).is_err());
    assert!(TlsReport::read(&[b' '; JSON_OCTETS_MAX + 1]).is_err());
    // Deep nesting: passed over in an unknown key, an error in a known one.
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(replaced("\"report-id\"", &format!("\"x\":{nested},\"report-id\"")).is_ok());
    assert!(replaced("\"mx-host\":", &format!("\"mx-host\":{nested},\"x\":")).is_err());
}

#[test]
fn long_messages_and_attachments_are_refused_unread() {
    let many = |what, max| Err(ReportError::many(what, max));
    let text = |octets: usize| format!("Subject: x\r\n\r\n{}", "x".repeat(octets));
    assert_eq!(
        Report::read(text(MESSAGE_OCTETS_MAX).as_bytes()),
        many("octets of a message", MESSAGE_OCTETS_MAX)
    );
    let head = text(0).len();
    let longest = text(MESSAGE_OCTETS_MAX - head);
    assert_eq!(Report::read(longest.as_bytes()), Err(ReportError::None));
    let attached = |octets: usize| {
        let body = "x".repeat(octets);
        let message = format!("Content-Type: application/json\r\n\r\n{body}");
        Report::read(message.as_bytes())
    };
    let limit = PACKED_OCTETS_MAX * 3 / 2;
    let refusal = many("octets of an attachment", PACKED_OCTETS_MAX);
    assert_eq!(attached(limit + 1), refusal);
    assert_ne!(attached(limit), refusal);
}
