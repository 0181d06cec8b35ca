//! Facts of a message itself: authors, structure, names of attachments.

use vere_mime::{
    Field, PARAMETERS_MAX, Parameterized, Parsed, Part, PartKind, VALUE_OCTETS_MAX, addr_specs,
    fields, header_len, text, unfold,
};

use crate::facts::{ATTACHMENTS_MAX, AUTHORS_MAX, Attachment, Author, Facts, Structure, UNCOUNTED};

/// Numbers of a continued parameter (RFC 2231 section 3), more than parameters are kept of a field.
const SEGMENTS_MAX: u32 = 100;

impl Facts {
    /// Reads the facts of a message from its octets and its parse result.
    pub fn read(&mut self, message: &[u8], parsed: &Parsed) {
        self.author = Some(author(message));
        let mut structure = structure(message, parsed);
        let mut headers = parsed
            .parts
            .iter()
            .map(|part| message.get(part.header.clone()));
        if headers.any(|header| is_ambiguous(header.unwrap_or_default())) {
            structure.total = UNCOUNTED;
            self.cut = true;
        }
        self.structure = Some(structure);
    }
}

/// Whether readers of mail take a part apart in different ways: type, disposition or boundary stand there twice, the boundary is written in the form of
/// RFC 2231, or a field has more than the parser keeps. An attachment could hide there.
fn is_ambiguous(header: &[u8]) -> bool {
    let (mut types, mut dispositions) = (0, 0);
    for field in fields(header) {
        let is_type = field.is("Content-Type");
        if !is_type && !field.is("Content-Disposition") {
            continue;
        }
        if field.value.len() > VALUE_OCTETS_MAX {
            return true;
        }
        let given = Parameterized::read(&unfold(field.value));
        let is_multipart = without_start(&given.value, "multipart").is_some();
        let boundaries = given.parameters.iter().filter_map(|(name, _)| {
            let rest = without_start(name, "boundary")?;
            (rest.is_empty() || rest.starts_with(b"*")).then_some(rest)
        });
        let boundaries: Vec<_> = boundaries.collect();
        let is_plain = boundaries.len() <= 1 && boundaries.iter().all(|rest| rest.is_empty());
        if given.parameters.len() >= PARAMETERS_MAX || (is_type && is_multipart && !is_plain) {
            return true;
        }
        types += usize::from(is_type);
        dispositions += usize::from(!is_type);
    }
    types > 1 || dispositions > 1
}

/// Reads the addresses of all From fields: of several, programs show different ones.
fn author(message: &[u8]) -> Author {
    let mut author = Author::default();
    for field in fields(message).filter(|field: &Field<'_>| field.is("From")) {
        author.fields = author.fields.saturating_add(1);
        for address in addr_specs(field.value) {
            author.total = author.total.saturating_add(1);
            if author.addresses.len() < AUTHORS_MAX {
                author.addresses.push(with_a_labels(address));
            }
        }
    }
    author
}

/// Writes the domain of an address by A-labels, as settings and policies have it. A domain without such a form stays as it is.
fn with_a_labels(address: String) -> String {
    match address.rsplit_once('@') {
        Some((local, domain)) => match idna::domain_to_ascii(domain) {
            Ok(domain) if !domain.is_empty() => format!("{local}@{domain}"),
            _ => address,
        },
        None => address,
    }
}

fn structure(message: &[u8], parsed: &Parsed) -> Structure {
    let mut depths: Vec<u32> = Vec::with_capacity(parsed.parts.len());
    for part in &parsed.parts {
        // A parent stands before its children; the message is its own parent.
        let above = depths.get(part.parent).copied().unwrap_or(0);
        depths.push(above.saturating_add(1));
    }
    let mut found = Structure {
        depth: depths.into_iter().max().unwrap_or(0),
        parts: u32::try_from(parsed.parts.len()).unwrap_or(u32::MAX),
        header_octets: u64::try_from(header_len(message)).unwrap_or(u64::MAX),
        ..Structure::default()
    };
    for part in parsed.parts.iter().filter(|part| is_attachment(part)) {
        let (kind, subtype) = part.media_type();
        let media_type = [kind, b"/", subtype].concat();
        let media_type = String::from_utf8_lossy(&media_type).to_lowercase();
        for name in names(part) {
            found.total = found.total.saturating_add(1);
            if found.attachments.len() < ATTACHMENTS_MAX {
                found.attachments.push(Attachment {
                    name,
                    media_type: media_type.clone(),
                });
            }
        }
    }
    found
}

/// Whether a part counts as an attachment: everything but multiparts, and texts to be read that have no name.
fn is_attachment(part: &Part) -> bool {
    let is_text = part.is("text", "plain") || part.is("text", "html");
    let is_named = names(part).iter().any(|name| !name.is_empty());
    let disposition = part.disposition.as_ref();
    let is_apart = disposition.is_some_and(|given| given.value.eq_ignore_ascii_case(b"attachment"));
    part.kind != PartKind::Multipart && (!is_text || is_named || is_apart)
}

/// The different names of a part; one empty name without any. Programs do not agree on which of several parameters counts.
fn names(part: &Part) -> Vec<String> {
    let mut names = Vec::new();
    let given = [
        (&part.disposition, "filename"),
        (&part.content_type, "name"),
    ];
    for (field, parameter) in given {
        if let Some(field) = field {
            names.extend(values(field, parameter));
        }
    }
    let mut different: Vec<String> = Vec::new();
    for name in names {
        if !name.is_empty() && !different.contains(&name) {
            different.push(name);
        }
    }
    if different.is_empty() {
        different.push(String::new());
    }
    different
}

/// The values of a parameter: plain ones, extended ones, and one that is put together of its segments (RFC 2231 sections 3 and 4).
fn values(field: &Parameterized, parameter: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut segments: Vec<(u32, bool, &[u8])> = Vec::new();
    for (name, value) in &field.parameters {
        let Some(rest) = without_start(name, parameter) else {
            continue;
        };
        match rest {
            b"" => values.push(text::of_field(value)),
            b"*" => values.push(joined(&[(0, true, value)])),
            _ => segments.extend(segment(rest).map(|(n, extended)| (n, extended, &value[..]))),
        }
    }
    if !segments.is_empty() {
        segments.sort_by_key(|(number, ..)| *number);
        values.push(joined(&segments));
    }
    values
}

fn without_start<'a>(name: &'a [u8], start: &str) -> Option<&'a [u8]> {
    let (found, rest) = name.split_at_checked(start.len())?;
    found.eq_ignore_ascii_case(start.as_bytes()).then_some(rest)
}

/// Reads `*N` or `*N*`.
fn segment(rest: &[u8]) -> Option<(u32, bool)> {
    let rest = rest.strip_prefix(b"*")?;
    let (number, is_extended) = match rest.strip_suffix(b"*") {
        Some(number) => (number, true),
        None => (rest, false),
    };
    let number: u32 = std::str::from_utf8(number).ok()?.parse().ok()?;
    (number < SEGMENTS_MAX).then_some((number, is_extended))
}

/// Joins segments; the first one may name the charset and the language.
fn joined(segments: &[(u32, bool, &[u8])]) -> String {
    let mut octets = Vec::new();
    let mut charset = None;
    for (n, (_, is_extended, value)) in segments.iter().enumerate() {
        let mut value = *value;
        if !is_extended {
            octets.extend_from_slice(value);
            continue;
        }
        let mut pieces = value.splitn(3, |octet| *octet == b'\'');
        if n == 0
            && let (Some(first), Some(_), Some(rest)) =
                (pieces.next(), pieces.next(), pieces.next())
        {
            charset = Some(first).filter(|charset| !charset.is_empty());
            value = rest;
        }
        percent_decoded(value, &mut octets);
    }
    text::in_charset(&octets, charset)
}

/// Undoes `%HH`; anything else stays.
fn percent_decoded(value: &[u8], out: &mut Vec<u8>) {
    let mut rest = value;
    while let Some((first, behind)) = rest.split_first() {
        let octet = (*first == b'%').then(|| behind.get(..2)).flatten();
        let octet = octet.and_then(|hex| std::str::from_utf8(hex).ok());
        let octet = octet.filter(|hex| !hex.starts_with('+'));
        match octet.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(octet) => {
                out.push(octet);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = behind;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> (Author, Structure) {
        let message = message.replace('\n', "\r\n");
        let mut facts = Facts::default();
        facts.read(message.as_bytes(), &Parsed::of(message.as_bytes()));
        (facts.author.unwrap(), facts.structure.unwrap())
    }

    fn found(structure: &Structure) -> Vec<(&str, &str)> {
        let all = structure.attachments.iter();
        all.map(|found| (found.name.as_str(), found.media_type.as_str()))
            .collect()
    }

    #[test]
    fn authors_of_all_fields_are_read() {
        let (author, _) =
            read("From: Ann <ann@example.org>, bob@b\u{fc}cher.example\nfrom : c@d\n\nFrom: no\n");
        assert_eq!((author.fields, author.total), (2, 3));
        assert_eq!(
            author.addresses,
            ["ann@example.org", "bob@xn--bcher-kva.example", "c@d"]
        );
        assert_eq!(read("To: a@b\n\n").0, Author::default());
        let (many, _) = read(&format!("From: a@b{}\n\n", ", a@b".repeat(20)));
        assert_eq!((many.total, many.addresses.len()), (21, AUTHORS_MAX));
    }

    #[test]
    fn structure_has_depth_parts_and_attachments() {
        let (_, structure) = read(
            "Content-Type: multipart/mixed; boundary=a\n\n--a\n\ntext\n--a\n\
             Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/html\n\nx\n--b--\n\
             --a\nContent-Type: Application/ZIP; name=\"=?utf-8?q?=C3=A9.zip?=\"\n\
             Content-Disposition: attachment; filename=other.zip\n\nPK\n\
             --a\nContent-Disposition: attachment\n\ntext\n\
             --a\nContent-Type: image/png\n\nx\n--a--\n",
        );
        assert_eq!((structure.depth, structure.parts), (3, 7));
        assert_eq!((structure.header_octets, structure.total), (45, 4));
        assert_eq!(
            found(&structure),
            [
                ("other.zip", "application/zip"),
                ("é.zip", "application/zip"),
                ("", "text/plain"),
                ("", "image/png"),
            ]
        );
    }

    #[test]
    fn a_message_that_is_a_file_is_an_attachment() {
        let (_, structure) = read("Content-Type: application/x-msdownload; name=a.exe\n\nMZ\n");
        assert_eq!(found(&structure), [("a.exe", "application/x-msdownload")]);
        assert_eq!((structure.depth, structure.parts), (1, 1));
    }

    #[test]
    fn names_in_every_notation_are_found() {
        for (parameters, names) in [
            ("filename=a.exe", &["a.exe"][..]),
            ("FileName*=utf-8''%C3%A9%2eexe", &["é.exe"]),
            ("filename*=iso-8859-1'de'%E9.exe", &["é.exe"]),
            ("filename*=a%20b%zz%", &["a b%zz%"]),
            ("filename*1=.exe; filename*0=a", &["a.exe"]),
            (
                "filename*0*=utf-8''%C3; filename*1*=%A9; filename*2=.e%78e",
                &["é.e%78e"],
            ),
            // Programs differ in which one counts.
            ("filename=a.txt; filename*=''a.exe", &["a.txt", "a.exe"]),
            (
                "filename=a.txt; filename=a.exe; filename=a.txt",
                &["a.txt", "a.exe"],
            ),
            ("filenames=a; filename*x=b; filename*100=c", &[""]),
        ] {
            let (_, structure) = read(&format!(
                "Content-Disposition: attachment; {parameters}\n\ntext\n"
            ));
            let found: Vec<_> = found(&structure).iter().map(|(name, _)| *name).collect();
            assert_eq!(found, names, "{parameters}");
        }
    }

    #[test]
    fn parts_that_readers_take_apart_differently_are_not_counted() {
        let many = "; x=y".repeat(PARAMETERS_MAX);
        let long = "x".repeat(VALUE_OCTETS_MAX);
        for header in [
            "Content-Type: multipart/mixed; boundary*0=a; boundary*1=b",
            "Content-Type: multipart/mixed; boundary*=us-ascii''a",
            "Content-Type: Multipart/mixed; boundary=a; BOUNDARY=b",
            "Content-Type: multipart/mixed; boundary=a\nContent-Type: text/plain",
            "Content-Disposition: inline\nContent-Disposition: attachment; filename=a.exe",
            &format!("Content-Disposition: attachment{many}; filename=a.exe"),
            &format!("Content-Type: application/x; name={long}"),
        ] {
            assert_eq!(
                read(&format!("{header}\n\nx\n")).1.total,
                UNCOUNTED,
                "{header}"
            );
            let inner =
                format!("Content-Type: multipart/x; boundary=q\n\n--q\n{header}\n\nx\n--q--\n");
            assert_eq!(read(&inner).1.total, UNCOUNTED, "{header}");
        }
        for header in [
            "Content-Type: multipart/mixed; boundary=a; boundaries=b",
            "Content-Type: multipart/mixed",
            "Content-Type: text/plain; boundary*0=a; boundary=b",
        ] {
            assert!(read(&format!("{header}\n\nx\n")).1.total < 2, "{header}");
        }
    }

    #[test]
    fn more_attachments_than_are_kept_are_counted() {
        let part = "--a\nContent-Type: a/b\n\nx\n".repeat(ATTACHMENTS_MAX + 2);
        let (_, structure) = read(&format!(
            "Content-Type: multipart/mixed; boundary=a\n\n{part}"
        ));
        assert_eq!(structure.total as usize, ATTACHMENTS_MAX + 2);
        assert_eq!(structure.attachments.len(), ATTACHMENTS_MAX);
    }
}
