//! Power cuts at every write of expunging, deleting, bringing back and letting go: nothing acknowledged is lost, and
//! doing the cut step again ends as if there had been no cut.

use std::collections::BTreeSet;

use vere_faults::{Fate, Seeded};

use super::super::crashes::settled;
use super::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Deliver(&'static str, u64),
    Expunge(&'static str, u64),
    Delete(&'static str),
    /// Into a mailbox, which is made if it is missing.
    Undelete(u64, &'static str),
    /// Everything expunged before the last mark.
    LetGo,
    Mark,
}

use Step::{Delete, Deliver, Expunge, LetGo, Mark, Undelete};

const STEPS: [Step; 24] = [
    Deliver("INBOX", 1),
    Deliver("INBOX", 2),
    Deliver("INBOX", 3),
    Deliver("Old", 81),
    Deliver("Old", 82),
    Deliver("Old", 83),
    Expunge("INBOX", 1),
    Expunge("Old", 82),
    Deliver("INBOX", 84),
    Mark,
    Expunge("INBOX", 2),
    Undelete(1, "INBOX"),
    Delete("Old"),
    Undelete(2, "Back"),
    Undelete(83, "Old"),
    Undelete(82, "INBOX"),
    Expunge("INBOX", 3),
    Deliver("INBOX", 85),
    Expunge("INBOX", 1),
    Delete("Back"),
    LetGo,
    Undelete(81, "INBOX"),
    Undelete(2, "INBOX"),
    Deliver("INBOX", 86),
];

/// What is where: mailbox, content, and whether it is kept.
type Found = BTreeSet<(String, Vec<u8>, bool)>;

struct World {
    store: Tested,
    mark: Position,
}

impl World {
    fn open(disk: &MemoryDisk, meta: &MemoryMeta) -> Result<Self, StoreError> {
        let config = StoreConfig {
            keep_expunged: true,
            ..config()
        };
        let opened = Store::open(disk.clone(), meta.clone(), config);
        let (mut store, _) = opened.map_err(|error| StoreError::Failed(error.to_string()))?;
        let inbox = store.open_account(&account("ann"), NOW)?;
        settled(&mut store, inbox)?;
        Ok(Self {
            store,
            mark: Position(0),
        })
    }

    fn mailbox(&mut self, text: &str) -> Result<MailboxId, StoreError> {
        let found = match self.store.mailbox_named(&account("ann"), &name(text)) {
            Err(StoreError::NoMailbox) => {
                self.store
                    .create_mailbox(&account("ann"), &name(text), None, NOW)?
            }
            found => found?,
        };
        settled(&mut self.store, found)
    }

    fn content(&self, message: &crate::Message) -> Result<Vec<u8>, StoreError> {
        self.store.body_reader().open(message.blob)?.message()
    }

    fn step(&mut self, step: Step) -> Result<(), StoreError> {
        match step {
            Deliver(mailbox, number) => {
                let id = self.mailbox(mailbox)?;
                let sent =
                    self.store
                        .deliver(&prepared(number), &[target(id)], operation(number))?;
                settled(&mut self.store, sent)?.remove(0).map(drop)
            }
            Expunge(mailbox, number) => self.expunge(mailbox, number),
            Delete(mailbox) => {
                match self
                    .store
                    .delete_mailbox(&account("ann"), &name(mailbox), NOW)
                {
                    Err(StoreError::NoMailbox) => Ok(()),
                    deleted => settled(&mut self.store, deleted?),
                }
            }
            Undelete(number, to) => self.undelete(number, to),
            LetGo => loop {
                let limit = KeepLimit {
                    before: self.mark,
                    ..ALL
                };
                let done = self.store.let_go(&account("ann"), None, &limit)?;
                if !settled(&mut self.store, done)?.more {
                    return Ok(());
                }
            },
            Mark => {
                self.mark = self.store.end();
                Ok(())
            }
        }
    }

    fn expunge(&mut self, mailbox: &str, number: u64) -> Result<(), StoreError> {
        let id = self.mailbox(mailbox)?;
        let snapshot = self.store.snapshot(id)?;
        let snapshot = settled(&mut self.store, snapshot)?;
        for message in snapshot.iter_from(0) {
            if self.content(message)? == super::message(number) {
                let flags = Flags {
                    system: SystemFlags::DELETED,
                    keywords: Vec::new(),
                };
                let uids = [message.uid];
                let stored = self
                    .store
                    .store_flags(id, &uids, FlagMode::Add, &flags, None)?;
                settled(&mut self.store, stored)?;
                let gone = self.store.expunge(id, Some(&uids), NOW)?;
                settled(&mut self.store, gone)?;
            }
        }
        Ok(())
    }

    fn undelete(&mut self, number: u64, to: &str) -> Result<(), StoreError> {
        let to = self.mailbox(to)?;
        let keepers = self.store.kept_mailboxes(&account("ann"))?;
        for keeper in settled(&mut self.store, keepers)? {
            let mut after = None;
            while let Some(piece) = {
                let piece = self.store.kept_after(keeper.id, after)?;
                settled(&mut self.store, piece)?
            } {
                after = Some(piece.at);
                for message in &piece.messages {
                    if self.content(message)? != super::message(number) {
                        continue;
                    }
                    let uids = [message.uid];
                    let quota = QuotaLimit::default();
                    let back = self.store.undelete(keeper.id, piece.at, &uids, to, quota)?;
                    drop(settled(&mut self.store, back)?);
                    return self.empty();
                }
            }
        }
        self.empty()
    }

    fn empty(&mut self) -> Result<(), StoreError> {
        while self.store.is_emptying() {
            self.store.empty_some()?;
            let at = Committed::new((), self.store.end().0);
            settled(&mut self.store, at)?;
        }
        Ok(())
    }

    /// Everything, after a check that finds nothing. Nothing is there twice.
    fn found(&mut self, context: &str) -> Found {
        let report = self.store.check_all().unwrap();
        let findings = report.findings.iter();
        let findings = findings
            .filter(|each| !matches!(each, crate::Finding::Unreachable { messages: 0, .. }));
        assert_eq!(
            findings.collect::<Vec<_>>(),
            Vec::<&crate::Finding>::new(),
            "{context}"
        );
        let mut found = Found::new();
        let list = self.store.list(&account("ann")).unwrap();
        for entry in safe(&mut self.store, list) {
            let Some(id) = entry.mailbox else { continue };
            let snapshot = self.store.snapshot(id).unwrap();
            let snapshot = safe(&mut self.store, snapshot);
            for message in snapshot.iter_from(0) {
                let content = self.content(message).unwrap();
                let new = found.insert((entry.name.to_string(), content, false));
                assert!(new, "{context}: a message came back twice");
            }
        }
        for keeper in keepers(&mut self.store) {
            for piece in pieces(&mut self.store, keeper.id) {
                for message in &piece.messages {
                    let content = self.content(message).unwrap();
                    found.insert((keeper.name.to_string(), content, true));
                }
            }
        }
        found
    }
}

/// Does the steps from one on; how many were acknowledged.
fn run(disk: &MemoryDisk, meta: &MemoryMeta, from: usize, mark: Position) -> (usize, Position) {
    let Ok(mut world) = World::open(disk, meta) else {
        return (from, mark);
    };
    world.mark = mark;
    for (number, step) in STEPS.into_iter().enumerate().skip(from) {
        if world.step(step).is_err() {
            return (number, world.mark);
        }
        if number == STEPS.len() / 2 {
            let _ = world.store.persist();
        }
    }
    (STEPS.len(), world.mark)
}

/// Every message that was delivered is somewhere, but for those that were let go.
fn nothing_is_lost(found: &Found, acknowledged: usize, context: &str) {
    let contents: BTreeSet<_> = found.iter().map(|(_, content, _)| content).collect();
    let let_go = STEPS.iter().position(|step| matches!(step, LetGo));
    for step in &STEPS[..acknowledged] {
        let Deliver(_, number) = step else { continue };
        let may_go = let_go.is_some_and(|at| acknowledged >= at);
        assert!(
            may_go || contents.contains(&super::message(*number)),
            "{context}: {number} is lost"
        );
    }
}

#[test]
fn no_cut_of_power_loses_a_message_or_brings_it_back_twice() {
    let (disk, meta) = (MemoryDisk::default(), MemoryMeta::default());
    assert_eq!(run(&disk, &meta, 0, Position(0)).0, STEPS.len());
    let expected = World::open(&disk, &meta).unwrap().found("without a cut");
    assert!(expected.iter().any(|(.., kept)| *kept));
    let points = disk.steps();
    assert!(points > 40, "{points} points to cut at");
    for point in 1..points {
        for seed in 0..4 {
            let context = format!("cut at {point} of {points}, seed {seed}");
            let mut fate = Seeded(point * 100 + seed);
            let (disk, meta) = (MemoryDisk::default(), MemoryMeta::default());
            disk.stop_at(point);
            let (done, mark) = run(&disk, &meta, 0, Position(0));
            disk.crash(&mut fate);
            meta.crash(&mut fate);
            let meta = match fate.pick(4) {
                0 => MemoryMeta::default(),
                _ => meta,
            };
            let mut world =
                World::open(&disk, &meta).unwrap_or_else(|error| panic!("{context}: {error}"));
            let found = world.found(&context);
            nothing_is_lost(&found, done, &context);
            drop(world);
            let (done, _) = run(&disk, &meta, done, mark);
            assert_eq!(done, STEPS.len(), "{context}: once more");
            let again = World::open(&disk, &meta).unwrap().found(&context);
            assert_eq!(again, expected, "{context}: once more");
        }
    }
}
