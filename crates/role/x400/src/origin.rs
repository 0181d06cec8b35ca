//! Where a unit comes from, and words for it.

use std::net::SocketAddr;

use vere_mta400::{Source, UnitKind};

/// Where a unit comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) address: Option<SocketAddr>,
}

impl Origin<'_> {
    /// A unit of this MTA.
    pub(crate) const LOCAL: Self = Self {
        source: Source::Local,
        address: None,
    };

    /// `peer:NAME`, `gateway:NAME` or `local`.
    pub(crate) fn text(&self) -> String {
        match self.source {
            Source::Local => "local".to_owned(),
            Source::Gateway(name) => format!("gateway:{name}"),
            Source::Peer(name) => format!("peer:{name}"),
        }
    }
}

/// The word for the kind of a unit.
pub(crate) const fn kind(kind: UnitKind) -> &'static str {
    match kind {
        UnitKind::Message => "message",
        UnitKind::Probe => "probe",
        UnitKind::Report => "report",
    }
}
