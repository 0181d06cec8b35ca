//! The archive: each unit once, before the responsibility for it is taken.

use std::time::Duration;

use vere_archive::{Archive, ArchiveOptions, Entry, Kind, META_OCTETS_MAX, OpenError};
use vere_mta400::{Outcome, UnitKind};
use vere_process::entry::notify_watchdog;
use vere_settings::{Durability, Settings, X400};
use vere_units::{Timestamp, TraceId};

use crate::origin::Origin;

/// With a spool that holds units in memory the archive too is written at once, and synced within this time.
const SYNC_WITHIN: Duration = Duration::from_secs(1);

/// Opens the archive, if the settings want one.
///
/// Blocks while the archive is repaired after a crash. Nothing else needs the thread meanwhile: ports and queues are
/// served only behind the opening. The supervisor, which kills a silent role, gets signs of life from the repair.
///
/// # Errors
/// When the folder cannot be used, or another process writes there.
pub(crate) fn open(settings: &Settings, x400: &X400) -> Result<Option<Archive>, OpenError> {
    let options = ArchiveOptions {
        keep: x400.archive_keep.duration(),
        sync_within: match settings.spool.durability {
            Durability::Synced => Duration::ZERO,
            _ => SYNC_WITHIN,
        },
        alive: notify_watchdog,
        ..ArchiveOptions::default()
    };
    let open = || Archive::open(&x400.archive_folder(), options);
    x400.archive.then(open).transpose()
}

/// The entry of a unit.
pub(crate) fn entry(origin: Origin<'_>, trace: TraceId, at: Timestamp, outcome: &Outcome) -> Entry {
    let facts = &outcome.facts;
    let kind = match facts.kind {
        UnitKind::Message => Kind::Message,
        UnitKind::Probe => Kind::Probe,
        UnitKind::Report => Kind::Report,
    };
    let recipients = facts.recipients.iter().map(|one| one.address.clone());
    let destinations = outcome
        .onward
        .iter()
        .map(|part| part.destination.to_string());
    Entry {
        identifier: facts.identifier.clone(),
        about: facts.about.clone(),
        originator: facts.originator.clone(),
        recipients: bounded(recipients),
        source: origin.text(),
        destinations: bounded(destinations),
        content_type: facts.content_type.as_ref().map(ToString::to_string),
        octets: outcome.pieces(),
        ..Entry::new(at, trace, kind)
    }
}

/// As many texts as an entry takes; the octets of the unit have all of them.
fn bounded(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut room = META_OCTETS_MAX / 4;
    texts
        .take_while(|text| {
            let length = u64::try_from(text.len())
                .unwrap_or(u64::MAX)
                .saturating_add(16);
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        })
        .collect()
}
