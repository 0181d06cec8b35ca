//! Edges: grams of three octets in which a word meets the octets beside the word.
//!
//! A segment lists edges among its runs, behind [`EDGE`], with the messages that contain each edge. A needle that
//! spans runs and has at most three octets is an edge or a part of an edge. The messages of these edges are the
//! answer, and no message is read. A longer needle has the edges contained in its octets.

use vere_mime::Zone;

use crate::runs::in_word;

/// Octets of an edge.
pub(crate) const GRAM: usize = 3;
/// Precedes an edge among the runs, and stands for the beginning of the text in a text's first edge; occurs in no
/// text. So edges sort behind all runs.
pub(crate) const EDGE: u8 = 0xFE;
/// Distinct edges of a message at most, sixteen times as many while they are gathered. A message with more edges is a
/// candidate for every query.
const EDGES_MAX: usize = 64 * 1024;

/// Whether the segment keeps edges of a zone: other zones have so much less text that messages are read instead.
pub(crate) fn are_kept(zone: Zone) -> bool {
    zone == Zone::Body
}

/// An edge in the form used among the runs.
pub(crate) type Edge = [u8; 1 + GRAM];

/// Calls `edge` for each gram of three octets that mixes octets of words with other octets. Every such pair of
/// neighbours lies in a gram, since the first gram begins before the text.
fn each(text: &[u8], mut edge: impl FnMut(u32)) {
    let mut gram = u32::from(EDGE);
    let mut before: Option<bool> = None;
    // Remaining grams that contain an octet of the other kind.
    let mut left = 0;
    for octet in text {
        gram = (gram << 8 | u32::from(*octet)) & 0x00FF_FFFF;
        let word = in_word(*octet);
        if before.replace(word).is_some_and(|before| before != word) {
            left = GRAM - 1;
        }
        if left > 0 {
            left -= 1;
            edge(gram);
        }
    }
}

/// Returns the edges of every text that contains a needle.
pub(crate) fn of_needle(octets: &[u8]) -> Vec<Edge> {
    let mut edges = Vec::new();
    each(octets, |gram| {
        let [_, octets @ ..] = gram.to_be_bytes();
        // A needle says nothing about the octets before its first octet.
        if octets[0] != EDGE {
            edges.push(as_run(gram));
        }
    });
    edges.sort_unstable();
    edges.dedup();
    edges
}

fn as_run(gram: u32) -> Edge {
    let [_, first, second, third] = gram.to_be_bytes();
    [EDGE, first, second, third]
}

/// The edges of a message's texts.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    grams: Vec<u32>,
    too_many: bool,
}

impl Edges {
    /// Adds the edges of a text.
    pub(crate) fn add(&mut self, text: &[u8]) {
        each(text, |gram| {
            if self.grams.len() >= 16 * EDGES_MAX {
                self.sort();
            }
            if !self.too_many {
                self.grams.push(gram);
            }
        });
    }

    /// Sorts the edges and removes duplicates.
    fn sort(&mut self) {
        self.grams.sort_unstable();
        self.grams.dedup();
        self.too_many |= self.grams.len() > EDGES_MAX;
        if self.too_many {
            self.grams = Vec::new();
        }
    }

    /// Passes each edge once to `each`, and clears the edges. Returns whether all edges are known.
    pub(crate) fn take(&mut self, mut each: impl FnMut(Edge)) -> bool {
        self.sort();
        self.grams.drain(..).for_each(|gram| each(as_run(gram)));
        !std::mem::take(&mut self.too_many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &[u8]) -> Vec<Edge> {
        let (mut own, mut edges) = (Edges::default(), Vec::new());
        own.add(text);
        assert!(own.take(|edge| edges.push(edge)));
        edges
    }

    #[test]
    fn every_passage_has_edges_of_its_text() {
        let text = b"X, THIS IS (A) TEXT; OF 3 \xC3\x89 -- words.\r\n> And more";
        let edges = of_text(text);
        assert!(edges.is_sorted());
        for start in 0..text.len() {
            for end in start..=text.len() {
                let own = of_needle(&text[start..end]);
                assert!(
                    own.iter().all(|edge| edges.contains(edge)),
                    "{start}..{end}"
                );
            }
        }
        // Two octets are a part of an edge, and three octets are an edge.
        for pair in text
            .windows(2)
            .filter(|two| in_word(two[0]) != in_word(two[1]))
        {
            assert!(
                edges
                    .iter()
                    .any(|edge| edge.windows(2).any(|two| two == pair))
            );
            assert_eq!(of_needle(pair), [] as [Edge; 0]);
        }
        assert_eq!(of_needle(b"> F"), [[EDGE, b'>', b' ', b'F']]);
        assert_eq!(of_needle(b"WORD"), [] as [Edge; 0]);
        assert_eq!(of_text(b"A B"), [*b"\xFEA B", *b"\xFE\xFEA "]);
    }

    #[test]
    fn too_many_are_not_told_apart() {
        let mut text = Vec::new();
        for one in b'0'..=b'9' {
            for two in (b'A'..=b'Z').chain(0x80..=0xF0) {
                for three in (b'!'..=b'/').chain(b':'..=b'@').chain(1..=31) {
                    text.extend_from_slice(&[one, two, three, three]);
                }
            }
        }
        let mut own = Edges::default();
        for _ in 0..40 {
            own.add(&text);
        }
        assert!(own.grams.len() <= 16 * EDGES_MAX);
        assert!(!own.take(|_| panic!("one is given")));
        own.add(b"A B");
        let mut count = 0;
        assert!(own.take(|_| count += 1));
        assert_eq!(count, 2);
    }
}
