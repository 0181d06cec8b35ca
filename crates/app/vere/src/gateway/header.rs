//! The few header fields that the gateway itself looks at, read in place from the raw message.

/// Longest Message-ID kept for tracing, in octets; RFC 5322 allows a line of 998.
const MESSAGE_ID_MAX: usize = 998;

/// The header of a message, by the rule that the parser and the store have: an empty line ends it.
fn header(message: &[u8]) -> &[u8] {
    message
        .get(..vere_mime::header_len(message))
        .unwrap_or(message)
}

/// The lines of a header; a folded continuation counts as a line of its own.
fn lines(header: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(header);
    std::iter::from_fn(move || {
        let all = rest.take()?;
        let end = memchr::memchr(b'\n', all);
        rest = end.map(|end| &all[end + 1..]);
        let line = &all[..end.unwrap_or(all.len())];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
}

fn value_of<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (field, rest) = line.split_at_checked(name.len())?;
    let value = rest.trim_ascii_start().strip_prefix(b":")?;
    field
        .eq_ignore_ascii_case(name.as_bytes())
        .then(|| value.trim_ascii())
}

/// The value of the first field of this name, with its folding taken out.
pub(super) fn unfolded(message: &[u8], name: &str) -> Option<String> {
    let mut lines = lines(header(message));
    let mut value = lines
        .by_ref()
        .find_map(|line| value_of(line, name))?
        .to_vec();
    for line in lines {
        if !line.first().is_some_and(|octet| b" \t".contains(octet)) {
            break;
        }
        value.extend_from_slice(line);
    }
    Some(String::from_utf8_lossy(&value).into_owned())
}

/// The value of the first Message-ID field (RFC 5322 section 3.6.4), with its angle brackets; when the
/// field is folded before its value, the value on the next line.
pub(super) fn message_id(message: &[u8]) -> Option<String> {
    let mut lines = lines(header(message));
    let value = lines
        .by_ref()
        .find_map(|line| value_of(line, "message-id"))?;
    let value = if value.is_empty() {
        lines.next()?.trim_ascii()
    } else {
        value
    };
    let text = std::str::from_utf8(value).ok()?;
    (!text.is_empty() && text.len() <= MESSAGE_ID_MAX).then(|| text.to_owned())
}

/// The value of the first such field, as far as it stands on the field's own line.
pub(super) fn value<'a>(message: &'a [u8], name: &str) -> Option<&'a [u8]> {
    lines(header(message)).find_map(|line| value_of(line, name))
}

/// How many fields of this name there are.
pub(super) fn count(message: &[u8], name: &str) -> usize {
    lines(header(message))
        .filter(|line| value_of(line, name).is_some())
        .count()
}

/// Whether the field is there.
pub(super) fn has(message: &[u8], name: &str) -> bool {
    lines(header(message)).any(|line| value_of(line, name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_id_is_found_in_any_case_and_folded() {
        let id = |text: &str| message_id(text.as_bytes());
        assert_eq!(
            id("A: b\r\nMESSAGE-ID: <x@y>\r\n\r\nbody").as_deref(),
            Some("<x@y>")
        );
        assert_eq!(
            id("Message-Id:\r\n <x@y>\r\n\r\n").as_deref(),
            Some("<x@y>")
        );
        assert_eq!(id("A: b\r\n\r\nMessage-ID: <x@y>\r\n"), None);
        assert_eq!(id("\r\nMessage-ID: <x@y>\r\n"), None);
        assert_eq!(id("X-Message-ID: <x@y>\r\n\r\n"), None);
        assert_eq!(id("Message-ID:\r\n\r\n"), None);
    }

    #[test]
    fn fields_are_looked_for_in_the_header_only() {
        let text = b"X: a\r\n\tdate: b\r\ny : c\r\n\r\nDate: e\r\n";
        assert!(has(text, "x") && has(text, "Y") && !has(text, "date"));
        assert_eq!(count(b"A: 1\r\n a: 2\r\na : 3\r\n\r\nA: 4\r\n", "a"), 2);
        assert_eq!(count(b"A: 1\nB: 2\n\nA: 3\n", "a"), 1);
    }
}
