//! Addresses of the envelope: `ReversePath`, `ForwardPath` and their parts (RFC 5321 section 4.1.2,
//! with the UTF-8 of RFC 6531 section 3.3).
//!
//! An address is brought into one canonical form when it is parsed: the domain in lower case, the local
//! part with the least quoting, a source route dropped. Addresses that are equal by the standard are
//! therefore equal as values.

mod domain;
mod path;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use domain::check_domain;

pub use domain::{AddressLiteral, Domain, DomainOrLiteral};
pub use path::{ForwardPath, ReversePath};

/// Octets of the longest local part accepted.
///
/// RFC 5321 section 4.5.3.1.1 asks for at least 64; return paths of bulk senders that encode the
/// recipient are often longer, so the limit is the longest local part that fits into a path.
pub const LOCAL_PART_OCTETS_MAX: usize = 255;
/// Octets of the longest domain accepted (RFC 5321 section 4.5.3.1.2).
pub const DOMAIN_OCTETS_MAX: usize = 255;
/// Octets of the longest label of a domain in ASCII (RFC 1035 section 2.3.4).
pub const LABEL_OCTETS_MAX: usize = 63;

/// The error in an address; always the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The address is missing.
    #[error("it is empty")]
    Empty,
    /// The path is not enclosed in `<` and `>`.
    #[error("address is not enclosed in <>")]
    MissingBrackets,
    /// No `@` after the local part.
    #[error("address has no @domain")]
    MissingAt,
    /// The local part is empty or has a forbidden character.
    #[error("malformed local part")]
    LocalPart,
    /// The local part has this many octets, more than [`LOCAL_PART_OCTETS_MAX`].
    #[error("local part of {0} octets is too long")]
    LocalPartTooLong(usize),
    /// The domain is empty or has a forbidden character.
    #[error("malformed domain")]
    Domain,
    /// The domain or a label of the domain has this many octets, too many.
    #[error("domain of {0} octets is too long")]
    DomainTooLong(usize),
    /// The address literal is malformed or of an unknown kind.
    #[error("malformed address literal")]
    Literal,
    /// The source route before the address is malformed.
    #[error("malformed source route")]
    SourceRoute,
}

/// One address, `local-part@domain`, in canonical form (RFC 5321 `Mailbox`).
///
/// ```text
/// Mailbox    = Local-part "@" ( Domain / address-literal )
/// Local-part = Dot-string / Quoted-string
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddrSpec {
    text: Box<str>,
    /// Where `@` stands in `text`.
    at: usize,
}

impl AddrSpec {
    /// Parses an address without angle brackets.
    ///
    /// # Errors
    ///
    /// [`AddressError`] for a malformed address.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        let (local, rest) = split_local_part(text)?;
        let domain = rest.strip_prefix('@').ok_or(AddressError::MissingAt)?;
        if local.starts_with('"') {
            Self::new(&unquote(local), domain)
        } else {
            check_local_part_len(local)?;
            Self::assemble(local, domain)
        }
    }

    /// Builds an address from a local part that is not quoted and a domain or literal.
    ///
    /// # Errors
    ///
    /// [`AddressError::LocalPart`] for a local part that is empty or has control characters, or the
    /// error of the domain.
    pub fn new(local_part: &str, domain: &str) -> Result<Self, AddressError> {
        check_local_part_len(local_part)?;
        if is_dot_string(local_part) {
            return Self::assemble(local_part, domain);
        }
        if local_part.is_empty() || local_part.chars().any(char::is_control) {
            return Err(AddressError::LocalPart);
        }
        Self::assemble(&quote(local_part), domain)
    }

    /// Puts together a local part already in canonical form and a domain in any case.
    fn assemble(local: &str, domain: &str) -> Result<Self, AddressError> {
        let mut text =
            String::with_capacity(local.len().saturating_add(domain.len()).saturating_add(1));
        text.push_str(local);
        text.push('@');
        if domain.starts_with('[') {
            text.push_str(&AddressLiteral::parse(domain)?.to_string());
        } else {
            check_domain(domain)?;
            text.push_str(domain);
            if let Some(domain) = text.get_mut(local.len().saturating_add(1)..) {
                domain.make_ascii_lowercase();
            }
        }
        Ok(Self {
            text: text.into_boxed_str(),
            at: local.len(),
        })
    }

    /// The whole address, without angle brackets.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The local part as written in commands: quoted where necessary. The case of letters is kept.
    #[must_use]
    pub fn local_part(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
    }

    /// The local part without quoting, for comparison in a directory. The case of letters is kept.
    #[must_use]
    pub fn local_part_unquoted(&self) -> Cow<'_, str> {
        let local = self.local_part();
        if local.starts_with('"') {
            Cow::Owned(unquote(local))
        } else {
            Cow::Borrowed(local)
        }
    }

    /// The domain in lower case, or the address literal with its brackets.
    #[must_use]
    pub fn domain(&self) -> &str {
        self.text
            .get(self.at.saturating_add(1)..)
            .unwrap_or_default()
    }

    /// The literal when the address has one instead of a domain name.
    #[must_use]
    pub fn literal(&self) -> Option<AddressLiteral> {
        AddressLiteral::parse(self.domain()).ok()
    }

    /// Whether the address can travel without SMTPUTF8.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.text.is_ascii()
    }
}

impl fmt::Display for AddrSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for AddrSpec {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

/// Splits a checked local part, including quotes, from `@domain`.
fn split_local_part(text: &str) -> Result<(&str, &str), AddressError> {
    if text.starts_with('"') {
        return split_quoted(text);
    }
    let at = memchr::memchr(b'@', text.as_bytes()).ok_or(AddressError::MissingAt)?;
    let (local, rest) = text.split_at_checked(at).ok_or(AddressError::MissingAt)?;
    if is_dot_string(local) {
        Ok((local, rest))
    } else {
        Err(AddressError::LocalPart)
    }
}

/// ```text
/// Quoted-string   = DQUOTE *QcontentSMTP DQUOTE
/// QcontentSMTP    = qtextSMTP / quoted-pairSMTP
/// quoted-pairSMTP = %d92 %d32-126
/// qtextSMTP       = %d32-33 / %d35-91 / %d93-126 / UTF8-non-ascii
/// ```
fn split_quoted(text: &str) -> Result<(&str, &str), AddressError> {
    let mut chars = text.char_indices().skip(1);
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => {
                let end = index.saturating_add(1);
                return text.split_at_checked(end).ok_or(AddressError::LocalPart);
            }
            '\\' => match chars.next() {
                Some((_, ' '..='~')) => {}
                _ => return Err(AddressError::LocalPart),
            },
            c if c.is_control() => return Err(AddressError::LocalPart),
            _ => {}
        }
    }
    Err(AddressError::LocalPart)
}

fn unquote(quoted: &str) -> String {
    let inner = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(quoted);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    out
}

fn quote(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len().saturating_add(2));
    out.push('"');
    for c in plain.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// ```text
/// Dot-string = Atom *("." Atom)
/// Atom       = 1*atext        ; RFC 5322 section 3.2.3, with UTF8-non-ascii
/// ```
pub(crate) fn is_dot_string(text: &str) -> bool {
    let atext = |c: char| {
        c.is_ascii_alphanumeric()
            || "!#$%&'*+-/=?^_`{|}~".contains(c)
            || (!c.is_ascii() && !c.is_control())
    };
    text.split('.')
        .all(|atom| !atom.is_empty() && atom.chars().all(atext))
}

fn check_local_part_len(local: &str) -> Result<(), AddressError> {
    if local.len() > LOCAL_PART_OCTETS_MAX {
        return Err(AddressError::LocalPartTooLong(local.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
