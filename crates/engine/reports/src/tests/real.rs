//! Reports with the habits of real reporters.

use super::made::{JSON, XML};
use crate::*;

#[test]
fn the_example_of_rfc_8460() {
    let report = TlsReport::read(JSON.as_bytes()).unwrap();
    assert_eq!(report.organization, "Company-X");
    assert_eq!(report.begin.to_string(), "2016-04-01T00:00:00.000Z");
    let policy = &report.policies[0];
    assert_eq!(
        (policy.kind, policy.domain.as_str()),
        (TlsPolicyKind::Sts, "company-y.example")
    );
    assert_eq!(policy.mx, ["*.mail.company-y.example"]);
    assert_eq!((policy.successes, policy.failures), (5_326, 303));
    assert_eq!(policy.details.len(), 3);
    assert_eq!(policy.details[1].kind, TlsFailureKind::StartTlsNotSupported);
    assert_eq!(policy.details[1].address, "203.0.113.56".parse().ok());
    assert_eq!(
        policy.details[2].reason.as_deref(),
        Some("X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED")
    );
}

#[test]
fn words_of_older_reports() {
    let report = Aggregate::read(XML.as_bytes()).unwrap();
    assert_eq!(report.organization, "A & B");
    assert_eq!(report.policy.domain, "example.org");
    assert_eq!(report.policy.domain_policy, Disposition::Reject);
    let record = &report.records[0];
    assert_eq!(record.source.to_string(), "203.0.113.5");
    assert_eq!((record.count, record.is_aligned()), (1_204, false));
    assert_eq!(
        record.reasons,
        [Reason {
            kind: Override::TrustedForwarder,
            comment: None
        }]
    );
    assert_eq!(record.spf[0].result, AuthWord::Fail);
    assert_eq!(report.oddities, 0);
}

#[test]
fn namespaces_extensions_and_odd_words() {
    let text = "\u{feff}<!-- c --><d:feedback xmlns:d=\"urn:ietf:params:xml:ns:dmarc-2.0\" xmlns:x=\"urn:x\">\
        <d:report_metadata><d:org_name><![CDATA[A & <B>]]></d:org_name><d:generator>g 1</d:generator></d:report_metadata>\
        <d:policy_published><d:domain>example.org.</d:domain><d:p>Quarantine</d:p><d:np>refuse</d:np></d:policy_published>\
        <d:extension><x:a><x:b/></x:a></d:extension>\
        <d:record><d:row><d:source_ip>::ffff:192.0.2.1</d:source_ip><d:count> 7 </d:count><d:policy_evaluated>\
        <d:disposition>pass</d:disposition><d:dkim>PASS</d:dkim><d:spf/></d:policy_evaluated></d:row>\
        <d:identifiers><d:envelope_from/></d:identifiers><x:arc>1</x:arc></d:record></d:feedback>";
    let report = Aggregate::read(text.as_bytes()).unwrap();
    assert_eq!(report.organization, "A & <B>");
    assert_eq!(report.policy.domain, "example.org");
    assert_eq!(report.policy.domain_policy, Disposition::Quarantine);
    // One unknown word: the policy for subdomains that do not exist.
    assert_eq!(
        (report.policy.nonexistent_policy, report.oddities),
        (None, 1)
    );
    let record = &report.records[0];
    assert_eq!(record.source.to_string(), "192.0.2.1");
    assert_eq!(record.header_from, "example.org");
    assert_eq!(record.envelope_from.as_deref(), Some(""));
    assert!(record.dkim_aligned && !record.spf_aligned);
    assert_eq!((record.count, record.disposition), (7, Disposition::Pass));
}

#[test]
fn other_charsets() {
    let text = "<?xml version='1.0' encoding='ISO-8859-1'?>".to_owned()
        + &XML[XML.find("<feedback>").unwrap()..];
    let latin = text.replace("A &amp; B", "Z\u{fc}rich");
    let octets: Vec<u8> = latin.chars().map(|character| character as u8).collect();
    assert_eq!(Aggregate::read(&octets).unwrap().organization, "Zürich");
    let wide: Vec<u8> = [0xfeff_u16]
        .into_iter()
        .chain(XML.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let Report::Aggregate(report) = Report::read(&wide).unwrap() else {
        panic!("an aggregate report");
    };
    assert_eq!(report.records[0].count, 1_204);
}
