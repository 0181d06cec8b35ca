//! Flags of messages (RFC 9051 section 2.3.2).

use std::fmt;
use std::sync::Arc;

/// A flag that a message can have and a client can set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Flag {
    /// A system flag.
    System(SystemFlag),
    /// A keyword; case does not matter, the first writing is kept.
    Keyword(Arc<str>),
}

/// The flags that begin with a backslash, without `\Recent`, which clients cannot set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SystemFlag {
    /// `\Answered`.
    Answered = 1,
    /// `\Flagged`.
    Flagged = 2,
    /// `\Deleted`: goes at the next EXPUNGE.
    Deleted = 4,
    /// `\Seen`.
    Seen = 8,
    /// `\Draft`.
    Draft = 16,
}

impl SystemFlag {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Answered,
        Self::Flagged,
        Self::Deleted,
        Self::Seen,
        Self::Draft,
    ];

    /// The name without the backslash.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "Answered",
            Self::Flagged => "Flagged",
            Self::Deleted => "Deleted",
            Self::Seen => "Seen",
            Self::Draft => "Draft",
        }
    }

    /// Finds a flag by name without the backslash, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|flag| flag.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(flag) => write!(f, "\\{}", flag.name()),
            Self::Keyword(word) => f.write_str(word),
        }
    }
}

/// The flags of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    system: u8,
    keywords: Vec<Arc<str>>,
}

impl Flags {
    /// No flags.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            system: 0,
            keywords: Vec::new(),
        }
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.system == 0 && self.keywords.is_empty()
    }

    /// Whether the flag is set.
    #[must_use]
    pub fn contains(&self, flag: &Flag) -> bool {
        match flag {
            Flag::System(flag) => self.has(*flag),
            Flag::Keyword(word) => self.keyword(word).is_some(),
        }
    }

    /// Whether the system flag is set.
    #[must_use]
    pub const fn has(&self, flag: SystemFlag) -> bool {
        self.system & flag as u8 != 0
    }

    /// Sets a flag.
    pub fn insert(&mut self, flag: &Flag) {
        match flag {
            Flag::System(flag) => self.system |= *flag as u8,
            Flag::Keyword(word) if self.keyword(word).is_none() => {
                self.keywords.push(Arc::clone(word));
            }
            Flag::Keyword(_) => {}
        }
    }

    /// Clears a flag.
    pub fn remove(&mut self, flag: &Flag) {
        match flag {
            Flag::System(flag) => self.system &= !(*flag as u8),
            Flag::Keyword(word) => {
                if let Some(index) = self.keyword(word) {
                    self.keywords.remove(index);
                }
            }
        }
    }

    /// All flags in the set.
    pub fn iter(&self) -> impl Iterator<Item = Flag> + '_ {
        let system = SystemFlag::ALL.into_iter().filter(|flag| self.has(*flag));
        let keywords = self.keywords.iter().map(Arc::clone).map(Flag::Keyword);
        system.map(Flag::System).chain(keywords)
    }

    /// The keywords in the set.
    pub fn keywords(&self) -> impl Iterator<Item = &Arc<str>> {
        self.keywords.iter()
    }

    fn keyword(&self, word: &str) -> Option<usize> {
        self.keywords
            .iter()
            .position(|own| own.eq_ignore_ascii_case(word))
    }
}

impl FromIterator<Flag> for Flags {
    fn from_iter<I: IntoIterator<Item = Flag>>(flags: I) -> Self {
        let mut set = Self::new();
        flags.into_iter().for_each(|flag| set.insert(&flag));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_have_no_case() {
        let mut flags: Flags = [Flag::Keyword("Work".into())].into_iter().collect();
        flags.insert(&Flag::Keyword("WORK".into()));
        flags.insert(&Flag::System(SystemFlag::Seen));
        let all: Vec<String> = flags.iter().map(|flag| flag.to_string()).collect();
        assert_eq!(all, ["\\Seen", "Work"]);
        flags.remove(&Flag::Keyword("work".into()));
        assert!(!flags.contains(&Flag::Keyword("Work".into())));
        assert!(flags.has(SystemFlag::Seen) && !flags.is_empty());
    }
}
