//! Answers that are kept for their time to live, bounded by octets: an answer of a hostile name server has up to 64 KiB, so that
//! a number of answers bounds nothing.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hickory_resolver::proto::rr::{Name, RecordType};
use lru::LruCache;

/// Octets of an entry beside its records: question, places in table and list, allocations.
const ENTRY_OCTETS: usize = 512;
/// Part of the bound that a single answer may have.
const ANSWER_PARTS: usize = 16;

/// A value to keep, with the number of octets in memory.
pub(super) trait Kept {
    /// Octets beside the value itself and the question.
    fn octets(&self) -> usize;
}

/// Name and type.
pub(super) type Question = (Name, RecordType);

/// Answers by their questions. The answer that was asked for least recently makes room.
pub(super) struct Cache<V>(Mutex<Entries<V>>);

struct Entries<V> {
    /// Strangers choose the names, so that the hash has a secret key.
    answers: LruCache<Question, Entry<V>, RandomState>,
    octets: usize,
    octets_max: usize,
}

struct Entry<V> {
    answer: Arc<V>,
    until: Instant,
    octets: usize,
}

impl<V> fmt::Debug for Cache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

impl<V: Kept> Cache<V> {
    pub(super) fn new(octets_max: usize) -> Self {
        Self(Mutex::new(Entries {
            answers: LruCache::unbounded_with_hasher(RandomState::new()),
            octets: 0,
            octets_max,
        }))
    }

    /// Returns the answer to a question and the end of its life, if the answer lives.
    pub(super) fn find(&self, question: &Question, now: Instant) -> Option<(Arc<V>, Instant)> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.answers.get(question)?;
        if now < entry.until {
            return Some((Arc::clone(&entry.answer), entry.until));
        }
        entries.remove(question);
        None
    }

    /// Keeps an answer. An answer with more than a part of the octets is not kept.
    pub(super) fn keep(
        &self,
        question: Question,
        answer: &Arc<V>,
        (now, until): (Instant, Instant),
    ) {
        let octets = ENTRY_OCTETS + question.0.len() + answer.octets();
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

impl<V> Entries<V> {
    fn remove(&mut self, question: &Question) {
        if let Some(entry) = self.answers.pop(question) {
            self.octets -= entry.octets;
        }
    }
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

    impl Kept for Vec<u8> {
        fn octets(&self) -> usize {
            self.capacity()
        }
    }

    fn text(octets: usize) -> Arc<Vec<u8>> {
        Arc::new(vec![b'x'; octets])
    }

    fn usage(cache: &Cache<Vec<u8>>) -> (usize, usize, usize) {
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
        let nothing = text(0);
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
