//! The body of a request: `ExportLogsServiceRequest` of OTLP 1.x in its JSON encoding
//! (opentelemetry-proto, `collector/logs/v1/logs_service.proto`).
//!
//! Names are lowerCamelCase, enumerations are numbers, and 64-bit integers are texts.

use serde::Serialize;
use serde_json::{Value, json};
use vere_telemetry::log::{FieldValue, LogRecord};

/// The name of the service among those of the collector (semantic conventions, `service.name`).
const SERVICE: &str = "veredarius";
const NANOSECONDS: u64 = 1_000_000;

/// The facts about this system that all records share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The host name of the settings.
    pub(crate) host: String,
}

/// Encodes records: a resource for each process, in the order of the first record.
pub(crate) fn body(origin: &Origin, records: &[LogRecord]) -> Vec<u8> {
    let mut processes: Vec<((&str, u32), Vec<Value>)> = Vec::new();
    for record in records {
        let process = (record.role.as_str(), record.pid);
        let encoded = encoded(record);
        match processes.iter_mut().find(|(known, _)| *known == process) {
            Some((_, list)) => list.push(encoded),
            None => processes.push((process, vec![encoded])),
        }
    }
    let resources: Vec<Value> = processes
        .into_iter()
        .map(|((role, pid), records)| {
            json!({
                "resource": {"attributes": resource(origin, role, pid)},
                "scopeLogs": [{"scope": {"name": "vere"}, "logRecords": records}],
            })
        })
        .collect();
    json!({"resourceLogs": resources}).to_string().into_bytes()
}

fn resource(origin: &Origin, role: &str, pid: u32) -> Vec<Value> {
    vec![
        attribute("service.name", &text(SERVICE)),
        attribute("service.version", &text(env!("CARGO_PKG_VERSION"))),
        attribute(
            "service.instance.id",
            &text(&format!("{}/{role}", origin.host)),
        ),
        attribute("host.name", &text(&origin.host)),
        attribute("process.pid", &integer(i64::from(pid))),
        attribute("vere.role", &text(role)),
    ]
}

fn encoded(record: &LogRecord) -> Value {
    let fields = record.fields.iter();
    let attributes: Vec<Value> = fields
        .map(|(name, value)| attribute(name, &any(value)))
        .collect();
    let time = record.time_ms.saturating_mul(NANOSECONDS).to_string();
    json!({
        "timeUnixNano": time,
        "observedTimeUnixNano": time,
        "severityNumber": record.severity.number(),
        "severityText": record.severity.name(),
        "body": text(&record.message),
        "attributes": attributes,
    })
}

fn attribute(name: &str, value: &impl Serialize) -> Value {
    json!({"key": name, "value": value})
}

fn any(value: &FieldValue) -> Value {
    match value {
        FieldValue::Bool(truth) => json!({"boolValue": truth}),
        FieldValue::Integer(number) => integer(*number),
        FieldValue::Text(value) => text(value),
    }
}

fn text(value: &str) -> Value {
    json!({"stringValue": value})
}

fn integer(number: i64) -> Value {
    json!({"intValue": number.to_string()})
}

#[cfg(test)]
mod tests {
    use vere_telemetry::log::LogLevel;

    use super::*;

    fn record(role: &str, pid: u32, message: &str) -> LogRecord {
        LogRecord {
            time_ms: 1_777_852_800_123,
            severity: LogLevel::Warn,
            role: role.to_owned(),
            pid,
            message: message.to_owned(),
            fields: vec![
                (
                    "peer".to_owned(),
                    FieldValue::Text("192.0.2.1 \"x\"".to_owned()),
                ),
                ("code".to_owned(), FieldValue::Integer(-5)),
                ("tls".to_owned(), FieldValue::Bool(true)),
            ],
            lost: 0,
        }
    }

    /// The example of the specification (opentelemetry-proto `examples/logs.json`) has this form.
    #[test]
    fn a_record_has_the_form_of_the_standard() {
        let origin = Origin {
            host: "mx.example.org".to_owned(),
        };
        let records = [
            record("gateway", 7, "accepted"),
            record("web", 8, "refused"),
            record("gateway", 7, "sent"),
        ];
        let body: Value = serde_json::from_slice(&body(&origin, &records)).unwrap();
        let resources = body["resourceLogs"].as_array().unwrap();
        assert_eq!(resources.len(), 2);
        let attributes = &resources[0]["resource"]["attributes"];
        assert_eq!(
            attributes[0],
            json!({"key": "service.name", "value": {"stringValue": "veredarius"}})
        );
        assert_eq!(
            attributes[4],
            json!({"key": "process.pid", "value": {"intValue": "7"}})
        );
        let logs = resources[0]["scopeLogs"][0]["logRecords"]
            .as_array()
            .unwrap();
        assert_eq!(logs.len(), 2);
        assert_eq!(
            logs[0],
            json!({
                "timeUnixNano": "1777852800123000000",
                "observedTimeUnixNano": "1777852800123000000",
                "severityNumber": 13,
                "severityText": "WARN",
                "body": {"stringValue": "accepted"},
                "attributes": [
                    {"key": "peer", "value": {"stringValue": "192.0.2.1 \"x\""}},
                    {"key": "code", "value": {"intValue": "-5"}},
                    {"key": "tls", "value": {"boolValue": true}},
                ],
            })
        );
    }
}
