//! Domain names in wire form (RFC 1035 section 3.1): length octet and label, in turn.

use super::error::Reason;

/// Octets of a label at most.
const LABEL_MAX: usize = 63;
/// Octets of a name at most, the root included.
pub(super) const NAME_MAX: usize = 255;

/// The wire form of a name without the root; a dot at the end is ignored, and `@` is the empty name. A backslash takes
/// the meaning from the octet behind it, or stands before three decimal digits (RFC 1035 section 5.1).
pub(super) fn relative(text: &[u8]) -> Result<Vec<u8>, Reason> {
    let mut wire = Vec::new();
    if matches!(text, b"@" | b".") {
        return Ok(wire);
    }
    let label_refused = || {
        let expected = "labels of 1 to 63 octets, separated by single dots";
        Reason::syntax(expected, text)
    };
    let mut rest = text;
    while !rest.is_empty() {
        let start = wire.len();
        wire.push(0);
        while let Some((octet, after)) = octet(rest) {
            wire.push(octet);
            rest = after;
            if wire.len() >= NAME_MAX {
                return Err(Reason::syntax("a name of at most 255 octets", text));
            }
        }
        let length = wire.len() - start - 1;
        if !(1..=LABEL_MAX).contains(&length) {
            return Err(label_refused());
        }
        wire[start] = length as u8;
        rest = match rest {
            [] => rest,
            [b'.', after @ ..] => after,
            _ => return Err(label_refused()),
        };
    }
    match wire.is_empty() {
        true => Err(label_refused()),
        false => Ok(wire),
    }
}

/// The first octet of a label; `None` at a dot, at the end and at a broken escape.
fn octet(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        [b'\\', digits @ ..] if digits.first().is_some_and(u8::is_ascii_digit) => {
            let (digits, after) = digits.split_at_checked(3)?;
            let digits = std::str::from_utf8(digits).ok()?;
            Some((digits.parse().ok()?, after))
        }
        [b'\\', octet, after @ ..] => Some((*octet, after)),
        [] | [b'.' | b'\\', ..] => None,
        [octet, after @ ..] => Some((*octet, after)),
    }
}

/// The labels of a name in wire form without the root. Octets behind a broken label are left out.
pub(super) fn labels(wire: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = wire;
    std::iter::from_fn(move || {
        let length = usize::from(*rest.first()?);
        let (label, after) = rest.split_at_checked(1 + length)?;
        rest = after;
        Some(label)
    })
}

/// The labels of a name, each with a length, last label first. Names below a name begin with the octets of the upper
/// name, so that the order keeps names together.
pub(super) fn reversed(wire: &[u8]) -> Vec<u8> {
    let labels: Vec<&[u8]> = labels(wire).collect();
    labels.into_iter().rev().flatten().copied().collect()
}

/// A name in wire form as text: labels with dots between, and a backslash before octets that have a meaning in a master
/// file (RFC 1035 section 5.1). The root adds nothing.
#[must_use]
pub fn text(wire: &[u8]) -> String {
    let mut text = String::new();
    for label in labels(wire).filter(|label| label.len() > 1) {
        if !text.is_empty() {
            text.push('.');
        }
        for octet in label.get(1..).unwrap_or_default() {
            match octet {
                b'.' | b'\\' | b'"' | b';' | b'(' | b')' | b'@' | b'$' => {
                    text.extend(['\\', char::from(*octet)]);
                }
                b'!'..=b'~' => text.push(char::from(*octet)),
                octet => text.push_str(&format!("\\{octet:03}")),
            }
        }
    }
    text
}

/// The wire form of a name with the root.
pub(super) fn absolute(text: &[u8]) -> Result<Box<[u8]>, Reason> {
    let mut wire = relative(text)?;
    wire.push(0);
    Ok(wire.into())
}
