//! The messages: real mail, signed anew for the domain of its author.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use vere_dkim::key::KeyAlgorithm;
use vere_dkim::{PrivateKey, StoredKey, drafts};
use vere_units::Timestamp;

use crate::corpus::Corpus;
use crate::error::BenchError;
use crate::load::{Letter, Letters};

/// The selector of every domain.
pub(super) const SELECTOR: &str = "bench";

/// Size of the key, in bits: the usual one.
const KEY_BITS: usize = 2_048;

/// Most octets of a header to sign.
const HEADER_MAX: usize = 256 * 1024;

/// The sender's domain of a labelled message without an author's domain.
const UNKNOWN: &str = "unknown.test";

/// Beginnings of the names of fields from the systems on the way of a message before. A signature of the time
/// has no key any more, and results of other systems would be mistaken for those of the measured ones.
const REMOVED: [&str; 8] = [
    "dkim-signature",
    "domainkey-signature",
    "arc-",
    "authentication-results",
    "x-bench-id",
    "x-spam",
    "return-path",
    "delivered-to",
];

/// A key, which signs for every domain.
#[derive(Debug)]
pub(super) struct Key {
    private: PrivateKey,
    /// The text of the record.
    pub(super) record: String,
    now: Timestamp,
}

impl Key {
    pub(super) fn generate() -> Result<Self, BenchError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.unwrap_or_default().as_millis();
        let now = Timestamp::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        let algorithm = KeyAlgorithm::RsaSha256;
        let stored = StoredKey::generate("bench.test", SELECTOR, algorithm, KEY_BITS, now, now);
        let stored = stored.map_err(BenchError::of("a key"))?;
        Ok(Self {
            private: stored.private().map_err(BenchError::of("a key"))?,
            record: stored.record_text(),
            now,
        })
    }

    /// The signature's field; `None` for a message without one author.
    fn sign(&self, message: &[u8], domain: &str) -> Option<Vec<u8>> {
        let keys = [(KeyAlgorithm::RsaSha256, SELECTOR)];
        let mut drafts = drafts(message, domain, keys, self.now, HEADER_MAX).ok()?;
        let draft = drafts.pop()?;
        let value = self.private.sign(draft.octets()).ok()?;
        Some(draft.field(value))
    }
}

/// The first messages of a corpus with one author and a domain, each with a signature.
pub(super) fn signed(corpus: &Corpus, key: &Key, count: usize) -> Option<Letters> {
    let messages = (0..corpus.len()).filter_map(|number| {
        let mut message = without_fields(&without_dots(corpus.message(number).0));
        remove_blank_end(&mut message);
        let domain = author_domain(&message)?;
        let field = key.sign(&message, &domain)?;
        Some((domain, [field, message].concat()))
    });
    let letters = messages.take(count).enumerate();
    Letters::new(letters.map(|(number, (domain, message))| letter(number, &domain, &message)))
}

/// The messages in the files below a folder, as they are, and whether each lies in a folder of spam.
pub(super) fn labelled(folder: &Path) -> Result<(Letters, Vec<bool>), BenchError> {
    let what = format!("cannot read {}", folder.display());
    let (corpus, files) = Corpus::read_folder(folder).map_err(BenchError::of(what.clone()))?;
    let letters = (0..corpus.len()).map(|number| {
        let message = without_fields(&without_dots(corpus.message(number).0));
        let domain = author_domain(&message);
        letter(number, domain.as_deref().unwrap_or(UNKNOWN), &message)
    });
    let letters = Letters::new(letters).ok_or_else(|| BenchError::of(what)("no message"))?;
    let is_spam = |file: &std::path::PathBuf| {
        let folder = file.parent().and_then(Path::file_name);
        folder.is_some_and(|name| name.to_string_lossy().contains("spam"))
    };
    Ok((letters, files.iter().map(is_spam).collect()))
}

fn letter(number: usize, domain: &str, message: &[u8]) -> Letter {
    Letter {
        sender: format!("m{number}@{domain}"),
        text: with_dots(message),
        eight_bit: !message.is_ascii(),
    }
}

/// The domain of a sender.
pub(super) fn domain_of(sender: &str) -> &str {
    sender.rsplit_once('@').map_or("", |(_, domain)| domain)
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|octet| *octet == b'\n')
}

fn without_dots(wire: &[u8]) -> Vec<u8> {
    let lines = lines(wire).map(|line| line.strip_prefix(b".").unwrap_or(line));
    lines.collect::<Vec<_>>().concat()
}

fn with_dots(text: &[u8]) -> Vec<u8> {
    let mut wire = Vec::with_capacity(text.len());
    for line in lines(text) {
        if line.starts_with(b".") {
            wire.push(b'.');
        }
        wire.extend_from_slice(line);
    }
    wire
}

/// The message without the fields [`REMOVED`].
fn without_fields(message: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(message.len());
    let (mut in_header, mut is_kept) = (true, true);
    for line in lines(message) {
        in_header &= line != b"\r\n";
        if !in_header {
            is_kept = true;
        } else if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            let name = String::from_utf8_lossy(line).to_ascii_lowercase();
            is_kept = !REMOVED.iter().any(|removed| name.starts_with(removed));
        }
        if is_kept {
            kept.extend_from_slice(line);
        }
    }
    kept
}

/// Removes blank lines at the end, but for one. Programs differ about lines of spaces there: the library for signatures and rspamd count such lines
/// for the hash of the body, against RFC 6376 section 3.4.4.
fn remove_blank_end(message: &mut Vec<u8>) {
    let text = message.trim_ascii_end().len();
    message.truncate(text);
    message.extend_from_slice(b"\r\n\r\n");
}

/// The domain of the author in the field From.
fn author_domain(message: &[u8]) -> Option<String> {
    let mut from = String::new();
    for line in lines(message).take_while(|line| *line != b"\r\n") {
        let line = String::from_utf8_lossy(line);
        let is_more = line.starts_with([' ', '\t']);
        match line.get(..5) {
            Some(name) if name.eq_ignore_ascii_case("from:") => from = line.into_owned(),
            _ if is_more && !from.is_empty() => from.push_str(&line),
            _ if !from.is_empty() => break,
            _ => {}
        }
    }
    let address = match from.rsplit_once('<') {
        Some((_, address)) => address.split('>').next()?,
        None => from
            .split([' ', ':', '\t', '\r'])
            .find(|word| word.contains('@'))?,
    };
    let domain = domain_of(address).trim().to_ascii_lowercase();
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() < 64
            && label
                .bytes()
                .all(|octet| octet.is_ascii_alphanumeric() || octet == b'-')
    };
    (domain.contains('.') && domain.len() < 200 && domain.split('.').all(is_label))
        .then_some(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_have_domains() {
        for (field, domain) in [
            ("From: A <a@b.example>", Some("b.example")),
            ("X: y\r\nFROM: a@B.example (A)", Some("b.example")),
            (
                "From: \"x\"\r\n <a@b.example>\r\nTo: c@d.example",
                Some("b.example"),
            ),
            ("From: a at b.example", None),
            ("From: a@localhost", None),
            ("To: a@b.example", None),
        ] {
            let message = format!("{field}\r\n\r\nFrom: x@y.example\r\n");
            assert_eq!(
                author_domain(message.as_bytes()).as_deref(),
                domain,
                "{field}"
            );
        }
    }

    #[test]
    fn fields_of_other_systems_are_removed_and_dots_doubled() {
        let wire = b"X-Spam-Flag: YES\r\nA: 1\r\nDKIM-Signature: a\r\n b\r\nC: 2\r\n\r\nARC-x: y\r\n..a\r\n";
        let message = without_fields(&without_dots(wire));
        assert_eq!(message, b"A: 1\r\nC: 2\r\n\r\nARC-x: y\r\n.a\r\n");
        assert!(with_dots(&message).ends_with(b"\r\n..a\r\n"));
        let mut message = b"A: b\r\n\r\nc\r\n \t\r\n\r\n".to_vec();
        remove_blank_end(&mut message);
        assert_eq!(message, b"A: b\r\n\r\nc\r\n\r\n");
    }

    #[test]
    fn a_signature_stands_above_the_message() {
        let key = Key::generate().unwrap();
        assert!(key.record.starts_with("v=DKIM1; k=rsa; p="));
        let field = key
            .sign(b"From: a@b.example\r\n\r\nhello\r\n", "b.example")
            .unwrap();
        let field = String::from_utf8(field).unwrap();
        assert!(
            field.starts_with("DKIM-Signature: ") && field.ends_with("\r\n"),
            "{field}"
        );
        assert!(
            field.contains("d=b.example") && field.contains("s=bench"),
            "{field}"
        );
    }
}
