//! A new volume, and what every volume begins with.

use std::collections::{BTreeMap, VecDeque};

use vere_opening::{Create, OpenError, Reopening, Terms, registration};
use vere_order::copies::Mirrors;
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
use super::state::Volume;
use super::state::checkpoints::Checkpoints;
use super::state::commits::Commits;
use super::state::deadlines::Deadlines;
use super::state::epochs::Epochs;
use super::state::follow::Follow;
use super::state::pages::Bring;
use super::state::pages::PageFetches;
use super::state::reads::Reads;
use super::state::replicas::Replicas;
use super::state::speed::Speed;
use super::state::uploads::Uploads;
use super::step::Moment;
use crate::breakage::{Breakage, is_broken};
use crate::format::MailId;
use crate::posix::{Files, Numbers, root_folder};
use crate::tree::Tree;

/// Permissions of a new root folder.
const ROOT_MODE: u16 = 0o755;

/// The key and the value of a row.
type RowPair = (Vec<u8>, Vec<u8>);

impl<S: Storage> Volume<S> {
    /// A new volume with an empty root folder of this owner. Its first commit is on the way at once: the volume is there when
    /// [`Self::is_quiet`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn create(
        of: Create,
        terms: Terms,
        storage: S,
        random: [u8; 16],
        (owner, now): (Caller, Moment),
    ) -> Result<Self, OpenError> {
        Self::create_with(of, &[], terms, storage, random, (owner, now))
    }

    /// As [`Self::create`], with further rows in the first commit, such as those of accounts: keys and values.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn create_with(
        of: Create,
        rows: &[RowPair],
        terms: Terms,
        storage: S,
        random: [u8; 16],
        by: (Caller, Moment),
    ) -> Result<Self, OpenError> {
        Self::create_behind(of, (0, rows), terms, storage, random, by)
    }

    /// As [`Self::create_with`], for a volume whose log is lost: the first commit is of the generation behind this one, so that
    /// whatever lost commits may name is older.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn create_behind(
        of: Create,
        (generation, rows): (u64, &[RowPair]),
        terms: Terms,
        storage: S,
        random: [u8; 16],
        (owner, now): (Caller, Moment),
    ) -> Result<Self, OpenError> {
        let pages = pages_of(storage.clone(), of.keys.clone());
        let mut memory = CommitStore::open(storage.clone(), |_| {});
        memory.forget();
        let journal = Journal::open(storage, of.keys.local(), random, |_, _| {})?;
        let nothing = Won {
            commit: MailId::NONE,
            generation,
            uid_validity: 0,
            uid: 0,
        };
        let mut volume = assemble(
            terms,
            of,
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
        other_logs: BTreeMap::new(),
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
        lead: None,
        stand_in: None,
        read_only: None,
        reopening: Reopening::default(),
        terms,
    }
}
