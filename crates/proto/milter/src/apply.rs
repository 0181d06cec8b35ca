//! Changes applied to a message.

use std::borrow::Cow;

use vere_mime::fields;

use crate::change::Change;

/// A field of the header that is being changed.
struct Place<'a> {
    /// Empty for a line that is no field.
    name: Cow<'a, [u8]>,
    /// With the line end; `None` if deleted. A deleted field keeps the number.
    raw: Option<Cow<'a, [u8]>>,
}

impl Place<'_> {
    fn of(name: &str, value: &[u8]) -> Self {
        Self {
            name: Cow::Owned(name.as_bytes().to_vec()),
            raw: Some(Cow::Owned(raw(name.as_bytes(), value))),
        }
    }

    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// Returns the message with the changes of header and body, in order; changes of the envelope are left out.
///
/// Numbers are those of libmilter as Sendmail has them: the number of a changed field counts the fields of the name from 1, the
/// place of an inserted field all fields from 0, and fields that were added or inserted count. A deleted field keeps its number, so
/// that a filter may delete fields 1, 2 and 3 in any order. (Postfix counts deleted fields no more; filters that delete from
/// the last field to the first work with both.) A number beyond the last field adds a field at the end, and deletes none.
/// Lines without a name, such as that of an mbox, have no number.
///
/// New lines end with CRLF. Takes time for each change and each field; the caller bounds the changes.
#[must_use]
pub fn apply(message: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut walk = fields(message);
    let mut places: Vec<Place<'_>> = Vec::new();
    for field in walk.by_ref() {
        let name = if field.is_named() { field.name } else { &[] };
        places.push(Place {
            name: Cow::Borrowed(name),
            raw: Some(Cow::Borrowed(field.raw)),
        });
    }
    let rest = walk.rest();
    let mut body: Option<&[u8]> = None;
    for change in changes {
        match change {
            Change::AddHeader { name, value } => places.push(Place::of(name, value)),
            Change::InsertHeader { index, name, value } => insert(&mut places, *index, name, value),
            Change::ChangeHeader { index, name, value } => {
                set(&mut places, *index, name, value.as_deref());
            }
            Change::ReplaceBody(replaced) => body = Some(replaced),
            Change::AddRecipient { .. }
            | Change::DeleteRecipient(_)
            | Change::ChangeFrom { .. } => {}
        }
    }
    let mut out = Vec::with_capacity(message.len());
    for raw in places.iter().filter_map(|place| place.raw.as_deref()) {
        end_line(&mut out);
        out.extend_from_slice(raw);
    }
    match body {
        None if rest.is_empty() => {}
        None => {
            end_line(&mut out);
            out.extend_from_slice(rest);
        }
        Some(body) => {
            end_line(&mut out);
            out.extend_from_slice(b"\r\n");
            with_line_ends(&mut out, body);
        }
    }
    out
}

/// Returns reverse-path and recipients with the changes of the envelope. Addresses compare without regard to the case of ASCII
/// letters; a recipient is not added twice.
#[must_use]
pub fn apply_to_recipients(
    reverse_path: &str,
    recipients: &[&str],
    changes: &[Change],
) -> (String, Vec<String>) {
    let mut path = reverse_path.to_owned();
    let mut to: Vec<String> = recipients.iter().map(|to| (*to).to_owned()).collect();
    for change in changes {
        match change {
            Change::ChangeFrom { address, .. } => path.clone_from(address),
            Change::DeleteRecipient(gone) => to.retain(|to| !to.eq_ignore_ascii_case(gone)),
            Change::AddRecipient { address, .. } => {
                if !to.iter().any(|to| to.eq_ignore_ascii_case(address)) {
                    to.push(address.clone());
                }
            }
            Change::AddHeader { .. }
            | Change::InsertHeader { .. }
            | Change::ChangeHeader { .. }
            | Change::ReplaceBody(_) => {}
        }
    }
    (path, to)
}

fn insert(places: &mut Vec<Place<'_>>, index: u32, name: &str, value: &[u8]) {
    let named = places
        .iter()
        .enumerate()
        .filter(|(_, place)| !place.name.is_empty());
    let at = named.map(|(at, _)| at).nth(index as usize);
    let at = at.unwrap_or(places.len());
    places.insert(at, Place::of(name, value));
}

fn set(places: &mut Vec<Place<'_>>, index: u32, name: &str, value: Option<&[u8]>) {
    // smfi_chgheader counts from 1; filters that count from 0 mean the first field.
    let number = (index as usize).saturating_sub(1);
    let found = places.iter_mut().filter(|place| place.is(name)).nth(number);
    match (found, value) {
        (Some(place), Some(value)) => place.raw = Some(Cow::Owned(raw(&place.name, value))),
        (Some(place), None) => place.raw = None,
        (None, Some(value)) => places.push(Place::of(name, value)),
        (None, None) => {}
    }
}

/// A field as written.
fn raw(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut raw = name.to_vec();
    raw.push(b':');
    with_line_ends(&mut raw, value);
    raw.extend_from_slice(b"\r\n");
    raw
}

/// A message may end within the header, without a line end.
fn end_line(out: &mut Vec<u8>) {
    if out.last().is_some_and(|octet| *octet != b'\n') {
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends octets, each line end as CRLF: a message has no bare CR or LF (RFC 5322 section 2.3).
fn with_line_ends(out: &mut Vec<u8>, octets: &[u8]) {
    let mut before = 0;
    for octet in octets {
        match octet {
            b'\n' if before == b'\r' => {}
            b'\r' | b'\n' => out.extend_from_slice(b"\r\n"),
            octet => out.push(*octet),
        }
        before = *octet;
    }
}
