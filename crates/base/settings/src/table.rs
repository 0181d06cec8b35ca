//! The table of all options: the one place where an option exists.

mod intake;
mod outgoing;
mod services;
mod system;

use crate::kind::Kind;

/// A section of the file.
#[derive(Debug)]
pub(crate) struct Section {
    /// The name between the brackets; empty for the keys before the first section.
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) text: &'static str,
    pub(crate) options: &'static [Opt],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `[name]`; without it, all its defaults hold.
    Always,
    /// `[name]`; without it, the service does not exist.
    Optional,
    /// `[[name]]`, any number of times up to [`REPEATED_MAX`].
    Repeated,
}

/// How many sections of one repeated kind a file may have; large hosters have thousands of routes.
pub(crate) const REPEATED_MAX: usize = 100_000;

/// One option.
#[derive(Debug)]
pub(crate) struct Opt {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Fallback,
    /// Whether a running system takes over a new value at reload.
    pub(crate) live: bool,
    pub(crate) text: &'static str,
}

/// What holds when a key is absent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fallback {
    /// The key must be there; an example in TOML.
    Required(&'static str),
    /// This value, in TOML. Paths may hold `{data}` and `{name}`.
    Is(&'static str),
    /// No value; what that means.
    Nothing(&'static str),
}

/// The keys before the first section.
pub(crate) fn top() -> &'static Section {
    &intake::SECTIONS[0]
}

/// Every section, in the order of the reference; a section stands behind the one it lies in.
pub(crate) fn sections() -> impl Iterator<Item = &'static Section> {
    intake::SECTIONS
        .iter()
        .chain(services::SECTIONS)
        .chain(outgoing::SECTIONS)
        .chain(system::SECTIONS)
}

const fn live(name: &'static str, kind: Kind, default: Fallback, text: &'static str) -> Opt {
    Opt {
        name,
        kind,
        default,
        live: true,
        text,
    }
}

const fn fixed(name: &'static str, kind: Kind, default: Fallback, text: &'static str) -> Opt {
    Opt {
        name,
        kind,
        default,
        live: false,
        text,
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const TLS_MODES: &[&str] = &["off", "opportunistic", "required"];
const ROUTE_TLS_MODES: &[&str] = &["off", "opportunistic", "required", "implicit"];
