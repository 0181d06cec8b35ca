//! The terms of an engine: everything that an operator may set.

use std::time::Duration;

use crate::access::Rule;
use crate::decision::{Decision, Reason};
use crate::question::Spf;
use crate::rate::Rate;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// What the engine demands of connections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// The time before the greeting.
    pub banner: Banner,
    /// Bounds of connections, errors and refusals.
    pub limits: Limits,
    /// Bounds of time.
    pub deadlines: Deadlines,
    /// Rules in order; the first rule that matches counts. See [`Rule`].
    pub access: Vec<Rule>,
    /// Lists of clients in the DNS; `None` asks none.
    pub lists: Option<ListPolicy>,
    /// SPF; `None` asks nothing.
    pub spf: Option<SpfPolicy>,
    /// Greylisting; `None` delays nobody.
    pub greylisting: Option<Greylisting>,
}

/// The time before the greeting, in which a client that speaks SMTP is silent (RFC 5321 section 4.3.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Banner {
    /// Time from connection to greeting.
    pub delay: Duration,
    /// Treatment of a client that speaks before its greeting.
    pub early: EarlyTalk,
    /// An address that was trusted within this time is greeted at once.
    pub familiar: Duration,
}

impl Default for Banner {
    /// A delay of 2 seconds: clients wait 5 minutes for the greeting (RFC 5321 section 4.5.3.2.1).
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(2),
            early: EarlyTalk::Refuse,
            familiar: DAY,
        }
    }
}

/// Treatment of a client that speaks before its greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyTalk {
    /// The connection is closed with 554.
    Refuse,
    /// The session goes on until QUIT, and every recipient is refused: the client learns no valid address.
    Wait,
    /// The session goes on as any other.
    Ignore,
}

/// Bounds of connections, errors and refusals. The number of entries is fixed when the engine is made; a reload changes
/// all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Open connections of everybody, those in the hands of workers included.
    pub connections_max: u32,
    /// Open connections of an address.
    pub connections_per_address_max: u32,
    /// Open connections of a /24 of IPv4 or a /64 of IPv6.
    pub connections_per_network_max: u32,
    /// New connections of an address.
    pub arrivals_per_address: Rate,
    /// New connections of a network.
    pub arrivals_per_network: Rate,
    /// Refusals of a session, for good only: of recipients, senders and HELO. The refusal with this number closes the
    /// connection.
    pub refusals_max: u16,
    /// Recipients of an address that do not exist or cannot be reached here.
    pub refused_per_address: Rate,
    /// Recipients of a network that do not exist or cannot be reached here.
    pub refused_per_network: Rate,
    /// Commands of a session that were errors; the error with this number closes the connection.
    pub errors_max: u16,
    /// Addresses that are remembered; `connections_max` at least.
    pub addresses: u32,
    /// Networks that are remembered; `connections_max` at least.
    pub networks: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            connections_per_address_max: 100,
            connections_per_network_max: 400,
            arrivals_per_address: Rate::per_minute(300),
            arrivals_per_network: Rate::per_minute(1_200),
            refusals_max: 10,
            refused_per_address: Rate::per_hour(100),
            refused_per_network: Rate::per_hour(400),
            errors_max: 20,
            addresses: 65_536,
            networks: 32_768,
        }
    }
}

/// Bounds of time; the engine keeps them to the second after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlines {
    /// Time from the greeting to the first command.
    pub first_command: Duration,
    /// Time between two signs of life. RFC 5321 section 4.5.3.2.7 wants 5 minutes.
    pub idle: Duration,
    /// Time from the connection to trust.
    pub trust: Duration,
    /// Time for the answers to the questions of a recipient.
    pub answers: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            first_command: Duration::from_secs(60),
            idle: Duration::from_secs(300),
            trust: Duration::from_secs(600),
            answers: Duration::from_secs(20),
        }
    }
}

/// Use of lists of clients in the DNS (RFC 5782).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPolicy {
    /// Sum of weights from which a client counts as listed.
    pub threshold: i32,
    /// Sum of weights up to which a client is not greylisted; `None` frees nobody.
    pub allow_threshold: Option<i32>,
    /// Treatment of a listed client.
    pub listed: Treatment,
    /// Treatment of a client below the threshold while a list does not answer.
    pub when_unavailable: WhenUnavailable,
}

impl Default for ListPolicy {
    fn default() -> Self {
        Self {
            threshold: 1,
            allow_threshold: None,
            listed: Treatment::Refuse,
            when_unavailable: WhenUnavailable::Accept,
        }
    }
}

/// Treatment of a recipient while a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenUnavailable {
    /// The question counts as answered in favour of the client.
    Accept,
    /// The recipient is refused for now.
    Defer,
}

/// Treatment of a recipient because of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// The recipient is refused for good.
    Refuse,
    /// The recipient is refused for now.
    Defer,
    /// The finding is only kept for the log.
    Note,
}

impl Treatment {
    pub(crate) const fn decide(self, reason: Reason) -> Decision {
        match self {
            Self::Refuse => Decision::Refuse(reason),
            Self::Defer => Decision::Defer(reason),
            Self::Note => Decision::Accept,
        }
    }
}

/// Treatment of the results of SPF (RFC 7208 section 2.6) that are not in favour of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpfPolicy {
    /// Treatment of *fail*.
    pub fail: Treatment,
    /// Treatment of *softfail*.
    pub softfail: Treatment,
    /// Treatment of *temperror*, and of no result in time.
    pub temperror: Treatment,
    /// Treatment of *permerror*.
    pub permerror: Treatment,
}

impl Default for SpfPolicy {
    fn default() -> Self {
        Self {
            fail: Treatment::Refuse,
            softfail: Treatment::Note,
            temperror: Treatment::Note,
            permerror: Treatment::Note,
        }
    }
}

impl SpfPolicy {
    /// Returns the decision about a recipient of a client with this result alone.
    #[must_use]
    pub const fn decide(&self, result: Spf) -> Decision {
        match result {
            Spf::Fail => self.fail.decide(Reason::SpfFail),
            Spf::SoftFail => self.softfail.decide(Reason::SpfFail),
            Spf::TempError => self.temperror.decide(Reason::SpfError),
            Spf::PermError => self.permerror.decide(Reason::SpfError),
            Spf::None | Spf::Neutral | Spf::Pass => Decision::Accept,
        }
    }
}

/// Greylisting (RFC 6647): the first attempt of an unknown client, sender and recipient is refused for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greylisting {
    /// Time from the first attempt to an accepted one.
    pub delay: Duration,
    /// Time from the first attempt in which another attempt is accepted.
    pub window: Duration,
    /// Time for which a triplet that has passed, or a known client, is remembered after its last use.
    pub lifetime: Duration,
    /// Number of triplets that a network passes until all its further triplets pass at once; 0 for never.
    pub known_after: u32,
    /// Triplets and known clients that are remembered. A smaller number after a reload frees nothing.
    pub entries: u32,
}

impl Default for Greylisting {
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(300),
            window: 48 * HOUR,
            lifetime: 35 * DAY,
            known_after: 5,
            entries: 200_000,
        }
    }
}
