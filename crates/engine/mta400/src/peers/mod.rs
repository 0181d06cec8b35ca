//! The other MTAs: what is agreed with each (X.411 clause 12.1.1 for binds, border control for transfers).

mod bind;
mod border;

use std::collections::BTreeMap;
use std::net::IpAddr;

use vere_units::Secret;
use vere_x400::GlobalDomainIdentifier;

pub use bind::{Admitted, Caller, Denied, Why};
pub use border::{AddressRange, Border};
pub(crate) use border::{Crossing, lacks};

/// The version of P1 that a peer speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// X.411 of 1984, in X.410 mode.
    Y1984,
    /// X.411 of 1988 or later.
    #[default]
    Y1988,
}

/// What one side says of itself when an association begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name of the MTA.
    pub mta_name: String,
    /// Its password.
    pub password: Secret<Vec<u8>>,
}

/// What is agreed with a peer.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The name of the peer in the settings.
    pub name: String,
    /// The management domain of the peer.
    pub domain: GlobalDomainIdentifier,
    /// The version of P1.
    pub profile: Profile,
    /// What the peer has to say of itself; `None`: it says nothing.
    pub theirs: Option<Identity>,
    /// What this MTA says of itself; `None`: nothing.
    pub ours: Option<Identity>,
    /// The addresses that the peer may come from; none: any.
    pub addresses: Vec<IpAddr>,
    /// The name in the TLS certificate that the peer has to have.
    pub certificate: Option<String>,
    /// Associations at once, at most.
    pub associations_max: usize,
    /// What the peer may send.
    pub inbound: Border,
    /// What is sent to the peer.
    pub outbound: Border,
}

impl Terms {
    /// Terms without restrictions for a peer of 1988 that gives no name.
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

/// Terms that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// Two peers have one name.
    #[error("peer {0}: expected the name once; found it twice")]
    Twice(String),
    /// Two peers give one name of an MTA.
    #[error("peers {0} and {1}: expected different names of MTAs; both have {2}")]
    MtaName(String, String, String),
    /// Nothing tells the peer from anybody else.
    #[error("peer {0}: expected a password, an address or the name in a certificate; found none")]
    Unprotected(String),
}

impl Peers {
    /// The peers with these terms.
    ///
    /// # Errors
    /// [`PeerError`] for terms that contradict others, or that let anybody in.
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
