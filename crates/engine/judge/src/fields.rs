//! The header fields `X-Spam-*` in the form of SpamAssassin, which Sieve scripts and clients know.

use std::cmp::Reverse;
use std::fmt::Write;
use std::ops::Range;

use vere_mime::fields;
use vere_settings::Verdict;
use vere_units::Score;

use crate::facts::ADDRESS_OCTETS_MAX;
use crate::hit::Hit;
use crate::judge::{Judgement, RecipientVerdict};

/// Octets of a line, without its end (RFC 5322 section 2.1.1).
const LINE_OCTETS: usize = 78;
/// Stars of `X-Spam-Level`.
const STARS_MAX: i64 = 50;
/// Rules named in `X-Spam-Status`; those with the largest weights.
const TESTS_MAX: usize = 64;
/// The field with the proven author.
const AUTHOR: &str = "X-Spam-Author";
/// How fields begin that only this system may write.
const PREFIX: &[u8] = b"x-spam";

impl Judgement {
    /// Returns the fields for a recipient, to stand above the header, each line with CRLF. `X-Spam-Flag` and `Yes` stand for every verdict but
    /// [`Verdict::Accept`], by score or not.
    #[must_use]
    pub fn fields(&self, recipient: &RecipientVerdict) -> String {
        let is_spam = recipient.verdict > Verdict::Accept;
        let mut out = String::new();
        if is_spam {
            out.push_str("X-Spam-Flag: YES\r\n");
        }
        // Writing to a String cannot fail.
        let _ = write!(out, "X-Spam-Score: {}\r\n", self.score);
        let stars = self.score.points().clamp(0, STARS_MAX);
        if let Ok(stars @ 1..) = usize::try_from(stars) {
            let _ = write!(out, "X-Spam-Level: {}\r\n", "*".repeat(stars));
        }
        self.status(is_spam, recipient, &mut out);
        out
    }

    /// Lists the rulings, and the rules with weight, the weightiest first: `DMARC_REJECT=reject SPF_FAIL=1.5`; empty without any.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut words = Vec::new();
        for ruling in &self.rulings {
            words.push(format!("{}={}", ruling.rule.name(), ruling.verdict.name()));
        }
        for hit in self.weighty() {
            words.push(format!("{}={}", hit.name.as_str(), hit.weight));
        }
        words.join(" ")
    }

    /// The hits with weight, the weightiest first.
    fn weighty(&self) -> Vec<&Hit> {
        let mut hits: Vec<_> = self
            .hits
            .iter()
            .filter(|hit| !hit.weight.is_zero())
            .collect();
        let size = |weight: Score| weight.as_hundredths().unsigned_abs();
        hits.sort_by_key(|hit| Reverse(size(hit.weight)));
        hits
    }

    fn status(&self, is_spam: bool, recipient: &RecipientVerdict, out: &mut String) {
        let answer = if is_spam { "Yes" } else { "No" };
        let mut line = Line {
            out,
            octets: 0,
            blank: "",
        };
        line.word("X-Spam-Status:");
        line.word(&format!("{answer},"));
        line.word(&format!("score={}", self.score));
        if let Some(required) = recipient.required.score() {
            line.word(&format!("required={required}"));
        }
        let tests = self.tests();
        let last = tests.len().saturating_sub(1);
        for (n, test) in tests.iter().enumerate() {
            let label = if n == 0 { "tests=" } else { "" };
            let comma = if n < last { "," } else { "" };
            let text = format!("{label}{test}{comma}");
            match n {
                0 => line.word(&text),
                _ => line.piece(&text),
            }
        }
        line.word("autolearn=no");
        let version = env!("CARGO_PKG_VERSION");
        line.word(&format!("version=Veredarius-{version}"));
        line.out.push_str("\r\n");
    }

    /// The names of rules with weight and of rulings, the weightiest first, each once; `none` without any.
    fn tests(&self) -> Vec<&str> {
        let rulings = self.rulings.iter().map(|ruling| ruling.rule.name());
        let hits = self.weighty();
        let mut tests: Vec<&str> = Vec::new();
        for name in rulings.chain(hits.iter().map(|hit| hit.name.as_str())) {
            if tests.len() < TESTS_MAX && !tests.contains(&name) {
                tests.push(name);
            }
        }
        if tests.is_empty() {
            tests.push("none");
        }
        tests
    }
}

/// A field that is folded between words.
struct Line<'a> {
    out: &'a mut String,
    octets: usize,
    blank: &'static str,
}

impl Line<'_> {
    /// Writes a word behind a blank, or on a new line.
    fn word(&mut self, word: &str) {
        let blank = self.blank;
        self.put(blank, word);
        self.blank = " ";
    }

    /// Writes a piece without a blank, or on a new line.
    fn piece(&mut self, piece: &str) {
        self.put("", piece);
    }

    fn put(&mut self, blank: &str, text: &str) {
        if self.octets > 0 && self.octets + blank.len() + text.len() > LINE_OCTETS {
            self.out.push_str("\r\n\t");
            self.octets = 1;
        } else {
            self.out.push_str(blank);
            self.octets += blank.len();
        }
        self.out.push_str(text);
        self.octets += text.len();
    }
}

/// The field with the proven author of a message kept aside; empty for an address without a place in a field.
#[must_use]
pub fn author_field(author: &str) -> String {
    let is_odd = |octet: u8| octet.is_ascii_whitespace() || octet.is_ascii_control();
    match author.is_empty() || author.len() > ADDRESS_OCTETS_MAX || author.bytes().any(is_odd) {
        true => String::new(),
        false => format!("{AUTHOR}: {author}\r\n"),
    }
}

/// The proven author of a message kept aside, by the field of [`author_field`]: above the first Received field, where no
/// stranger writes.
#[must_use]
pub fn noted_author(message: &[u8]) -> Option<&str> {
    let ours = fields(message).take_while(|field| !field.is("Received"));
    let field = ours.into_iter().find(|field| field.is(AUTHOR))?;
    std::str::from_utf8(field.value.trim_ascii()).ok()
}

/// Returns a message as a release from the quarantine delivers it: without `X-Spam-Flag: YES` and [the author](author_field), and with
/// `No` and `released=yes` in `X-Spam-Status`. Score and tests stay, as the rules have found. Only fields down to the first Received
/// field count: this system has written all fields there. `None`: the message stays as it is. The message becomes no longer.
#[must_use]
pub fn as_released(message: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut read = 0;
    let mut is_changed = false;
    for field in fields(message) {
        if field.is("Received") {
            out.extend_from_slice(message.get(read..)?);
            return is_changed.then_some(out);
        }
        read += field.raw.len();
        let value = field.value.trim_ascii();
        let is_flag = field.is("X-Spam-Flag") && value.eq_ignore_ascii_case(b"YES");
        if is_flag || field.is(AUTHOR) {
            is_changed = true;
            continue;
        }
        match value.strip_prefix(b"Yes,") {
            Some(rest) if field.is("X-Spam-Status") => {
                is_changed = true;
                out.extend_from_slice(b"X-Spam-Status: No,");
                out.extend_from_slice(rest);
                out.extend_from_slice(b"\r\n\treleased=yes\r\n");
            }
            _ => out.extend_from_slice(field.raw),
        }
    }
    None
}

/// Lists the ranges of the fields `X-Spam` and `X-Spam-*` in the header of a message, in order, line ends included. Such fields are of the
/// sender, who wants to be believed: remove them before [`Judgement::fields`] are added.
#[must_use]
pub fn foreign_fields(message: &[u8]) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut found = Vec::new();
    for field in fields(message) {
        let end = at + field.raw.len();
        if is_ours(field.name) {
            found.push(at..end);
        }
        at = end;
    }
    found
}

fn is_ours(name: &[u8]) -> bool {
    let start = name.get(..PREFIX.len());
    let is_prefixed = start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX));
    is_prefixed && matches!(name.get(PREFIX.len()), None | Some(b'-'))
}
