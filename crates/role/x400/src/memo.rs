//! An APDU as mail for a mailbox of the mail store: a heading and a text to read, with the APDU attached as it came. The full
//! mapping of MIXER (RFC 2156) is not written yet.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use vere_units::{Timestamp, TraceId};
use vere_x400::Apdu;
use vere_x400::ipm::{BodyPart, InformationObject, Ipm};

/// Octets of a line in base64 (RFC 2045 section 6.8).
const LINE: usize = 76;
/// Characters of a subject.
const SUBJECT_MAX: usize = 250;

/// Facts beside the APDU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    /// The mailbox.
    pub(crate) to: &'a str,
    /// The host, for addresses and identifiers.
    pub(crate) hostname: &'a str,
    pub(crate) trace: TraceId,
    pub(crate) now: Timestamp,
}

/// Writes the mail.
pub(crate) fn write(apdu: &Apdu, about: About<'_>) -> Bytes {
    let ipm = interpersonal(apdu);
    let boundary = format!("vere-{}", about.trace);
    let mut mail = heading(apdu, ipm.as_ref(), about);
    // Writing to a String cannot fail.
    let _ = write!(
        mail,
        "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\r\n\r\n\
         --{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    );
    push_base64(&mut mail, text(apdu, ipm.as_ref()).as_bytes());
    let _ = write!(
        mail,
        "--{boundary}\r\nContent-Type: application/octet-stream; name=\"{trace}.p1\"\r\n\
         Content-Disposition: attachment; filename=\"{trace}.p1\"\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n",
        trace = about.trace
    );
    push_base64(&mut mail, &apdu.to_bytes());
    let _ = write!(mail, "--{boundary}--\r\n");
    mail.into()
}

fn interpersonal(apdu: &Apdu) -> Option<Ipm> {
    let Apdu::Message(message) = apdu else {
        return None;
    };
    match InformationObject::decode(&message.content.to_bytes()) {
        Ok(InformationObject::Ipm(ipm)) => Some(ipm),
        _ => None,
    }
}

fn heading(apdu: &Apdu, ipm: Option<&Ipm>, about: About<'_>) -> String {
    let from = match apdu {
        Apdu::Message(message) => message.envelope.originator_name.to_string(),
        Apdu::Probe(probe) => probe.originator_name.to_string(),
        Apdu::Report(_) => "MTA".to_owned(),
    };
    let subject = ipm.and_then(|ipm| ipm.heading.subject.as_ref());
    let subject = subject.map_or_else(
        || match apdu {
            Apdu::Report(_) => "X.400 report".to_owned(),
            _ => "X.400 message".to_owned(),
        },
        |subject| subject.0.text().into_owned(),
    );
    let name = match from.is_ascii() {
        true => format!("\"{}\"", one_line(&from).replace(['"', '\\'], " ")),
        false => encoded(&from),
    };
    format!(
        "Date: {date}\r\nFrom: {name} <x400@{host}>\r\nTo: <{to}>\r\nSubject: {subject}\r\n\
         Message-ID: <{trace}@{host}>\r\nX400-MTS-Identifier: {identifier}\r\n",
        date = about.now.rfc5322(),
        host = about.hostname,
        to = about.to,
        subject = encoded(&subject),
        trace = about.trace,
        identifier = one_line(&apdu.identifier().to_string()),
    )
}

/// A text of a field: ASCII as it is, else encoded words (RFC 2047), each of 45 octets at most.
fn encoded(text: &str) -> String {
    let short: String = one_line(text).chars().take(SUBJECT_MAX).collect();
    if short.is_ascii() {
        return short;
    }
    let mut words: Vec<String> = vec![String::new()];
    for character in short.chars() {
        let full = words
            .last()
            .is_none_or(|word| word.len() + character.len_utf8() > 45);
        if full {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(character);
        }
    }
    let word = |word: &String| format!("=?UTF-8?B?{}?=", STANDARD.encode(word));
    words.iter().map(word).collect::<Vec<_>>().join("\r\n ")
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// The text for people: the text parts of an interpersonal message, else the envelope.
fn text(apdu: &Apdu, ipm: Option<&Ipm>) -> String {
    let Some(ipm) = ipm else {
        return apdu.to_string();
    };
    let part = |part: &BodyPart| match part.to_text() {
        Some(text) => text,
        None => format!(
            "[{}, {} octets: see the attachment]\r\n",
            part.kind(),
            part.octets()
        ),
    };
    ipm.body.iter().map(part).collect::<Vec<_>>().join("\r\n")
}

fn push_base64(mail: &mut String, octets: &[u8]) {
    for line in octets.chunks(LINE / 4 * 3) {
        STANDARD.encode_string(line, mail);
        mail.push_str("\r\n");
    }
}
