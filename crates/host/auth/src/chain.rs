//! The fields of ARC in a header (RFC 8617 section 4), and the sets that they make.

use vere_mime::Field;

use crate::fault::Fault;
use crate::signature::{Found, Kind};
use crate::tags::Tags;

/// Most sets of a chain, by RFC 8617 section 4.2.1. The verifier and the sealer (`vere_dkim`) have the same bound: a verifier with a lower bound would have
/// this system seal a valid chain as broken. A set costs a verification, some 0.05 ms, and a question within the bounds of a message's questions.
pub const SETS_MAX: usize = 50;

/// The reason why a chain is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArcFault {
    /// The fields are no sets of three each, numbered from 1.
    #[error("sets incomplete")]
    Structure,
    /// The chain has more sets than are checked.
    #[error("too many sets")]
    TooLong,
    /// A seal says that the chain was broken before.
    #[error("broken before set {0}")]
    Before(usize),
    /// The newest message signature does not count.
    #[error("message signature: {0}")]
    Message(Fault),
    /// The seal of a set does not count.
    #[error("seal of set {0}: {1}")]
    Seal(usize, Fault),
}

/// The fields of ARC in a header, by kind.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    results: Vec<(usize, usize)>,
    messages: Vec<(usize, Found)>,
    seals: Vec<(usize, Seal)>,
    is_broken: Option<ArcFault>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) found: Found,
    /// The value of the tag `cv`.
    validation: Vec<u8>,
}

/// The sets of a message; the first one has the number 1.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain {
    /// None for a chain that is broken.
    pub(crate) sets: Vec<Set>,
    pub(crate) is_broken: Option<ArcFault>,
}

#[derive(Debug, Clone)]
pub(crate) struct Set {
    /// The number of the ARC-Authentication-Results field in the header.
    pub(crate) results: usize,
    pub(crate) message: Found,
    pub(crate) seal: Seal,
}

impl Fields {
    /// Takes a field of a header.
    pub(crate) fn take(&mut self, index: usize, field: &Field<'_>) {
        let is_results = field.is("ARC-Authentication-Results");
        let is_message = field.is("ARC-Message-Signature");
        let count = match (is_results, is_message) {
            (true, _) => self.results.len(),
            (false, true) => self.messages.len(),
            (false, false) if field.is("ARC-Seal") => self.seals.len(),
            (false, false) => return,
        };
        if count >= SETS_MAX {
            self.is_broken = Some(ArcFault::TooLong);
            return;
        }
        let tags = Tags::of(field.value).ok();
        let instance = match (is_results, &tags) {
            (true, _) => results_instance(field.value),
            (false, Some(tags)) => tags.value("i").and_then(number),
            (false, None) => None,
        };
        let Some(instance) = instance else {
            self.is_broken.get_or_insert(ArcFault::Structure);
            return;
        };
        if is_results {
            self.results.push((instance, index));
        } else if is_message {
            let found = Found::of(index, field.value, Kind::ArcMessage);
            self.messages.push((instance, found));
        } else {
            let found = Found::of(index, field.value, Kind::ArcSeal);
            let tags = tags.as_ref();
            // RFC 8617 section 4.1.3: a seal with the tag `h` is invalid.
            let has_names = tags.is_some_and(|tags| tags.value("h").is_some());
            if has_names {
                self.is_broken.get_or_insert(ArcFault::Structure);
            }
            let validation = tags.and_then(|tags| tags.value("cv")).unwrap_or_default();
            let validation = validation.to_ascii_lowercase();
            self.seals.push((instance, Seal { found, validation }));
        }
    }

    /// Sorts the fields into sets.
    pub(crate) fn chain(mut self) -> Chain {
        self.results.sort_by_key(|(instance, _)| *instance);
        self.messages.sort_by_key(|(instance, _)| *instance);
        self.seals.sort_by_key(|(instance, _)| *instance);
        let count = self.seals.len();
        let counts = [self.results.len(), self.messages.len()];
        let mut is_broken = self.is_broken;
        if counts != [count, count] {
            is_broken.get_or_insert(ArcFault::Structure);
        }
        let mut sets = Vec::new();
        let all = self.results.into_iter().zip(self.messages).zip(self.seals);
        for (number, ((results, message), seal)) in (1..).zip(all) {
            if [results.0, message.0, seal.0] != [number; 3] {
                is_broken.get_or_insert(ArcFault::Structure);
            }
            let expected: &[u8] = if number == 1 { b"none" } else { b"pass" };
            if seal.1.validation != expected {
                is_broken.get_or_insert(ArcFault::Before(number));
            }
            sets.push(Set {
                results: results.1,
                message: message.1,
                seal: seal.1,
            });
        }
        if is_broken.is_some() {
            sets.clear();
        }
        Chain { sets, is_broken }
    }
}

/// The instance of an ARC-Authentication-Results field, whose rest is no list of tags: `[CFWS] "i" [CFWS] "=" [CFWS] number ";"`.
fn results_instance(value: &[u8]) -> Option<usize> {
    let first = value.split(|octet| *octet == b';').next()?;
    let rest = first.trim_ascii().strip_prefix(b"i")?;
    number(rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii())
}

fn number(digits: &[u8]) -> Option<usize> {
    let is_short = (1..=2).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_short)?;
    text.parse().ok()
}

impl Chain {
    /// Returns the message signature that has to be valid for the message of now.
    pub(crate) fn newest_message(&mut self) -> Option<&mut Found> {
        self.sets.last_mut().map(|set| &mut set.message)
    }

    /// Returns the names of the keys that the chain needs.
    pub(crate) fn key_names(&self) -> Vec<String> {
        let newest = self.sets.last().map(|set| &set.message);
        let seals = self.sets.iter().map(|set| &set.seal.found);
        newest
            .into_iter()
            .chain(seals)
            .filter_map(Found::key_name)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(fields: &[&str]) -> Option<ArcFault> {
        let header = fields.join("\r\n") + "\r\n";
        let mut fields = Fields::default();
        for (index, field) in vere_mime::fields(header.as_bytes()).enumerate() {
            fields.take(index, &field);
        }
        fields.chain().is_broken
    }

    fn set(number: u32, validation: &str) -> [String; 3] {
        let tags = "a=rsa-sha256; d=a.example; s=s; b=YQ";
        [
            format!("ARC-Seal: i={number}; cv={validation}; {tags}"),
            format!("ARC-Message-Signature: i={number}; h=from; bh=YQ; {tags}"),
            format!("ARC-Authentication-Results: i = {number} ; a.example; none"),
        ]
    }

    #[test]
    fn a_chain_has_whole_sets() {
        let (one, two) = (set(1, "none"), set(2, "pass"));
        let all: Vec<_> = two.iter().chain(&one).map(String::as_str).collect();
        assert_eq!(fault(&all), None);
        assert_eq!(fault(&[]), None);
        for missing in 0..all.len() {
            let mut fields = all.clone();
            fields.remove(missing);
            assert_eq!(fault(&fields), Some(ArcFault::Structure), "{missing}");
            fields.push(all[missing]);
            assert_eq!(fault(&fields), None, "the order does not count");
            fields.push(all[missing]);
            assert_eq!(fault(&fields), Some(ArcFault::Structure), "{missing}");
        }
        assert_eq!(fault(&all[..3]), Some(ArcFault::Structure));
        let broken = |number, validation| {
            let set = set(number, validation);
            fault(&[&all[3..], &set.each_ref().map(String::as_str)].concat())
        };
        assert_eq!(broken(2, "fail"), Some(ArcFault::Before(2)));
        assert_eq!(broken(2, "none"), Some(ArcFault::Before(2)));
        assert_eq!(broken(3, "pass"), Some(ArcFault::Structure));
        assert_eq!(broken(0, "pass"), Some(ArcFault::Structure));
        let sealed = one[0].clone() + "; h=from";
        assert_eq!(fault(&[&sealed, all[4], all[5]]), Some(ArcFault::Structure));
    }

    #[test]
    fn the_keys_of_the_newest_signature_and_of_all_seals_are_asked_for() {
        let tags = "a=rsa-sha256; s=s; b=YQ; h=from; bh=YQ";
        let header = "ARC-Seal: i=1; cv=none; a=rsa-sha256; d=a.example; s=s; b=YQ\r\n\
             ARC-Seal: i=2; cv=pass; a=rsa-sha256; d=b.example; s=s; b=YQ\r\n\
             ARC-Authentication-Results: i=1; a.example; none\r\n\
             ARC-Authentication-Results: i=2; b.example; none\r\n"
            .to_owned()
            + &format!("ARC-Message-Signature: i=1; d=c.example; {tags}\r\n")
            + &format!("ARC-Message-Signature: i=2; d=d.example; {tags}\r\n");
        let mut fields = Fields::default();
        for (index, field) in vere_mime::fields(header.as_bytes()).enumerate() {
            fields.take(index, &field);
        }
        let names = ["d.example", "a.example", "b.example"];
        let names = names.map(|domain| format!("s._domainkey.{domain}"));
        assert_eq!(fields.chain().key_names(), names);
    }

    #[test]
    fn a_chain_is_bounded() {
        let chain = |sets| {
            let all: Vec<_> = (1..=sets)
                .flat_map(|n| set(n, if n == 1 { "none" } else { "pass" }))
                .collect();
            fault(&all.iter().map(String::as_str).collect::<Vec<_>>())
        };
        assert_eq!(chain(50), None);
        assert_eq!(chain(51), Some(ArcFault::TooLong));
        assert_eq!(chain(1_000), Some(ArcFault::TooLong));
    }
}
