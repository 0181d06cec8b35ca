//! The beginning of an opening: the local disk, and the first requests.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use vere_ports::mail_accounts::{Request, UidRange};
use vere_ports::storage::Storage;
use vere_replay::{Stranded, has_waiting, newest_placed, remembered};

use super::copy::StandIn;
use super::{Asked, Opening, Stage, WINDOW};
use crate::terms::Create;
use crate::terms::Terms;
use vere_keep::commit_store::CommitStore;
use vere_keep::journal::Journal;
use vere_keep::page_store::{is_distrusted, pages_of};
use vere_keep::record::Won;
use vere_placement::accounts::mailbox_name;

impl<S: Storage> Opening<S> {
    pub(super) fn prepare(
        terms: Terms,
        of: Create,
        (storage, random): (S, [u8; 16]),
        stand_in: Option<(StandIn, u64)>,
        stranded: Option<Stranded>,
    ) -> Self {
        let first = stand_in.as_ref().map_or(0, |(_, first)| *first);
        let mut records = Vec::new();
        // A merge with the newest state wants every row.
        let is_distrusted = is_distrusted(&storage) || stranded.is_some();
        let pages = pages_of(storage.clone(), of.keys.clone());
        let mut kept = Vec::new();
        let memory = CommitStore::open(storage.clone(), |commit| kept.push(commit));
        let journal = Journal::open(storage, of.keys.local(), random, |position, parts| {
            records.push((position, parts));
        });
        let (journal, error) = match journal {
            Ok(journal) => (Some(journal), None),
            Err(error) => (None, Some(error.into())),
        };
        // The chain need not have the commits of a journal whose changes are brought onto a newer state.
        let remembered = match stranded {
            Some(_) => Some(None),
            None => remembered(&records),
        };
        let placed = newest_placed(&records).filter(|_| stranded.is_none());
        let limit = match remembered {
            Some(Some(won)) if has_waiting(&records) => Some(won.generation),
            _ => None,
        };
        let mut opening = Self {
            terms,
            of,
            journal,
            memory,
            kept,
            local: None,
            lacking: None,
            records,
            remembered: remembered.flatten(),
            placed,
            limit,
            stranded,
            is_wide: false,
            random,
            steps: VecDeque::new(),
            asked: HashMap::new(),
            last_id: first,
            uid_validity: 0,
            known: 0,
            stage: Stage::End,
            listed_from: u32::MAX,
            listed: BTreeSet::new(),
            commits: BTreeMap::new(),
            unread: VecDeque::new(),
            base: None,
            refused: Vec::new(),
            pages,
            is_distrusted,
            wanted: VecDeque::new(),
            early_root: None,
            pages_validity: 0,
            moved: HashMap::new(),
            error,
            expected: None,
            lost_writer: 0,
            stand_in: stand_in.map(|(of, _)| of),
        };
        opening.forget_places();
        opening
    }

    /// Asks for the end of the log.
    pub(super) fn ask_log(&mut self) {
        if self.error.is_some() {
            self.stage = Stage::Over;
            return;
        }
        let end = Request::List {
            mailbox: mailbox_name(self.mailboxes().1),
            range: UidRange {
                first: self.stand_in.as_ref().map_or(u32::MAX, |_| 1),
                last: None,
            },
        };
        // In this order all requests go at once: a long listing keeps its mailbox open.
        self.ask(self.source(), end, Asked::PagesEnd);
        if self.stand_in.is_some() {
            self.begin_at_copy();
            return;
        }
        let knows_all = self.stranded.is_some() || remembered(&self.records).is_some();
        match (self.remembered, self.placed) {
            (Some(_), _) if self.terms.is_new_lead => self.begin_under_new_lead(),
            (_, Some(won)) => self.begin_at(won),
            (_, None) if knows_all => self.list(u32::MAX),
            (_, None) => {
                // The journal may know a commit of any age.
                self.stage = Stage::Tail;
                self.list(1);
            }
        }
    }

    /// Begins where the last mount has ended: a round trip less than with a look for the end of the log, and one less than with
    /// the newest commit behind the listing, unless another mount has committed.
    fn begin_at(&mut self, won: Won) {
        self.stage = Stage::Newest;
        self.list(won.uid.saturating_sub(WINDOW).max(1));
        let request = Request::Read {
            mailbox: mailbox_name(self.mailboxes().0),
            uid_validity: won.uid_validity,
            uid: won.uid,
            parts: Vec::new(),
        };
        self.ask(self.source(), request, Asked::Guess(won.uid));
    }
}
