//! Texts within bounds.

/// The beginning of a text, of at most `most` octets, in whole characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

/// Cuts a text in place.
pub(crate) fn cut_in_place(text: &mut String, most: usize) {
    let end = cut(text, most).len();
    text.truncate(end);
}

/// The error of a JSON library in the words of this project. Such errors quote what they found, so they are cut.
pub(crate) fn reword(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // The place is of use for faults of syntax alone; a frame is one line.
    let text = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(text, _)| text);
    if error.is_syntax() || error.is_eof() {
        let column = error.column();
        return format!(
            "expected JSON; found a fault at column {column}: {}",
            cut(text, 200)
        );
    }
    let found = |text: &str| {
        let (found, expected) = text.rsplit_once(", expected ")?;
        Some(format!("expected {expected}; found {}", cut(found, 200)))
    };
    for prefix in [
        "invalid type: ",
        "invalid value: ",
        "invalid length ",
        "unknown variant ",
    ] {
        if let Some(reworded) = text.strip_prefix(prefix).and_then(found) {
            return reworded;
        }
    }
    if let Some(field) = text.strip_prefix("missing field ") {
        return format!("expected the field {field}; found none");
    }
    if let Some(field) = text.strip_prefix("duplicate field ") {
        return format!(
            "expected the field {} once; found it twice",
            cut(field, 200)
        );
    }
    cut(text, 200).to_owned()
}
