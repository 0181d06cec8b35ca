//! ENVELOPE and BODYSTRUCTURE (RFC 9051 section 7.5.2) of a message.

use vere_mime::{AddressesView, EnvelopeView, Parameterized, Parsed, Part, PartKind};

use crate::write::{nstring, number, string};

/// Writes an envelope.
pub fn envelope(envelope: EnvelopeView<'_>, out: &mut Vec<u8>) {
    out.push(b'(');
    nstring(out, envelope.date);
    out.push(b' ');
    nstring(out, envelope.subject);
    for list in envelope.lists {
        out.push(b' ');
        addresses(list, out);
    }
    out.push(b' ');
    nstring(out, envelope.in_reply_to);
    out.push(b' ');
    nstring(out, envelope.message_id);
    out.push(b')');
}

fn addresses(list: AddressesView<'_>, out: &mut Vec<u8>) {
    let begin = out.len();
    for one in list {
        // The grammar has no space between addresses.
        out.extend_from_slice(if out.len() == begin { b"((" } else { b"(" });
        nstring(out, one.name);
        for part in [one.route, one.mailbox, one.host] {
            out.push(b' ');
            nstring(out, part);
        }
        out.push(b')');
    }
    out.extend_from_slice(if out.len() == begin { b"NIL" } else { b")" });
}

/// Writes the structure of a message: BODYSTRUCTURE, or BODY without the extension data.
pub fn body_structure(parsed: &Parsed, extended: bool, out: &mut Vec<u8>) {
    let render = Render {
        parts: &parsed.parts,
        extended,
    };
    if parsed.parts.is_empty() {
        out.extend_from_slice(b"NIL");
    } else {
        render.part(0, out);
    }
}

struct Render<'a> {
    /// The parts, each before its children.
    parts: &'a [Part],
    extended: bool,
}

impl Render<'_> {
    /// Writes a part with all descendants, and returns the index of the next part. The depth of the
    /// recursion is the depth of the structure, which is bounded.
    fn part(&self, index: usize, out: &mut Vec<u8>) -> usize {
        let after = index.saturating_add(1);
        let Some(part) = self.parts.get(index) else {
            return after;
        };
        out.push(b'(');
        let after = match part.kind {
            PartKind::Multipart => self.multipart(part, index, out),
            PartKind::Single | PartKind::Message => self.single(part, index, out),
        };
        out.push(b')');
        after
    }

    fn multipart(&self, part: &Part, index: usize, out: &mut Vec<u8>) -> usize {
        let mut next = index.saturating_add(1);
        while self.is_within(index, next) {
            next = self.part(next, out);
        }
        out.push(b' ');
        string(out, part.media_type().1);
        if self.extended {
            out.push(b' ');
            let given = part.content_type.as_ref();
            parameters(given.map_or(&[], |given| &given.parameters), out);
            common_extensions(part, out);
        }
        next
    }

    fn is_within(&self, parent: usize, index: usize) -> bool {
        self.parts
            .get(index)
            .is_some_and(|part| part.parent == parent && index > parent)
    }

    fn single(&self, part: &Part, index: usize, out: &mut Vec<u8>) -> usize {
        let mut next = index.saturating_add(1);
        let (kind, subtype, given) = shown_type(part);
        string(out, kind);
        out.push(b' ');
        string(out, subtype);
        out.push(b' ');
        match given {
            Shown::Given(given) => parameters(&given.parameters, out),
            Shown::Default => out.extend_from_slice(b"(\"charset\" \"us-ascii\")"),
            Shown::Nothing => out.extend_from_slice(b"NIL"),
        }
        for text in [&part.id, &part.description] {
            out.push(b' ');
            nstring(out, text.as_deref());
        }
        out.push(b' ');
        let encoding = part.encoding.as_deref().filter(|text| !text.is_empty());
        string(out, encoding.unwrap_or(b"7bit"));
        out.push(b' ');
        number(out, part.body.len() as u64);
        let mut lines = kind.eq_ignore_ascii_case(b"text");
        if part.kind == PartKind::Message && self.is_within(index, next) {
            out.push(b' ');
            let own = self
                .parts
                .get(next)
                .and_then(|part| part.envelope.as_deref());
            envelope(own.map(EnvelopeView::from).unwrap_or_default(), out);
            out.push(b' ');
            next = self.part(next, out);
            lines = true;
        }
        if lines {
            out.push(b' ');
            number(out, part.lines.into());
        }
        if self.extended {
            out.push(b' ');
            nstring(out, part.md5.as_deref());
            common_extensions(part, out);
        }
        next
    }
}

/// The parameters shown with a type.
enum Shown<'a> {
    /// The parameters of the message.
    Given(&'a Parameterized),
    /// The parameters of `text/plain` as the default type.
    Default,
    Nothing,
}

/// The type to show: a type outside the grammar is replaced by another type.
fn shown_type(part: &Part) -> (&[u8], &[u8], Shown<'_>) {
    let given = part
        .given_type()
        .filter(|(kind, subtype)| !kind.is_empty() && !subtype.is_empty());
    let is_message = part.kind == PartKind::Message;
    match given {
        None if is_message => (b"message", b"rfc822", Shown::Nothing),
        None => (b"text", b"plain", Shown::Default),
        // Without parts it is text; the grammar has no multipart without any.
        Some((kind, _)) if kind.eq_ignore_ascii_case(b"multipart") => {
            (b"text", b"plain", Shown::Default)
        }
        // Too deep or encoded: content, and the grammar wants an envelope behind this type.
        Some(_)
            if !is_message && (part.is("message", "rfc822") || part.is("message", "global")) =>
        {
            (b"application", b"octet-stream", Shown::Nothing)
        }
        Some((kind, subtype)) => {
            let parameters = part.content_type.as_ref();
            (
                kind,
                subtype,
                parameters.map_or(Shown::Nothing, Shown::Given),
            )
        }
    }
}

fn parameters(parameters: &[(Vec<u8>, Vec<u8>)], out: &mut Vec<u8>) {
    if parameters.is_empty() {
        out.extend_from_slice(b"NIL");
        return;
    }
    for (index, (name, text)) in parameters.iter().enumerate() {
        out.push(if index == 0 { b'(' } else { b' ' });
        string(out, name);
        out.push(b' ');
        string(out, text);
    }
    out.push(b')');
}

/// Disposition, language and location.
fn common_extensions(part: &Part, out: &mut Vec<u8>) {
    out.push(b' ');
    match &part.disposition {
        Some(disposition) if !disposition.value.is_empty() => {
            out.push(b'(');
            string(out, &disposition.value);
            out.push(b' ');
            parameters(&disposition.parameters, out);
            out.push(b')');
        }
        _ => out.extend_from_slice(b"NIL"),
    }
    out.push(b' ');
    let languages = part.language.as_deref().map(Parameterized::read);
    let languages: Vec<&[u8]> = languages
        .iter()
        .flat_map(|list| list.value.split(|octet| *octet == b','))
        .map(<[u8]>::trim_ascii)
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
    nstring(out, part.location.as_deref());
}
