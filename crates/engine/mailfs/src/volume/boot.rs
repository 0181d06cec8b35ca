//! A new volume, and what every volume begins with.

use std::collections::VecDeque;
use std::sync::Arc;

use vere_ports::files::Caller;
use vere_ports::storage::Storage;

use super::accounts::Accounts;
use super::chain::Chain;
use super::commit_store::CommitStore;
use super::job::Seals;
use super::journal::Journal;
use super::local::Local;
use super::packs::{ChunkCache, Fates};
use super::page_store::pages_of;
use super::record::Won;
use super::register::registration;
use super::state::Machine;
use super::state::checkpoints::Checkpoints;
use super::state::commits::Commits;
use super::state::deadlines::Deadlines;
use super::state::epochs::Epochs;
use super::state::follow::Follow;
use super::state::mirrors::Mirrors;
use super::state::opening::OpenError;
use super::state::pages::Bring;
use super::state::pages::PageFetches;
use super::state::reads::Reads;
use super::state::replicas::Replicas;
use super::state::speed::Speed;
use super::state::uploads::Uploads;
use super::state::{Terms, Volume};
use super::step::Moment;
use crate::breakage::{Breakage, is_broken};
use crate::format::{Keys, MailId, VolumeId};
use crate::posix::{Files, Numbers, root_folder};
use crate::tree::Tree;

/// Permissions of a new root folder.
const ROOT_MODE: u16 = 0o755;

/// The key and the value of a row.
type RowPair = (Vec<u8>, Vec<u8>);

/// Facts of a volume besides the terms.
#[derive(Debug, Clone)]
pub struct Create {
    /// The volume.
    pub volume: VolumeId,
    /// The epoch of the key.
    pub epoch: u16,
    /// The keys of the epoch.
    pub keys: Arc<Keys>,
    /// This machine, for the list of writers.
    pub machine: Machine,
}

impl Create {
    /// A new volume with an empty root folder of this owner. Its first commit is on the way at once: the volume is there when
    /// [`Volume::is_quiet`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn create<S: Storage>(
        self,
        terms: Terms,
        storage: S,
        random: [u8; 16],
        (owner, now): (Caller, Moment),
    ) -> Result<Volume<S>, OpenError> {
        self.create_with(&[], terms, storage, random, (owner, now))
    }

    /// As [`Self::create`], with further rows in the first commit, such as those of accounts: keys and values.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn create_with<S: Storage>(
        self,
        rows: &[RowPair],
        terms: Terms,
        storage: S,
        random: [u8; 16],
        of: (Caller, Moment),
    ) -> Result<Volume<S>, OpenError> {
        self.create_behind((0, rows), terms, storage, random, of)
    }

    /// As [`Self::create_with`], for a volume whose log is lost: the first commit is of the generation behind this one, so that
    /// whatever lost commits may name is older.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn create_behind<S: Storage>(
        self,
        (generation, rows): (u64, &[RowPair]),
        terms: Terms,
        storage: S,
        random: [u8; 16],
        (owner, now): (Caller, Moment),
    ) -> Result<Volume<S>, OpenError> {
        let pages = pages_of(storage.clone(), self.keys.clone());
        let mut memory = CommitStore::open(storage.clone(), |_| {});
        memory.forget();
        let journal = Journal::open(storage, self.keys.local(), random, |_, _| {})?;
        let nothing = Won {
            commit: MailId::NONE,
            generation,
            uid_validity: 0,
            uid: 0,
        };
        let mut volume = assemble(
            terms,
            self,
            (Tree::over(pages), journal, memory),
            now,
            Chain::new(nothing, 0),
        );
        volume.follow.registration = registration(&volume.machine, random);
        let (key, value) = root_folder(owner, ROOT_MODE, now.wall);
        volume.put_row(key, value);
        for (key, value) in rows {
            volume.put_row(key.clone(), value.clone());
        }
        volume.begin(&[])?;
        volume.follow_others(Vec::new());
        volume.want_all(Vec::new());
        Ok(volume)
    }
}

pub(super) fn assemble<S: Storage>(
    terms: Terms,
    of: Create,
    (tree, journal, memory): (Tree, Journal<S>, CommitStore<S>),
    now: Moment,
    mut chain: Chain,
) -> Volume<S> {
    if is_broken(Breakage::Gap) {
        chain.skip_gaps();
    }
    Volume {
        seals: Seals {
            volume: of.volume,
            epoch: of.epoch,
            keys: of.keys,
        },
        machine: of.machine,
        writer: 0,
        files: Files::new(tree, Numbers::new(0, 0, 0)),
        fates: Fates::default(),
        cache: ChunkCache::new(terms.cache_max),
        local: Local::none(),
        accounts: Accounts::new(&terms.accounts, &terms.groups),
        uploads: Uploads::default(),
        reads: Reads::default(),
        chain,
        commits: Commits::default(),
        checkpoints: Checkpoints::default(),
        journal,
        memory,
        confirm: None,
        deadlines: Deadlines::default(),
        replicas: Replicas::default(),
        pages: PageFetches::default(),
        late: Vec::new(),
        follow: Follow::default(),
        mirrors: Mirrors::default(),
        upkeep: None,
        facts: None,
        epochs: Epochs::default(),
        bring: Bring::default(),
        collected: None,
        speed: Speed::default(),
        sequence: (1, 1),
        block_end: 1,
        steps: VecDeque::new(),
        asked: hashbrown::HashMap::new(),
        began: hashbrown::HashMap::new(),
        working: hashbrown::HashMap::new(),
        last_id: 0,
        now,
        blocked: VecDeque::new(),
        sync_at: None,
        synced_to: 0,
        journal_at: None,
        retry_at: None,
        quotas_at: None,
        stand_in: None,
        read_only: None,
        terms,
    }
}
