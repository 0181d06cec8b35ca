//! The mail of the benchmark: a mailbox of real messages, and copies of them where more are wanted.
//!
//! The file is an mbox with LF line ends, in which `>From ` at the beginning of a line stands for `From ` (mboxrd),
//! compressed with zstd or not. Copies differ from their originals in some words of the text, in Message-ID and in
//! date, all drawn from a seed.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::Path;

use crate::corpus;

/// A copy replaces one word of this many words of the text.
const SUBSTITUTED: u64 = 20;

/// Length in letters of words for copies and for searches.
const WORD_LETTERS: std::ops::RangeInclusive<usize> = 5..=12;

/// Messages, lines ended by CRLF.
#[derive(Debug)]
pub(crate) struct Mail {
    pub(crate) messages: Vec<Vec<u8>>,
    /// Lower-case words, with the number of messages that contain the word.
    frequencies: Vec<(String, usize)>,
    /// Messages behind the frequencies: the originals, without copies.
    counted: usize,
}

impl Mail {
    /// Reads `count` messages; messages beyond the end of the file are copies.
    pub(crate) fn read(path: &Path, count: usize) -> io::Result<Self> {
        let mut text = Vec::new();
        corpus::open(path)?.read_to_end(&mut text)?;
        let originals = split(&text);
        if originals.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no messages"));
        }
        let frequencies = frequencies(originals.iter().take(count));
        let mut messages: Vec<Vec<u8>> = originals.iter().take(count).cloned().collect();
        let mut random = Random::new();
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
            counted: originals.len().min(count),
        })
    }

    /// The mail of these messages, without copies.
    #[cfg(test)]
    pub(crate) fn of(messages: Vec<Vec<u8>>) -> Self {
        Self {
            frequencies: frequencies(messages.iter()),
            counted: messages.len(),
            messages,
        }
    }

    pub(crate) fn octets(&self) -> u64 {
        self.messages
            .iter()
            .map(|message| message.len() as u64)
            .sum()
    }

    /// The messages whose headers every server accepts: every line is a field, or continues a field.
    pub(crate) fn well_formed(&self) -> Vec<Vec<u8>> {
        let is_field = |line: &[u8]| {
            let name = line
                .split(|octet| *octet == b':')
                .next()
                .unwrap_or_default();
            let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
            name.len() < line.len() && is_name
        };
        let is_fine = |message: &&Vec<u8>| {
            let header = message[..body(message)].strip_suffix(b"\r\n\r\n");
            let lines = header.map(|header| header.split(|octet| *octet == b'\n'));
            let folded = |line: &[u8]| line.starts_with(b" ") || line.starts_with(b"\t");
            lines.is_some_and(|mut lines| {
                lines.next().is_some_and(is_field)
                    && lines.all(|line| folded(line) || is_field(line))
            })
        };
        self.messages.iter().filter(is_fine).cloned().collect()
    }

    /// The word whose share of the messages is nearest to `share`.
    pub(crate) fn word(&self, share: f64) -> &str {
        let wanted = share * self.counted as f64;
        let distance = |count: usize| (count as f64 - wanted).abs();
        let nearest = self
            .frequencies
            .iter()
            .min_by(|one, other| distance(one.1).total_cmp(&distance(other.1)));
        nearest.map_or("the", |(word, _)| word)
    }
}

/// The day of the first message's date among the days of January 2024, and the seconds between the dates of
/// successive messages.
const FIRST_DAY: usize = 2;
const DAY_SECONDS: usize = 86_400;

/// The internal date of a message, unique to the message: the text of the message does not contain the date.
pub(crate) fn internal_date(number: usize) -> String {
    let (day, second) = (FIRST_DAY + number / DAY_SECONDS, number % DAY_SECONDS);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{day:02}-Jan-2024 {hour:02}:{minute:02}:{second:02} +0000")
}

/// The internal date in seconds since 1970, as files have dates.
pub(crate) fn internal_seconds(number: usize) -> u64 {
    /// 2024-01-01 00:00:00 UTC.
    const YEAR: u64 = 1_704_067_200;
    YEAR + ((FIRST_DAY - 1) * DAY_SECONDS + number) as u64
}

/// The number of the message whose `INTERNALDATE` is in a response, in any time zone.
pub(crate) fn number_of(response: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(response).ok()?;
    let date = text.split_once("INTERNALDATE \"")?.1.split('"').next()?;
    let (day, rest) = date.trim_start().split_once('-')?;
    let mut words = rest.split_once(' ')?.1.split(' ');
    let time = words.next()?.split(':').map(str::parse::<i64>);
    let time = time.collect::<Result<Vec<i64>, _>>().ok()?;
    let zone: i64 = words.next()?.parse().ok()?;
    let ahead = zone / 100 * 3_600 + zone % 100 * 60;
    let [hour, minute, second] = time[..] else {
        return None;
    };
    let days = day.parse::<i64>().ok()? - FIRST_DAY as i64;
    let number = days * DAY_SECONDS as i64 + hour * 3_600 + minute * 60 + second - ahead;
    u32::try_from(number).ok()
}

/// A xorshift64 generator: equal seeds give equal numbers on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new() -> Self {
        Self(0x5eed)
    }

    pub(crate) fn next(&mut self) -> u64 {
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
        // Neither may stand in a message (RFC 5322 section 2.3).
        let line = corpus::line_of(line).iter();
        message.extend(line.filter(|octet| !matches!(octet, b'\r' | 0)));
        message.extend_from_slice(b"\r\n");
    }
    for message in &mut messages {
        // The empty line behind the message belongs to the mbox.
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

/// Words of the bodies by the number of messages that contain the word as a part of their text.
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

/// A varied copy of a message.
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

/// A date line with its year moved on by `years`.
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

    #[test]
    fn broken_headers_are_left_out() {
        let fine = b"A: b\r\n c\r\nD:\r\n\r\nno field\r\n".to_vec();
        let broken = [
            &b"A: b\r\nno field\r\n\r\n"[..],
            b" A: b\r\n\r\n",
            b"A b: c\r\n\r\n",
        ];
        let mut all: Vec<Vec<u8>> = broken.map(<[u8]>::to_vec).into();
        all.push(fine.clone());
        assert_eq!(Mail::of(all).well_formed(), [fine]);
    }

    #[test]
    fn a_message_is_known_by_its_date_in_any_zone() {
        for number in [0, 59, 86_399, 86_400, 200_000] {
            let response = format!("* 7 FETCH (INTERNALDATE \"{}\")", internal_date(number));
            assert_eq!(number_of(response.as_bytes()), u32::try_from(number).ok());
        }
        let elsewhere = b"* 7 FETCH (UID 9 INTERNALDATE \" 2-Jan-2024 03:30:07 +0330\")\r\n";
        assert_eq!(number_of(elsewhere), Some(7));
        assert_eq!(number_of(b"* 7 FETCH (FLAGS ())"), None);
        assert_eq!(internal_seconds(5), 1_704_153_605);
    }
}
