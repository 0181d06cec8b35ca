//! Reports and archives made for the tests.

use std::io::Read as _;
use std::net::IpAddr;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use vere_units::Timestamp;

use crate::text::plain;
use crate::*;

pub(super) const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<feedback>\n  <version>1.0</version>\n  \
    <report_metadata><org_name>A &amp; B</org_name><email>noreply@reporter.example</email>\
    <report_id>123</report_id><date_range><begin>1777852800</begin><end>1777939199</end></date_range></report_metadata>\n  \
    <policy_published><domain>Example.org</domain><adkim>r</adkim><aspf>s</aspf><p>reject</p><sp>none</sp><pct>100</pct>\
    </policy_published>\n  <record><row><source_ip>203.0.113.5</source_ip><count>1204</count><policy_evaluated>\
    <disposition>reject</disposition><dkim>fail</dkim><spf>fail</spf><reason><type>forwarded</type><comment/></reason>\
    </policy_evaluated></row><identifiers><header_from>example.org</header_from></identifiers><auth_results>\
    <dkim><domain>other.example</domain><selector>s1</selector><result>pass</result></dkim>\
    <spf><domain>bounce.other.example</domain><result>HardFail</result></spf></auth_results></record>\n</feedback>\n";

pub(super) const JSON: &str = r#"{"organization-name":"Company-X","date-range":{"start-datetime":"2016-04-01T00:00:00Z",
    "end-datetime":"2016-04-01T23:59:59Z"},"contact-info":"sts-reporting@company-x.example","report-id":"5065427c-23d3-47ca-b6e0-946ea0e8c4be",
    "policies":[{"policy":{"policy-type":"sts","policy-string":["version: STSv1","mode: testing","mx: *.mail.company-y.example","max_age: 86400"],
    "policy-domain":"company-y.example","mx-host":"*.mail.company-y.example"},"summary":{"total-successful-session-count":5326,
    "total-failure-session-count":303},"failure-details":[{"result-type":"certificate-expired","sending-mta-ip":"2001:db8:abcd:0012::1",
    "receiving-mx-hostname":"mx1.mail.company-y.example","failed-session-count":100},{"result-type":"starttls-not-supported",
    "sending-mta-ip":"2001:db8:abcd:0013::1","receiving-mx-hostname":"mx2.mail.company-y.example","receiving-ip":"203.0.113.56",
    "failed-session-count":200,"additional-information":"https://reports.company-x.example/report_info ? id = 5065427 c - 23 d3# StarttlsNotSupported "},
    {"result-type":"validation-failure","sending-mta-ip":"198.51.100.62","receiving-ip":"203.0.113.58",
    "receiving-mx-hostname":"mx-backup.mail.company-y.example","failed-session-count":3,"failure-reason-code":"X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED"}]}]}"#;

pub(super) fn deflated(octets: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = flate2::bufread::DeflateEncoder::new(octets, flate2::Compression::default());
    encoder.read_to_end(&mut out).unwrap();
    out
}

/// A zip archive of one file, as programs that write it in one pass do: sizes in the central directory alone.
pub(super) fn zip(name: &str, octets: &[u8], method: u16) -> Vec<u8> {
    let packed = match method {
        8 => deflated(octets),
        _ => octets.to_vec(),
    };
    let crc = vere_checksum::crc32(octets);
    let mut out = Vec::new();
    let u16s = |out: &mut Vec<u8>, numbers: &[u16]| {
        for number in numbers {
            out.extend(number.to_le_bytes());
        }
    };
    out.extend(b"PK\x03\x04");
    u16s(&mut out, &[20, 8, method, 0, 0]);
    out.extend([0; 12]);
    u16s(&mut out, &[name.len() as u16, 4]);
    out.extend(name.as_bytes());
    out.extend([0xfe, 0xca, 0, 0]);
    out.extend(&packed);
    out.extend(b"PK\x07\x08");
    for number in [crc, packed.len() as u32, octets.len() as u32] {
        out.extend(number.to_le_bytes());
    }
    let directory = out.len() as u32;
    out.extend(b"PK\x01\x02");
    u16s(&mut out, &[20, 20, 8, method, 0, 0]);
    for number in [crc, packed.len() as u32, octets.len() as u32] {
        out.extend(number.to_le_bytes());
    }
    u16s(&mut out, &[name.len() as u16, 0, 0, 0, 0]);
    out.extend([0; 8]);
    out.extend(name.as_bytes());
    let end = out.len() as u32;
    out.extend(b"PK\x05\x06");
    u16s(&mut out, &[0, 0, 1, 1]);
    for number in [end - directory, directory] {
        out.extend(number.to_le_bytes());
    }
    u16s(&mut out, &[0]);
    out
}

/// A message with a file attached.
pub(super) fn message(media: &str, name: &str, file: &[u8]) -> Vec<u8> {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(file);
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    format!(
        "From: noreply@reporter.example\r\nTo: reports@example.org\r\nSubject: Report domain: example.org\r\n\
         MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"b\"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n\
         <hello>\r\n--b\r\nContent-Type: {media}; name=\"{name}\"\r\nContent-Transfer-Encoding: base64\r\n\
         Content-Disposition: attachment; filename=\"{name}\"\r\n\r\n{}\r\n--b--\r\n",
        lines.join("\r\n")
    )
    .into_bytes()
}

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 <>&\"'/;äß€😀\u{1}\u{202e}]{1,20}"
        .prop_map(|text| plain(&text))
        .prop_filter("a text", |text| !text.is_empty())
}

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9-]{1,8}(\\.[a-z]{2,5}){1,2}"
}

fn address() -> impl Strategy<Value = IpAddr> {
    any::<IpAddr>().prop_map(|address| address.to_canonical())
}

fn one<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    (0..all.len()).prop_map(|at| all[at])
}

fn record() -> impl Strategy<Value = Record> {
    let reason =
        (one(Override::ALL), of(text())).prop_map(|(kind, comment)| Reason { kind, comment });
    let dkim = (name(), of(text()), one(AuthWord::ALL), of(text())).prop_map(
        |(domain, selector, result, text)| Dkim {
            domain,
            selector,
            result,
            text,
        },
    );
    let spf = (name(), any::<bool>(), one(AuthWord::ALL), of(text())).prop_map(
        |(domain, is_helo, result, text)| Spf {
            domain,
            is_helo,
            result,
            text,
        },
    );
    (
        (address(), any::<u64>(), one(Disposition::ALL)),
        (any::<bool>(), any::<bool>(), vec(reason, 0..3)),
        (
            name(),
            of(prop_oneof![Just(String::new()), name()]),
            of(name()),
        ),
        (vec(dkim, 0..3), vec(spf, 0..3)),
    )
        .prop_map(
            |((source, count, disposition), rows, names, results)| Record {
                source,
                count,
                disposition,
                dkim_aligned: rows.0,
                spf_aligned: rows.1,
                reasons: rows.2,
                header_from: names.0,
                envelope_from: names.1,
                envelope_to: names.2.filter(|name| !name.is_empty()),
                dkim: results.0,
                spf: results.1,
            },
        )
}

fn policy() -> impl Strategy<Value = Policy> {
    (
        (name(), of(one(Discovery::ALL)), one(Disposition::ALL)),
        (
            of(one(Disposition::ALL)),
            of(one(Disposition::ALL)),
            of(text()),
        ),
        (
            of(one(Alignment::ALL)),
            of(one(Alignment::ALL)),
            of(any::<bool>()),
        ),
    )
        .prop_map(|(first, second, third)| Policy {
            domain: first.0,
            discovery: first.1,
            domain_policy: first.2,
            subdomain_policy: second.0,
            nonexistent_policy: second.1,
            failure_options: second.2,
            dkim_alignment: third.0,
            spf_alignment: third.1,
            testing: third.2,
        })
}

pub(super) fn aggregate() -> impl Strategy<Value = Aggregate> {
    (
        (
            text(),
            text(),
            of(text()),
            "[a-z0-9]{1,5}(\\.[a-z0-9]{1,3})?@[a-z0-9]{1,9}",
        ),
        (any::<u64>(), any::<u64>(), vec(text(), 0..3), of(text())),
        (policy(), vec(record(), 0..4)),
    )
        .prop_map(|(who, when, what)| Aggregate {
            organization: who.0,
            email: who.1,
            contact: who.2,
            id: who.3,
            begin: when.0,
            end: when.1,
            errors: when.2,
            generator: when.3,
            policy: what.0,
            records: what.1,
            oddities: 0,
        })
}

fn failure() -> impl Strategy<Value = TlsFailure> {
    let kind = (0..TlsFailureKind::ALL.len() + 1).prop_map(|at| {
        let known = TlsFailureKind::ALL.get(at).cloned();
        known.unwrap_or_else(|| TlsFailureKind::Other("x-word".to_owned()))
    });
    (
        (kind, of(address()), of(name()), of(text())),
        (of(address()), any::<u64>(), of(text()), of(text())),
    )
        .prop_map(|(first, second)| TlsFailure {
            kind: first.0,
            sender: first.1,
            mx: first.2,
            helo: first.3,
            address: second.0,
            sessions: second.1,
            information: second.2,
            reason: second.3,
        })
}

fn tls_policy() -> impl Strategy<Value = TlsPolicy> {
    (
        (
            (0..3_usize).prop_map(|at| TlsPolicyKind::ALL[at]),
            vec(text(), 0..3),
            name(),
        ),
        (
            vec(text(), 0..3),
            any::<u64>(),
            any::<u64>(),
            vec(failure(), 0..3),
        ),
    )
        .prop_map(|(first, second)| TlsPolicy {
            kind: first.0,
            lines: first.1,
            domain: first.2,
            mx: second.0,
            successes: second.1,
            failures: second.2,
            details: second.3,
        })
}

pub(super) fn tls() -> impl Strategy<Value = TlsReport> {
    let time = || (0..253_402_300_800_u64).prop_map(|at| Timestamp::from_millis(at * 1_000));
    (
        text(),
        text(),
        "[a-z0-9]{1,9}",
        time(),
        time(),
        vec(tls_policy(), 1..3),
    )
        .prop_map(
            |(organization, contact, id, begin, end, policies)| TlsReport {
                organization,
                contact,
                id,
                begin,
                end,
                policies,
            },
        )
}
