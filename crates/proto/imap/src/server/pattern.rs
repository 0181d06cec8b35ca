//! Patterns of mailbox names (RFC 9051 section 6.3.9).

/// A pattern: `*` matches any octets, `%` any octets within a level.
///
/// The pattern is an automaton that follows all paths at once: a bit for each reachable place in the
/// pattern. A name costs a few operations for each of its octets and each 64 octets of the pattern, whatever
/// wildcards there are.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The line of `goes` for each octet; the first line is for octets outside the pattern.
    lines: [u16; 256],
    /// For each line: the places that the octet leads on from.
    goes: Vec<u64>,
    /// The places with `*`, where any octet may follow, and the places with `%`, where any octet except `/`
    /// may follow.
    any: Vec<u64>,
    level: Vec<u64>,
    /// The place at the end.
    end: Place,
}

/// The index of a place's word, and the bit in the word.
#[derive(Debug, Clone, Copy, Default)]
struct Place(usize, u64);

impl Place {
    const FIRST: Self = Self(0, 1);

    const fn next(self) -> Self {
        match self.1.rotate_left(1) {
            1 => Self(self.0.saturating_add(1), 1),
            bit => Self(self.0, bit),
        }
    }

    fn set(self, places: &mut [u64]) {
        if let Some(word) = places.get_mut(self.0) {
            *word |= self.1;
        }
    }

    fn is_set(self, places: &[u64]) -> bool {
        places.get(self.0).is_some_and(|word| word & self.1 != 0)
    }
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        let words = (text.len() / 64).saturating_add(1);
        let mut pattern = Self {
            lines: [0; 256],
            goes: vec![0; words],
            any: vec![0; words],
            level: vec![0; words],
            end: Place::FIRST,
        };
        for octet in text.bytes() {
            match octet {
                b'*' => pattern.end.set(&mut pattern.any),
                b'%' => pattern.end.set(&mut pattern.level),
                _ => {
                    let end = pattern.end;
                    end.set(pattern.line_mut(octet, words));
                    pattern.end = end.next();
                }
            }
        }
        pattern
    }

    fn line_mut(&mut self, octet: u8, words: usize) -> &mut [u64] {
        let lines = self.goes.len().checked_div(words).unwrap_or(0);
        let line = self.lines.get_mut(usize::from(octet));
        let line = line.map_or(0, |line| {
            if *line == 0 {
                *line = u16::try_from(lines).unwrap_or(0);
                self.goes.resize(self.goes.len().saturating_add(words), 0);
            }
            usize::from(*line)
        });
        let line = self.goes.chunks_exact_mut(words.max(1)).nth(line);
        line.unwrap_or_default()
    }

    fn line(&self, octet: u8) -> &[u64] {
        let line = self.lines.get(usize::from(octet)).copied().unwrap_or(0);
        let mut lines = self.goes.chunks_exact(self.any.len().max(1));
        lines.nth(usize::from(line)).unwrap_or_default()
    }

    /// Whether a name fits; `places` is memory to work with.
    pub(super) fn fits(&self, name: &str, places: &mut Vec<u64>) -> bool {
        places.clear();
        places.resize(self.any.len(), 0);
        Place::FIRST.set(places);
        for octet in name.bytes() {
            let (mut carry, mut is_lost) = (0, true);
            let stays = self.any.iter().zip(&self.level);
            for ((place, goes), (any, level)) in places.iter_mut().zip(self.line(octet)).zip(stays)
            {
                let stays = match octet {
                    b'/' => *any,
                    _ => any | level,
                };
                let on = *place & goes;
                *place = *place & stays | on << 1 | carry;
                carry = on >> 63;
                is_lost &= *place == 0;
            }
            if is_lost {
                return false;
            }
        }
        self.end.is_set(places)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).fits(name, &mut Vec::new())
    }

    /// The definition: a wildcard matches the empty text, or one more octet.
    fn is_meant(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], _) => name.is_empty(),
            ([wild @ (b'*' | b'%'), rest @ ..], _) => {
                let more = |name: &[u8]| *wild == b'*' || name.first() != Some(&b'/');
                is_meant(rest, name)
                    || (!name.is_empty() && more(name) && is_meant(pattern, &name[1..]))
            }
            ([wanted, rest @ ..], [octet, name @ ..]) => wanted == octet && is_meant(rest, name),
            _ => false,
        }
    }

    #[test]
    fn wildcards_are_those_of_the_standard() {
        for (pattern, name, wanted) in [
            ("", "", true),
            ("*", "", true),
            ("%", "a/b", false),
            ("*", "a/b", true),
            ("%/%", "a/b", true),
            ("a%c", "a/c", false),
            ("a%*c", "a/c", true),
            ("*%b", "a/ab", true),
            ("Entwürfe", "Entwürfe", true),
        ] {
            assert_eq!(fits(pattern, name), wanted, "{pattern} {name}");
        }
    }

    /// The worst case for a matcher with backtracking: here a name costs its length times the words of the
    /// pattern.
    #[test]
    fn long_patterns_are_a_few_words() {
        let pattern = Pattern::new(&format!("{}b", "*a%a".repeat(500)));
        assert_eq!(pattern.any.len(), 32);
        assert!(pattern.fits(&format!("{}b", "a".repeat(1_000)), &mut Vec::new()));
        assert!(!pattern.fits(&"a".repeat(2_000), &mut Vec::new()));
        for octets in [62, 63, 64, 65, 127, 128] {
            let text = "x".repeat(octets);
            assert!(fits(&text, &text) && fits(&format!("{text}*"), &text));
            assert!(!fits(&text, &text[1..]) && !fits(&text[1..], &text));
        }
    }

    proptest! {
        #[test]
        fn fits_what_is_meant(pattern in "[ab/%*]{0,9}", name in "[ab/]{0,9}", times in 0..70usize) {
            prop_assert_eq!(fits(&pattern, &name), is_meant(pattern.as_bytes(), name.as_bytes()));
            // The same pattern behind other words.
            let before = "b".repeat(times);
            let (pattern, name) = (format!("{before}{pattern}"), format!("{before}{name}"));
            prop_assert_eq!(fits(&pattern, &name), is_meant(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
