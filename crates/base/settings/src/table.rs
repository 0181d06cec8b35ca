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

pub(crate) use row::{Fallback, Opt, REPEATED_MAX, Section, Shape};

/// The keys before the first section.
pub(crate) fn top() -> &'static Section {
    &intake::SECTIONS[0]
}

/// Every section, in the order of the reference; a nested section stands behind its parent.
pub(crate) fn sections() -> impl Iterator<Item = &'static Section> {
    intake::SECTIONS
        .iter()
        .chain(sending::SECTIONS)
        .chain(services::SECTIONS)
        .chain(dnsbl::SECTIONS)
        .chain(lists::SECTIONS)
        .chain(filters::SECTIONS)
        .chain(judging::SECTIONS)
        .chain(std::iter::once(&judging::WEIGHTS))
        .chain(outgoing::SECTIONS)
        .chain(system::SECTIONS)
}
