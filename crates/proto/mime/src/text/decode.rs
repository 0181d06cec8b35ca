//! Decoders for transfer encodings (RFC 2045 section 6) and encoded words (RFC 2047), lenient with
//! common mistakes: text outside the encoding is kept.

use super::in_charset;

/// Decodes base64: octets outside the alphabet are skipped, and the padding of a complete group is the
/// end, so that a footer of a mailing list behind the padding is not decoded.
#[must_use]
pub fn base64(body: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity((body.len() / 4).saturating_mul(3));
    let (mut bits, mut count, mut digits) = (0_u32, 0_u32, 0_usize);
    for octet in body {
        let value = match octet {
            b'A'..=b'Z' => octet.wrapping_sub(b'A'),
            b'a'..=b'z' => octet.wrapping_sub(b'a').wrapping_add(26),
            b'0'..=b'9' => octet.wrapping_sub(b'0').wrapping_add(52),
            b'+' => 62,
            b'/' => 63,
            b'=' if digits % 4 >= 2 => break,
            _ => continue,
        };
        digits = digits.wrapping_add(1);
        bits = bits << 6 | u32::from(value);
        count = count.wrapping_add(6);
        if count >= 8 {
            count = count.wrapping_sub(8);
            let [.., low] = (bits >> count).to_be_bytes();
            octets.push(low);
        }
    }
    octets
}

fn hex(octet: u8) -> Option<u8> {
    char::from(octet)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

fn hex_pair(octets: &[u8]) -> Option<u8> {
    let [high, low] = *octets.first_chunk()?;
    Some(hex(high)? << 4 | hex(low)?)
}

/// Undoes quoted-printable: blanks at line ends go, `=` at a line end joins lines, an `=` that is
/// followed by neither stays.
#[must_use]
pub fn quoted_printable(body: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(body.len());
    for line in body.split_inclusive(|octet| *octet == b'\n') {
        let text = crate::header::without_line_end(line);
        let ended = line.get(text.len()..).unwrap_or_default();
        let text = trim_blanks(text);
        let soft = !ended.is_empty() && text.ends_with(b"=");
        let text = if soft {
            text.strip_suffix(b"=").unwrap_or(text)
        } else {
            text
        };
        let mut rest = text;
        while let Some(at) = memchr::memchr(b'=', rest) {
            let (plain, code) = rest.split_at_checked(at).unwrap_or((rest, &[]));
            octets.extend_from_slice(plain);
            let code = code.get(1..).unwrap_or_default();
            match hex_pair(code) {
                Some(octet) => {
                    octets.push(octet);
                    rest = code.get(2..).unwrap_or_default();
                }
                None => {
                    octets.push(b'=');
                    rest = code;
                }
            }
        }
        octets.extend_from_slice(rest);
        if !soft {
            octets.extend_from_slice(ended);
        }
    }
    octets
}

fn trim_blanks(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .rposition(|octet| !matches!(octet, b' ' | b'\t'));
    text.get(..end.map_or(0, |last| last.saturating_add(1)))
        .unwrap_or(text)
}

/// An encoded word: charset, whether the encoding is `Q`, and the text.
struct Word<'a> {
    charset: &'a [u8],
    q: bool,
    text: &'a [u8],
}

/// Parses `=?charset?encoding?text?=` at the beginning, and returns the word and the rest. Blanks and
/// `?` in the text are forbidden, and common.
fn word(octets: &[u8]) -> Option<(Word<'_>, &[u8])> {
    let rest = octets.strip_prefix(b"=?")?;
    let (charset, rest) = until(rest, b'?', WORD_MAX)?;
    let (encoding, rest) = until(rest, b'?', 1)?;
    let within = rest.get(..WORD_MAX).unwrap_or(rest);
    let end = memchr::memmem::find(within, b"?=")?;
    let (text, rest) = (rest.get(..end)?, rest.get(end.saturating_add(2)..)?);
    let q = match encoding {
        b"Q" | b"q" => true,
        b"B" | b"b" => false,
        _ => return None,
    };
    // RFC 2231 section 5: a language may follow the charset.
    let charset = charset
        .split(|octet| *octet == b'*')
        .next()
        .unwrap_or(charset);
    Some((Word { charset, q, text }, rest))
}

/// The longest part of an encoded word; RFC 2047 allows 75 octets in all.
const WORD_MAX: usize = 2_000;

fn until(octets: &[u8], end: u8, max: usize) -> Option<(&[u8], &[u8])> {
    let within = octets.get(..max.saturating_add(1)).unwrap_or(octets);
    let at = memchr::memchr(end, within)?;
    Some((octets.get(..at)?, octets.get(at.saturating_add(1)..)?))
}

fn word_octets(word: &Word<'_>) -> Vec<u8> {
    if !word.q {
        return base64(word.text);
    }
    let spaced: Vec<u8> = word
        .text
        .iter()
        .map(|octet| if *octet == b'_' { b' ' } else { *octet })
        .collect();
    let mut octets = Vec::with_capacity(spaced.len());
    let mut rest = spaced.as_slice();
    while let Some((first, behind)) = rest.split_first() {
        match Some(behind).filter(|_| *first == b'=').and_then(hex_pair) {
            Some(octet) => {
                octets.push(octet);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                octets.push(*first);
                rest = behind;
            }
        }
    }
    octets
}

/// Decodes encoded words in any position; blanks between two words are dropped, and neighbours with the
/// same charset are decoded together, so that a character may span both.
#[must_use]
pub fn encoded_words(line: &[u8]) -> String {
    let mut text = String::new();
    let mut plain: Vec<u8> = Vec::new();
    let mut run: Option<(Vec<u8>, Vec<u8>)> = None;
    let mut rest = line;
    while let Some((first, behind)) = rest.split_first() {
        let Some((word, after)) = word(rest) else {
            plain.push(*first);
            // Only `=` begins an encoded word.
            let next = memchr::memchr(b'=', behind).unwrap_or(behind.len());
            let (before, at) = behind.split_at_checked(next).unwrap_or((behind, &[]));
            plain.extend_from_slice(before);
            rest = at;
            continue;
        };
        let joins = run.is_some() && plain.iter().all(|octet| matches!(octet, b' ' | b'\t'));
        if joins {
            plain.clear();
        }
        match &mut run {
            Some((charset, octets)) if joins && charset.eq_ignore_ascii_case(word.charset) => {
                octets.extend(word_octets(&word));
            }
            _ => {
                flush(&mut text, &mut run, &mut plain);
                run = Some((word.charset.to_vec(), word_octets(&word)));
            }
        }
        rest = after;
    }
    flush(&mut text, &mut run, &mut plain);
    text
}

fn flush(text: &mut String, run: &mut Option<(Vec<u8>, Vec<u8>)>, plain: &mut Vec<u8>) {
    if let Some((charset, octets)) = run.take() {
        text.push_str(&in_charset(&octets, Some(&charset)));
    }
    text.push_str(&in_charset(plain, None));
    plain.clear();
}
