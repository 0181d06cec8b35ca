//! Peers: the terms of other MTAs (X.411 clause 12.1.1 for binds, border control for transfers).

mod bind;
mod border;

use std::collections::BTreeMap;
use std::net::IpAddr;

use vere_units::Secret;
use vere_x400::GlobalDomainIdentifier;

pub use bind::{Admitted, Caller, Denied, Why};
pub use border::{AddressRange, Border};
pub(crate) use border::{Crossing, lacks};

/// The version of P1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// X.411 of 1984, in X.410 mode.
    Y1984,
    /// X.411 of 1988 or later.
    #[default]
    Y1988,
}

/// Name and password of one side of an association.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name of the MTA.
    pub mta_name: String,
    /// The password.
    pub password: Secret<Vec<u8>>,
}

/// The terms of a peer.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The name of the peer in the settings.
    pub name: String,
    /// The management domain of the peer.
    pub domain: GlobalDomainIdentifier,
    /// The version of P1.
    pub profile: Profile,
    /// The identity of the peer; `None` for a peer without a name.
    pub theirs: Option<Identity>,
    /// The identity of this MTA toward the peer; `None` for a bind without a name.
    pub ours: Option<Identity>,
    /// The permitted addresses of the peer; an empty list permits all addresses.
    pub addresses: Vec<IpAddr>,
    /// The name in the TLS certificate of the peer; `None` needs no certificate.
    pub certificate: Option<String>,
    /// Associations at once, at most.
    pub associations_max: usize,
    /// The border toward this MTA.
    pub inbound: Border,
    /// The border toward the peer.
    pub outbound: Border,
}

impl Terms {
    /// Terms without restrictions for a peer of 1988 without a name.
    #[must_use]
    pub fn new(name: &str, domain: GlobalDomainIdentifier) -> Self {
        Self {
            name: name.to_owned(),
            domain,
            profile: Profile::Y1988,
            theirs: None,
            ours: None,
            addresses: Vec::new(),
            certificate: None,
            associations_max: 64,
            inbound: Border::default(),
            outbound: Border::default(),
        }
    }
}

/// The peers.
#[derive(Debug, Clone, Default)]
pub struct Peers {
    terms: BTreeMap<String, Terms>,
}

/// A fault of terms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// Two peers with equal names.
    #[error("peer {0}: expected the name once; found it twice")]
    Twice(String),
    /// Two peers with equal MTA names.
    #[error("peers {0} and {1}: expected different names of MTAs; both have {2}")]
    MtaName(String, String, String),
    /// A peer without password, address and certificate.
    #[error("peer {0}: expected a password, an address or the name in a certificate; found none")]
    Unprotected(String),
}

impl Peers {
    /// The peers with these terms.
    ///
    /// # Errors
    /// [`PeerError`] for contradictory terms, and for terms that admit any caller.
    pub fn new(terms: Vec<Terms>) -> Result<Self, PeerError> {
        let mut peers = Self::default();
        for terms in terms {
            peers.check(&terms)?;
            peers.terms.insert(terms.name.clone(), terms);
        }
        Ok(peers)
    }

    /// The terms of a peer.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Terms> {
        self.terms.get(name)
    }

    /// All terms, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = &Terms> {
        self.terms.values()
    }

    fn check(&self, terms: &Terms) -> Result<(), PeerError> {
        if self.terms.contains_key(&terms.name) {
            return Err(PeerError::Twice(terms.name.clone()));
        }
        let password = terms
            .theirs
            .as_ref()
            .is_some_and(|theirs| !theirs.password.expose().is_empty());
        if !password && terms.addresses.is_empty() && terms.certificate.is_none() {
            return Err(PeerError::Unprotected(terms.name.clone()));
        }
        let Some(theirs) = &terms.theirs else {
            return Ok(());
        };
        match self.by_mta_name(&theirs.mta_name) {
            None => Ok(()),
            Some(other) => Err(PeerError::MtaName(
                other.name.clone(),
                terms.name.clone(),
                theirs.mta_name.clone(),
            )),
        }
    }

    fn by_mta_name(&self, mta_name: &str) -> Option<&Terms> {
        self.iter().find(|terms| {
            terms
                .theirs
                .as_ref()
                .is_some_and(|theirs| theirs.mta_name == mta_name)
        })
    }
}
