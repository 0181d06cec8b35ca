//! The messages of a load.

use std::sync::Arc;

use super::letters::{Letter, Letters};
use crate::corpus::Corpus;
use crate::ids::{FIELD, MessageId};

/// Octets of a small and of a large message of the mix, as in the gateway paper's experiments.
const SMALL: usize = 1024;
const LARGE: usize = 10 * 1024;

/// Number of small messages in ten messages of the mix.
const SMALL_OF_TEN: u64 = 7;

/// The messages of a load.
#[derive(Debug, Clone)]
pub enum Messages {
    /// 70 % of 1 KB and 30 % of 10 KB, the whole message counted.
    Mix(Arc<Mix>),
    /// 1 KB each.
    Small(Arc<Mix>),
    /// The messages of the corpus, in order and again from the first, with an id field in front.
    Corpus(Arc<Corpus>),
    /// Letters with senders of their own, in order and again from the first, with an id field in front.
    Letters(Arc<Letters>),
}

/// The texts of a mix, to stand behind the id fields.
#[derive(Debug)]
pub struct Mix {
    small: Vec<u8>,
    large: Vec<u8>,
}

impl Mix {
    fn new() -> Self {
        let head = FIELD.len() + 2 + 16 + 2;
        Self {
            small: text(SMALL - head),
            large: text(LARGE - head),
        }
    }
}

impl Messages {
    /// The usual mix.
    pub fn mix() -> Self {
        Self::Mix(Arc::new(Mix::new()))
    }

    /// The mix with small messages only.
    pub fn small() -> Self {
        Self::Small(Arc::new(Mix::new()))
    }

    /// Appends the wire text of message `id` to `out`; returns whether the text has octets above 127.
    pub(crate) fn write(&self, id: MessageId, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(FIELD.as_bytes());
        out.extend_from_slice(format!(": {id}\r\n").as_bytes());
        match self {
            Self::Mix(mix) => {
                let small = scatter(u64::from(id.sequence())) % 10 < SMALL_OF_TEN;
                out.extend_from_slice(if small { &mix.small } else { &mix.large });
                false
            }
            Self::Small(mix) => {
                out.extend_from_slice(&mix.small);
                false
            }
            Self::Corpus(corpus) => {
                let (text, eight_bit) = corpus.message(id.sequence() as usize);
                out.extend_from_slice(text);
                eight_bit
            }
            Self::Letters(letters) => {
                let letter = letters.get(id.sequence());
                out.extend_from_slice(&letter.text);
                letter.eight_bit
            }
        }
    }

    /// The letter of message `id`, where messages have senders of their own.
    pub(crate) fn letter(&self, id: MessageId) -> Option<&Letter> {
        match self {
            Self::Letters(letters) => Some(letters.get(id.sequence())),
            Self::Mix(_) | Self::Small(_) | Self::Corpus(_) => None,
        }
    }
}

/// Spreads consecutive numbers so that sessions do not fall into step with sizes (the finalizer of
/// splitmix64).
pub(crate) const fn scatter(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A message text of exactly `length` octets: the usual header, then lines of 76 letters.
fn text(length: usize) -> Vec<u8> {
    let mut text = b"From: Load <load@bench.test>\r\n\
        To: Everybody <all@bench.test>\r\n\
        Subject: One of many\r\n\
        Date: Thu, 01 Jan 2026 00:00:00 +0000\r\n\
        Message-ID: <one-of-many@bench.test>\r\n\
        MIME-Version: 1.0\r\n\
        Content-Type: text/plain\r\n\r\n"
        .to_vec();
    let letters = b"The quick brown fox jumps over the lazy dog, and nobody knows why it does so";
    while text.len() + letters.len() + 2 <= length {
        text.extend_from_slice(letters);
        text.extend_from_slice(b"\r\n");
    }
    let left = length.saturating_sub(text.len() + 2);
    text.extend_from_slice(&letters[..left.min(letters.len())]);
    text.extend_from_slice(b"\r\n");
    text
}

#[cfg(test)]
mod tests {
    use super::{LARGE, Messages, SMALL, scatter};
    use crate::ids::MessageId;

    #[test]
    fn the_mix_has_its_sizes_and_shares() {
        let messages = Messages::mix();
        let mut small = 0;
        for sequence in 0..10_000 {
            let mut out = Vec::new();
            let id = MessageId::new(3, sequence);
            assert!(!messages.write(id, &mut out));
            assert!(out.len().abs_diff(SMALL) <= 2 || out.len().abs_diff(LARGE) <= 2);
            assert!(out.ends_with(b"\r\n"));
            assert_eq!(MessageId::of_message(&out), Some(id));
            small += usize::from(out.len() < 2000);
        }
        assert!((6800..7200).contains(&small), "{small}");
    }

    #[test]
    fn scatter_differs() {
        assert_ne!(scatter(0), scatter(1));
    }
}
