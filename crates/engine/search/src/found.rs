//! Messages of a segment.

/// A set of the messages of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// An empty set over this many messages.
    #[must_use]
    pub fn none(of: usize) -> Self {
        Self {
            words: vec![0; of.div_ceil(64)],
            len: of,
        }
    }

    /// All of so many.
    #[must_use]
    pub fn all(of: usize) -> Self {
        let mut words = vec![u64::MAX; of.div_ceil(64)];
        if let Some(last) = words.last_mut().filter(|_| !of.is_multiple_of(64)) {
            *last = (1 << (of % 64)) - 1;
        }
        Self { words, len: of }
    }

    /// The number of messages that the set ranges over.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set ranges over no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a message; a number beyond the end is ignored.
    pub fn set(&mut self, at: usize) {
        if at < self.len
            && let Some(word) = self.words.get_mut(at / 64)
        {
            *word |= 1 << (at % 64);
        }
    }

    /// Whether the message is in the set.
    #[must_use]
    pub fn has(&self, at: usize) -> bool {
        let word = self.words.get(at / 64);
        word.is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// How many are in.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn has_none(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The members, rising.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(at * 64 + bit)
            })
        })
    }

    /// Keeps the members that are also in `other`.
    pub fn keep(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Adds the members of `other`.
    pub fn add(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Removes the members of `other`.
    pub fn without(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }
}

/// The answer of a segment for a needle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Messages that contain the needle.
    pub hits: Bits,
    /// Further messages that may contain the needle: their texts must be read. All remaining
    /// messages do not contain the needle.
    pub candidates: Bits,
}
