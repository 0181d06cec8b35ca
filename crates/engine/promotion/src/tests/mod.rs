//! Promotions over accounts in memory, with commits and pages made by hand.

mod ends;
mod ways;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use bytes::Bytes;
use vere_faults::accounts::MemoryAccount;
use vere_opening::{Create, Machine, Terms};
use vere_order::found::{Found, in_order, lead_of};
use vere_placement::accounts::AccountTerms;
use vere_ports::mail_accounts::{Answer, Fault, Request};
use vere_units::Timestamp;

use crate::format::commit::{Checkpoint, Record, RecordKind, RowChange};
use crate::format::{
    Builder, ChunkId, Codec, Encoding, Index, IndexEntry, Keys, Kind, Locator, MailCopy, MailId,
    PackNumber, Subject, VolumeId, VolumeKey, mail,
};
use crate::rows::LeadRow;
use crate::{Promoted, Promotion, PromotionError, PromotionStep, Source};

const VOLUME: VolumeId = VolumeId([3; 16]);
const DATE: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn keys(epochs: u16) -> Keys {
    let keys = (1..=epochs).map(|epoch| (epoch, VolumeKey([epoch as u8; 32])));
    Keys::of_epochs(&keys.collect::<Vec<_>>()).unwrap()
}

/// The encoding of an account: those with an odd number take 8-bit mails.
fn encoding(account: u16) -> Encoding {
    match account % 2 {
        1 => Encoding::EightBit,
        _ => Encoding::Base64,
    }
}

fn terms() -> Terms {
    let accounts = (1..=3).map(|account| AccountTerms {
        account,
        encoding: encoding(account),
    });
    Terms {
        accounts: accounts.collect(),
        lead: 1,
        lead_epoch: 1,
        is_new_lead: false,
        metadata_accounts: 2,
        groups: Vec::new(),
        strong: false,
        call_timeout: std::time::Duration::from_secs(60),
        sync_copies: 1,
        flush_interval: std::time::Duration::from_secs(5),
        journal_sync: std::time::Duration::from_secs(1),
        unsent_max: 1 << 20,
        cache_max: 1 << 20,
        fetches_max: 1,
        rows_max: crate::format::ROWS_MAX,
        refresh: std::time::Duration::from_secs(30),
    }
}

fn create(epochs: u16) -> Create {
    Create {
        volume: VOLUME,
        epoch: epochs,
        keys: Arc::new(keys(epochs)),
        machine: Machine::default(),
    }
}

/// A commit to be made.
#[derive(Debug, Clone)]
struct Draft {
    parent: MailId,
    generation: u64,
    lead_epoch: u32,
    epoch: u16,
    kind: RecordKind,
    checkpoint: Option<Checkpoint>,
    merged: Vec<MailId>,
    rows: Vec<RowChange>,
    /// What makes commits differ that are equal otherwise.
    time: i64,
}

impl Draft {
    fn on(parent: MailId, generation: u64) -> Self {
        Self {
            parent,
            generation,
            lead_epoch: 1,
            epoch: 1,
            kind: RecordKind::Change,
            checkpoint: None,
            merged: Vec::new(),
            rows: Vec::new(),
            time: 0,
        }
    }

    fn naming(self, checkpoint: Checkpoint) -> Self {
        Self {
            checkpoint: Some(checkpoint),
            ..self
        }
    }
}

/// A checkpoint that covers generation 2.
fn covering_two(covered_uid: u32, root: Locator) -> Checkpoint {
    Checkpoint {
        covers: NonZeroU64::new(2).unwrap(),
        covered_uid,
        root,
    }
}

/// Three accounts.
struct World {
    accounts: BTreeMap<u16, MemoryAccount>,
    /// The number of the next request that is carried out, and whose answer is lost.
    unanswered: Option<usize>,
    /// Accounts that do not answer.
    lost: Vec<u16>,
    /// Requests so far.
    requests: usize,
    /// Mails that were left alone.
    left: Vec<String>,
}

impl World {
    fn new() -> Self {
        Self {
            accounts: (1..=3).map(|of| (of, MemoryAccount::new())).collect(),
            unanswered: None,
            lost: Vec::new(),
            requests: 0,
            left: Vec::new(),
        }
    }

    fn store(&mut self, (account, mailbox): (u16, &str), mail: Vec<u8>) -> u32 {
        let request = Request::Append {
            mailbox: mailbox.to_owned(),
            mail: mail.into(),
            alone: true,
        };
        let account = self.accounts.get_mut(&account).unwrap();
        match account.carry_out(&request).unwrap() {
            Answer::Appended(Some((_, uid))) => uid,
            other => panic!("{other:?}"),
        }
    }

    /// Stores a commit, and tells UID and id.
    fn commit(&mut self, at: (u16, &str), draft: &Draft) -> (u32, MailId) {
        let builder = Builder::new(Kind::Commit, VOLUME, draft.epoch, 0, PackNumber(7));
        let record = Record {
            kind: draft.kind,
            lead_epoch: draft.lead_epoch,
            generation: draft.generation,
            parent: draft.parent,
            time: draft.time,
            checkpoint: draft.checkpoint,
            merged: draft.merged.clone(),
            ancestors: Vec::new(),
            rows: draft.rows.clone(),
            index: Index::default(),
        };
        let sealed = builder
            .finish(record.encode().unwrap().into(), &keys(draft.epoch))
            .unwrap();
        let subject = Subject::of(&sealed.head, Some(draft.parent), Some(draft.generation));
        let mail = mail::wrap(&subject, DATE, encoding(at.0), &sealed.body);
        (self.store(at, mail), sealed.mail_id())
    }

    /// A chain of so many commits from the volume's first one on.
    fn chain(&mut self, at: (u16, &str), commits: u64) -> Vec<MailId> {
        let (mut parent, mut all) = (MailId::NONE, Vec::new());
        for generation in 1..=commits {
            parent = self.commit(at, &Draft::on(parent, generation)).1;
            all.push(parent);
        }
        all
    }

    /// Stores a mail of pages, and tells where it is.
    fn page(&mut self, at: (u16, &str), covers: u64) -> Locator {
        let mut builder = Builder::new(Kind::Pages, VOLUME, 1, 0, PackNumber(8));
        let content = Bytes::from(vec![covers as u8; 20]);
        let place = builder.push(Codec::Plain, content).unwrap();
        let index = Index {
            entries: vec![IndexEntry {
                place,
                chunk: ChunkId([0; 16]),
                inode: 0,
                offset: covers,
            }],
        };
        let sealed = builder
            .finish(index.encode().unwrap().into(), &keys(1))
            .unwrap();
        let subject = Subject::of(&sealed.head, None, Some(covers));
        let mail = mail::wrap(&subject, DATE, encoding(at.0), &sealed.body);
        let uid = self.store(at, mail);
        Locator {
            pack: PackNumber(8),
            mail: sealed.mail_id(),
            copy: MailCopy {
                account: at.0,
                mailbox: 2,
                uid,
            },
            at: place.at,
            sealed_len: place.sealed_len,
        }
    }

    fn promote(&mut self, source: Source, to: u16) -> Result<Promoted, PromotionError> {
        self.promote_with(source, to, create(2), |_, _| {})
    }

    /// Promotes; `between` may change the accounts before each request.
    fn promote_with(
        &mut self,
        source: Source,
        to: u16,
        of: Create,
        mut between: impl FnMut(&mut Self, &Request),
    ) -> Result<Promoted, PromotionError> {
        let mut promotion = Promotion::new(&terms(), of, (source, to), (100, DATE));
        while let Some(step) = promotion.poll() {
            match step {
                PromotionStep::Left(account, uid, _) => self.left.push(format!("{account} {uid}")),
                PromotionStep::Ask(id, account, _, request) => {
                    assert!(id.0 > 100);
                    between(self, &request);
                    let answer = self.carry_out(account.0, &request);
                    promotion.answered(id, answer);
                }
            }
        }
        let (done, all) = promotion.progress();
        assert!(done <= all);
        promotion.finish()
    }

    fn carry_out(&mut self, account: u16, request: &Request) -> Result<Answer, Fault> {
        self.requests += 1;
        if self.lost.contains(&account) {
            return Err(Fault::Unreachable("cut".to_owned()));
        }
        let answer = self.accounts.get_mut(&account).unwrap().carry_out(request);
        match self.unanswered {
            Some(at) if at == self.requests => Err(Fault::Unreachable("cut".to_owned())),
            _ => answer,
        }
    }

    /// The commits of a log, read and verified.
    fn commits(&mut self, account: u16) -> Vec<Found> {
        let log = self.accounts.get_mut(&account).unwrap().mailbox("log");
        let mails = log.map(|log| log.mails.clone()).unwrap_or_default();
        let body = |mail: &Bytes| {
            let end = mail.windows(4).position(|octets| octets == b"\r\n\r\n");
            mail.slice(end.unwrap() + 4..)
        };
        let all = keys(2);
        mails
            .iter()
            .filter_map(|(uid, mail)| {
                Found::read(*uid, &body(mail), encoding(account), (&all, VOLUME)).ok()
            })
            .collect()
    }

    /// The chain of a log from a commit on.
    fn chain_of(&mut self, account: u16, first: Option<MailId>) -> Vec<Found> {
        in_order(self.commits(account), first).0
    }

    fn mails(&mut self, account: u16, mailbox: &str) -> usize {
        let found = self.accounts.get_mut(&account).unwrap().mailbox(mailbox);
        found.map_or(0, |found| found.mails.len())
    }
}

fn ids(chain: &[Found]) -> Vec<MailId> {
    chain.iter().map(Found::id).collect()
}
