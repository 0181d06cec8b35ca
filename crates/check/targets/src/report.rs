//! Reports about DMARC and TLS, which strangers send.

use vere_reports::bounds::{
    DEPTH_MAX, DESTINATIONS_MAX, RECORDS_MAX, RESULTS_MAX, TEXT_OCTETS_MAX,
};
use vere_reports::{
    Destination, Mail, Report, Sender, confirmation_name, confirmed, dmarc_destinations,
    tls_destinations,
};
use vere_units::Timestamp;

/// Records with destinations, a report of each kind, a message around one, and heads of archives.
pub(crate) const SEEDS: &[&[u8]] = &[
    b"v=DMARC1; p=none; rua=mailto:a%2Bb@c.example!10m,mailto:d@e.example",
    b"v=TLSRPTv1; rua=https://a.example/b,mailto:c@d.example",
    b"<feedback><report_metadata><org_name>A &amp; B</org_name><report_id>1</report_id><date_range><begin>1</begin><end>2</end>\
      </date_range></report_metadata><policy_published><domain>example.org</domain><p>reject</p></policy_published><record><row>\
      <source_ip>192.0.2.1</source_ip><count>3</count><policy_evaluated><disposition>none</disposition><dkim>pass</dkim>\
      <spf>fail</spf><reason><type>other</type></reason></policy_evaluated></row><identifiers><header_from>example.org</header_from>\
      </identifiers><auth_results><dkim><domain>a.example</domain><result>pass</result></dkim></auth_results></record></feedback>",
    br#"{"organization-name":"A","date-range":{"start-datetime":"2026-05-04T00:00:00Z","end-datetime":"2026-05-05T00:00:00+01:00"},
      "report-id":"1","policies":[{"policy":{"policy-type":"sts","policy-string":["a"],"policy-domain":"example.org","mx-host":"*.a"},
      "summary":{"total-successful-session-count":1,"total-failure-session-count":2},"failure-details":[{"result-type":"x",
      "failed-session-count":2,"receiving-ip":"::1"}]}]}"#,
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/xml\r\n\r\n<feedback><report_metadata/>\
      <policy_published><domain>a.b</domain></policy_published></feedback>\r\n--b--\r\n",
    b"\x1f\x8b\x08\0\0\0\0\0\0\xff\xb3\xb1\x03\0",
    b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\x04\0\0\0\x01\0\0\0a<a/>PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\
      \x04\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0aPK\x05\x06\0\0\0\0\x01\0\x01\0\x2f\0\0\0\x23\0\0\0\0\0",
];

/// A report keeps its bounds, and comes back from its own file and message. Destinations are names and addresses of plain form.
pub(crate) fn read(octets: &[u8]) {
    destinations(octets);
    let Ok(mut report) = Report::read(octets) else {
        return;
    };
    let file = match &mut report {
        Report::Aggregate(report) => {
            // Words outside the standard are not written.
            report.oddities = 0;
            assert!(report.records.len() <= RECORDS_MAX);
            for record in &report.records {
                assert!(record.dkim.len().max(record.spf.len()) <= RESULTS_MAX);
                assert!(record.header_from.len() <= TEXT_OCTETS_MAX);
            }
            let xml = report.to_xml();
            assert!(
                xml.lines()
                    .all(|line| line.len() <= 6 * TEXT_OCTETS_MAX + DEPTH_MAX * 4)
            );
            xml
        }
        Report::Tls(report) => report.to_json(),
    };
    assert_eq!(Report::read(file.as_bytes()).as_ref(), Ok(&report));
    let to = ["reports@example.org".to_owned()];
    let sender = Sender {
        from: "reports@example.net",
        to: &to,
        submitter: "example.net",
        at: Timestamp::ZERO,
    };
    if let Ok(mail) = Mail::of(&report, &sender) {
        assert!(mail.octets.is_ascii());
        assert_eq!(Report::read(&mail.octets), Ok(report));
    }
}

/// Where a record sends reports: nothing of it may change a header field or a question to the DNS.
fn destinations(record: &[u8]) {
    let (dmarc, tls) = (
        dmarc_destinations(record),
        tls_destinations(&[record.to_vec()]),
    );
    assert!(dmarc.len().max(tls.len()) <= DESTINATIONS_MAX);
    for destination in dmarc.iter().chain(&tls) {
        let text = match destination {
            Destination::Mail { address, .. } => address,
            Destination::Https { uri } => uri,
        };
        assert!(text.bytes().all(|octet| octet.is_ascii_graphic()));
        let host = destination.host();
        assert!(confirmation_name("a.example", &host).is_none_or(|name| name.ends_with(&host)));
        let proven = confirmed(destination, &[record.to_vec()]);
        assert!(proven.is_none_or(|proven| proven.host() == host));
    }
}
