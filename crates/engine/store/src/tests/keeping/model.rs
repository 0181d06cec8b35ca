//! Random expunging, deleting, bringing back and letting go, beside a model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A message of the model: its content's number.
type Messages = BTreeMap<u32, u64>;

#[derive(Debug, Default)]
struct Model {
    /// By name.
    mailboxes: BTreeMap<&'static str, Messages>,
    /// Kept, oldest first: the mailbox's name, its generation, and numbers.
    kept: Vec<(&'static str, u64, u32, u64)>,
}

const NAMES: [&str; 3] = ["INBOX", "Sent", "Lists"];

#[derive(Debug, Clone)]
enum Act {
    Deliver(usize),
    /// The share of messages that goes, by a remainder.
    Expunge(usize, u32),
    Delete(usize),
    Undelete(usize, u32),
    LetHalfGo,
    Reopen(bool),
    Reclaim,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..3_usize).prop_map(Act::Deliver),
        4 => (0..3_usize, 1..4_u32).prop_map(|(at, share)| Act::Expunge(at, share)),
        1 => (1..3_usize).prop_map(Act::Delete),
        3 => (0..3_usize, 1..4_u32).prop_map(|(at, share)| Act::Undelete(at, share)),
        1 => Just(Act::LetHalfGo),
        1 => any::<bool>().prop_map(Act::Reopen),
        1 => Just(Act::Reclaim),
    ]
}

struct Both {
    bench: Bench,
    model: Model,
    next: u64,
}

impl Both {
    fn new() -> Self {
        Self {
            bench: keeping(),
            model: Model::default(),
            next: 1,
        }
    }

    fn id(&mut self, at: usize) -> MailboxId {
        let found = self
            .bench
            .store
            .mailbox_named(&account("ann"), &name(NAMES[at]));
        match found {
            Ok(found) => safe(&mut self.bench.store, found),
            Err(_) => self.bench.create(NAMES[at]),
        }
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Deliver(at) => {
                let id = self.id(*at);
                let number = self.next;
                self.next += 1;
                let uid = self.bench.deliver(id, number).uid.get();
                let mailbox = self.model.mailboxes.entry(NAMES[*at]).or_default();
                mailbox.insert(uid, number);
            }
            Act::Expunge(at, share) => self.expunge(*at, *share),
            Act::Delete(at) => {
                let store = &mut self.bench.store;
                let deleted = store.delete_mailbox(&account("ann"), &name(NAMES[*at]), NOW);
                let Ok(deleted) = deleted else { return };
                safe(store, deleted);
                let messages = self.model.mailboxes.remove(NAMES[*at]);
                for (uid, number) in messages.unwrap_or_default() {
                    self.model.kept.push((NAMES[*at], 0, uid, number));
                }
            }
            Act::Undelete(at, share) => self.undelete(*at, *share),
            Act::LetHalfGo => {
                let kept = keepers(&mut self.bench.store);
                let octets = kept.iter().map(|keeper| keeper.octets).sum::<u64>() / 2;
                let limit = KeepLimit { octets, ..ALL };
                let (gone, _) = let_go(&mut self.bench.store, &limit);
                empty(&mut self.bench.store);
                let kept = keepers(&mut self.bench.store);
                assert!(kept.iter().map(|keeper| keeper.octets).sum::<u64>() <= octets);
                // The model takes over which went; their number and that no other went is what is compared.
                let mut left = self.kept();
                self.model.kept.retain(|(.., number)| {
                    let at = left.iter().position(|each| each == number);
                    at.map(|at| left.swap_remove(at)).is_some()
                });
                assert!(left.is_empty(), "{gone} went, {left:?} are new");
            }
            Act::Reopen(forget) => {
                self.bench.reopen(*forget);
                self.bench.store.set_keep_expunged(true);
            }
            Act::Reclaim => drop(reclaim(&mut self.bench.store).unwrap()),
        }
    }

    fn expunge(&mut self, at: usize, share: u32) {
        let id = self.id(at);
        let mailbox = self.model.mailboxes.entry(NAMES[at]).or_default();
        let gone: Vec<_> = mailbox
            .iter()
            .filter(|(uid, _)| uid.is_multiple_of(share))
            .map(|(uid, number)| (*uid, *number))
            .collect();
        let uids = uids(gone.iter().map(|(uid, _)| *uid));
        let flags = Flags {
            system: SystemFlags::DELETED,
            keywords: Vec::new(),
        };
        let store = &mut self.bench.store;
        let stored = store.store_flags(id, &uids, FlagMode::Add, &flags, None);
        safe(store, stored.unwrap());
        let expunged = store.expunge(id, Some(&uids), NOW).unwrap();
        assert_eq!(safe(store, expunged), uids);
        for (uid, number) in gone {
            mailbox.remove(&uid);
            self.model.kept.push((NAMES[at], 0, uid, number));
        }
    }

    fn undelete(&mut self, at: usize, share: u32) {
        let to = self.id(at);
        for keeper in keepers(&mut self.bench.store) {
            for piece in pieces(&mut self.bench.store, keeper.id) {
                let picked = piece
                    .messages
                    .iter()
                    .filter(|each| each.uid.get().is_multiple_of(share));
                let picked: Vec<_> = picked.copied().collect();
                let numbers: Vec<u64> = picked.iter().map(|each| self.number(each)).collect();
                let uids: Vec<_> = picked.iter().map(|each| each.uid).collect();
                let store = &mut self.bench.store;
                let quota = QuotaLimit::default();
                let back = store
                    .undelete(keeper.id, piece.at, &uids, to, quota)
                    .unwrap();
                let back = safe(store, back);
                assert_eq!(back.from, uids);
                let mailbox = self.model.mailboxes.entry(NAMES[at]).or_default();
                for (uid, number) in back.to.iter().zip(numbers) {
                    assert_eq!(mailbox.insert(uid.get(), number), None);
                    let kept = self
                        .model
                        .kept
                        .iter()
                        .position(|(.., each)| *each == number);
                    self.model.kept.remove(kept.unwrap());
                }
            }
        }
        empty(&mut self.bench.store);
    }

    fn number(&self, message: &crate::Message) -> u64 {
        let octets = self
            .bench
            .store
            .body_reader()
            .open(message.blob)
            .unwrap()
            .message()
            .unwrap();
        let text = String::from_utf8(octets).unwrap();
        let first = text.lines().next().unwrap();
        first.trim_start_matches("Subject: ").parse().unwrap()
    }

    fn kept(&mut self) -> Vec<u64> {
        let mut kept = Vec::new();
        for keeper in keepers(&mut self.bench.store) {
            let mut count = 0;
            for piece in pieces(&mut self.bench.store, keeper.id) {
                count += piece.messages.len() as u64;
                kept.extend(piece.messages.iter().map(|each| self.number(each)));
            }
            assert_eq!(count, keeper.messages);
        }
        kept
    }

    fn compare(&mut self) {
        let (mut kept, mut expected) = (
            self.kept(),
            self.model
                .kept
                .iter()
                .map(|(.., number)| *number)
                .collect::<Vec<_>>(),
        );
        kept.sort_unstable();
        expected.sort_unstable();
        assert_eq!(kept, expected);
        let list = self.bench.store.list(&account("ann")).unwrap();
        for entry in safe(&mut self.bench.store, list) {
            let id = entry.mailbox.unwrap();
            let snapshot = self.bench.snapshot(id);
            let found: Messages = snapshot
                .iter_from(0)
                .map(|message| (message.uid.get(), self.number(message)))
                .collect();
            let model = self.model.mailboxes.get(entry.name.as_str());
            assert_eq!(found, model.cloned().unwrap_or_default(), "{}", entry.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_store_does_as_the_model(acts in proptest::collection::vec(act(), 1..40)) {
        let mut both = Both::new();
        for act in &acts {
            both.act(act);
        }
        both.compare();
        let findings = both.bench.store.check_all().unwrap().findings;
        prop_assert_eq!(findings, []);
        both.bench.reopen(true);
        both.compare();
    }
}
