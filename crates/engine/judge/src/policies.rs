//! Which thresholds a recipient has.

use std::collections::BTreeMap;

use vere_settings::{Judging, Thresholds};

/// The thresholds of all policies, by recipient in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Policies {
    of: BTreeMap<String, Thresholds>,
    otherwise: Thresholds,
}

impl Policies {
    pub(crate) fn of(terms: &Judging) -> Self {
        let entries = terms.policies.iter().flat_map(|policy| {
            let recipients = policy.recipients.iter();
            recipients.map(|recipient| (recipient.to_lowercase(), policy.thresholds))
        });
        Self {
            of: entries.collect(),
            otherwise: terms.thresholds,
        }
    }

    /// Returns the thresholds of an address: from the policy of the address, else of the domain, else of the nearest domain above with a
    /// leading dot, else from `[judging]`. Letter case does not count.
    pub(crate) fn thresholds(&self, recipient: &str) -> Thresholds {
        let recipient = recipient.to_lowercase();
        let domain = recipient.rsplit_once('@').map(|(_, domain)| domain);
        let own = self.of.get(&recipient);
        let domains = domain.and_then(|domain| self.of.get(domain));
        let above = || {
            let domain = domain?;
            let mut dots = domain.match_indices('.');
            dots.find_map(|(at, _)| self.of.get(domain.get(at..)?))
        };
        let found = own.or(domains).or_else(above);
        found.copied().unwrap_or(self.otherwise)
    }
}
