//! Waiting requests, and the weight of requests and answers.

use tokio::time::Instant;
use vere_ports::mail_accounts::{Answer, Fault, Request, RequestId, Urgency};

/// The weight of a read of a whole body, in octets.
pub(crate) const WHOLE_OCTETS: usize = 1 << 20;

/// The weight of any further request: a window admits 1,024.
const OTHER_OCTETS: usize = 4_096;

/// A request with the urgency and the time of the call.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) id: RequestId,
    pub(crate) urgency: Urgency,
    pub(crate) request: Request,
    pub(crate) at: Instant,
    /// Whether a connection ended while the request was under way.
    pub(crate) again: bool,
}

/// The weight of a request in a window, in octets.
pub(crate) fn cost(request: &Request) -> usize {
    match request {
        Request::Append { mail, .. } => mail.len(),
        Request::Read { parts, .. } if parts.is_empty() => WHOLE_OCTETS,
        Request::Read { parts, .. } => {
            let lengths = parts.iter().map(|part| part.length);
            let sum = lengths.fold(0, u32::saturating_add);
            usize::try_from(sum).unwrap_or(usize::MAX)
        }
        Request::Watch { .. } => 0,
        _ => OTHER_OCTETS,
    }
}

/// Octets of a request in memory.
pub(crate) fn octets(request: &Request) -> usize {
    let own = match request {
        Request::Append { mail, mailbox, .. } => mail.len().saturating_add(mailbox.len()),
        Request::Read { parts, .. } => size_of_val(parts.as_slice()),
        Request::Remove { uids, .. } => size_of_val(uids.as_slice()),
        Request::Find { word, .. } => word.len(),
        Request::Watch { .. } => return 0,
        Request::List { .. } | Request::Mailboxes | Request::Quota => 0,
    };
    own.saturating_add(size_of::<Asked>())
}

/// Octets of an answer in memory.
pub(crate) fn answer_octets(answer: &Result<Answer, Fault>) -> usize {
    match answer {
        Ok(Answer::Read(parts)) => parts.iter().map(bytes::Bytes::len).sum(),
        Ok(Answer::Listed { mails, .. }) => mails
            .iter()
            .map(|mail| size_of_val(mail).saturating_add(mail.subject.len()))
            .sum(),
        _ => 0,
    }
}

/// Whether the request is a commit.
pub(crate) const fn is_alone(request: &Request) -> bool {
    matches!(request, Request::Append { alone: true, .. })
}

/// Whether the request can be carried out twice.
pub(crate) const fn changes_nothing(request: &Request) -> bool {
    !matches!(request, Request::Append { .. } | Request::Remove { .. })
}
