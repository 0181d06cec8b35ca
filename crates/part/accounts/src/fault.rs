//! What an account's refusals mean.

use vere_imap::client::{Condition, Status};
use vere_ports::mail_accounts::Fault;

/// Codes for a wish for patience (RFC 5530), and Yahoo's.
const PATIENCE_CODES: [&str; 4] = ["LIMIT", "UNAVAILABLE", "INUSE", "THROTTLED"];

/// Words for a wish for patience, whatever the code: Gmail names a limit of traffic with the code OVERQUOTA, and Exchange
/// calls an overloaded account not connected.
const PATIENCE_WORDS: [&str; 7] = [
    "too many simultaneous",
    "maximum number of connections",
    "throttled",
    "bandwidth limit",
    "rate limit",
    "too many requests",
    "authenticated but not connected",
];

/// The fault behind a `NO`, `BAD` or `BYE`.
pub(crate) fn of(status: &Status) -> Fault {
    let is = |name: &str| {
        status
            .code
            .as_ref()
            .is_some_and(|code| code.values(name).is_some())
    };
    let text = status.text.clone();
    if is("OVERQUOTA") && patience(status).is_none() {
        return Fault::OverQuota(text);
    }
    if is("TOOBIG") {
        let values = status.code.as_ref().and_then(|code| code.values("TOOBIG"));
        return Fault::TooBig(text, values.and_then(|limit| limit.parse().ok()));
    }
    if is("READ-ONLY") || is("NOPERM") {
        return Fault::ReadOnly(text);
    }
    if let Some(wait) = patience(status) {
        return Fault::Throttled(text, wait);
    }
    match status.condition {
        Condition::Bye => Fault::Unreachable(text),
        _ => Fault::Refused(text),
    }
}

/// The milliseconds of patience wished by the server: 0 without a figure.
pub(crate) fn patience(status: &Status) -> Option<u64> {
    let code = status.code.as_ref();
    let by_code = PATIENCE_CODES
        .iter()
        .any(|name| code.is_some_and(|code| code.values(name).is_some()));
    let text = status.text.to_ascii_lowercase();
    let by_word = PATIENCE_WORDS.iter().any(|word| text.contains(word));
    (by_code || by_word).then(|| told(&text).unwrap_or(0))
}

/// Exchange: `Request is throttled. Suggested Backoff Time: 2500 milliseconds`.
fn told(text: &str) -> Option<u64> {
    let (_, behind) = text.split_once("suggested backoff time:")?;
    behind.split_ascii_whitespace().next()?.parse().ok()
}

/// Whether the server has looked at a part of the mails only (RFC 9738 section 3.1).
pub(crate) fn is_partial(status: &Status) -> bool {
    let code = status.code.as_ref();
    code.is_some_and(|code| code.values("MESSAGELIMIT").is_some())
}

/// Whether the refusal says that the mailbox does not exist.
pub(crate) fn names_no_mailbox(status: &Status) -> bool {
    let code = status.code.as_ref();
    ["NONEXISTENT", "TRYCREATE"]
        .iter()
        .any(|name| code.is_some_and(|code| code.is(name)))
}

#[cfg(test)]
mod tests {
    use vere_imap::client::Code;

    use super::*;

    fn status(code: &str, text: &str) -> Status {
        Status {
            condition: Condition::No,
            code: (!code.is_empty()).then(|| Code::Other(code.to_owned())),
            text: text.to_owned(),
        }
    }

    #[test]
    fn refusals_are_told_apart() {
        let text = "x".to_owned();
        for (code, fault) in [
            ("OVERQUOTA", Fault::OverQuota(text.clone())),
            ("TOOBIG", Fault::TooBig(text.clone(), None)),
            ("LIMIT", Fault::Throttled(text.clone(), 0)),
            ("INUSE", Fault::Throttled(text.clone(), 0)),
            ("THROTTLED", Fault::Throttled(text.clone(), 0)),
            ("READ-ONLY", Fault::ReadOnly(text.clone())),
            ("CANNOT", Fault::Refused(text.clone())),
            ("", Fault::Refused(text)),
        ] {
            assert_eq!(of(&status(code, "x")), fault, "{code}");
        }
        let said = "Request is throttled. Suggested Backoff Time: 2500 milliseconds";
        assert_eq!(
            of(&status("", said)),
            Fault::Throttled(said.to_owned(), 2_500)
        );
        for (code, said) in [
            (
                "OVERQUOTA",
                "Account exceeded command or bandwidth limits. (Failure)",
            ),
            ("", "User is authenticated but not connected."),
            ("", "Rate limit hit."),
        ] {
            assert_eq!(
                of(&status(code, said)),
                Fault::Throttled(said.to_owned(), 0)
            );
        }
        assert!(names_no_mailbox(&status("TRYCREATE", "x")) && !names_no_mailbox(&status("", "x")));
    }
}
