//! Our own observations.

use proptest::prelude::*;
use vere_units::Timestamp;

use super::made::{self, XML};
use crate::bounds::DAY_ROWS_MAX;
use crate::*;

const REPORTER: Reporter<'_> = Reporter {
    organization: "Example",
    email: "postmaster@example.net",
    contact: None,
    submitter: "mx.example.net",
    generator: "vere 0.1",
};

/// 2026-05-04T12:00:00Z
const NOON: Timestamp = Timestamp::from_millis(1_777_896_000_000);

fn message() -> DmarcSeen {
    let report = Aggregate::read(XML.as_bytes()).unwrap();
    DmarcSeen {
        policy: report.policy,
        record: report.records[0].clone(),
    }
}

fn failed(mx: &str) -> TlsSeen {
    TlsSeen {
        domain: "example.org".to_owned(),
        kind: TlsPolicyKind::Sts,
        failure: Some(TlsFailure {
            kind: TlsFailureKind::CertificateExpired,
            mx: Some(mx.to_owned()),
            ..TlsFailure::default()
        }),
        ..TlsSeen::default()
    }
}

fn file(observations: &mut Observations) -> Vec<u8> {
    let days = observations.take_lines();
    assert_eq!(days.len(), 1);
    assert_eq!(file_name(days[0].0), "2026-05-04.counts");
    days.into_iter().next().unwrap().1
}

#[test]
fn counts_become_reports() {
    let mut observations = Observations::default();
    for _ in 0..3 {
        observations.dmarc(NOON, &message());
    }
    let mut octets = file(&mut observations);
    assert!(observations.is_empty());
    // A second batch of the same day.
    observations.dmarc(NOON, &message());
    observations.tls(NOON, &failed("mx.example.org"), 1);
    observations.tls(NOON, &failed("mx.example.org"), 1);
    observations.tls(
        NOON,
        &TlsSeen {
            failure: None,
            ..failed("")
        },
        1,
    );
    octets.extend(file(&mut observations));

    let day = Day::read(day_of(NOON), &octets);
    assert_eq!((day.beyond, day.passed_over), (0, 0));
    assert_eq!(day.open(Kind::Dmarc), ["example.org"]);
    let report = day.aggregate("example.org", &REPORTER).unwrap();
    assert_eq!(report.id, "20260504.example.org@mx.example.net");
    assert_eq!((report.begin, report.end), (1_777_852_800, 1_777_939_199));
    assert_eq!((report.records.len(), report.messages()), (1, 4));
    assert_eq!(Aggregate::read(report.to_xml().as_bytes()), Ok(report));
    let report = day.tls("example.org", &REPORTER).unwrap();
    assert_eq!(report.id, "20260504-tls.example.org@mx.example.net");
    let policy = &report.policies[0];
    assert_eq!(
        (
            policy.successes,
            policy.failures,
            policy.details[0].sessions
        ),
        (1, 2, 2)
    );
    assert_eq!(TlsReport::read(report.to_json().as_bytes()), Ok(report));
    assert_eq!(day.aggregate("example.com", &REPORTER), None);
    assert_eq!(day.tls("example.com", &REPORTER), None);

    octets.extend(Day::sent_line(Kind::Dmarc, "example.org"));
    let day = Day::read(day_of(NOON), &octets);
    assert!(day.open(Kind::Dmarc).is_empty());
    assert_eq!(day.open(Kind::Tls), ["example.org"]);

    let anew = day.lines();
    assert!(anew.len() < octets.len());
    let day = Day::read(day_of(NOON), &anew);
    assert_eq!(day.lines(), anew);
    assert_eq!(day.open(Kind::Dmarc), [""; 0]);
    assert_eq!(
        day.aggregate("example.org", &REPORTER)
            .map(|report| report.messages()),
        Some(4)
    );
}

#[test]
fn an_observation_of_any_size_fits_into_a_line() {
    let long = "\"\\".repeat(2_000);
    let mut seen = message();
    seen.policy.failure_options = Some(long.clone());
    let dkim = Dkim {
        domain: long.clone(),
        selector: Some(long.clone()),
        result: AuthWord::Pass,
        text: Some(long.clone()),
    };
    seen.record.dkim = vec![dkim; 1_000];
    let reason = Reason {
        kind: Override::Other,
        comment: Some(long.clone()),
    };
    seen.record.reasons = vec![reason; 1_000];
    let session = TlsSeen {
        lines: vec![long.clone(); 1_000],
        mx: vec![long.clone(); 1_000],
        ..failed(&long)
    };
    let mut observations = Observations::default();
    observations.dmarc(NOON, &seen);
    observations.tls(NOON, &session, 1);
    let day = Day::read(day_of(NOON), &file(&mut observations));
    assert_eq!(
        (
            day.open(Kind::Dmarc).len(),
            day.open(Kind::Tls).len(),
            day.passed_over
        ),
        (1, 1, 0)
    );
}

#[test]
fn a_file_cut_or_flipped_anywhere_loses_one_batch_at_most() {
    let mut observations = Observations::default();
    observations.tls(NOON, &failed("mx1.example.org"), 1);
    let first = file(&mut observations);
    observations.tls(NOON, &failed("mx2.example.org"), 1);
    let second = file(&mut observations);
    let whole = [first.as_slice(), &second].concat();
    let sessions = |octets: &[u8]| {
        let day = Day::read(day_of(NOON), octets);
        day.tls("example.org", &REPORTER)
            .map_or(0, |report| report.policies[0].failures)
    };
    assert_eq!(sessions(&whole), 2);
    for end in first.len()..whole.len() {
        assert_eq!(
            sessions(&whole[..end]),
            1 + u64::from(end + 1 == whole.len()),
            "{end}"
        );
        // The host begins a new line behind an end that is torn.
        let more = [&whole[..end], b"\n", &second].concat();
        assert!(sessions(&more) >= 2, "{end}");
    }
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x55;
        assert!((0..=1).contains(&sessions(&flipped)), "{at}");
    }
}

#[test]
fn rows_of_a_day_are_bounded() {
    let mut observations = Observations::default();
    for at in 0..DAY_ROWS_MAX + 5 {
        observations.tls(NOON, &failed(&format!("mx{at}.example.org")), 1);
    }
    let mut octets = file(&mut observations);
    observations.tls(NOON, &failed("other.example.org"), 1);
    octets.extend(file(&mut observations));
    let day = Day::read(day_of(NOON), &octets);
    assert_eq!((day.beyond, day.passed_over), (6, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever was seen can be reported, and the report can be read.
    #[test]
    fn what_was_seen_can_be_reported(report in made::aggregate(), tls in made::tls()) {
        let mut observations = Observations::default();
        for record in &report.records {
            observations.dmarc(NOON, &DmarcSeen { policy: report.policy.clone(), record: record.clone() });
        }
        for policy in &tls.policies {
            for detail in &policy.details {
                observations.tls(NOON, &TlsSeen {
                    domain: policy.domain.clone(),
                    kind: policy.kind,
                    lines: policy.lines.clone(),
                    mx: policy.mx.clone(),
                    failure: Some(detail.clone()),
                }, 1);
            }
        }
        let days = observations.take_lines();
        let octets: Vec<u8> = days.into_iter().flat_map(|(_, octets)| octets).collect();
        let day = Day::read(day_of(NOON), &octets);
        for domain in day.open(Kind::Dmarc) {
            let made = day.aggregate(&domain, &REPORTER).unwrap();
            prop_assert_eq!(made.messages(), report.records.len() as u64);
            prop_assert_eq!(Aggregate::read(made.to_xml().as_bytes()), Ok(made));
        }
        for domain in day.open(Kind::Tls) {
            let made = day.tls(&domain, &REPORTER).unwrap();
            prop_assert_eq!(TlsReport::read(made.to_json().as_bytes()), Ok(made));
        }
    }
}

/// A handed over part is known after a restart, and the report is open all the same.
#[test]
fn parts_of_a_report_are_no_report() {
    let mut observations = Observations::default();
    observations.tls(NOON, &failed("mx.example.org"), 2);
    let [(day, lines)] = &observations.take_lines()[..] else {
        panic!("a day");
    };
    let part = Day::part("example.org", "https://r.example/");
    let octets = [lines.clone(), Day::sent_line(Kind::Tls, &part)].concat();
    let read = Day::read(*day, &octets);
    assert!(read.is_sent(Kind::Tls, &part) && !read.is_sent(Kind::Dmarc, &part));
    assert_eq!(read.open(Kind::Tls), ["example.org"]);
    assert_eq!(read.handed_over(Kind::Tls), 0);
    assert_eq!(
        read.tls("example.org", &REPORTER).unwrap().policies[0].failures,
        2
    );
    let octets = [octets, Day::sent_line(Kind::Tls, "example.org")].concat();
    let read = Day::read(*day, &octets);
    assert_eq!(read.open(Kind::Tls), [""; 0]);
    assert_eq!(read.handed_over(Kind::Tls), 1);
}
