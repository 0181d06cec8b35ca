//! Location of the store, and the lock that allows one process at a time to use the store.

mod error;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use vere_disk::log::Directory as LogDirectory;
use vere_disk::mail_meta::FjallMeta;
use vere_ports::mail_meta::{MetaEngine as _, MetaError};
use vere_settings::{BodySharing, Settings};
use vere_store::{
    MailboxName, OpenReport, Position, RepairReport, Sharing, SpecialUse, Store, StoreConfig,
};
use vere_units::ByteSize;

pub use error::{FilesError, Trouble};

use super::mail_store::MailStore;
use super::mark::{self, LogEnd, Mark};
use super::private;
use super::steps::special_use;
use vere_process::clock::now;

/// Memory for cached blocks of the metadata.
const META_CACHE: ByteSize = ByteSize::mib(32);

/// Free octets on the disk below which a failed opening counts as a full disk.
const OPENING_ROOM: u64 = 1024 * 1024;

/// Folders of metadata: current, being made, replaced by a repair, and unreadable before a rebuild.
const META: &str = "meta";
const META_NEW: &str = "meta.new";
const META_OLD: &str = "meta.old";
const META_TORN: &str = "meta.torn";

/// Exists while metadata are rebuilt: opening the log for a rebuild may have cut the log's end.
const REBUILDING: &str = "rebuilding";

/// The store's folder, locked against other processes.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    /// Room kept for removing messages.
    spare: ByteSize,
    sharing: Sharing,
    /// Mailboxes of new accounts, beside `INBOX`.
    new_account: Vec<(MailboxName, Option<SpecialUse>)>,
    /// File that records how far the log got; absent for tools that do not check.
    mark: Option<PathBuf>,
    /// Locked as long as the file is open.
    _lock: File,
}

impl Files {
    /// Makes the folder of a store where there is none, and locks the folder.
    ///
    /// # Errors
    /// When the store is in use, or the folder cannot be made.
    pub(crate) fn make(settings: &Settings) -> Result<Self, FilesError> {
        let folder = settings.data.join("store");
        private::make(&folder)
            .and_then(|()| private::make(&folder.join("log")))
            .map_err(|error| wrong(&folder, error))?;
        let files = Self::of(settings)?;
        let sharing = match settings.store.sharing {
            BodySharing::Account => Sharing::Account,
            BodySharing::All => Sharing::All,
        };
        let new = settings.store.mailboxes.iter().filter_map(|new| {
            let name = MailboxName::new(&new.name).ok()?;
            Some((name, new.special_use.and_then(special_use)))
        });
        Ok(Self {
            sharing,
            new_account: new.collect(),
            ..files
        })
    }

    /// Locks the folder of the store that the settings name.
    ///
    /// # Errors
    /// When the folder holds no store, or another process uses the store.
    pub(crate) fn of(settings: &Settings) -> Result<Self, FilesError> {
        Ok(Self {
            spare: settings.store.reserve,
            mark: Some(settings.data.join("store.mark")),
            ..Self::lock(&settings.data.join("store"))?
        })
    }

    /// Locks the folder of an existing store, without spare room and without a mark of the log.
    ///
    /// # Errors
    /// When the folder holds no store, or another process uses the store.
    pub(crate) fn lock(folder: &Path) -> Result<Self, FilesError> {
        // Only the role makes the folder: a mistyped path is not an empty store.
        if !folder.join("log").is_dir() {
            return Err(wrong(folder, Trouble::Absent));
        }
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(folder.join("lock"))
            .map_err(|error| wrong(folder, error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                folder: folder.to_owned(),
                spare: ByteSize::new(0),
                sharing: Sharing::default(),
                new_account: Vec::new(),
                mark: None,
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(wrong(folder, Trouble::InUse)),
            Err(TryLockError::Error(error)) => Err(wrong(folder, error)),
        }
    }

    /// Returns the store's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the store; an empty store gets a new log id. On a full disk, opening gives up the spare files one after
    /// the other. A failed opening makes no spare files again.
    ///
    /// # Errors
    /// When the store cannot be read, or is damaged.
    pub(crate) fn open(&self) -> Result<MailStore, FilesError> {
        loop {
            let opened = self.try_open();
            let full =
                || vere_disk::free_octets(&self.folder).is_ok_and(|free| free < OPENING_ROOM);
            match &opened {
                Err(failure) if full() && self.give_up_spare() => {
                    tracing::error!(%failure, "the disk is full: spare room is given up to open the mail store");
                }
                _ => return opened,
            }
        }
    }

    /// Removes the next spare file; false when no spare file is left, or `spare` is zero.
    fn give_up_spare(&self) -> bool {
        let log = self.folder.join("log");
        let mut names = vere_store::SPARES.iter();
        self.spare.as_u64() > 0 && names.any(|name| fs::remove_file(log.join(name)).is_ok())
    }

    fn try_open(&self) -> Result<MailStore, FilesError> {
        let meta = match self.meta(META) {
            Err(MetaError::Damaged(reason)) => {
                tracing::error!(
                    reason,
                    "the metadata are damaged: they are made anew from the log"
                );
                self.rebuild()?;
                self.forget_rebuilding()
                    .map_err(|error| self.wrong(error))?;
                self.meta(META)
            }
            meta => meta,
        };
        let meta = meta.map_err(|error| self.wrong(error))?;
        // Metadata were set aside and not replaced yet.
        let begun = [META_OLD, META_TORN]
            .iter()
            .any(|name| self.folder.join(name).is_dir());
        // The metadata belong to a new store, or somebody removed the old metadata.
        let is_new = meta.applied().map_err(|error| self.wrong(error))? == 0;
        let was_begun = self.note_if(is_new).map_err(|error| self.wrong(error))?;
        let told = self.told()?;
        let (mut store, report) = self.open_with(meta, begun)?;
        let is_older = match told {
            Some(told) if told.synced > store.end() => true,
            // A log without a change gets a new id at each opening.
            Some(told) => told.log != store.log_id().0 && store.end() > Position::FIRST,
            // An administrator restored the log alone, on another machine.
            None => self.mark.is_some() && is_new && report.replayed > 0,
        };
        if is_older {
            tracing::warn!(
                "the mail store is not the one that was here last, or a copy from before: all mailboxes have a new UIDVALIDITY, and the search index is made anew"
            );
        }
        if is_older || was_begun || (is_new && report.cut > 0) {
            self.renew(&mut store)?;
        }
        if let Some(mut mark) = self.mark(&store) {
            mark.reached(store.synced());
        }
        self.forget_rebuilding()
            .map_err(|error| self.wrong(error))?;
        let OpenReport { replayed, cut } = report;
        tracing::info!(replayed, cut, "mail store opened");
        Ok(store)
    }

    /// Reads how far the log got at the last use, if a mark says so.
    fn told(&self) -> Result<Option<LogEnd>, FilesError> {
        let Some(path) = &self.mark else {
            return Ok(None);
        };
        mark::read(path).map_err(|error| wrong(path, error))
    }

    /// Opens the mark of how far the log of this store gets.
    pub(super) fn mark(&self, store: &MailStore) -> Option<Mark> {
        let path = self.mark.as_deref()?;
        Some(Mark::open(path, store.log_id().0))
    }

    /// Removes the mark of the log: the next opening accepts the log as found.
    fn forget_mark(&self) -> Result<(), FilesError> {
        match self
            .mark
            .as_deref()
            .map(|path| (path, fs::remove_file(path)))
        {
            Some((path, Err(error))) if error.kind() != io::ErrorKind::NotFound => {
                Err(wrong(path, error))
            }
            _ => Ok(()),
        }
    }

    /// Opens the store with these metadata. With `begun`, the store must have a log.
    fn open_with(
        &self,
        meta: FjallMeta,
        begun: bool,
    ) -> Result<(MailStore, OpenReport), FilesError> {
        let disk =
            LogDirectory::open(&self.folder.join("log")).map_err(|error| self.wrong(error))?;
        let config = StoreConfig {
            log_id: random_u64()?,
            spare: self.spare,
            sharing: self.sharing,
            new_account: self.new_account.clone(),
            begun,
            ..StoreConfig::default()
        };
        Store::open(disk, meta, config).map_err(|error| self.wrong(error))
    }

    /// Rebuilds unreadable metadata from the log, which has all data. A log that visibly lacks data is left as it is:
    /// a repair salvages more. Only the old metadata knew whether a torn end of the log was synced, so they are set
    /// aside. UIDs and log positions of a torn end are assigned again. So the knowledge of clients and search index
    /// is invalid.
    fn rebuild(&self) -> Result<OpenReport, FilesError> {
        self.remove(META_NEW)?;
        let is_cut = self.note_rebuilding();
        let is_cut = is_cut.map_err(|error| self.wrong(error))?;
        let report = self.remake(is_cut)?;
        let OpenReport { replayed, cut } = report;
        if cut > 0 || is_cut {
            tracing::warn!(
                replayed,
                cut,
                kept = META_TORN,
                "the metadata were made anew from a log whose end was torn and is cut: if it was synced, mail is missing; all mailboxes have a new UIDVALIDITY, and the search index is made anew"
            );
        } else {
            tracing::info!(
                replayed,
                cut,
                kept = META_TORN,
                "the metadata were made anew"
            );
        }
        Ok(report)
    }

    /// Puts metadata made from the log alone in place of the current metadata, which are set aside.
    fn remake(&self, is_cut: bool) -> Result<OpenReport, FilesError> {
        // Report the first failure, and remove incomplete metadata.
        let made = self.replay_all(is_cut);
        let report = made.inspect_err(|_| drop(self.remove(META_NEW)))?;
        self.exchange(META_TORN)
            .map_err(|error| self.wrong(error))?;
        Ok(report)
    }

    /// Continues with a log restored from a copy: rebuilds everything else from the log. Clients must forget mail
    /// that came after the copy. Returns the number of changes in the log.
    ///
    /// # Errors
    /// When the log cannot be read or visibly lacks data; the metadata stay then.
    pub(crate) fn restored(&self) -> Result<u64, FilesError> {
        self.remove(META_NEW)?;
        self.note_rebuilding().map_err(|error| self.wrong(error))?;
        let report = self.remake(true)?;
        for aside in [META_TORN, META_OLD] {
            self.remove(aside)?;
        }
        self.forget_mark()?;
        self.forget_rebuilding()
            .map_err(|error| self.wrong(error))?;
        Ok(report.replayed)
    }

    /// Notes that a rebuild of the metadata begins. Returns whether an earlier rebuild did not finish: a cut that it
    /// made in the log is no longer visible.
    fn note_rebuilding(&self) -> io::Result<bool> {
        let note = self.folder.join(REBUILDING);
        let was_begun = note.try_exists()?;
        File::create(note)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(was_begun)
    }

    /// With `anew`, acts as [`Files::note_rebuilding`]; else only returns whether an earlier rebuild did not finish.
    fn note_if(&self, anew: bool) -> io::Result<bool> {
        match anew {
            true => self.note_rebuilding(),
            false => self.folder.join(REBUILDING).try_exists(),
        }
    }

    /// Replays the whole log into new metadata. If the log's end was cut, earlier or now, renews everything that may
    /// depend on the lost end.
    fn replay_all(&self, is_cut: bool) -> Result<OpenReport, FilesError> {
        let fresh = self.meta(META_NEW).map_err(|error| self.wrong(error))?;
        let (mut store, report) = self.open_with(fresh, true)?;
        if is_cut || report.cut > 0 {
            self.renew(&mut store)?;
        }
        store.persist().map_err(|error| self.wrong(error))?;
        Ok(report)
    }

    /// Gives all mailboxes a new UIDVALIDITY and removes the search index: both may depend on a cut end of the log.
    fn renew(&self, store: &mut MailStore) -> Result<(), FilesError> {
        let renewed = store.renew_uid_validities(now());
        renewed.map_err(|error| self.wrong(error))?;
        self.remove(super::index::FOLDER)
    }

    fn forget_rebuilding(&self) -> io::Result<()> {
        match fs::remove_file(self.folder.join(REBUILDING)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| File::open(&self.folder)?.sync_all()),
        }
    }

    fn meta(&self, name: &str) -> Result<FjallMeta, MetaError> {
        FjallMeta::open(&self.folder.join(name), META_CACHE)
    }

    /// Rebuilds everything that follows from the log, and salvages the readable part of a damaged log. The old
    /// metadata stay until the new metadata are complete. The role makes the search index again.
    ///
    /// # Errors
    /// When the log cannot be read or written.
    pub(crate) fn repair(&self, dry_run: bool) -> Result<RepairReport, FilesError> {
        self.remove(META_NEW)?;
        let old = [META, META_OLD]
            .into_iter()
            .find(|name| self.folder.join(name).is_dir());
        let old = old.and_then(|name| match self.meta(name) {
            Ok(old) => Some(old),
            Err(error) => {
                tracing::warn!(%error, "the old metadata cannot be read");
                None
            }
        });
        let disk = LogDirectory::open(&self.folder.join("log"))
            .map_err(|error| self.irreparable(error))?;
        let fresh = self
            .meta(META_NEW)
            .map_err(|error| self.irreparable(error))?;
        let config = StoreConfig::default();
        let without = old.is_none() && !dry_run;
        let was_begun = self
            .note_if(without)
            .map_err(|error| self.irreparable(error))?;
        let report = Store::repair(disk, old.as_ref(), fresh, config, dry_run);
        drop(old);
        let report = report.map_err(|error| self.irreparable(error))?;
        if dry_run {
            self.remove(META_NEW)?;
        } else {
            self.remove(super::index::FOLDER)?;
            let is_cut = report.cut > 0 || !report.damage.is_empty();
            if was_begun || (without && is_cut) {
                self.renew_repaired()?;
            }
            if !without {
                // The old metadata knew which numbers had been assigned.
                self.forget_mark()?;
            }
            self.forget_rebuilding()
                .map_err(|error| self.irreparable(error))?;
            self.exchange(META_OLD)
                .map_err(|error| self.irreparable(error))?;
            self.remove(META_OLD)?;
            self.remove(META_TORN)?;
        }
        Ok(report)
    }

    /// Renews metadata that a repair made from the log alone, for the reasons in [`Files::rebuild`].
    fn renew_repaired(&self) -> Result<(), FilesError> {
        let fresh = self.meta(META_NEW).map_err(|error| self.wrong(error))?;
        let (mut store, _) = self.open_with(fresh, true)?;
        self.renew(&mut store)?;
        store.persist().map_err(|error| self.wrong(error))?;
        tracing::warn!(
            "the end of the log may have been lost: all mailboxes have a new UIDVALIDITY, clients read their mail again"
        );
        Ok(())
    }

    fn wrong(&self, trouble: impl Into<Trouble>) -> FilesError {
        wrong(&self.folder, trouble)
    }

    fn irreparable(&self, trouble: impl Into<Trouble>) -> FilesError {
        FilesError::Repair {
            folder: self.folder.clone(),
            trouble: trouble.into(),
        }
    }

    /// Puts the new metadata in place of the current metadata, which get the name `aside`. The log has all data by
    /// now: after a crash at any point, the next start opens the metadata or replays the log.
    fn exchange(&self, aside: &str) -> Result<(), Trouble> {
        let path = |name| self.folder.join(name);
        if path(META).is_dir() {
            self.remove(aside)?;
            fs::rename(path(META), path(aside))?;
        }
        fs::rename(path(META_NEW), path(META))?;
        File::open(&self.folder)?.sync_all()?;
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), FilesError> {
        match fs::remove_dir_all(self.folder.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(wrong(&self.folder.join(name), error))
            }
            _ => Ok(()),
        }
    }
}

fn wrong(folder: &Path, trouble: impl Into<Trouble>) -> FilesError {
    FilesError::Open {
        folder: folder.to_owned(),
        trouble: trouble.into(),
    }
}

fn random_u64() -> Result<u64, FilesError> {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets).map_err(FilesError::NoRandomNumbers)?;
    Ok(u64::from_le_bytes(octets))
}

#[cfg(test)]
mod tests;
