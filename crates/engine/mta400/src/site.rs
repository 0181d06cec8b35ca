//! The MTA: names, limits, terms of local users.

use std::collections::BTreeMap;
use std::time::Duration;

use vere_ber::{Ia5String, StringError};
use vere_x400::{
    AddressKey, ContentType, EncodedInformationTypes, GlobalDomainIdentifier, OrAddress, Priority,
    Time,
};

/// Characters of a name of an MTA, at most (`ub-mta-name-length`).
pub const MTA_NAME_MAX: usize = 32;
/// Characters of a local identifier, at most (`ub-local-id-length`).
pub const LOCAL_IDENTIFIER_MAX: usize = 32;

const HOUR: Duration = Duration::from_secs(3_600);

/// The time for delivery by grade. The defaults are the times of forced non-delivery of F.410.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grades {
    /// Urgent messages.
    pub urgent: Duration,
    /// Normal messages, and probes and reports.
    pub normal: Duration,
    /// Non-urgent messages.
    pub non_urgent: Duration,
}

impl Default for Grades {
    fn default() -> Self {
        Self {
            urgent: HOUR.saturating_mul(4),
            normal: HOUR.saturating_mul(24),
            non_urgent: HOUR.saturating_mul(36),
        }
    }
}

impl Grades {
    /// The time for a priority. An unknown priority counts as normal.
    #[must_use]
    pub const fn of(&self, priority: Priority) -> Duration {
        match priority {
            Priority::Urgent => self.urgent,
            Priority::NonUrgent => self.non_urgent,
            Priority::Normal | Priority::Other(_) => self.normal,
        }
    }
}

/// The terms of a local user; `None` accepts everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// Content types.
    pub content_types: Option<Vec<ContentType>>,
    /// Encoded information types.
    pub types: Option<EncodedInformationTypes>,
    /// Octets of a content, at most.
    pub content_octets_max: Option<u64>,
    /// The recipient-assigned alternate recipient: the user has redirected all messages.
    pub redirect_to: Option<OrAddress>,
}

/// The MTA.
#[derive(Debug, Clone)]
pub struct Site {
    /// The management domain.
    pub domain: GlobalDomainIdentifier,
    /// The name of the MTA in the domain.
    pub mta_name: Ia5String,
    /// Elements of a trace, at most; a message with more elements counts as looping.
    pub hops_max: usize,
    /// Recipients of a message, at most.
    pub recipients_max: usize,
    /// The time for delivery.
    pub grades: Grades,
    /// Octets of a returned content, at most; reports return no longer contents.
    pub return_octets_max: usize,
    /// The alternate recipient for unknown users of local domains, if the originator allows alternates.
    pub alternate: Option<OrAddress>,
    /// The terms of local users; users without an entry accept everything.
    pub users: BTreeMap<String, User>,
    domain_key: AddressKey,
}

impl Site {
    /// The MTA with a domain and a name, and with the default limits.
    ///
    /// # Errors
    /// [`StringError`] for a character outside IA5String.
    pub fn new(domain: GlobalDomainIdentifier, mta_name: &str) -> Result<Self, StringError> {
        let name: String = mta_name.chars().take(MTA_NAME_MAX).collect();
        Ok(Self {
            domain_key: domain.key(),
            domain,
            mta_name: Ia5String::new(&name)?,
            hops_max: 64,
            recipients_max: 32_767,
            grades: Grades::default(),
            return_octets_max: 2 << 20,
            alternate: None,
            users: BTreeMap::new(),
        })
    }

    /// Whether `domain` is the domain of the MTA.
    #[must_use]
    pub fn is_own(&self, domain: &GlobalDomainIdentifier) -> bool {
        *domain == self.domain || domain.key() == self.domain_key
    }

    /// The end of attempts for a message with this priority and a first attempt at `start`.
    #[must_use]
    pub fn expiry(&self, priority: Priority, start: Time) -> Time {
        Time::from(start.timestamp() + self.grades.of(priority))
    }
}
