//! Autodiscover: the requests of Outlook (POX, MS-OXDSCLI section 2.2) and the answers for IMAP and SMTP; and the small JSON answer of
//! Autodiscover v2, which leads to them.
//!
//! ```text
//! <Autodiscover xmlns="http://schemas.microsoft.com/exchange/autodiscover/outlook/requestschema/2006">
//!   <Request>
//!     <EMailAddress>alice@example.org</EMailAddress>
//!     <AcceptableResponseSchema>http://schemas.microsoft.com/exchange/autodiscover/outlook/responseschema/2006a</AcceptableResponseSchema>
//!   </Request>
//! </Autodiscover>
//! ```

use std::io;

use quick_xml::events::{BytesRef, Event};
use quick_xml::reader::Reader;
use quick_xml::{XmlVersion, escape};
use serde_json::json;

use crate::address::Address;
use crate::error::RequestError;
use crate::services::{Access, Security, Services};
use crate::xml::{Xml, document, text, within};

/// The media type of the answers to POST requests.
pub const MEDIA_TYPE: &str = "application/xml; charset=utf-8";
/// Octets of a request.
pub const REQUEST_OCTETS_MAX: usize = 64 * 1024;
/// Levels of elements; a request has three.
const DEPTH_MAX: usize = 16;
/// Octets of a text that is kept; a schema has some 90, an address at most 254.
const TEXT_OCTETS_MAX: usize = 1_024;

const ANSWER: &str = "http://schemas.microsoft.com/exchange/autodiscover/responseschema/2006";
const OUTLOOK: &str =
    "http://schemas.microsoft.com/exchange/autodiscover/outlook/responseschema/2006a";
/// The protocol of Autodiscover v2 that this system has.
const POX: &str = "AutodiscoverV1";

/// Reads the address of the user out of a request.
///
/// # Errors
/// [`RequestError`]: the body is not such a request, or asks for another schema.
pub fn address(body: &[u8]) -> Result<Address, RequestError> {
    if body.len() > REQUEST_OCTETS_MAX {
        return Err(RequestError::Long(REQUEST_OCTETS_MAX));
    }
    let body = String::from_utf8_lossy(body);
    let (mut user, mut schema) = (None, None);
    walk(&body, |name, text| match name {
        "EMailAddress" => user = user.take().or_else(|| Address::parse(text)),
        "AcceptableResponseSchema" => {
            schema = schema.take().or_else(|| Some(text.trim() == OUTLOOK))
        }
        _ => {}
    })?;
    match (schema, user) {
        (Some(false), _) => Err(RequestError::Schema),
        (_, None) => Err(RequestError::NoAddress),
        (_, Some(user)) => Ok(user),
    }
}

/// Calls `take` with each element without elements in it, and its text. Entities are those of XML alone.
fn walk(body: &str, mut take: impl FnMut(&str, &str)) -> Result<(), RequestError> {
    let mut reader = Reader::from_str(body.trim_start_matches('\u{feff}'));
    reader.config_mut().expand_empty_elements = true;
    let (mut names, mut text): (Vec<String>, _) = (Vec::new(), String::new());
    loop {
        let event = reader.read_event();
        match event.map_err(|error| RequestError::Xml(error.to_string()))? {
            Event::Start(tag) if names.len() < DEPTH_MAX => {
                names.push(shortened(tag.local_name().as_ref()));
                text.clear();
            }
            Event::Start(_) => return Err(RequestError::Deep(DEPTH_MAX)),
            Event::End(_) => {
                take(&names.pop().unwrap_or_default(), &text);
                text.clear();
            }
            Event::Text(piece) => add(&mut text, &piece.xml_content(XmlVersion::Implicit1_0)),
            Event::CData(piece) => add(&mut text, &piece.xml_content(XmlVersion::Implicit1_0)),
            Event::GeneralRef(entity) => add(&mut text, &character(&entity)?),
            Event::DocType(_) => return Err(RequestError::DocumentType),
            Event::Eof if names.is_empty() => return Ok(()),
            Event::Eof => return Err(RequestError::Xml("the end inside an element".to_owned())),
            _ => {}
        }
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

/// A text beyond the bound is none that is looked for.
fn add(text: &mut String, piece: &str) {
    if text.len().saturating_add(piece.len()) <= TEXT_OCTETS_MAX {
        text.push_str(piece);
    }
}

/// The character of an entity: by number, or one of the five of XML. Others need a document type, and are errors.
fn character(entity: &BytesRef<'_>) -> Result<String, RequestError> {
    let unknown = || RequestError::Xml("an unknown entity".to_owned());
    let by_number = entity.resolve_char_ref().map_err(|_| unknown())?;
    if let Some(character) = by_number {
        return Ok(character.to_string());
    }
    let name = entity.xml_content(XmlVersion::Implicit1_0);
    let known = escape::resolve_predefined_entity(&name).ok_or_else(unknown)?;
    Ok(known.to_owned())
}

/// Writes the answer for a user, whether or not there is such an account.
#[must_use]
pub fn answer(user: &Address, services: &Services) -> String {
    document("Autodiscover", &[("xmlns", ANSWER)], |xml| {
        within(xml, "Response", &[("xmlns", OUTLOOK)], |xml| {
            within(xml, "Account", &[], |xml| {
                text(xml, "AccountType", "email")?;
                text(xml, "Action", "settings")?;
                // The first of a type counts.
                for access in &services.imap {
                    protocol(xml, ("IMAP", user), &services.host, access)?;
                }
                for access in &services.smtp {
                    protocol(xml, ("SMTP", user), &services.host, access)?;
                }
                Ok(())
            })
        })
    })
}

fn protocol(
    xml: &mut Xml,
    (kind, user): (&str, &Address),
    host: &str,
    access: &Access,
) -> io::Result<()> {
    within(xml, "Protocol", &[], |xml| {
        text(xml, "Type", kind)?;
        text(xml, "Server", host)?;
        text(xml, "Port", &access.port.to_string())?;
        text(xml, "DomainRequired", "off")?;
        text(xml, "LoginName", user.as_str())?;
        text(xml, "SPA", "off")?;
        text(xml, "SSL", "on")?;
        let encryption = match access.security {
            Security::Tls => "SSL",
            Security::StartTls => "TLS",
        };
        text(xml, "Encryption", encryption)?;
        text(xml, "AuthRequired", "on")
    })
}

/// Writes the answer to a request that is not understood (MS-OXDSCLI section 2.2.4.1.2).
#[must_use]
pub fn refusal(error: &RequestError) -> String {
    let (code, message) = match error {
        RequestError::Schema => ("601", "Requested schema version not supported"),
        _ => ("600", "Invalid Request"),
    };
    document("Autodiscover", &[("xmlns", ANSWER)], |xml| {
        within(xml, "Response", &[], |xml| {
            // Both attributes name the moment and the server for its administrator; neither helps a client.
            within(xml, "Error", &[("Time", "00:00:00"), ("Id", "0")], |xml| {
                text(xml, "ErrorCode", code)?;
                text(xml, "Message", message)?;
                text(xml, "DebugData", "")
            })
        })
    })
}

/// The answer to a question of Autodiscover v2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Whether the protocol is one of this system; otherwise the status is 400.
    pub is_known: bool,
    /// The JSON text.
    pub text: String,
}

/// Answers a question for the address of a protocol. `host` is the authority of the request: a name, and a port other than 443.
#[must_use]
pub fn of_protocol(protocol: &str, host: &str) -> Found {
    let is_known = protocol.eq_ignore_ascii_case(POX);
    let value = match is_known {
        true => json!({
            "Protocol": POX,
            "Url": format!("https://{host}/autodiscover/autodiscover.xml"),
        }),
        false => json!({
            "ErrorCode": "InvalidProtocol",
            "ErrorMessage": format!("The given protocol value is invalid. Supported values are '{POX}'."),
        }),
    };
    Found {
        is_known,
        text: value.to_string(),
    }
}
