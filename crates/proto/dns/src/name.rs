//! Names in wire form (RFC 1035 section 3.1).

use std::fmt;

/// Octets of a label (RFC 1035 section 2.3.4).
pub const LABEL_MAX: usize = 63;
/// Octets of a name with its lengths and the root (RFC 1035 section 2.3.4).
pub const NAME_MAX: usize = 255;

/// Reads the name at the begin of `octets` and returns its octets, the root included.
///
/// A compression pointer ends the reading without a name: the name of a question has nothing to point to.
pub(crate) fn leading(octets: &[u8]) -> Option<&[u8]> {
    let mut at = 0_usize;
    loop {
        let length = usize::from(*octets.get(at)?);
        at = at.checked_add(1)?.checked_add(length)?;
        if length > LABEL_MAX || at > NAME_MAX {
            return None;
        }
        if length == 0 {
            return octets.get(..at);
        }
    }
}

/// The labels of a name in wire form, from the left; the root is none of them.
///
/// A name that ends too early ends the labels.
#[derive(Debug, Clone)]
pub struct Labels<'a>(&'a [u8]);

impl<'a> Labels<'a> {
    /// The labels of a name, with or without its root (RFC 1035 section 3.1).
    #[must_use]
    pub const fn of(name: &'a [u8]) -> Self {
        Self(name)
    }

    /// The name that the labels to come make up.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> Iterator for Labels<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first()?;
        if *length == 0 {
            return None;
        }
        let (label, rest) = rest.split_at_checked(usize::from(*length))?;
        self.0 = rest;
        Some(label)
    }
}

/// The octets of `name` in front of `apex`, if `name` is `apex` or below: without regard to case (RFC 4343 section 3).
/// Both names have their roots.
pub(crate) fn below<'a>(name: &'a [u8], apex: &[u8]) -> Option<&'a [u8]> {
    let (prefix, end) = name.split_at_checked(name.len().checked_sub(apex.len())?)?;
    if !end.eq_ignore_ascii_case(apex) {
        return None;
    }
    let mut labels = Labels::of(name);
    // The octets of the apex may also be the end of a label.
    while labels.rest().len() > apex.len() {
        labels.next()?;
    }
    (labels.rest().len() == apex.len()).then_some(prefix)
}

/// A name of the server's own, such as the apex of a zone: in wire form, lower case.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Name(Box<[u8]>);

/// A text that is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameError {
    /// A label is empty or longer than [`LABEL_MAX`].
    Label,
    /// The name is longer than [`NAME_MAX`].
    Length,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label => write!(f, "expected labels of 1 to {LABEL_MAX} bytes between dots"),
            Self::Length => write!(f, "expected a name of at most {NAME_MAX} bytes"),
        }
    }
}

impl std::error::Error for NameError {}

impl Name {
    /// Reads a name in its usual form, with or without the last dot (RFC 1035 section 2.3.1). `.` is the root.
    ///
    /// # Errors
    /// When a label or the whole name is too short or too long.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Label);
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        let mut octets = Vec::new();
        for label in text.split('.').filter(|_| !text.is_empty()) {
            let length = u8::try_from(label.len()).map_err(|_| NameError::Label)?;
            if length == 0 || usize::from(length) > LABEL_MAX {
                return Err(NameError::Label);
            }
            octets.push(length);
            octets.extend(label.bytes().map(|octet| octet.to_ascii_lowercase()));
        }
        octets.push(0);
        match octets.len() <= NAME_MAX {
            true => Ok(Self(octets.into())),
            false => Err(NameError::Length),
        }
    }

    /// Takes a name from its wire form, with the root; `None` for octets that are no whole name.
    #[must_use]
    pub fn of_wire(octets: &[u8]) -> Option<Self> {
        let whole = leading(octets).filter(|name| name.len() == octets.len())?;
        Some(Self(whole.to_ascii_lowercase().into()))
    }

    /// The octets on the wire, the root included (RFC 1035 section 3.1).
    #[must_use]
    pub const fn octets(&self) -> &[u8] {
        &self.0
    }

    /// The octets of `name` in front of this name, if `name` is this name or below; case does not count (RFC 4343
    /// section 3). `name` has its root.
    #[must_use]
    pub fn prefix_of<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        below(name, &self.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, label) in Labels::of(&self.0).enumerate() {
            if place > 0 {
                f.write_str(".")?;
            }
            write!(f, "{}", label.escape_ascii())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
