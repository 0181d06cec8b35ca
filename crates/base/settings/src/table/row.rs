//! The rows of the table, and their units.

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
    /// `[name]`; without the section, all its defaults apply.
    Always,
    /// `[name]`; without the section, the service does not exist.
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

/// The value of an absent key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fallback {
    /// The key must be there; an example in TOML.
    Required(&'static str),
    /// This value, in TOML. Paths may contain `{data}` and `{name}`.
    Is(&'static str),
    /// No value; the text explains the effect.
    Nothing(&'static str),
}

/// Declares the sections of a file, in the order of the reference.
///
/// A section is `"name" Shape, "text" { options }`. An option is `live` or `fixed`, its name, kind and fallback,
/// and its text.
macro_rules! sections {
    ($($section:literal $shape:ident, $about:literal {
        $($reload:ident $option:ident: $kind:expr, $default:expr, $text:literal;)*
    })*) => {
        pub(super) static SECTIONS: &[$crate::table::Section] = &[$($crate::table::Section {
            name: $section,
            shape: $crate::table::Shape::$shape,
            text: $about,
            options: &[$($crate::table::Opt {
                name: stringify!($option),
                kind: $kind,
                default: $default,
                live: sections!(@$reload),
                text: $text,
            }),*],
        }),*];
    };
    (@live) => { true };
    (@fixed) => { false };
}

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;
pub(super) const TIB: u64 = 1 << 40;
pub(super) const SECOND: u64 = 1_000;
pub(super) const MINUTE: u64 = 60 * SECOND;
pub(super) const HOUR: u64 = 60 * MINUTE;
pub(super) const DAY: u64 = 24 * HOUR;
pub(super) const TLS_MODES: &[&str] = &["off", "opportunistic", "required"];
pub(super) const ROUTE_TLS_MODES: &[&str] = &["off", "opportunistic", "required", "implicit"];
