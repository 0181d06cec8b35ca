//! Decisions of the engine, with their reasons.

use vere_smtp::reply::EnhancedStatusCode;

/// The answer to a command, or the end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The recipient is accepted and the client trusted: the session is handed over.
    Accept,
    /// The command is refused for good; the session goes on.
    Refuse(Reason),
    /// The command is refused for now; the session goes on.
    Defer(Reason),
    /// The connection is closed, with a reply.
    Close(Reason),
}

impl Decision {
    /// The reply's code and enhanced status (RFC 3463); `None` for [`Accept`](Self::Accept), whose reply the worker
    /// writes.
    #[must_use]
    pub const fn status(self) -> Option<(u16, EnhancedStatusCode)> {
        let (code, reason) = match self {
            Self::Accept => return None,
            Self::Refuse(reason) => (550, reason),
            Self::Defer(reason) => (451, reason),
            Self::Close(reason) if reason.is_permanent() => (554, reason),
            Self::Close(reason) => (421, reason),
        };
        let (subject, detail) = reason.subject_and_detail();
        let status = EnhancedStatusCode::new((code / 100) as u8, subject, detail);
        Some((code, status))
    }

    /// The reason of a decision against the client.
    #[must_use]
    pub const fn reason(self) -> Option<Reason> {
        match self {
            Self::Accept => None,
            Self::Refuse(reason) | Self::Defer(reason) | Self::Close(reason) => Some(reason),
        }
    }
}

/// A connection that is not admitted. The reply is that of [`Decision::Close`] with the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("turned away: {}", .0.name())]
pub struct TurnedAway(pub Reason);

macro_rules! reasons {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal, $subject:literal . $detail:literal;)+) => {
        /// Reasons of decisions against a client. The numbers in the descriptions are subject and detail of RFC 3463.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])+ $variant,)+
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name in logs and metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            const fn subject_and_detail(self) -> (u16, u16) {
                match self {
                    $(Self::$variant => ($subject, $detail),)+
                }
            }
        }
    };
}

reasons! {
    /// Too many connections are open: 3.2.
    ConnectionsInAll = "connections", 3 . 2;
    /// Too many connections of the address are open: 7.0.
    ConnectionsOfAddress = "address_connections", 7 . 0;
    /// Too many connections of the network are open: 7.0.
    ConnectionsOfNetwork = "network_connections", 7 . 0;
    /// Too many connections of the address came of late: 7.0.
    ArrivalsOfAddress = "address_rate", 7 . 0;
    /// Too many connections of the network came of late: 7.0.
    ArrivalsOfNetwork = "network_rate", 7 . 0;
    /// Too many recipients were refused, in this session or of this address or network in the last hour: 7.0.
    Refusals = "refusals", 7 . 0;
    /// Too many commands of the session were errors: 7.0.
    Errors = "errors", 7 . 0;
    /// The client spoke before its greeting: 5.1, as Postfix has it.
    EarlyTalk = "early_talk", 5 . 1;
    /// A rule of access refuses the client, its name or the sender: 7.1.
    Access = "access", 7 . 1;
    /// The client is on lists: 7.1. [`Findings`](crate::Findings) names the list.
    Listed = "listed", 7 . 1;
    /// A list does not answer: 4.3.
    ListsUnavailable = "lists_unavailable", 4 . 3;
    /// The domain of the sender does not allow the client: 7.23 (RFC 7372).
    SpfFail = "spf_fail", 7 . 23;
    /// SPF gives no result because of an error: 7.24 (RFC 7372).
    SpfError = "spf_error", 7 . 24;
    /// The recipient does not exist: 1.1.
    RecipientUnknown = "recipient_unknown", 1 . 1;
    /// The recipient is not accepted from this client: 7.1.
    RecipientRefused = "recipient_refused", 7 . 1;
    /// The recipient cannot be checked now: 3.0.
    RecipientDeferred = "recipient_deferred", 3 . 0;
    /// Client, sender and recipient are new: 7.1.
    Greylisted = "greylisted", 7 . 1;
    /// The client said nothing after its greeting: 4.2.
    FirstCommand = "first_command", 4 . 2;
    /// The client said nothing for too long: 4.2.
    Idle = "idle", 4 . 2;
    /// The client was not trusted in time: 4.2.
    Slow = "slow", 4 . 2;
    /// The connection makes room for others: 3.2.
    Evicted = "evicted", 3 . 2;
}

impl Reason {
    /// Whether another attempt of the same client meets the same end.
    const fn is_permanent(self) -> bool {
        matches!(self, Self::EarlyTalk | Self::Access | Self::Listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_fit_their_codes() {
        let status = |decision: Decision| {
            decision
                .status()
                .map(|(code, status)| format!("{code} {status}"))
        };
        for (decision, expected) in [
            (Decision::Refuse(Reason::Listed), "550 5.7.1"),
            (Decision::Refuse(Reason::RecipientUnknown), "550 5.1.1"),
            (Decision::Refuse(Reason::SpfFail), "550 5.7.23"),
            (Decision::Defer(Reason::Greylisted), "451 4.7.1"),
            (Decision::Defer(Reason::SpfError), "451 4.7.24"),
            (Decision::Close(Reason::Idle), "421 4.4.2"),
            (Decision::Close(Reason::Evicted), "421 4.3.2"),
            (Decision::Close(Reason::EarlyTalk), "554 5.5.1"),
            (Decision::Close(Reason::Access), "554 5.7.1"),
        ] {
            assert_eq!(status(decision).as_deref(), Some(expected));
        }
        assert_eq!(status(Decision::Accept), None);
        assert_eq!(Decision::Accept.reason(), None);
        assert_eq!(Decision::Defer(Reason::Idle).reason(), Some(Reason::Idle));
    }

    #[test]
    fn names_are_different() {
        let names: std::collections::BTreeSet<_> =
            Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        assert_eq!(
            TurnedAway(Reason::Access).to_string(),
            "turned away: access"
        );
    }
}
