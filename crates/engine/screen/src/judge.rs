//! Judgement of a recipient by the answers that are there.
//!
//! Findings have ranks: lists, SPF, recipient. A refusal waits for the answers of higher rank, so that the decision does
//! not depend on the order of the answers, and a listed client does not learn which recipients exist: neither a client that is
//! refused nor one that is deferred.

use crate::access::Access;
use crate::connection::Connection;
use crate::decision::{Decision, Reason};
use crate::question::{Inquiry, Recipient, Score, Spf};
use crate::terms::{ListPolicy, SpfPolicy, Terms, WhenUnavailable};

/// The judgement of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// An answer is missing.
    Wait,
    /// The recipient is refused for good.
    Refuse(Reason),
    /// The recipient is refused for now.
    Defer(Reason),
    /// No finding is against the client.
    Pass,
}

/// Judges the recipient of a connection, without greylisting.
pub(crate) fn judge(connection: &Connection, terms: &Terms) -> Judgement {
    let ordinary = connection.mail_access == Access::Ordinary;
    let lists = terms.lists.as_ref().filter(|_| ordinary);
    let spf = terms.spf.as_ref().filter(|_| ordinary);
    let by_lists = lists.map_or(Judgement::Pass, |lists| by_lists(connection.lists, lists));
    // The answer about the recipient would show through a deferral, since a refusal goes before a deferral.
    let by_recipient = match by_lists {
        Judgement::Defer(Reason::Listed) => Judgement::Pass,
        _ => by_recipient(connection.recipient),
    };
    let findings = [
        by_lists,
        spf.map_or(Judgement::Pass, |spf| by_spf(connection.spf, spf)),
        by_recipient,
    ];
    let first = |wanted: fn(&Judgement) -> bool| findings.iter().copied().find(wanted);
    first(|finding| matches!(finding, Judgement::Wait | Judgement::Refuse(_)))
        .or_else(|| first(|finding| matches!(finding, Judgement::Defer(_))))
        .unwrap_or(Judgement::Pass)
}

fn by_lists(lists: Inquiry<Score>, policy: &ListPolicy) -> Judgement {
    match lists {
        // A reload may switch on lists in the middle of a session.
        Inquiry::Unasked => Judgement::Pass,
        Inquiry::Pending => Judgement::Wait,
        Inquiry::Known(score) if score.sum >= policy.threshold && score.worst.is_some() => {
            judgement(policy.listed.decide(Reason::Listed))
        }
        Inquiry::Known(score)
            if !score.complete && policy.when_unavailable == WhenUnavailable::Defer =>
        {
            Judgement::Defer(Reason::ListsUnavailable)
        }
        Inquiry::Known(_) => Judgement::Pass,
    }
}

const fn by_spf(spf: Inquiry<Spf>, policy: &SpfPolicy) -> Judgement {
    match spf {
        Inquiry::Unasked => Judgement::Pass,
        Inquiry::Pending => Judgement::Wait,
        Inquiry::Known(result) => judgement(policy.decide(result)),
    }
}

const fn by_recipient(recipient: Inquiry<Recipient>) -> Judgement {
    match recipient {
        Inquiry::Unasked | Inquiry::Pending => Judgement::Wait,
        Inquiry::Known(Recipient::Unknown) => Judgement::Refuse(Reason::RecipientUnknown),
        Inquiry::Known(Recipient::Refused) => Judgement::Refuse(Reason::RecipientRefused),
        Inquiry::Known(Recipient::Deferred) => Judgement::Defer(Reason::RecipientDeferred),
        Inquiry::Known(Recipient::Accepted) => Judgement::Pass,
    }
}

const fn judgement(decision: Decision) -> Judgement {
    match decision {
        Decision::Refuse(reason) | Decision::Close(reason) => Judgement::Refuse(reason),
        Decision::Defer(reason) => Judgement::Defer(reason),
        Decision::Accept => Judgement::Pass,
    }
}
