//! Searches the raw octets of messages that end every decoding process. This module decodes no text, and examines
//! each octet once or twice.

use memchr::memmem;
use vere_mime::wire::Question;
use vere_mime::{Zone, fields, header_len, unfold};

use vere_parsing::Sought;

/// Whether the undecoded message contains the text. ASCII matches in any letter case, other octets as in the text's
/// compared form. The answer false is uncertain, since the message may contain the text encoded.
pub(super) fn holds(sought: &Sought, question: Question<'_>) -> bool {
    let header = header_len(&sought.octets);
    let (header, body) = sought.octets.split_at(header);
    let all = || fields(&sought.own).chain(fields(header));
    match question {
        Question::Texts => false,
        Question::Field { name, what } => all()
            .filter(|field| field.is(name))
            .any(|field| has(&unfold(field.value), what)),
        Question::Zones(what) => {
            let wanted = |zone: Zone| sought.zones >> zone as u8 & 1 == 1;
            let in_field = all().any(|field| {
                let named = Zone::of_field(field.name).is_some_and(wanted);
                named && has(&unfold(field.value), what)
                    || wanted(Zone::Header) && has(&unfold(field.raw), what)
            });
            in_field || (wanted(Zone::Body) && has(body, what))
        }
    }
}

/// Whether the octets contain `what`, which has no lower-case ASCII letters.
fn has(octets: &[u8], what: &[u8]) -> bool {
    memmem::find(&octets.to_ascii_uppercase(), what).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_searched_as_they_are() {
        let sought = Sought {
            body: 1,
            zones: 0,
            own: b"Delivered-To: ann@demo.test\r\n".to_vec(),
            record: Vec::new(),
            octets: b"Subject: some\r\n thing\r\nX-Odd: 1\r\n\r\nfree =E4 subject\r\n".to_vec(),
        };
        let zones = |zones: &[Zone], what: &str| {
            let zones = zones.iter().fold(0, |bits, zone| bits | 1 << *zone as u8);
            let sought = Sought {
                zones,
                own: sought.own.clone(),
                record: Vec::new(),
                octets: sought.octets.clone(),
                ..sought
            };
            holds(&sought, Question::Zones(what.as_bytes()))
        };
        assert!(zones(&[Zone::Body], "FREE =E4"));
        assert!(!zones(&[Zone::Body], "SOME"));
        assert!(!zones(&[Zone::Body], "Ä"));
        assert!(zones(&[Zone::Subject], "SOME THING"));
        assert!(!zones(&[Zone::Subject], "SUBJECT"));
        assert!(!zones(&[Zone::From, Zone::To], "SOME"));
        assert!(zones(&[Zone::Header], "SUBJECT: SOME"));
        assert!(zones(&[Zone::Header], "ANN@"));
        assert!(!zones(&[Zone::Header], "FREE"));
        let field = |name, what| holds(&sought, Question::Field { name, what });
        assert!(field("x-odd", b"1") && field("x-odd", b""));
        assert!(!field("x-odd", b"2") && !field("x-even", b""));
        assert!(!holds(&sought, Question::Texts));
    }
}
