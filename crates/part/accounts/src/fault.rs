//! What an account's refusals mean.

use vere_imap::client::{Condition, Status};
use vere_ports::mail_accounts::Fault;

/// Codes for a wish for patience (RFC 5530).
const PATIENCE_CODES: [&str; 3] = ["LIMIT", "UNAVAILABLE", "INUSE"];

/// Words for a wish for patience without a code: Dovecot, Exchange, Gmail.
const PATIENCE_WORDS: [&str; 3] = [
    "too many simultaneous",
    "maximum number of connections",
    "throttled",
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
    if is("OVERQUOTA") {
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
        assert!(names_no_mailbox(&status("TRYCREATE", "x")) && !names_no_mailbox(&status("", "x")));
    }
}
