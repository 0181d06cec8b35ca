//! The mail of the benchmark: a mailbox of real messages, and copies of them where more are wanted.
//!
//! The file is an mbox whose lines end with LF and in which `>From ` at the beginning of a line stands
//! for `From ` (mboxrd), compressed with zstd or not. Copies differ in some words of their text, in
//! their id and in their date, all drawn from a seed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Of so many words of a copy's text one is another one.
const SUBSTITUTED: u64 = 20;

/// Words that copies draw from, and that searches are chosen among, have at least so many letters.
const WORD_LETTERS: std::ops::RangeInclusive<usize> = 5..=12;

/// Messages, lines ended by CRLF.
#[derive(Debug)]
pub(crate) struct Mail {
    pub(crate) messages: Vec<Vec<u8>>,
    /// Lower-case words, with the number of messages that have them.
    frequencies: Vec<(String, usize)>,
}

impl Mail {
    /// Reads `count` messages; beyond what the file has they are copies.
    pub(crate) fn read(path: &Path, count: usize) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut text = Vec::new();
        if path.extension().is_some_and(|end| end == "zst") {
            zstd::stream::read::Decoder::new(file)?.read_to_end(&mut text)?;
        } else {
            io::BufReader::new(file).read_to_end(&mut text)?;
        }
        let originals = split(&text);
        if originals.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no messages"));
        }
        let frequencies = frequencies(originals.iter().take(count));
        let mut messages: Vec<Vec<u8>> = originals.iter().take(count).cloned().collect();
        let mut random = Random(0x5eed);
        while messages.len() < count {
            let number = messages.len();
            let original = &originals[number % originals.len()];
            messages.push(copy(
                original,
                number / originals.len(),
                &frequencies,
                &mut random,
            ));
        }
        Ok(Self {
            messages,
            frequencies,
        })
    }

    pub(crate) fn octets(&self) -> u64 {
        self.messages
            .iter()
            .map(|message| message.len() as u64)
            .sum()
    }

    /// The word whose share of the messages is nearest to this one.
    pub(crate) fn word(&self, share: f64) -> &str {
        let wanted = share * self.messages.len() as f64;
        let distance = |count: usize| (count as f64 - wanted).abs();
        let nearest = self
            .frequencies
            .iter()
            .min_by(|one, other| distance(one.1).total_cmp(&distance(other.1)));
        nearest.map_or("the", |(word, _)| word)
    }
}

/// xorshift64: the same numbers for the same seed everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Takes an mbox apart.
fn split(text: &[u8]) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for line in text.split_inclusive(|octet| *octet == b'\n') {
        if line.starts_with(b"From ") {
            messages.push(Vec::new());
            continue;
        }
        let Some(message) = messages.last_mut() else {
            continue;
        };
        let quoted = line.iter().take_while(|octet| **octet == b'>').count();
        let line = match line.get(quoted..) {
            Some(rest) if quoted > 0 && rest.starts_with(b"From ") => &line[1..],
            _ => line,
        };
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // Neither may stand in a message (RFC 5322 section 2.3).
        message.extend(line.iter().filter(|octet| !matches!(octet, b'\r' | 0)));
        message.extend_from_slice(b"\r\n");
    }
    for message in &mut messages {
        // The empty line behind it is the mbox's.
        if message.ends_with(b"\r\n\r\n") {
            message.truncate(message.len() - 2);
        }
    }
    messages
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|octet| !octet.is_ascii_alphabetic())
        .filter(|word| WORD_LETTERS.contains(&word.len()))
}

fn body(message: &[u8]) -> usize {
    memchr::memmem::find(message, b"\r\n\r\n").map_or(message.len(), |at| at + 4)
}

/// Words of the bodies by the number of messages that hold them as a part of their text.
fn frequencies<'a>(messages: impl Iterator<Item = &'a Vec<u8>>) -> Vec<(String, usize)> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for message in messages {
        let mut own: Vec<String> = words(&message[body(message)..])
            .map(|word| String::from_utf8_lossy(word).to_ascii_lowercase())
            .collect();
        own.sort_unstable();
        own.dedup();
        for word in own {
            *counts.entry(word).or_default() += 1;
        }
    }
    let mut all: Vec<_> = counts.into_iter().collect();
    all.sort_unstable();
    all
}

/// A message like another one.
fn copy(
    original: &[u8],
    number: usize,
    frequencies: &[(String, usize)],
    random: &mut Random,
) -> Vec<u8> {
    let body = body(original);
    let mut copy = Vec::with_capacity(original.len() + 64);
    for line in original[..body].split_inclusive(|octet| *octet == b'\n') {
        let name = line
            .split(|octet| *octet == b':')
            .next()
            .unwrap_or_default();
        if name.eq_ignore_ascii_case(b"Message-ID")
            && let Some(open) = memchr::memchr(b'<', line)
        {
            copy.extend_from_slice(&line[..=open]);
            copy.extend_from_slice(format!("c{number}.").as_bytes());
            copy.extend_from_slice(&line[open + 1..]);
        } else if name.eq_ignore_ascii_case(b"Date") {
            copy.extend_from_slice(&later(line, number));
        } else {
            copy.extend_from_slice(line);
        }
    }
    for run in original[body..]
        .chunk_by(|one, other| one.is_ascii_alphabetic() == other.is_ascii_alphabetic())
    {
        let is_word =
            run.first().is_some_and(u8::is_ascii_alphabetic) && WORD_LETTERS.contains(&run.len());
        if is_word && !frequencies.is_empty() && random.next().is_multiple_of(SUBSTITUTED) {
            let index = random.next() % frequencies.len() as u64;
            let index = usize::try_from(index).unwrap_or_default();
            copy.extend_from_slice(frequencies[index].0.as_bytes());
        } else {
            copy.extend_from_slice(run);
        }
    }
    copy
}

/// A date line with its year as many years later.
fn later(line: &[u8], years: usize) -> Vec<u8> {
    let text = String::from_utf8_lossy(line).into_owned();
    let year = text
        .split(' ')
        .find(|word| word.len() == 4 && word.bytes().all(|octet| octet.is_ascii_digit()));
    match year.and_then(|year| Some((year.to_owned(), year.parse::<usize>().ok()?))) {
        Some((year, number)) => text
            .replacen(&year, &(number + years).to_string(), 1)
            .into_bytes(),
        None => line.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mbox_becomes_messages_and_copies() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mail.mbox");
        let text = "From a\nMessage-ID: <x@y>\nDate: Mon, 1 Jan 2001 10:00:00 +0000\n\n>From here\n>>From there\n\nFrom b\nSubject: two\n\nwords another thing\n\n";
        std::fs::write(&path, text).unwrap();
        let mail = Mail::read(&path, 3).unwrap();
        let shown: Vec<_> = mail
            .messages
            .iter()
            .map(|message| String::from_utf8_lossy(message).into_owned())
            .collect();
        assert_eq!(
            shown[0],
            "Message-ID: <x@y>\r\nDate: Mon, 1 Jan 2001 10:00:00 +0000\r\n\r\nFrom here\r\n>From there\r\n"
        );
        assert_eq!(shown[1], "Subject: two\r\n\r\nwords another thing\r\n");
        assert!(shown[2].starts_with("Message-ID: <c1.x@y>\r\nDate: Mon, 1 Jan 2002 "));
        assert_eq!(mail.word(0.4), "another");
    }
}
