//! Edges: the grams of three octets in which a word meets what stands beside it.
//!
//! A segment has them among its runs, behind [`EDGE`], with the messages that they are in. What is
//! looked for, spans runs and is no longer than a gram is an edge or a part of one: the messages of it are
//! the answer, and none is looked into. Something longer has the edges that its octets have.

use vere_mime::Zone;

use crate::runs::in_word;

/// Octets of an edge.
pub(crate) const GRAM: usize = 3;
/// Stands before an edge among the runs, and for what is before a text in its first edge; in no text. So
/// edges are sorted behind all runs.
pub(crate) const EDGE: u8 = 0xFE;
/// The most edges of a message that are told apart, sixteen times as many while they are gathered; one
/// with more may have any.
const EDGES_MAX: usize = 64 * 1024;

/// Whether edges are kept of a kind of text: of the others there is so much less that it is read.
pub(crate) fn are_kept(zone: Zone) -> bool {
    zone == Zone::Body
}

/// An edge as it stands among the runs.
pub(crate) type Edge = [u8; 1 + GRAM];

/// Each gram of three octets in which octets of words and others stand. Every pair of such octets lies in one
/// of them, since the first has one that begins before the text.
fn each(text: &[u8], mut edge: impl FnMut(u32)) {
    let mut gram = u32::from(EDGE);
    let mut before: Option<bool> = None;
    // Grams that an octet of another kind still lies in.
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

/// The edges that every text with something in it has.
pub(crate) fn of_needle(octets: &[u8]) -> Vec<Edge> {
    let mut edges = Vec::new();
    each(octets, |gram| {
        let [_, octets @ ..] = gram.to_be_bytes();
        // Of what stands before it nothing is known.
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

/// The edges of texts of one message.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    grams: Vec<u32>,
    too_many: bool,
}

impl Edges {
    /// Takes in a text.
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

    /// Brings them in order, each once.
    fn sort(&mut self) {
        self.grams.sort_unstable();
        self.grams.dedup();
        self.too_many |= self.grams.len() > EDGES_MAX;
        if self.too_many {
            self.grams = Vec::new();
        }
    }

    /// Gives them, each once, and forgets them; says whether all are known.
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
        // Two octets are a part of one, and three are one.
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
