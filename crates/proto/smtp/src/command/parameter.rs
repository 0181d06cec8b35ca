//! Paths and parameters, the common part of MAIL and RCPT (RFC 5321 section 4.1.2).

use std::borrow::Cow;

use super::{CommandError, Workarounds};

/// Splits `FROM:<path> parameters` or `TO:<path> parameters` into path and parameters.
///
/// ```text
/// mail = "MAIL FROM:" Reverse-path [SP Mail-parameters] CRLF
/// rcpt = "RCPT TO:" Forward-path [SP Rcpt-parameters] CRLF
/// ```
pub(super) fn split_path<'a>(
    argument: &'a str,
    keyword: &str,
    workarounds: Workarounds,
) -> Option<(Cow<'a, str>, &'a str)> {
    let (head, mut rest) = argument.split_at_checked(keyword.len())?;
    if !head.eq_ignore_ascii_case(keyword) {
        return None;
    }
    if workarounds.space_before_path {
        rest = rest.trim_start_matches(' ');
    }
    if workarounds.path_without_brackets && !rest.starts_with('<') {
        let (path, parameters) = rest.split_once(' ').unwrap_or((rest, ""));
        return Some((Cow::Owned(format!("<{path}>")), parameters));
    }
    let (path, parameters) = rest.split_at_checked(path_end(rest))?;
    let parameters = match parameters.strip_prefix(' ') {
        Some(parameters) => parameters,
        None if parameters.is_empty() => parameters,
        None => return None,
    };
    Some((Cow::Borrowed(path), parameters))
}

/// Where the path ends that the text begins with: behind the first `>` outside of quotes, or else at the
/// first space, or else at the end.
fn path_end(text: &str) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (index, octet) in text.bytes().enumerate() {
        match octet {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'>' if !quoted => return index.saturating_add(1),
            b' ' if !quoted => return index,
            _ => {}
        }
    }
    text.len()
}

/// Iterates over parameters as keyword and value.
///
/// ```text
/// esmtp-param   = esmtp-keyword ["=" esmtp-value]
/// esmtp-keyword = (ALPHA / DIGIT) *(ALPHA / DIGIT / "-")
/// esmtp-value   = 1*(%d33-60 / %d62-126)     ; RFC 6531 adds UTF8-non-ascii
/// ```
pub(super) fn parameters(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    text.split(' ')
        .filter(|part| !part.is_empty())
        .map(|part| match part.split_once('=') {
            Some((keyword, value)) => (keyword, Some(value)),
            None => (part, None),
        })
}

/// Stores the value of a parameter, once.
pub(super) fn set_once<T>(
    place: &mut Option<T>,
    name: &'static str,
    value: Option<T>,
) -> Result<(), CommandError> {
    if place.is_some() {
        return Err(CommandError::ParameterTwice(name));
    }
    *place = Some(value.ok_or(CommandError::ParameterValue(name))?);
    Ok(())
}
