//! Messages of a segment.

/// A set of the messages of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// None of so many.
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

    /// Of how many it is.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is of none at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes one in; one beyond the end is left out.
    pub fn set(&mut self, at: usize) {
        if at < self.len
            && let Some(word) = self.words.get_mut(at / 64)
        {
            *word |= 1 << (at % 64);
        }
    }

    /// Whether one is in.
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

    /// Whether none is in.
    #[must_use]
    pub fn has_none(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Those that are in, rising.
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

    /// Keeps those that are in another one too.
    pub fn keep(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Takes in those of another one.
    pub fn add(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Leaves out those of another one.
    pub fn without(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }
}

/// What a segment says of a needle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Messages that hold it.
    pub hits: Bits,
    /// Further ones that may hold it: their texts are to be looked into. All others do not.
    pub candidates: Bits,
}
