//! A mounted volume: calls in, replies out; accounts, journal and worker threads in between. No sockets, threads or clocks.
//!
//! Written octets and changed rows go to the `journal` before their call is answered. Content leaves in packs
//! (`uploads`), rows in `commits`, whose order is the `chain`'s matter. `reads` brings octets back.

mod adopt;
mod again;
mod ahead;
mod bases;
mod boot;
mod bring;
mod build;
mod buried;
mod cached;
mod calls;
mod checkpoints;
mod checkpoints_of_others;
mod commits;
mod confirm;
mod deadlines;
mod dedup;
mod events;
mod facts;
mod fetches;
mod follow;
mod gone;
mod leads;
mod local_room;
mod mirrored;
mod mirrors;
mod open;
mod other_logs;
mod own_slot;
mod pages;
mod parked;
mod reads;
mod rebase;
mod register;
mod reopen;
mod replay;
mod replicas;
mod room;
mod salvage;
mod searched;
mod snapshots;
mod stand_in;
mod state;
mod status;
mod step;
mod strategies;
mod upkeep;
mod uploads;

use vere_keep::{chunk_store, commit_store, journal, keep_job, local, page_store, record};
use vere_order::{chain, fingerprint, found};
use vere_pending::packs;
use vere_placement::{accounts, rates, scarcity, strategy};
use vere_sealing::job;

#[cfg(test)]
mod tests;

pub use vere_opening::{
    Create, Local, Machine, Moment, Notice, OpenError, OpenStep, Opening, Reopen, Terms, is_outage,
};
pub use vere_order::copies::MirrorStatus;
pub use vere_replay::{Inspected, Stranded, inspect};

pub use self::accounts::{
    AccountStatus, AccountTerms, GroupTerms, LOG_COPY_MAILBOX, LOG_MAILBOX, PAGES_MAILBOX,
    mailbox_name,
};
pub use self::facts::{FactsChange, FactsReport, Leaving, Membership};
pub use self::fingerprint::{Fingerprint, NoFingerprint};
pub use self::gone::GONE;
pub use self::job::{Job, JobId, JobResult};
pub use self::journal::JournalError;
pub use self::local::CacheTerms;
pub use self::register::Registrant;
pub use self::salvage::{
    Count, Past, Placed, Salvage, SalvageReport, SalvageStep, Salvaged, begun_writer, lost_writer,
};
pub use self::state::Volume;
pub use self::status::{GroupStatus, RowsStatus, Status};
pub use self::step::Step;
pub use self::strategy::Strategy;
pub use self::upkeep::{
    CheckReport, CheckTerms, CollectReport, CollectTerms, Finding, MailPlace, Upkept, Weight,
};
