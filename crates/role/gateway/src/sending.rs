//! The names allowed to accounts: a stolen password sends under the names of the stolen account alone.

use vere_settings::Senders;
use vere_smtp::address::AddrSpec;
use vere_smtp::refusal::Refusal;

use super::header::Header;
use super::process::Process;

/// Authors of a message: each costs a look into the directory.
const AUTHORS_MAX: usize = 50;

/// Checks that an account may send under an address, as reverse-path or as author.
///
/// # Errors
/// [`Refusal::SenderNotOwned`]; [`Refusal::LocalError`] when the directory cannot be read.
pub(super) fn check_sender(
    process: &Process,
    account: &str,
    address: &AddrSpec,
) -> Result<(), Refusal> {
    match process.settings().sending.of(account).senders {
        Senders::Own => process.router.check_owner(account, address),
        Senders::Foreign => process.router.check_sender(account, address),
    }
}

/// Checks the authors of a message in its From field. A message without the field has no author.
///
/// # Errors
/// [`Refusal::AuthorNotOwned`] where an author is not the account's, or the field has none that every reader finds;
/// [`Refusal::ContentRefused`] for a header that readers take apart at other places; [`Refusal::LocalError`] when the
/// directory cannot be read.
pub(super) fn check_authors(
    process: &Process,
    account: &str,
    header: &Header<'_>,
    message: &[u8],
) -> Result<(), Refusal> {
    if !has_whole_lines(message) {
        return Err(Refusal::ContentRefused);
    }
    let Some((from, authors)) = header.author_field().zip(header.authors()) else {
        return Ok(());
    };
    if !is_plain(from) || !(1..=AUTHORS_MAX).contains(&authors.len()) {
        return Err(Refusal::AuthorNotOwned);
    }
    for author in &authors {
        let address = AddrSpec::parse(author).map_err(|_| Refusal::AuthorNotOwned)?;
        check_sender(process, account, &address).map_err(|refusal| match refusal {
            Refusal::SenderNotOwned => Refusal::AuthorNotOwned,
            other => other,
        })?;
    }
    Ok(())
}

/// Whether the header has neither NUL nor line ends of one octet (BINARYMIME lets both pass), which some readers take for line
/// ends and some for nothing.
fn has_whole_lines(message: &[u8]) -> bool {
    let mut lines = message.split_inclusive(|octet| *octet == b'\n');
    let header = lines.by_ref().take_while(|line| *line != b"\r\n");
    header.into_iter().all(|line| {
        let text = line.strip_suffix(b"\r\n");
        // The last line of a message may have no end.
        text.unwrap_or(line)
            .iter()
            .all(|octet| !b"\0\r\n".contains(octet))
    })
}

/// A place within a From field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before an address in angle brackets; whether an `@` came outside quotes.
    Front { at: bool },
    /// Within angle brackets; whether anything came.
    Angle { any: bool },
    /// Behind angle brackets.
    Behind,
}

/// Whether every reader finds the same addresses in a From field: mailboxes of RFC 5322 section 3.4 without groups, routes
/// and other forms that the section calls obsolete, text behind angle brackets, empty brackets, or an address outside quotes
/// in front of brackets.
fn is_plain(field: &[u8]) -> bool {
    let mut place = Place::Front { at: false };
    let (mut is_quoted, mut comments, mut is_escaped) = (false, 0_u32, false);
    for octet in field {
        if is_escaped {
            is_escaped = false;
            continue;
        }
        place = match (octet, place) {
            (b'\\', _) if is_quoted || comments > 0 => {
                is_escaped = true;
                continue;
            }
            (b'"', place) if comments == 0 => {
                is_quoted = !is_quoted;
                if place == Place::Behind {
                    return false;
                }
                place
            }
            (_, place) if is_quoted => place,
            (b'(', place) => {
                comments = comments.saturating_add(1);
                place
            }
            (b')', place) if comments > 0 => {
                comments -= 1;
                place
            }
            (_, place) if comments > 0 => place,
            (b' ' | b'\t' | b'\r' | b'\n', place) => place,
            (0..=31 | 127 | b':' | b';' | b')', _) => return false,
            (b'<', Place::Front { at: false }) => Place::Angle { any: false },
            (b'>', Place::Angle { any: true }) => Place::Behind,
            (b'<' | b'>', _) => return false,
            (b',', Place::Front { .. } | Place::Behind) => Place::Front { at: false },
            (b',', Place::Angle { .. }) => return false,
            (b'@', Place::Front { .. }) => Place::Front { at: true },
            (_, Place::Front { at }) => Place::Front { at },
            (_, Place::Angle { .. }) => Place::Angle { any: true },
            (_, Place::Behind) => return false,
        };
    }
    !is_quoted && comments == 0 && !is_escaped && !matches!(place, Place::Angle { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_fields_are_plain() {
        for field in [
            "a@b",
            " Ann <a@b>\r\n",
            "\"Doe, Ann\" <a@b>, Bob (his; <mail>) <c@d>",
            "=?utf-8?q?J=C3=B6rg?= <a@b>",
            "\"ceo@bank.example\"\r\n <a@b>",
            "\"a \\\" b\" <a@b> (c (d) e)",
            "(a \" b) <a@b>",
            "(a \\) b) <a@b>",
            "\"(\" <a@b>",
            "<\"a b\"@c>",
            "a@b, c@d",
            "",
            "J\u{f6}rg <j\u{f6}rg@b>",
        ] {
            assert!(is_plain(field.as_bytes()), "{field}");
        }
    }

    /// Each of these was taken for a message of alice, and mail programs show somebody else.
    #[test]
    fn fields_that_readers_take_apart_in_other_ways_are_not() {
        for field in [
            "<alice@a> <ceo@b>",
            "<alice@a> ceo@b",
            "<ceo@b:alice@a>",
            "<@x:alice@a>",
            "ceo@b: alice@a;",
            "ceo@b <>, alice@a",
            "ceo@b <alice@a>",
            "<alice@a> \", <ceo@b>",
            "alice@a ( , ceo@b",
            "<alice@a, ceo@b>",
            "<alice@a",
            "alice@a>",
            "ceo@b\0<alice@a>",
            "<<alice@a>",
            "alice@a) <ceo@b>",
            "ceo\\@b <alice@a>",
            "ceo@b\\ <alice@a>",
            "<alice@a> \"ceo@b\"",
            "(\\) alice@a",
            "<>",
            "ceo@b\u{7f}",
            "\"a\\",
        ] {
            assert!(!is_plain(field.as_bytes()), "{field}");
        }
    }

    #[test]
    fn lines_of_a_header_end_by_two_octets() {
        let whole = |message: &str| has_whole_lines(message.as_bytes());
        assert!(whole("A: b\r\nC: d\r\n\r\nx\ry\nz\0"));
        assert!(whole("") && whole("\r\n") && whole("A: b") && whole("A: b\r\n"));
        for message in [
            "A: b\rFrom: c\r\n\r\n",
            "A: b\nFrom: c\r\n\r\n",
            "A: \0\r\n\r\n",
            "A: b\r",
        ] {
            assert!(!whole(message), "{message:?}");
        }
    }
}
