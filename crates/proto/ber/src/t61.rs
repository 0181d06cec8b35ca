//! The characters of TeletexString (T.61 table 2, without escape sequences): ASCII, a right half of symbols and
//! letters, and accents before their letters.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::compose;

/// Octets of the right half and their characters; accents are apart.
const RIGHT: &[(u8, char)] = &[
    (0xA0, '\u{A0}'),
    (0xA1, '¡'),
    (0xA2, '¢'),
    (0xA3, '£'),
    (0xA4, '¤'),
    (0xA5, '¥'),
    (0xA7, '§'),
    (0xAB, '«'),
    (0xB0, '°'),
    (0xB1, '±'),
    (0xB2, '²'),
    (0xB3, '³'),
    (0xB4, '×'),
    (0xB5, 'µ'),
    (0xB6, '¶'),
    (0xB7, '·'),
    (0xB8, '÷'),
    (0xBB, '»'),
    (0xBC, '¼'),
    (0xBD, '½'),
    (0xBE, '¾'),
    (0xBF, '¿'),
    (0xE0, 'Ω'),
    (0xE1, 'Æ'),
    (0xE2, 'Đ'),
    (0xE3, 'ª'),
    (0xE4, 'Ħ'),
    (0xE6, 'Ĳ'),
    (0xE7, 'Ŀ'),
    (0xE8, 'Ł'),
    (0xE9, 'Ø'),
    (0xEA, 'Œ'),
    (0xEB, 'º'),
    (0xEC, 'Þ'),
    (0xED, 'Ŧ'),
    (0xEE, 'Ŋ'),
    (0xEF, 'ŉ'),
    (0xF0, 'ĸ'),
    (0xF1, 'æ'),
    (0xF2, 'đ'),
    (0xF3, 'ð'),
    (0xF4, 'ħ'),
    (0xF5, 'ı'),
    (0xF6, 'ĳ'),
    (0xF7, 'ŀ'),
    (0xF8, 'ł'),
    (0xF9, 'ø'),
    (0xFA, 'œ'),
    (0xFB, 'ß'),
    (0xFC, 'þ'),
    (0xFD, 'ŧ'),
    (0xFE, 'ŋ'),
];

/// Octets of accents and the combining characters.
const ACCENTS: &[(u8, char)] = &[
    (0xC1, '\u{300}'),
    (0xC2, '\u{301}'),
    (0xC3, '\u{302}'),
    (0xC4, '\u{303}'),
    (0xC5, '\u{304}'),
    (0xC6, '\u{306}'),
    (0xC7, '\u{307}'),
    (0xC8, '\u{308}'),
    (0xCA, '\u{30A}'),
    (0xCB, '\u{327}'),
    (0xCC, '\u{332}'),
    (0xCD, '\u{30B}'),
    (0xCE, '\u{328}'),
    (0xCF, '\u{30C}'),
];

/// The text. An octet without a character gives the character of ISO 8859-1: senders without T.61 mean that
/// character.
pub(super) fn text(octets: &[u8]) -> Cow<'_, str> {
    if let Some(text) = str::from_utf8(octets).ok().filter(|text| text.is_ascii()) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(octets.len());
    let mut accent = None;
    for octet in octets {
        if let Some(mark) = find(ACCENTS, *octet) {
            text.extend(accent.replace(mark));
            continue;
        }
        let letter = find(RIGHT, *octet).unwrap_or_else(|| char::from(*octet));
        match accent.take() {
            Some(mark) => match compose(letter, mark) {
                Some(composed) => text.push(composed),
                None => text.extend([letter, mark]),
            },
            None => text.push(letter),
        }
    }
    text.extend(accent);
    text.into()
}

/// Whether the string type has the character.
pub(super) fn has(character: char) -> bool {
    let mut octets = Vec::new();
    push(&mut octets, character).is_some()
}

/// The octets of a text.
pub(super) fn encode(text: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(text.len());
    for character in text.nfc() {
        push(&mut octets, character)?;
    }
    Some(octets)
}

fn push(octets: &mut Vec<u8>, character: char) -> Option<()> {
    if character.is_ascii() {
        octets.push(u8::try_from(character).ok()?);
        return Some(());
    }
    if let Some((octet, _)) = RIGHT.iter().find(|(_, known)| *known == character) {
        octets.push(*octet);
        return Some(());
    }
    let parts: Vec<char> = std::iter::once(character).nfd().collect();
    let [letter, mark] = parts.as_slice() else {
        return None;
    };
    let (accent, _) = ACCENTS.iter().find(|(_, known)| known == mark)?;
    octets.extend([*accent, u8::try_from(*letter).ok().filter(u8::is_ascii)?]);
    Some(())
}

fn find(table: &[(u8, char)], octet: u8) -> Option<char> {
    table
        .iter()
        .find(|(known, _)| *known == octet)
        .map(|(_, character)| *character)
}
