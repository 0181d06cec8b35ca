//! Answers of a filter.

use crate::change::{Change, address, field_name, field_value, parameters};
use crate::options::{Options, action, protocol};
use crate::packet::{Packet, number, text};
use crate::{FieldError, MilterError};

/// The longest text for a client; the rest is cut.
const TEXT_OCTETS_MAX: usize = 400;
/// The most octets of a reply that are looked at.
const REPLY_OCTETS_MAX: usize = 4_096;

/// An answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Go on.
    Continue,
    /// Accept the message at once.
    Accept,
    /// Refuse.
    Refuse(Refusal),
    /// Accept the message without delivery.
    Discard,
    /// Send no more commands of this kind.
    Skip,
    /// Wait on.
    Progress,
    /// Hold the message, for this reason.
    Quarantine(String),
    /// Change something.
    Change(Change),
    /// A piece of the body that replaces the message's.
    Body(Vec<u8>),
}

/// How a filter refuses a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Whether the client may try again.
    pub temporary: bool,
    /// The filter's words in one line of printable ASCII, with the enhanced status code if there is
    /// a code; empty if the filter gave no words.
    pub text: String,
}

impl Answer {
    /// Reads an answer by the agreed options.
    ///
    /// # Errors
    /// The code does not exist, the data are malformed, or the change was not agreed on (as an unknown code).
    pub fn read(packet: &Packet<'_>, options: &Options) -> Result<Self, MilterError> {
        let refuse = |temporary, text: &str| {
            let text = text.to_owned();
            Self::Refuse(Refusal { temporary, text })
        };
        Ok(match packet.code {
            b'c' => Self::Continue,
            b'a' => Self::Accept,
            b'r' => refuse(false, ""),
            b't' | b'f' | b'4' => refuse(true, ""),
            b'd' => Self::Discard,
            b's' if options.has(protocol::SKIP) => Self::Skip,
            b'p' => Self::Progress,
            b'y' => Self::Refuse(reply(packet.data)?),
            b'q' if options.allows(action::QUARANTINE) => {
                Self::Quarantine(printable(packet.data, TEXT_OCTETS_MAX))
            }
            b'b' if options.allows(action::CHANGE_BODY) => Self::Body(packet.data.to_vec()),
            code if allowed(code, options) => Self::Change(change(packet, options)?),
            code => return Err(MilterError::Code(code)),
        })
    }
}

/// Whether the code is that of a change that was agreed on.
const fn allowed(code: u8, options: &Options) -> bool {
    options.allows(match code {
        // libmilter lets a filter with either of these two insert and add.
        b'h' | b'i' => action::ADD_HEADERS | action::CHANGE_HEADERS,
        b'm' => action::CHANGE_HEADERS,
        b'+' => action::ADD_RECIPIENTS,
        b'2' => action::ADD_RECIPIENTS_WITH_PARAMETERS,
        b'-' => action::DELETE_RECIPIENTS,
        b'e' => action::CHANGE_FROM,
        _ => 0,
    })
}

fn change(packet: &Packet<'_>, options: &Options) -> Result<Change, MilterError> {
    let mut data = packet.data;
    let spaced = options.has(protocol::LEADING_SPACE);
    Ok(match packet.code {
        b'h' => {
            let (name, value) = field(&mut data)?;
            let value = field_value(value, spaced)?;
            Change::AddHeader { name, value }
        }
        b'i' => {
            let index = number(&mut data).ok_or(MilterError::Cut("an inserted header"))?;
            let (name, value) = field(&mut data)?;
            let value = field_value(value, spaced)?;
            Change::InsertHeader { index, name, value }
        }
        b'm' => {
            let index = number(&mut data).ok_or(MilterError::Cut("a changed header"))?;
            let (name, value) = field(&mut data)?;
            // smfi_chgheader sends an empty text for NULL, which deletes.
            let value = match value {
                [] => None,
                value => Some(field_value(value, spaced)?),
            };
            Change::ChangeHeader { index, name, value }
        }
        b'-' => Change::DeleteRecipient(recipient(&mut data)?),
        code => {
            let address = match code {
                b'e' => path(&mut data)?,
                _ => recipient(&mut data)?,
            };
            let rest = match data {
                [] => Some(&[][..]),
                mut data => text(&mut data),
            };
            let parameters = parameters(rest.ok_or(MilterError::Cut("parameters"))?);
            let parameters = parameters.ok_or(MilterError::Address)?;
            match code {
                b'e' => Change::ChangeFrom {
                    address,
                    parameters,
                },
                _ => Change::AddRecipient {
                    address,
                    parameters,
                },
            }
        }
    })
}

/// Takes name and value.
fn field<'a>(data: &mut &'a [u8]) -> Result<(String, &'a [u8]), MilterError> {
    let cut = MilterError::Cut("a header field");
    let name = text(data).ok_or(cut)?;
    let value = text(data).ok_or(cut)?;
    if name.is_empty() {
        return Err(FieldError::Name.into());
    }
    Ok((field_name(name)?, value))
}

fn path(data: &mut &[u8]) -> Result<String, MilterError> {
    let text = text(data).ok_or(MilterError::Cut("an address"))?;
    address(text).ok_or(MilterError::Address)
}

fn recipient(data: &mut &[u8]) -> Result<String, MilterError> {
    let path = path(data)?;
    match path.is_empty() {
        true => Err(MilterError::Address),
        false => Ok(path),
    }
}

/// Reads a reply of SMTP, of one line or several; `%%` stands for `%` (`smfi_setreply`).
fn reply(mut data: &[u8]) -> Result<Refusal, MilterError> {
    let reply = text(&mut data).ok_or(MilterError::Cut("a reply"))?;
    let [class @ (b'4' | b'5'), b'0'..=b'5', b'0'..=b'9', ..] = reply else {
        return Err(MilterError::Reply);
    };
    let reply = reply.get(..REPLY_OCTETS_MAX).unwrap_or(reply);
    let lines = reply.split(|octet| *octet == b'\n');
    // Each line begins with the code and a blank or a dash.
    let lines = lines.map(|line| line.get(4..).unwrap_or_default().trim_ascii());
    let text = lines.collect::<Vec<_>>().join(&b' ');
    let text = printable(&text, TEXT_OCTETS_MAX).replace("%%", "%");
    let temporary = *class == b'4';
    Ok(Refusal { temporary, text })
}

/// Returns octets as one line of printable ASCII, up to a NUL.
fn printable(octets: &[u8], max: usize) -> String {
    let octets = octets.iter().copied().take_while(|octet| *octet != 0);
    let shown = octets.take(max).map(|octet| match octet {
        b' '..=b'~' => char::from(octet),
        b'\t' | b'\r' | b'\n' => ' ',
        _ => '?',
    });
    shown.collect::<String>().trim().to_owned()
}
