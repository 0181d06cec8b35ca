//! Decisions of the screen as refusals of SMTP.

use vere_screen::{Decision, Reason};
use vere_smtp::refusal::Refusal;

/// The last words to a client whose session cannot go on.
pub(crate) const LAST_WORDS: &[u8] = b"421 4.3.0 local error, closing connection\r\n";

/// The refusal for a decision; none for an acceptance.
pub(crate) fn refusal(decision: Decision) -> Option<Refusal> {
    let reason = decision.reason()?;
    Some(match (decision, reason) {
        (_, Reason::Access | Reason::EarlyTalk) => Refusal::ClientRefused,
        (_, Reason::RecipientUnknown) => Refusal::MailboxUnknown,
        (_, Reason::RecipientRefused) => Refusal::RelayDenied,
        (_, Reason::RecipientDeferred) => Refusal::LocalError,
        (_, Reason::Greylisted) => Refusal::TryLater,
        (_, Reason::ListsUnavailable) => Refusal::LookupFailed,
        (Decision::Refuse(_), Reason::Listed) => site(true, "client is on a block list"),
        (Decision::Refuse(_), Reason::SpfFail | Reason::SpfError) => {
            site(true, "the domain of the sender does not allow this client")
        }
        (_, Reason::Refusals) => Refusal::RateLimited,
        _ => Refusal::Busy,
    })
}

fn site(permanent: bool, text: &str) -> Refusal {
    let text = text.to_owned();
    Refusal::Site { permanent, text }
}

/// The line for a client that is not let in.
pub(crate) fn turned_away(hostname: &str, reason: Reason) -> String {
    let status = Decision::Close(reason).status();
    let (code, status) = status.map_or((421, "4.3.2".to_owned()), |(code, status)| {
        (code, status.to_string())
    });
    let text = match reason {
        Reason::ConnectionsInAll
        | Reason::ConnectionsOfAddress
        | Reason::ConnectionsOfNetwork
        | Reason::ArrivalsOfAddress
        | Reason::ArrivalsOfNetwork => "too many connections, try again later",
        Reason::Refusals => "too many refused recipients, try again later",
        Reason::Access | Reason::Listed | Reason::EarlyTalk => "client refused",
        _ => "closing connection",
    };
    format!("{code} {status} {hostname} {text}\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decision_against_a_client_has_a_refusal_of_its_class() {
        assert_eq!(refusal(Decision::Accept), None);
        for reason in Reason::ALL {
            let put_off = refusal(Decision::Defer(*reason)).map(|refusal| refusal.is_permanent());
            let permanent = [
                Reason::Access,
                Reason::EarlyTalk,
                Reason::RecipientUnknown,
                Reason::RecipientRefused,
            ];
            assert_eq!(put_off, Some(permanent.contains(reason)), "{reason:?}");
        }
        for reason in [Reason::Listed, Reason::SpfFail, Reason::RecipientUnknown] {
            let refused = refusal(Decision::Refuse(reason)).map(|refusal| refusal.is_permanent());
            assert_eq!(refused, Some(true), "{reason:?}");
        }
        assert_eq!(
            refusal(Decision::Close(Reason::Refusals)),
            Some(Refusal::RateLimited)
        );
        assert_eq!(
            refusal(Decision::Defer(Reason::Greylisted)),
            Some(Refusal::TryLater)
        );
    }

    #[test]
    fn who_is_not_let_in_hears_why() {
        for (reason, line) in [
            (
                Reason::ConnectionsOfAddress,
                "421 4.7.0 mx.example.org too many connections, try again later\r\n",
            ),
            (
                Reason::ConnectionsInAll,
                "421 4.3.2 mx.example.org too many connections, try again later\r\n",
            ),
            (
                Reason::Refusals,
                "421 4.7.0 mx.example.org too many refused recipients, try again later\r\n",
            ),
            (
                Reason::Access,
                "554 5.7.1 mx.example.org client refused\r\n",
            ),
        ] {
            assert_eq!(turned_away("mx.example.org", reason), line);
        }
    }
}
