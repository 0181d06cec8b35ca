//! Finds a report in a message or a bare file.

use vere_mime::{Parsed, Part, PartKind, text};

use crate::aggregate::Aggregate;
use crate::archive::{gzip, is_archive, unpack};
use crate::bounds::{ATTACHMENTS_MAX, MESSAGE_OCTETS_MAX, PACKED_OCTETS_MAX};
use crate::error::ReportError;
use crate::tls::TlsReport;

/// A report of either kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// About DMARC.
    Aggregate(Box<Aggregate>),
    /// About TLS.
    Tls(Box<TlsReport>),
}

/// The kind of text in a file, by its first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Xml,
    Json,
}

impl Report {
    /// Reads a report: a message with a report attached, or the bare file, plain or in an archive.
    ///
    /// The octets decide what a file is, not the type that the message declares: reporters declare gzip as zip, and the other way.
    /// An archive in an archive is not opened.
    ///
    /// # Errors
    /// [`ReportError::None`] for a message without a report; other errors are of the first attachment that looks like a report, if none
    /// can be read.
    pub fn read(octets: &[u8]) -> Result<Self, ReportError> {
        if octets.len() > MESSAGE_OCTETS_MAX && !is_archive(octets) && kind(octets).is_none() {
            return Err(ReportError::many("octets of a message", MESSAGE_OCTETS_MAX));
        }
        if is_archive(octets) || kind(octets).is_some() {
            return Self::read_file(octets);
        }
        Self::read_message(octets)
    }

    /// The report as XML or JSON in gzip.
    #[must_use]
    pub fn packed(&self) -> Vec<u8> {
        match self {
            Self::Aggregate(report) => gzip(report.to_xml().as_bytes()),
            Self::Tls(report) => gzip(report.to_json().as_bytes()),
        }
    }

    fn read_file(octets: &[u8]) -> Result<Self, ReportError> {
        match unpack(octets)? {
            Some(file) => Self::read_text(&file),
            None => Self::read_text(octets),
        }
    }

    fn read_text(octets: &[u8]) -> Result<Self, ReportError> {
        match kind(octets) {
            Some(Kind::Xml) => Aggregate::read(octets).map(|report| Self::Aggregate(report.into())),
            Some(Kind::Json) => TlsReport::read(octets).map(|report| Self::Tls(report.into())),
            None => Err(ReportError::None),
        }
    }

    fn read_message(octets: &[u8]) -> Result<Self, ReportError> {
        let mut first = None;
        let mut tried = 0_usize;
        for part in &Parsed::of(octets).parts {
            let Some(file) = file_of(part, octets)? else {
                continue;
            };
            if tried >= ATTACHMENTS_MAX {
                break;
            }
            tried = tried.saturating_add(1);
            match Self::read_file(&file) {
                Ok(report) => return Ok(report),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(ReportError::None))
    }

    /// The domain that the report is about; of a TLS report the first one.
    #[must_use]
    pub fn domain(&self) -> &str {
        match self {
            Self::Aggregate(report) => &report.policy.domain,
            Self::Tls(report) => {
                let first = report.policies.first();
                first.map_or("", |policy| &policy.domain)
            }
        }
    }
}

/// The octets of a part that could be a report.
fn file_of(part: &Part, message: &[u8]) -> Result<Option<Vec<u8>>, ReportError> {
    if part.kind != PartKind::Single {
        return Ok(None);
    }
    let Some(body) = message.get(part.body.clone()) else {
        return Ok(None);
    };
    let declared = is_declared(part);
    let (kind, _) = part.media_type();
    // The text for people is no report, though it may begin as one.
    if !declared && (kind.eq_ignore_ascii_case(b"text") || kind.eq_ignore_ascii_case(b"image")) {
        return Ok(None);
    }
    // Base64 has four octets for three, and line ends.
    if body.len() > PACKED_OCTETS_MAX.saturating_mul(3) / 2 {
        return match declared {
            true => Err(ReportError::many(
                "octets of an attachment",
                PACKED_OCTETS_MAX,
            )),
            false => Ok(None),
        };
    }
    let file = text::decoded(part, body).into_owned();
    let is_one = declared || is_archive(&file) || self::kind(&file).is_some();
    Ok(is_one.then_some(file))
}

/// Whether the type or the name of a part is a report's.
fn is_declared(part: &Part) -> bool {
    const TYPES: [(&str, &str); 12] = [
        ("application", "gzip"),
        ("application", "x-gzip"),
        ("application", "zip"),
        ("application", "x-zip"),
        ("application", "x-zip-compressed"),
        ("application", "xml"),
        ("application", "json"),
        ("application", "tlsrpt+gzip"),
        ("application", "tlsrpt+json"),
        ("application", "tlsrpt+zip"),
        ("text", "xml"),
        ("text", "json"),
    ];
    const ENDINGS: [&[u8]; 5] = [b".xml", b".xml.gz", b".json", b".json.gz", b".zip"];
    if TYPES.iter().any(|(kind, subtype)| part.is(kind, subtype)) {
        return true;
    }
    let disposition = part.disposition.as_ref();
    let name = disposition
        .and_then(|disposition| disposition.parameter("filename"))
        .or_else(|| part.content_type.as_ref()?.parameter("name"));
    let name = name.unwrap_or_default().to_ascii_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn kind(octets: &[u8]) -> Option<Kind> {
    let octets = octets.strip_prefix(b"\xef\xbb\xbf").unwrap_or(octets);
    match octets.trim_ascii_start() {
        [b'<', ..] | [0xff, 0xfe, b'<', ..] | [0xfe, 0xff, 0, b'<', ..] => Some(Kind::Xml),
        [b'{', ..] => Some(Kind::Json),
        _ => None,
    }
}
