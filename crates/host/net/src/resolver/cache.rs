//! Answers that are kept for their time to live, bounded by octets: an answer of a hostile name server has up to 64 KiB, so that
//! a number of answers bounds nothing.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::mem::size_of;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hickory_resolver::proto::rr::{Name, RecordType};
use lru::LruCache;

use super::{Lookup, Proof, Record};
use crate::tls::Tlsa;

/// Octets of an entry beside its records: question, places in table and list, allocations.
const ENTRY_OCTETS: usize = 512;
/// Octets of a record beside its text: the value and an allocation.
const RECORD_OCTETS: usize = size_of::<Data>() + 16;
/// Part of the bound that a single answer may have.
const ANSWER_PARTS: usize = 16;

/// The data of a record that anybody asks for.
#[derive(Debug)]
pub(super) enum Data {
    Plain(Record),
    Tlsa(Tlsa),
}

impl Data {
    fn octets(&self) -> usize {
        RECORD_OCTETS
            + match self {
                Self::Plain(Record::A(_) | Record::Aaaa(_)) => 0,
                Self::Plain(Record::Mx(_, name) | Record::Ptr(name)) => name.capacity(),
                Self::Plain(Record::Txt(text)) => text.capacity(),
                Self::Tlsa(tlsa) => tlsa.data.capacity(),
            }
    }
}

/// An answer, with its proof.
pub(super) type Answer = Arc<(Lookup<Data>, Proof)>;

/// Name and type.
pub(super) type Question = (Name, RecordType);

/// Answers by their questions. The answer that was asked for least recently makes room.
pub(super) struct Cache(Mutex<Entries>);

struct Entries {
    /// Strangers choose the names, so that the hash has a secret key.
    answers: LruCache<Question, Entry, RandomState>,
    octets: usize,
    octets_max: usize,
}

struct Entry {
    answer: Answer,
    until: Instant,
    octets: usize,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

impl Cache {
    pub(super) fn new(octets_max: usize) -> Self {
        Self(Mutex::new(Entries {
            answers: LruCache::unbounded_with_hasher(RandomState::new()),
            octets: 0,
            octets_max,
        }))
    }

    /// Returns the answer to a question, if it lives.
    pub(super) fn find(&self, question: &Question, now: Instant) -> Option<Answer> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.answers.get(question)?;
        if now < entry.until {
            return Some(Arc::clone(&entry.answer));
        }
        entries.remove(question);
        None
    }

    /// Keeps an answer. An answer with more than its part of the octets is not kept.
    pub(super) fn keep(
        &self,
        question: Question,
        answer: &Answer,
        (now, until): (Instant, Instant),
    ) {
        let octets = octets(&question, answer);
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(&question);
        if until <= now || octets > entries.octets_max / ANSWER_PARTS {
            return;
        }
        let answer = Arc::clone(answer);
        let entry = Entry {
            answer,
            until,
            octets,
        };
        entries.octets += octets;
        entries.answers.put(question, entry);
        while entries.octets > entries.octets_max
            && let Some((_, oldest)) = entries.answers.pop_lru()
        {
            entries.octets -= oldest.octets;
        }
    }
}

impl Entries {
    fn remove(&mut self, question: &Question) {
        if let Some(entry) = self.answers.pop(question) {
            self.octets -= entry.octets;
        }
    }
}

/// The octets of an entry.
fn octets((name, _): &Question, answer: &Answer) -> usize {
    let (lookup, proof) = &**answer;
    let records: usize = match lookup {
        Lookup::Found(records) => {
            let spare = records.capacity() - records.len();
            spare * size_of::<Data>() + records.iter().map(Data::octets).sum::<usize>()
        }
        Lookup::None | Lookup::NoSuchName | Lookup::Failed(_) => 0,
    };
    let alias = proof.alias.as_ref().map(|alias| alias.target.capacity());
    ENTRY_OCTETS + name.len() + alias.unwrap_or_default() + records
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MAX: usize = 1 << 20;

    fn question(number: usize) -> Question {
        let name = Name::from_ascii(format!("n{number}.flood.test.")).unwrap();
        (name, RecordType::TXT)
    }

    fn text(octets: usize) -> Answer {
        let found = vec![Data::Plain(Record::Txt(vec![b'x'; octets]))];
        Arc::new((Lookup::Found(found), Proof::default()))
    }

    fn usage(cache: &Cache) -> (usize, usize, usize) {
        let entries = cache.0.lock().unwrap();
        let sum = entries.answers.iter().map(|(_, entry)| entry.octets);
        (entries.octets, sum.sum(), entries.answers.len())
    }

    #[test]
    fn a_flood_of_large_answers_stays_below_the_bound() {
        let cache = Cache::new(MAX);
        let now = Instant::now();
        let until = now + Duration::from_secs(60);
        let small = question(usize::MAX);
        cache.keep(small.clone(), &text(10), (now, until));
        for number in 0..1_000 {
            cache.keep(question(number), &text(60_000), (now, until));
            assert!(cache.find(&small, now).is_some(), "in use: {number}");
            let (octets, sum, _) = usage(&cache);
            assert!(octets <= MAX && octets == sum, "{octets} {sum}");
        }
        assert!(cache.find(&question(0), now).is_none());
        assert!(cache.find(&question(999), now).is_some());
        let (_, _, answers) = usage(&cache);
        assert!((16..=18).contains(&answers), "{answers}");
    }

    #[test]
    fn a_flood_of_small_answers_stays_below_the_bound() {
        let cache = Cache::new(MAX);
        let now = Instant::now();
        let nothing = Arc::new((Lookup::NoSuchName, Proof::default()));
        for number in 0..10_000 {
            let until = now + Duration::from_secs(60);
            cache.keep(question(number), &nothing, (now, until));
        }
        let (octets, sum, answers) = usage(&cache);
        assert!(octets <= MAX && octets == sum, "{octets} {sum}");
        assert!(answers <= MAX / ENTRY_OCTETS, "{answers}");
    }

    #[test]
    fn an_answer_ends_with_its_time_and_too_large_a_one_replaces_nothing_else() {
        let cache = Cache::new(MAX);
        let now = Instant::now();
        let until = now + Duration::from_secs(60);
        cache.keep(question(1), &text(10), (now, until));
        cache.keep(question(2), &text(10), (now, until));
        cache.keep(question(2), &text(MAX / ANSWER_PARTS), (now, until));
        cache.keep(question(3), &text(10), (now, now));
        assert!(cache.find(&question(1), now).is_some());
        for number in [2, 3] {
            assert!(cache.find(&question(number), now).is_none(), "{number}");
        }
        assert!(cache.find(&question(1), until).is_none());
        assert_eq!(usage(&cache), (0, 0, 0));
    }
}
