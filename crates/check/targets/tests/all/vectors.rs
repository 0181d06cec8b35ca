//! Decoders against tables of cases, each with the sentence of the standard above it.

use vere_smtp::address::ReversePath;

/// Lines that hold a case, with their numbers.
fn cases(table: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = table
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Puts characters in the place of `\u{HEX}`.
fn unescape(text: &str) -> String {
    let mut pieces = text.split("\\u{");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (hex, rest) = piece.split_once('}').unwrap_or_default();
        let point = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
        plain.extend(point);
        plain.push_str(rest);
    }
    plain
}

#[test]
fn addresses() {
    let table = include_str!("../../../../../vectors/addresses.txt");
    let mut wrong = Vec::new();
    for (number, line) in cases(table) {
        let (verdict, case) = line.split_once(' ').unwrap_or((line, ""));
        let (path, written) = case.split_once(" => ").unwrap_or((case, case));
        let (path, written) = (unescape(path), unescape(written));
        let result = ReversePath::parse(&path).map(|path| path.to_string());
        let right = match verdict {
            "ok" => result.as_ref() == Ok(&written),
            "no" => result.is_err(),
            _ => false,
        };
        if !right {
            wrong.push(format!(
                "vectors/addresses.txt:{number}: {line} gave {result:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(cases(table).count() > 80);
}
