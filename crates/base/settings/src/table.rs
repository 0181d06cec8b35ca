//! The table of all options: the one place where an option exists.

#[macro_use]
mod row;
mod dnsbl;
mod filters;
mod intake;
mod judging;
mod lists;
mod outgoing;
mod sending;
mod services;
mod system;
mod volume;
mod web;
mod x400;

pub(crate) use row::{Fallback, Opt, REPEATED_MAX, Section, Shape};

/// The table of a kind of file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    top: &'static Section,
    sections: &'static [&'static [Section]],
}

impl Table {
    /// The keys before the first section.
    pub(crate) const fn top(self) -> &'static Section {
        self.top
    }

    /// Finds the section `name` directly inside `section`.
    pub(crate) fn child(self, section: &Section, name: &str) -> Option<&'static Section> {
        if name.is_empty() || name.contains('.') {
            return None;
        }
        let whole = match section.name {
            "" => name.to_owned(),
            above => format!("{above}.{name}"),
        };
        self.sections().find(|inner| inner.name == whole)
    }

    /// Every section, in the order of the reference; a nested section stands behind its parent.
    pub(crate) fn sections(self) -> impl Iterator<Item = &'static Section> {
        self.sections.iter().copied().flatten()
    }
}

/// The file of the system.
pub(crate) static SYSTEM: Table = Table {
    top: &intake::SECTIONS[0],
    sections: &[
        intake::SECTIONS,
        sending::SECTIONS,
        services::SECTIONS,
        web::SECTIONS,
        dnsbl::SECTIONS,
        lists::SECTIONS,
        filters::SECTIONS,
        judging::SECTIONS,
        std::slice::from_ref(&judging::WEIGHTS),
        outgoing::SECTIONS,
        x400::SECTIONS,
        system::SECTIONS,
    ],
};

/// The file of a volume on mail accounts.
pub(crate) static VOLUME: Table = Table {
    top: &volume::SECTIONS[0],
    sections: &[volume::SECTIONS],
};

/// A file with settings that has pages of reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    /// `vere.toml`, the configuration of the mail system.
    System,
    /// `NAME.toml`, the description of a volume on mail accounts (`vere fs`).
    Volume,
}

impl File {
    pub(crate) fn sections(self) -> impl Iterator<Item = &'static Section> {
        match self {
            Self::System => SYSTEM,
            Self::Volume => VOLUME,
        }
        .sections()
    }

    /// When a changed option takes effect.
    pub(crate) const fn effect(self, option: &Opt) -> &'static str {
        match self {
            Self::System if option.live => "live",
            Self::System => "restart",
            Self::Volume => "next mount",
        }
    }
}

/// Every section of the file of the system.
pub(crate) fn sections() -> impl Iterator<Item = &'static Section> {
    SYSTEM.sections()
}
