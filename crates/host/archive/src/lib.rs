//! The archive of an X.400 MTA: each message, probe and report once, as it came; and the audit log.
//!
//! The archive is a directory of days, with a segment and an index for each minute. [`Archive`] writes: a thread of its
//! own puts the entries of all waiting callers into one write and one sync. Readers ([`find`], [`copy_content`],
//! [`verify()`]) need no writer and work beside one, also from another process, within bounded memory. [`Audit`] writes
//! lines of JSON about arrivals, attempts, reports and associations.
//!
//! Formats, promises and fields: `docs/internals/archive.md`.
//!
//! Not covered: what an entry says about its octets is the caller's; nothing here reads an APDU.
//!
//! ```
//! use vere_archive::{Archive, ArchiveOptions, Entry, Kind, Page, Query, find};
//! use vere_units::{Timestamp, TraceId};
//!
//! # let folder = std::env::temp_dir().join(format!("vere-archive-doc-{}", std::process::id()));
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! let archive = Archive::open(&folder, ArchiveOptions::default())?;
//! let at = Timestamp::from_millis(1_795_910_400_000);
//! let mut entry = Entry::new(at, TraceId::new(7), Kind::Message);
//! entry.source = "peer:mta2".to_owned();
//! entry.octets = vec!["the octets".into()];
//! runtime.block_on(archive.add(entry))?;
//!
//! let mut count = 0;
//! find(&folder, &Query::default(), &Page::default(), |found| {
//!     assert_eq!(found.fields.source, "peer:mta2");
//!     count += 1;
//!     Ok(())
//! })?;
//! assert_eq!(count, 1);
//! # archive.close();
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod audit;
mod clock;
pub mod command;
mod entry;
mod error;
mod format;
mod keep;
mod name;
mod read;
mod stable;
mod writer;

#[cfg(test)]
mod tests;

pub use audit::{Audit, AuditOptions, AuditRecipient, Line, LineKind};
pub use entry::{Entry, Kind};
pub use error::{ArchiveError, OpenError, ReadError};
pub use format::{Fields, META_OCTETS_MAX, Texts};
pub use name::{Day, EntryId, NameError, SegmentName};
pub use read::{
    Found, Issue, Issues, Page, Query, ReadAt, SearchSummary, Verified, check_segment,
    copy_content, describe, find, verify,
};
pub use writer::{Archive, ArchiveOptions, Figures};
