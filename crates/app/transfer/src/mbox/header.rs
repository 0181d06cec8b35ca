//! The header fields that belong to the file and not to the message.

use std::collections::BTreeSet;

use vere_mime::Field;

/// The names of the fields.
const FIELDS: [&str; 7] = [
    "status",
    "x-status",
    "x-keywords",
    "x-uid",
    "x-imap",
    "x-imapbase",
    "content-length",
];

/// The meaning of each letter of `Status` and `X-Status`.
const LETTERS: [(u8, &str); 5] = [
    (b'R', "\\Seen"),
    (b'A', "\\Answered"),
    (b'F', "\\Flagged"),
    (b'D', "\\Deleted"),
    (b'T', "\\Draft"),
];

/// The message's attributes in the file's fields.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) flags: BTreeSet<String>,
    pub(super) length: Option<u64>,
}

impl Fields {
    /// Reads a line, without its end, if the line is a field of the file.
    pub(super) fn take(&mut self, line: &[u8]) -> bool {
        let field = Field::of(line);
        let Some(known) = FIELDS.iter().find(|known| field.is(known)) else {
            return false;
        };
        let value = field.value.trim_ascii();
        match *known {
            "status" | "x-status" => {
                for (letter, flag) in LETTERS {
                    if value.contains(&letter) {
                        self.flags.insert(flag.to_owned());
                    }
                }
            }
            "x-keywords" => {
                let words = String::from_utf8_lossy(value);
                let words = words.split_ascii_whitespace().map(str::to_owned);
                self.flags.extend(words);
            }
            "content-length" => {
                self.length = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
            }
            _ => {}
        }
        true
    }
}

/// The fields that express the flags of a message.
pub(super) fn lines(flags: &[String]) -> String {
    let has = |name: &str| flags.iter().any(|flag| flag.eq_ignore_ascii_case(name));
    let mut text = String::from("Status: ");
    text.push_str(if has("\\Seen") { "RO\n" } else { "O\n" });
    let letters: String = LETTERS[1..]
        .iter()
        .filter(|(_, flag)| has(flag))
        .map(|(letter, _)| char::from(*letter))
        .collect();
    if !letters.is_empty() {
        text.push_str(&format!("X-Status: {letters}\n"));
    }
    let keywords: Vec<&str> = flags
        .iter()
        .map(String::as_str)
        .filter(|flag| !flag.starts_with('\\'))
        .collect();
    if !keywords.is_empty() {
        text.push_str(&format!("X-Keywords: {}\n", keywords.join(" ")));
    }
    text
}
