use super::*;
use proptest::prelude::*;

fn message(uid: u32, mod_seq: u64) -> Message {
    Message {
        uid: Uid::new(uid).unwrap(),
        mod_seq: ModSeq(mod_seq),
        flags: SystemFlags::NONE,
        keywords: 0,
        internal_date: InternalDate::default(),
        size: 1,
        blob: BlobId(u64::from(uid)),
        thread: 0,
        own_fields: false,
    }
}

fn snapshot(chunks: Chunks) -> Snapshot {
    Snapshot {
        id: MailboxId(1),
        head: MailboxHead::new(1),
        keywords: Arc::default(),
        chunks,
    }
}

/// What a message takes while its mailbox is in memory; `docs/internals/store.md` promises it.
#[test]
fn a_message_takes_at_most_80_octets() {
    assert!(size_of::<Message>() <= 72, "{}", size_of::<Message>());
    let mut chunks = Chunks::default();
    (1..=200_000).for_each(|uid| chunks.put(message(uid, 1)));
    let each = chunks.resident() / chunks.len();
    assert!(each <= 80, "{each} octets");
}

#[test]
fn a_change_copies_one_chunk() {
    let mut chunks = Chunks::default();
    (1..=10_000).for_each(|uid| chunks.put(message(uid, 1)));
    let before = chunks.clone();
    chunks.put(message(5_000, 2));
    let shared = before.chunks.iter().zip(&chunks.chunks);
    assert_eq!(
        shared.filter(|(old, new)| !Arc::ptr_eq(old, new)).count(),
        1
    );
}

#[derive(Debug, Clone)]
enum Step {
    Arrive(u32),
    Change(usize),
    Expunge(Vec<usize>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1..2_000_u32).prop_map(Step::Arrive),
        (0..5_000_usize).prop_map(Step::Change),
        proptest::collection::vec(0..5_000_usize, 1..50).prop_map(Step::Expunge),
    ];
    proptest::collection::vec(step, 1..12)
}

struct Model {
    chunks: Chunks,
    plain: Vec<Message>,
    next: u32,
    mod_seq: u64,
}

impl Model {
    fn step(&mut self, step: &Step) {
        self.mod_seq += 1;
        match step {
            Step::Arrive(count) => {
                for _ in 0..*count {
                    let new = message(self.next, self.mod_seq);
                    self.chunks.put(new);
                    self.plain.push(new);
                    self.next += 1;
                }
            }
            Step::Change(at) if !self.plain.is_empty() => {
                let at = at % self.plain.len();
                self.plain[at].mod_seq = ModSeq(self.mod_seq);
                self.chunks.put(self.plain[at]);
            }
            Step::Expunge(at) if !self.plain.is_empty() => {
                let mut uids: Vec<_> = at
                    .iter()
                    .map(|at| self.plain[at % self.plain.len()].uid)
                    .collect();
                uids.sort_unstable();
                uids.dedup();
                self.chunks.remove(&uids);
                self.plain.retain(|each| !uids.contains(&each.uid));
            }
            _ => {}
        }
    }

    fn agrees(&self) {
        assert_eq!(self.chunks.len(), self.plain.len());
        assert!(self.chunks.iter_from(0).eq(&self.plain));
        for at in (0..self.plain.len()).step_by(97) {
            assert_eq!(self.chunks.get(at), Some(&self.plain[at]));
            assert_eq!(self.chunks.below(self.plain[at].uid), at);
            assert_eq!(self.chunks.find(self.plain[at].uid), Some(&self.plain[at]));
            assert!(self.chunks.iter_from(at).eq(&self.plain[at..]));
        }
        assert_eq!(self.chunks.get(self.plain.len()), None);
        let octets = self.chunks.chunks.iter().map(|chunk| octets_of(chunk));
        assert_eq!(self.chunks.resident(), octets.sum::<usize>());
        let run = |(first, last): (Uid, Uid)| first.get()..=last.get();
        let uids = self.plain.iter().map(|message| message.uid.get());
        assert!(self.chunks.runs().flat_map(run).eq(uids));
        // A chunk without gaps is one run.
        let gaps = |pair: &&[Message]| pair[0].uid.get() + 1 < pair[1].uid.get();
        let gaps = self.plain.windows(2).filter(gaps).count();
        assert!(self.chunks.runs().count() <= self.chunks.chunks.len() + gaps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn chunks_are_a_list_and_differences_lead_from_one_to_the_other(first in steps(), second in steps()) {
        let mut model = Model { chunks: Chunks::default(), plain: Vec::new(), next: 1, mod_seq: 0 };
        first.iter().for_each(|step| model.step(step));
        model.agrees();
        let (before, plain) = (snapshot(model.chunks.clone()), model.plain.clone());
        second.iter().for_each(|step| model.step(step));
        model.agrees();
        let after = snapshot(model.chunks.clone());
        let difference = after.since(&before);

        let mut replayed = plain.clone();
        for (index, uid) in difference.expunged.iter().rev() {
            prop_assert_eq!(replayed.remove(*index).uid, *uid);
        }
        let arrived = after.len() - difference.arrived;
        replayed.extend(after.iter_from(arrived));
        for index in &difference.changed {
            prop_assert_ne!(replayed[*index], *after.get(*index).unwrap());
            replayed[*index] = *after.get(*index).unwrap();
        }
        prop_assert!(after.iter_from(0).eq(&replayed));
    }
}
