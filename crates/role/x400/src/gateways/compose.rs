//! Messages and probes from plain fields.

use std::fmt::Display;
use std::str::FromStr;

use bytes::Bytes;
use vere_attach::{Message, Priority, Probe, Reports};
use vere_mta400::{Site, Submission};
use vere_x400::{Apdu, ContentType, OrAddress, PerMessageIndicators};

/// Characters of a subject (`ub-subject-field` of X.420 is 128).
const SUBJECT_MAX: usize = 128;

/// A message from the fields, or the fault in the fields.
pub(super) fn message(
    site: &Site,
    fields: &Message,
    octets: Bytes,
    id: &str,
) -> Result<Apdu, String> {
    let submission = Submission {
        originator: address("originator", &fields.originator)?,
        recipients: recipients(&fields.recipients)?,
        reports: match fields.reports {
            Reports::None => vere_mta400::Reports::None,
            Reports::Failures => vere_mta400::Reports::Failures,
            Reports::All => vere_mta400::Reports::All,
        },
        priority: match fields.priority {
            Priority::Urgent => vere_x400::Priority::Urgent,
            Priority::Normal => vere_x400::Priority::Normal,
            Priority::NonUrgent => vere_x400::Priority::NonUrgent,
        },
        indicators: indicators(
            fields.return_content,
            fields.conversion_prohibited,
            fields.alternate_recipient_allowed,
        ),
        content_identifier: fields.content_identifier.clone(),
        not_before: optional("deferred_until", fields.deferred_until.as_deref())?,
        latest: optional("latest_delivery", fields.latest_delivery.as_deref())?,
        alternate: optional("alternate_recipient", fields.alternate_recipient.as_deref())?,
    };
    let subject = fields.subject.as_deref();
    let kind: Option<ContentType> = optional("content_type", fields.content_type.as_deref())?;
    let message = match (kind, subject) {
        (Some(_), Some(_)) => {
            return Err("subject: expected none beside a content_type; found one".to_owned());
        }
        (Some(kind), None) => site.enclose(&submission, kind, octets, id),
        (None, subject) => {
            let subject = subject.unwrap_or_default();
            let characters = subject.chars().count();
            if characters > SUBJECT_MAX {
                return Err(format!(
                    "subject: expected at most {SUBJECT_MAX} characters; found {characters}"
                ));
            }
            site.compose(&submission, subject, &text(&octets)?, id)
        }
    };
    message
        .map(Apdu::Message)
        .map_err(|error| error.to_string())
}

/// A probe from the fields, or the fault in the fields.
pub(super) fn probe(site: &Site, fields: &Probe, id: &str) -> Result<Apdu, String> {
    let submission = Submission {
        originator: address("originator", &fields.originator)?,
        recipients: recipients(&fields.recipients)?,
        indicators: indicators(
            false,
            fields.conversion_prohibited,
            fields.alternate_recipient_allowed,
        ),
        content_identifier: fields.content_identifier.clone(),
        ..Submission::default()
    };
    let probe = site.probe(&submission, fields.content_octets, id);
    probe.map(Apdu::Probe).map_err(|error| error.to_string())
}

fn indicators(content: bool, conversion_prohibited: bool, alternate: bool) -> PerMessageIndicators {
    let mut indicators = PerMessageIndicators::default();
    for (on, indicator) in [
        (content, PerMessageIndicators::CONTENT_RETURN_REQUEST),
        (
            conversion_prohibited,
            PerMessageIndicators::IMPLICIT_CONVERSION_PROHIBITED,
        ),
        (alternate, PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED),
    ] {
        if on {
            indicators = indicators.with(indicator);
        }
    }
    indicators
}

fn recipients(texts: &[String]) -> Result<Vec<OrAddress>, String> {
    let texts = texts.iter().enumerate();
    texts
        .map(|(place, text)| address(&format!("recipient {}", place.saturating_add(1)), text))
        .collect()
}

fn address(field: &str, text: &str) -> Result<OrAddress, String> {
    read(field, text)
}

fn optional<T: FromStr<Err: Display>>(
    field: &str,
    text: Option<&str>,
) -> Result<Option<T>, String> {
    text.map(|text| read(field, text)).transpose()
}

fn read<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{field}: {error}"))
}

/// The text with lines that end with CR LF.
fn text(octets: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(octets).map_err(|error| {
        format!(
            "text: expected UTF-8; found another octet at {}",
            error.valid_up_to()
        )
    })?;
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(line) => {
                out.push_str(line.strip_suffix('\r').unwrap_or(line));
                out.push_str("\r\n");
            }
            None => out.push_str(line),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use vere_x400::ipm::{BodyPart, InformationObject};
    use vere_x400::{GlobalDomainIdentifier, StandardExtension};

    use super::*;

    fn site() -> Site {
        let domain = GlobalDomainIdentifier::new("GB", "Carrier", Some("Acme")).unwrap();
        Site::new(domain, "mta1").unwrap()
    }

    fn fields() -> Message {
        Message {
            originator: "S=Jones;P=Acme;A=Carrier;C=GB".to_owned(),
            recipients: vec!["/S=Smith/PRMD=Acme/ADMD=Carrier/C=GB/".to_owned()],
            ..Message::default()
        }
    }

    fn made(fields: &Message, text: &str) -> Result<vere_x400::Message, String> {
        match message(
            &site(),
            fields,
            Bytes::copy_from_slice(text.as_bytes()),
            "id-1",
        )? {
            Apdu::Message(message) => Ok(message),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_text_becomes_a_message() {
        let fields = Message {
            subject: Some("Gr\u{fc}\u{df}e".to_owned()),
            priority: Priority::Urgent,
            deferred_until: Some("2026-11-29T12:00:00Z".to_owned()),
            latest_delivery: Some("2026-11-29T13:00:00Z".to_owned()),
            return_content: true,
            alternate_recipient_allowed: true,
            ..fields()
        };
        let message = made(&fields, "a\nb\r\nc\rd").unwrap();
        let envelope = &message.envelope;
        assert_eq!(
            envelope.per_recipient_fields[0].recipient_name.to_string(),
            "S=Smith;P=Acme;A=Carrier;C=GB"
                .parse::<OrAddress>()
                .unwrap()
                .to_string()
        );
        assert_eq!(envelope.priority, vere_x400::Priority::Urgent);
        assert_eq!(
            envelope.deferred_delivery_time.unwrap().to_string(),
            "2026-11-29T12:00:00Z"
        );
        assert!(
            envelope
                .extensions
                .find(StandardExtension::LatestDeliveryTime)
                .is_some()
        );
        assert_eq!(
            envelope.per_message_indicators.to_string(),
            "alternate-recipient-allowed, content-return-request"
        );
        let Ok(InformationObject::Ipm(ipm)) =
            InformationObject::decode(&message.content.to_bytes())
        else {
            panic!("an interpersonal message");
        };
        assert_eq!(
            ipm.body.first().and_then(BodyPart::to_text).as_deref(),
            Some("a\r\nb\r\nc\rd")
        );
        assert_eq!(ipm.heading.subject.unwrap().0.text(), "Gr\u{fc}\u{df}e");
    }

    #[test]
    fn octets_with_a_type_are_the_content() {
        let fields = Message {
            content_type: Some("35".to_owned()),
            ..fields()
        };
        let message = made(&fields, "UNB+\n").unwrap();
        assert_eq!(
            (
                message.envelope.content_type.short(),
                message.content.to_bytes()
            ),
            ("35".to_owned(), Bytes::from_static(b"UNB+\n"))
        );
    }

    #[test]
    fn each_wrong_field_is_named() {
        let with = |change: fn(&mut Message)| {
            let mut fields = fields();
            change(&mut fields);
            made(&fields, "text").unwrap_err()
        };
        for (error, expected) in [
            (
                with(|fields| fields.originator = "Jones".to_owned()),
                "originator: expected ",
            ),
            (
                with(|fields| fields.originator.clear()),
                "originator: expected an O/R address",
            ),
            (
                with(|fields| fields.recipients.push("X=1".to_owned())),
                "recipient 2: expected a keyword",
            ),
            (
                with(|fields| fields.recipients.clear()),
                "expected a recipient; found none",
            ),
            (
                with(|fields| fields.deferred_until = Some("tomorrow".to_owned())),
                "deferred_until: expected a time",
            ),
            (
                with(|fields| fields.latest_delivery = Some(String::new())),
                "latest_delivery: expected a time",
            ),
            (
                with(|fields| fields.alternate_recipient = Some("?".to_owned())),
                "alternate_recipient: expected",
            ),
            (
                with(|fields| fields.content_type = Some("edi".to_owned())),
                "content_type: expected a content type",
            ),
            (
                with(|fields| fields.subject = Some("x".repeat(129))),
                "subject: expected at most 128 characters; found 129",
            ),
            (
                with(|fields| fields.subject = Some("\u{20ac}".to_owned())),
                "subject: ",
            ),
            (
                with(|fields| {
                    fields.subject = Some(String::new());
                    fields.content_type = Some("22".to_owned());
                }),
                "subject: expected none beside a content_type",
            ),
        ] {
            assert!(error.starts_with(expected), "{error} for {expected}");
        }
        assert_eq!(
            made(&fields(), "\u{20ac}").unwrap_err(),
            "text: expected characters of ISO 8859-1; found '\u{20ac}'"
        );
        let broken = message(&site(), &fields(), Bytes::from_static(b"ab\xff"), "id-1");
        assert_eq!(
            broken.unwrap_err(),
            "text: expected UTF-8; found another octet at 2"
        );
    }

    #[test]
    fn a_probe_has_a_length() {
        let fields = Probe {
            originator: "S=Jones;P=Acme;A=Carrier;C=GB".to_owned(),
            recipients: vec!["S=Smith;P=Acme;A=Carrier;C=GB".to_owned()],
            content_octets: Some(7),
            conversion_prohibited: true,
            ..Probe::default()
        };
        let Ok(Apdu::Probe(made)) = probe(&site(), &fields, "id-1") else {
            panic!("a probe");
        };
        assert_eq!(made.content_length, Some(7));
        assert_eq!(
            made.per_message_indicators.to_string(),
            "implicit-conversion-prohibited"
        );
        let nobody = Probe::default();
        assert!(
            probe(&site(), &nobody, "id-1")
                .unwrap_err()
                .starts_with("originator: ")
        );
    }
}
