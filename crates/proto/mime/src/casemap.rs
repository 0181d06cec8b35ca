//! `i;unicode-casemap` (RFC 5051): converts texts to the form used for comparison.

use unicode_normalization::char::decompose_compatible;

/// A text in the form in which `i;unicode-casemap` compares octet by octet (RFC 5051 section 2): each
/// character in titlecase, then decomposed as far as `UnicodeData.txt` goes. Nothing is put in another
/// order, so the form of a part of a text is a part of the form of the text.
#[must_use]
pub fn casemap(text: &str) -> String {
    let mut mapped = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        // Most of most texts is ASCII, which goes many octets at a time.
        let (plain, behind) = rest
            .split_at_checked(ascii_len(rest.as_bytes()))
            .unwrap_or((rest, ""));
        let start = mapped.len();
        mapped.push_str(plain);
        if let Some(plain) = mapped.get_mut(start..) {
            plain.make_ascii_uppercase();
        }
        let mut characters = behind.chars();
        if let Some(character) = characters.next() {
            decompose_compatible(titlecase(character), |part| mapped.push(part));
        }
        rest = characters.as_str();
    }
    mapped
}

/// Octets compared together, in one step or a few.
const TOGETHER: usize = 64;

/// How many octets at the beginning are ASCII.
fn ascii_len(octets: &[u8]) -> usize {
    let mut len: usize = 0;
    for some in octets.chunks(TOGETHER) {
        if !some.is_ascii() {
            let plain = some.iter().position(|octet| !octet.is_ascii());
            return len.saturating_add(plain.unwrap_or_default());
        }
        len = len.saturating_add(some.len());
    }
    len
}

/// The simple titlecase mapping. The standard library knows the full uppercase mapping, which differs
/// where a character becomes several, and where titlecase is not uppercase.
fn titlecase(character: char) -> char {
    let moved = |by: u32| char::from_u32(u32::from(character).saturating_add(by));
    let special = match character {
        // DŽ, LJ, NJ and DZ have a titlecase form between upper and lower case.
        '\u{1C4}'..='\u{1C6}' => Some('\u{1C5}'),
        '\u{1C7}'..='\u{1C9}' => Some('\u{1C8}'),
        '\u{1CA}'..='\u{1CC}' => Some('\u{1CB}'),
        '\u{1F1}'..='\u{1F3}' => Some('\u{1F2}'),
        // Georgian has no titlecase.
        '\u{10D0}'..='\u{10FA}' | '\u{10FD}'..='\u{10FF}' => Some(character),
        // Greek with iota subscript.
        '\u{1F80}'..='\u{1F87}' | '\u{1F90}'..='\u{1F97}' | '\u{1FA0}'..='\u{1FA7}' => moved(8),
        '\u{1FB3}' | '\u{1FC3}' | '\u{1FF3}' => moved(9),
        _ => None,
    };
    if let Some(special) = special {
        return special;
    }
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(only), None) => only,
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::casemap;

    #[test]
    fn characters_are_mapped_wherever_they_stand() {
        for before in (0..200).chain([1_000]) {
            let plain = "aB3 "
                .repeat(before)
                .chars()
                .take(before)
                .collect::<String>();
            let text = format!("{plain}éx{plain}ßy");
            let upper = plain.to_ascii_uppercase();
            assert_eq!(casemap(&text), format!("{upper}E\u{301}X{upper}ßY"));
        }
    }

    #[test]
    fn texts_of_one_form_are_the_same() {
        let same = [
            ("Grüße", "GRU\u{308}ßE"),
            ("ÉCOLE", "e\u{301}cole"),
            // The example of RFC 5051 section 2.
            ("\u{1C4}", "D\u{7A}\u{30C}"),
            ("ﬁ", "ﬁ"),
            ("ΑΩ", "αω"),
            ("σς", "ΣΣ"),
            ("ᾳ", "ᾼ"),
            ("привет", "ПРИВЕТ"),
            ("Ⅳ", "ⅳ"),
            ("한", "\u{1112}\u{1161}\u{11AB}"),
        ];
        for (one, other) in same {
            let (one, other) = (casemap(one), casemap(other));
            // Decomposed text keeps the case of the decomposition.
            assert!(
                one == other || casemap(&one) == casemap(&other),
                "{one} {other}"
            );
        }
        assert_eq!(casemap("\u{1C6}"), "Dz\u{30C}");
        assert_eq!(casemap("straße"), "STRAßE");
        assert_eq!(casemap("a\u{a0}b"), "A B");
        assert_ne!(casemap("ß"), casemap("ss"));
    }
}
