//! ENVELOPE and BODYSTRUCTURE (RFC 9051 section 7.5.2) of a message.

use crate::write::{nstring, string};

use super::address;
use super::header::{field, unfold};
use super::structure::{Kind, Part, Structure};
use super::value::{self, Value};

/// Writes the envelope of a header.
pub fn envelope(header: &[u8], out: &mut Vec<u8>) {
    let text = |name: &str, out: &mut Vec<u8>| {
        let value = field(header, name).map(unfold);
        nstring(out, value.as_deref());
    };
    out.push(b'(');
    text("Date", out);
    out.push(b' ');
    text("Subject", out);
    let from = field(header, "From")
        .map(address::parse)
        .unwrap_or_default();
    for name in ["From", "Sender", "Reply-To", "To", "Cc", "Bcc"] {
        out.push(b' ');
        let own = field(header, name).map(address::parse).unwrap_or_default();
        // Sender and Reply-To are that of From where there is none.
        let shown = if own.is_empty() && matches!(name, "Sender" | "Reply-To") {
            &from
        } else {
            &own
        };
        addresses(shown, out);
    }
    out.push(b' ');
    text("In-Reply-To", out);
    out.push(b' ');
    text("Message-ID", out);
    out.push(b')');
}

fn addresses(list: &[address::Address], out: &mut Vec<u8>) {
    if list.is_empty() {
        out.extend_from_slice(b"NIL");
        return;
    }
    out.push(b'(');
    for one in list {
        out.push(b'(');
        nstring(out, one.name.as_deref());
        for part in [&one.route, &one.mailbox, &one.host] {
            out.push(b' ');
            nstring(out, part.as_deref());
        }
        out.push(b')');
    }
    out.push(b')');
}

/// Writes the structure of a message: BODYSTRUCTURE, or BODY without the extension data.
pub fn body_structure(message: &[u8], structure: &Structure, extended: bool, out: &mut Vec<u8>) {
    let render = Render {
        message,
        structure,
        extended,
    };
    match structure.root() {
        Some(root) => render.part(root, false, out),
        None => out.extend_from_slice(b"NIL"),
    }
}

struct Render<'a> {
    message: &'a [u8],
    structure: &'a Structure,
    extended: bool,
}

impl Render<'_> {
    /// The recursion is as deep as the structure, which is bounded.
    fn part(&self, part: &Part, in_digest: bool, out: &mut Vec<u8>) {
        let header = self.message.get(part.header.clone()).unwrap_or_default();
        out.push(b'(');
        match &part.kind {
            Kind::Multipart(children) if !children.is_empty() => {
                self.multipart(header, children, out);
            }
            _ => self.single(part, header, in_digest, out),
        }
        out.push(b')');
    }

    fn multipart(&self, header: &[u8], children: &[usize], out: &mut Vec<u8>) {
        let content_type = field(header, "Content-Type")
            .map(value::parse)
            .unwrap_or_default();
        let (_, subtype) = media(&content_type.text);
        let digest = subtype.eq_ignore_ascii_case(b"digest");
        for child in children {
            if let Some(part) = self.structure.part(*child) {
                self.part(part, digest, out);
            }
        }
        out.push(b' ');
        string(out, subtype);
        if self.extended {
            out.push(b' ');
            parameters(&content_type, out);
            common_extensions(header, out);
        }
    }

    fn single(&self, part: &Part, header: &[u8], in_digest: bool, out: &mut Vec<u8>) {
        let content_type = content_type(part, header, in_digest);
        let (kind, subtype) = media(&content_type.text);
        string(out, kind);
        out.push(b' ');
        string(out, subtype);
        out.push(b' ');
        parameters(&content_type, out);
        for name in ["Content-ID", "Content-Description"] {
            out.push(b' ');
            nstring(out, field(header, name).map(unfold).as_deref());
        }
        out.push(b' ');
        let encoding =
            field(header, "Content-Transfer-Encoding").map(|field| value::parse(field).text);
        string(
            out,
            encoding
                .as_deref()
                .filter(|text| !text.is_empty())
                .unwrap_or(b"7bit"),
        );
        out.extend_from_slice(format!(" {}", part.body.len()).as_bytes());
        if let Kind::Message(child) = part.kind
            && let Some(child) = self.structure.part(child)
        {
            out.push(b' ');
            envelope(
                self.message.get(child.header.clone()).unwrap_or_default(),
                out,
            );
            out.push(b' ');
            self.part(child, false, out);
            out.extend_from_slice(format!(" {}", part.lines).as_bytes());
        } else if kind.eq_ignore_ascii_case(b"text") {
            out.extend_from_slice(format!(" {}", part.lines).as_bytes());
        }
        if self.extended {
            out.push(b' ');
            nstring(out, field(header, "Content-MD5").map(unfold).as_deref());
            common_extensions(header, out);
        }
    }
}

/// The type to show: what the grammar cannot show with its own type is shown as another.
fn content_type(part: &Part, header: &[u8], in_digest: bool) -> Value {
    let mut found = field(header, "Content-Type")
        .map(value::parse)
        .unwrap_or_default();
    let (kind, subtype) = media(&found.text);
    let lower = (kind.to_ascii_lowercase(), subtype.to_ascii_lowercase());
    let is_message = matches!(part.kind, Kind::Message(_));
    let (kind, subtype) = (lower.0.as_slice(), lower.1.as_slice());
    let shown: Option<&[u8]> = match (kind, subtype) {
        (b"", _) | (_, b"") if is_message && in_digest => Some(b"message/rfc822"),
        (b"", _) | (_, b"") => Some(b"text/plain"),
        // Without parts it is text; the grammar has no multipart without any.
        (b"multipart", _) => Some(b"text/plain"),
        // Too deep or encoded: content, and the grammar wants an envelope behind this type.
        (b"message", b"rfc822" | b"global") if !is_message => Some(b"application/octet-stream"),
        _ => None,
    };
    if let Some(shown) = shown {
        found = Value {
            text: shown.to_vec(),
            parameters: Vec::new(),
        };
        if shown == b"text/plain" {
            found
                .parameters
                .push((b"charset".to_vec(), b"us-ascii".to_vec()));
        }
    }
    found
}

/// Splits `type/subtype`.
fn media(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|octet| *octet == b'/') {
        Some(slash) => {
            let (kind, subtype) = text.split_at(slash);
            (kind, subtype.get(1..).unwrap_or_default())
        }
        None => (text, &[]),
    }
}

fn parameters(value: &Value, out: &mut Vec<u8>) {
    if value.parameters.is_empty() {
        out.extend_from_slice(b"NIL");
        return;
    }
    for (index, (name, text)) in value.parameters.iter().enumerate() {
        out.push(if index == 0 { b'(' } else { b' ' });
        string(out, name);
        out.push(b' ');
        string(out, text);
    }
    out.push(b')');
}

/// Disposition, language and location.
fn common_extensions(header: &[u8], out: &mut Vec<u8>) {
    out.push(b' ');
    match field(header, "Content-Disposition").map(value::parse) {
        Some(disposition) if !disposition.text.is_empty() => {
            out.push(b'(');
            string(out, &disposition.text);
            out.push(b' ');
            parameters(&disposition, out);
            out.push(b')');
        }
        _ => out.extend_from_slice(b"NIL"),
    }
    out.push(b' ');
    let languages = field(header, "Content-Language").map(|field| value::parse(field).text);
    let languages: Vec<&[u8]> = languages
        .as_deref()
        .unwrap_or_default()
        .split(|octet| *octet == b',')
        .filter(|tag| !tag.is_empty())
        .collect();
    match languages.as_slice() {
        [] => out.extend_from_slice(b"NIL"),
        [one] => string(out, one),
        many => {
            for (index, tag) in many.iter().enumerate() {
                out.push(if index == 0 { b'(' } else { b' ' });
                string(out, tag);
            }
            out.push(b')');
        }
    }
    out.push(b' ');
    nstring(
        out,
        field(header, "Content-Location").map(unfold).as_deref(),
    );
}
