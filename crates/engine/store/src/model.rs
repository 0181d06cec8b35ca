//! The data model of the store: mailboxes, messages, flags and numbers.

use std::fmt;
use std::num::NonZeroU32;

use crate::error::StoreError;

pub use vere_units::MailboxId;

/// The id of a stored message: the position in the log where the message was first written. Unique
/// in the store and never reused (RFC 8474 `EMAILID`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(pub u64);

/// The unique identifier of a message in its mailbox (RFC 9051 section 2.3.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(NonZeroU32);

impl Uid {
    /// The first one.
    pub const FIRST: Self = Self(NonZeroU32::MIN);
    /// The greatest UID, which is never assigned.
    pub const MAX: Self = Self(NonZeroU32::MAX);

    /// Absent for 0.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// Its number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// The next UID; the greatest UID has no successor and is returned unchanged.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a change in a mailbox, below 2^63 (RFC 7162 section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ModSeq(pub u64);

impl ModSeq {
    /// The next mod-sequence.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The system flags (RFC 9051 section 2.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SystemFlags(u8);

impl SystemFlags {
    /// None.
    pub const NONE: Self = Self(0);
    /// `\Seen`
    pub const SEEN: Self = Self(1);
    /// `\Answered`
    pub const ANSWERED: Self = Self(2);
    /// `\Flagged`
    pub const FLAGGED: Self = Self(4);
    /// `\Deleted`
    pub const DELETED: Self = Self(8);
    /// `\Draft`
    pub const DRAFT: Self = Self(16);

    /// All system flags with their names.
    pub const NAMED: [(Self, &'static str); 5] = [
        (Self::ANSWERED, "\\Answered"),
        (Self::FLAGGED, "\\Flagged"),
        (Self::DELETED, "\\Deleted"),
        (Self::SEEN, "\\Seen"),
        (Self::DRAFT, "\\Draft"),
    ];

    /// From the octet of the format; unknown bits are dropped.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 31)
    }

    /// The octet of the format.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for SystemFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(
                Self::NAMED
                    .iter()
                    .filter(|(flag, _)| self.contains(*flag))
                    .map(|(_, name)| name),
            )
            .finish()
    }
}

/// The longest keyword, in octets.
pub const KEYWORD_OCTETS_MAX: usize = 128;

/// A keyword (RFC 9051 section 2.3.2): an atom that does not begin with a backslash. Keywords are
/// compared without case; a mailbox keeps the first spelling.
#[derive(Debug, Clone, Eq)]
pub struct Keyword(Box<str>);

impl Keyword {
    /// Takes an atom of at most [`KEYWORD_OCTETS_MAX`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Keyword`].
    pub fn new(text: &str) -> Result<Self, StoreError> {
        let atom = |octet: u8| octet.is_ascii_graphic() && !b"(){%*\"\\]".contains(&octet);
        if text.is_empty() || text.len() > KEYWORD_OCTETS_MAX || !text.bytes().all(atom) {
            return Err(StoreError::Keyword);
        }
        Ok(Self(text.into()))
    }

    /// The keyword in the first spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Keyword {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

/// Flags of both kinds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    /// System flags.
    pub system: SystemFlags,
    /// Keywords.
    pub keywords: Vec<Keyword>,
}

/// How flags are changed (RFC 9051 section 6.4.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagMode {
    /// `FLAGS`: set exactly the given flags.
    Replace,
    /// `+FLAGS`: add the given flags.
    Add,
    /// `-FLAGS`: remove the given flags.
    Remove,
}

/// The special use of a mailbox (RFC 6154 section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpecialUse {
    /// `\Archive`
    Archive,
    /// `\Drafts`
    Drafts,
    /// `\Junk`
    Junk,
    /// `\Sent`
    Sent,
    /// `\Trash`
    Trash,
}

impl SpecialUse {
    /// All special uses, with their octets in the format and their attributes.
    pub const NAMED: [(Self, u8, &'static str); 5] = [
        (Self::Archive, 1, "\\Archive"),
        (Self::Drafts, 2, "\\Drafts"),
        (Self::Junk, 3, "\\Junk"),
        (Self::Sent, 4, "\\Sent"),
        (Self::Trash, 5, "\\Trash"),
    ];

    pub(crate) fn octet(use_: Option<Self>) -> u8 {
        let named = Self::NAMED.iter().find(|(each, ..)| Some(*each) == use_);
        named.map_or(0, |(_, octet, _)| *octet)
    }

    pub(crate) fn from_octet(octet: u8) -> Option<Self> {
        let named = Self::NAMED.iter().find(|(_, each, _)| *each == octet);
        named.map(|(use_, ..)| *use_)
    }
}

/// A point in time with the zone it was given in (RFC 9051 `INTERNALDATE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InternalDate {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Offset of local time from UTC in minutes.
    pub zone_minutes: i16,
}

/// The id of an operation, so that repeated requests carry out the operation once: chosen by the
/// caller, with enough randomness to rule out the same choice by another caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub [u8; 16]);

/// The separator of levels in names of mailboxes.
pub const HIERARCHY_DELIMITER: char = '/';
/// The longest name of a mailbox, in octets.
pub const MAILBOX_NAME_OCTETS_MAX: usize = 1_000;
/// The most levels of a name.
pub const MAILBOX_LEVELS_MAX: usize = 32;

/// The name of a mailbox: UTF-8, levels separated by `/`, without empty levels and control
/// characters. `INBOX` in any case names the same mailbox (RFC 9051 section 5.1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MailboxName(Box<str>);

impl MailboxName {
    /// Takes a name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Name`].
    pub fn new(text: &str) -> Result<Self, StoreError> {
        let levels = text.split(HIERARCHY_DELIMITER);
        let bad = |level: &str| {
            level.is_empty() || level == "." || level == ".." || level.chars().any(char::is_control)
        };
        if text.len() > MAILBOX_NAME_OCTETS_MAX
            || levels.clone().count() > MAILBOX_LEVELS_MAX
            || levels.clone().any(bad)
        {
            return Err(StoreError::Name);
        }
        let first = levels.clone().next().unwrap_or_default();
        if first.eq_ignore_ascii_case("INBOX") {
            return Ok(Self(format!("INBOX{}", &text[first.len()..]).into()));
        }
        Ok(Self(text.into()))
    }

    /// `INBOX`
    #[must_use]
    pub fn inbox() -> Self {
        Self("INBOX".into())
    }

    /// Whether the name is `INBOX`.
    #[must_use]
    pub fn is_inbox(&self) -> bool {
        &*self.0 == "INBOX"
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name lies below `other`.
    #[must_use]
    pub fn is_below(&self, other: &Self) -> bool {
        let rest = self.0.strip_prefix(&*other.0);
        rest.is_some_and(|rest| rest.starts_with(HIERARCHY_DELIMITER))
    }

    /// The name with `from` replaced by `to`; unchanged if the name is neither `from` nor below
    /// `from`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Name`] when the new name is too long or too deep.
    pub(crate) fn moved(&self, from: &Self, to: &Self) -> Result<Self, StoreError> {
        match self.0.strip_prefix(&*from.0) {
            Some(rest) if rest.is_empty() || self.is_below(from) => {
                Self::new(&format!("{}{rest}", to.0))
            }
            _ => Ok(self.clone()),
        }
    }
}

impl fmt::Display for MailboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
