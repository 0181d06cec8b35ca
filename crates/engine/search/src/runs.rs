//! Runs: the parts of texts and of needles.

use std::ops::Range;

use crate::edges::Edge;

/// Whether an octet of a text belongs to a word: letters, digits, and everything beyond ASCII.
pub(crate) fn in_word(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || octet >= 0x80
}

/// The runs of a text in order: words, and the octets between words.
pub(crate) fn runs(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..)?;
        let word = in_word(*rest.first()?);
        let len = rest.iter().position(|octet| in_word(*octet) != word);
        let run = start..len.map_or(text.len(), |len| start + len);
        start = run.end;
        Some(run)
    })
}

/// A search text, in the form used for comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needle {
    octets: Vec<u8>,
    runs: Vec<Range<usize>>,
}

/// Where in a run something lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Anywhere,
    End,
    Whole,
    Beginning,
}

/// The most runs of a needle that candidates are found by.
const RUNS_MAX: usize = 8;

impl Needle {
    /// Makes a needle from a text in any case.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let octets = vere_mime::casemap(text).into_bytes();
        let runs = runs(&octets).collect();
        Self { octets, runs }
    }

    /// The octets compared with texts.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Whether every text contains the needle.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Whether no text contains the needle: the needle has the character that replaces undecodable
    /// octets.
    #[must_use]
    pub fn is_nowhere(&self) -> bool {
        memchr::memmem::find(&self.octets, "\u{FFFD}".as_bytes()).is_some()
    }

    /// The crossings of every text with the needle.
    pub(crate) fn crossings(&self) -> Vec<u64> {
        crate::crossings::of_needle(&self.octets)
    }

    /// The edges of every text with the needle.
    pub(crate) fn edges(&self) -> Vec<Edge> {
        crate::edges::of_needle(&self.octets)
    }

    /// The needle, if it lies within a single run.
    pub(crate) fn within_run(&self) -> Option<&[u8]> {
        (self.runs.len() == 1).then_some(self.octets.as_slice())
    }

    /// The most selective runs of the needle, with their places in the runs of a text.
    pub(crate) fn pieces(&self) -> Vec<(&[u8], Place)> {
        let last = self.runs.len() - 1;
        let mut pieces: Vec<(&[u8], Place)> = self
            .runs
            .iter()
            .enumerate()
            .map(|(number, run)| {
                let place = match number {
                    _ if last == 0 => Place::Anywhere,
                    0 => Place::End,
                    number if number == last => Place::Beginning,
                    _ => Place::Whole,
                };
                (&self.octets[run.clone()], place)
            })
            .collect();
        // Whole runs first, they are in the fewest messages; a blank is in all.
        pieces.sort_by_key(|(run, place)| {
            let whole = *place == Place::Whole && in_word(run[0]);
            (!whole, std::cmp::Reverse(run.len()))
        });
        let many = pieces.len() > 1;
        pieces.retain(|(run, _)| !many || in_word(run[0]) || run.len() > 1);
        pieces.dedup();
        pieces.truncate(RUNS_MAX);
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut() {
        let text = "Ab1, \u{e9}x--\r\ny".as_bytes();
        let cut: Vec<_> = runs(text).map(|run| &text[run]).collect();
        assert_eq!(
            cut,
            [&b"Ab1"[..], b", ", "\u{e9}x".as_bytes(), b"--\r\n", b"y"]
        );
        assert_eq!(runs(b"").count(), 0);
    }

    #[test]
    fn what_is_looked_for_is_cut() {
        assert_eq!(Needle::new("free").within_run(), Some(&b"FREE"[..]));
        let phrase = Needle::new("is free of, it");
        assert_eq!(phrase.within_run(), None);
        let pieces = phrase.pieces();
        assert_eq!(pieces[0], (&b"FREE"[..], Place::Whole));
        assert!(pieces.contains(&(b"IS", Place::End)));
        assert!(pieces.contains(&(b"IT", Place::Beginning)));
        assert!(pieces.contains(&(b", ", Place::Whole)));
        assert!(!pieces.iter().any(|(run, _)| *run == b" "));
        assert!(Needle::new("a\u{FFFD}").is_nowhere());
        // Nothing is left when two runs are single separators: everything is a candidate.
        assert!(Needle::new(" ").pieces().len() == 1);
    }
}
