//! The JSON of TLS reports (RFC 8460 section 4.4).

use serde::{Deserialize, Serialize};

use super::outcome::{TlsFailureKind, TlsPolicyKind};
use super::sequence::{Bounded, Text};
use super::values::{TlsFailure, TlsPolicy, TlsReport};
use crate::bounds::{FAILURES_MAX, JSON_OCTETS_MAX, LINES_MAX, POLICIES_MAX};
use crate::error::ReportError;
use crate::moment;
use crate::text::{domain, plain};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Report {
    #[serde(default)]
    organization_name: Text,
    date_range: Range,
    #[serde(default)]
    contact_info: Text,
    #[serde(default)]
    report_id: Text,
    policies: Bounded<Counted, POLICIES_MAX>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Range {
    start_datetime: Text,
    end_datetime: Text,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Counted {
    policy: Policy,
    summary: Summary,
    #[serde(default, skip_serializing_if = "is_empty")]
    failure_details: Bounded<Failure, FAILURES_MAX>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Policy {
    policy_type: Text,
    #[serde(default, skip_serializing_if = "is_empty")]
    policy_string: Bounded<Text, LINES_MAX>,
    policy_domain: Text,
    #[serde(default, skip_serializing_if = "is_empty")]
    mx_host: Bounded<Text, LINES_MAX>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Summary {
    total_successful_session_count: u64,
    total_failure_session_count: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Failure {
    result_type: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sending_mta_ip: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    receiving_mx_hostname: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    receiving_mx_helo: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    receiving_ip: Option<Text>,
    failed_session_count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    additional_information: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure_reason_code: Option<Text>,
}

fn is_empty<T, const MAX: usize>(list: &Bounded<T, MAX>) -> bool {
    list.0.is_empty()
}

pub(super) fn read(octets: &[u8]) -> Result<TlsReport, ReportError> {
    if octets.len() > JSON_OCTETS_MAX {
        return Err(ReportError::many("octets of JSON", JSON_OCTETS_MAX));
    }
    let octets = octets.strip_prefix(b"\xef\xbb\xbf").unwrap_or(octets);
    let report: Report = serde_json::from_slice(octets)
        .map_err(|error| ReportError::Json(one_line(&error.to_string())))?;
    let time = |place, text: &Text| {
        moment::read(&text.0)
            .ok_or_else(|| ReportError::value(place, "a date-time of RFC 3339", &text.0))
    };
    let policies = report.policies.0.into_iter().map(policy);
    Ok(TlsReport {
        organization: report.organization_name.0,
        contact: report.contact_info.0,
        id: report.report_id.0,
        begin: time("start-datetime", &report.date_range.start_datetime)?,
        end: time("end-datetime", &report.date_range.end_datetime)?,
        policies: policies.collect::<Result<_, _>>()?,
    })
}

/// The words of the JSON parser with the place, in one line.
fn one_line(text: &str) -> String {
    plain(text).chars().take(200).collect()
}

fn policy(counted: Counted) -> Result<TlsPolicy, ReportError> {
    let kind = &counted.policy.policy_type.0;
    let kind = TlsPolicyKind::of(kind)
        .ok_or_else(|| ReportError::value("policy-type", "tlsa, sts or no-policy-found", kind))?;
    let texts = |list: Bounded<Text, LINES_MAX>| list.0.into_iter().map(|text| text.0).collect();
    Ok(TlsPolicy {
        kind,
        lines: texts(counted.policy.policy_string),
        domain: domain(&counted.policy.policy_domain.0),
        mx: texts(counted.policy.mx_host),
        successes: counted.summary.total_successful_session_count,
        failures: counted.summary.total_failure_session_count,
        details: counted.failure_details.0.into_iter().map(failure).collect(),
    })
}

fn failure(failure: Failure) -> TlsFailure {
    let maybe = |text: Option<Text>| text.map(|text| text.0).filter(|text| !text.is_empty());
    let address = |text: Option<Text>| maybe(text).and_then(|text| text.parse().ok());
    TlsFailure {
        kind: TlsFailureKind::of(&failure.result_type.0),
        sender: address(failure.sending_mta_ip),
        mx: maybe(failure.receiving_mx_hostname)
            .map(|name| domain(&name))
            .filter(|name| !name.is_empty()),
        helo: maybe(failure.receiving_mx_helo),
        address: address(failure.receiving_ip),
        sessions: failure.failed_session_count,
        information: maybe(failure.additional_information),
        reason: maybe(failure.failure_reason_code),
    }
}

pub(super) fn write(report: &TlsReport) -> String {
    let wire = Report {
        organization_name: text(&report.organization),
        date_range: Range {
            start_datetime: Text(moment::write(report.begin)),
            end_datetime: Text(moment::write(report.end)),
        },
        contact_info: text(&report.contact),
        report_id: text(&report.id),
        policies: Bounded(report.policies.iter().map(counted).collect()),
    };
    // Texts and numbers always have a form in JSON.
    serde_json::to_string(&wire).unwrap_or_default()
}

fn text(value: &str) -> Text {
    Text(plain(value))
}

fn counted(policy: &TlsPolicy) -> Counted {
    let maybe = |value: &Option<String>| value.as_deref().map(text);
    let failure = |failure: &TlsFailure| Failure {
        result_type: text(failure.kind.word()),
        sending_mta_ip: failure.sender.map(|address| text(&address.to_string())),
        receiving_mx_hostname: maybe(&failure.mx),
        receiving_mx_helo: maybe(&failure.helo),
        receiving_ip: failure.address.map(|address| text(&address.to_string())),
        failed_session_count: failure.sessions,
        additional_information: maybe(&failure.information),
        failure_reason_code: maybe(&failure.reason),
    };
    let texts = |list: &[String]| Bounded(list.iter().map(|line| text(line)).collect());
    Counted {
        policy: Policy {
            policy_type: text(policy.kind.word()),
            policy_string: texts(&policy.lines),
            policy_domain: text(&policy.domain),
            mx_host: texts(&policy.mx),
        },
        summary: Summary {
            total_successful_session_count: policy.successes,
            total_failure_session_count: policy.failures,
        },
        failure_details: Bounded(policy.details.iter().map(failure).collect()),
    }
}
