//! Binds (X.411 clauses 12.1.1 and 14.9): names, passwords, addresses, certificates.

use std::net::IpAddr;

use bytes::Bytes;
use vere_ber::{Ia5String, Null};
use vere_x400::{
    Credentials, MtaBindArgument, MtaBindError, MtaBindResult, MtaInitiator, MtaResponder, Password,
};

use super::{Identity, Peers, Terms};

/// The caller, as known to the host.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The address of the caller.
    pub address: IpAddr,
    /// The names in a certificate checked by TLS; empty without a certificate.
    pub certificate: &'a [String],
}

/// An admitted peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The name in the settings.
    pub peer: String,
    /// The answer.
    pub result: MtaBindResult,
}

/// A refused bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denied {
    /// The answer.
    pub error: MtaBindError,
    /// The reason, for the log alone.
    pub why: Why,
}

/// The reason of a refusal. The caller does not learn the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// An unknown name of an MTA.
    #[error("no peer has this name of an MTA")]
    UnknownName,
    /// A wrong password.
    #[error("the password is not the one of the settings")]
    Password,
    /// Credentials without a password.
    #[error("expected a password; found other credentials")]
    Credentials,
    /// A bind without a name, and no single peer for address and certificate.
    #[error("the peer gives no name, and its address or certificate stands for no single peer")]
    Unauthenticated,
    /// A wrong address.
    #[error("the peer comes from an address that is not in the settings")]
    Address,
    /// A wrong or missing certificate.
    #[error("the certificate has another name, or there is none")]
    Certificate,
    /// Too many associations.
    #[error("the peer has all its associations already")]
    Busy,
    /// A wrong name of the responder.
    #[error("the MTA that answers has another name")]
    OtherName,
}

impl Why {
    const fn denied(self) -> Denied {
        let error = match self {
            Self::Busy => MtaBindError::Busy,
            _ => MtaBindError::AuthenticationError,
        };
        Denied { error, why: self }
    }
}

impl Peers {
    /// Decides about a bind. `associations` counts the present associations of a peer.
    ///
    /// # Errors
    /// [`Denied`] with answer and reason.
    pub fn admit(
        &self,
        argument: &MtaBindArgument,
        caller: Caller<'_>,
        associations: impl Fn(&str) -> usize,
    ) -> Result<Admitted, Denied> {
        let terms = match argument {
            MtaBindArgument::Authenticated(initiator) => self.named(initiator),
            MtaBindArgument::Unauthenticated(_) => self.nameless(caller),
        };
        let terms = terms.map_err(Why::denied)?;
        terms.check_caller(caller).map_err(Why::denied)?;
        if associations(&terms.name) >= terms.associations_max {
            return Err(Why::Busy.denied());
        }
        Ok(Admitted {
            peer: terms.name.clone(),
            result: terms.result(matches!(argument, MtaBindArgument::Authenticated(_))),
        })
    }

    fn named(&self, initiator: &MtaInitiator) -> Result<&Terms, Why> {
        let name = initiator.initiator_name.text();
        let terms = self.by_mta_name(&name).ok_or(Why::UnknownName)?;
        let theirs = terms.theirs.as_ref().ok_or(Why::UnknownName)?;
        password_is(&initiator.initiator_credentials, theirs)?;
        Ok(terms)
    }

    /// The single peer without a name for address and certificate of the caller.
    fn nameless(&self, caller: Caller<'_>) -> Result<&Terms, Why> {
        let mut fitting = self
            .iter()
            .filter(|terms| terms.theirs.is_none() && terms.check_caller(caller).is_ok());
        match (fitting.next(), fitting.next()) {
            (Some(terms), None) => Ok(terms),
            _ => Err(Why::Unauthenticated),
        }
    }
}

impl Terms {
    /// The argument of a bind toward the peer.
    #[must_use]
    pub fn argument(&self) -> MtaBindArgument {
        match &self.ours {
            None => MtaBindArgument::Unauthenticated(Null),
            Some(ours) => MtaBindArgument::Authenticated(MtaInitiator {
                initiator_name: name(ours),
                initiator_credentials: credentials(ours),
                ..MtaInitiator::default()
            }),
        }
    }

    /// Checks the answer of the peer.
    ///
    /// # Errors
    /// [`Denied`]: abort the association.
    pub fn check_result(&self, result: &MtaBindResult) -> Result<(), Denied> {
        let checked = match (&self.theirs, result) {
            (None, _) => Ok(()),
            (Some(_), MtaBindResult::Unauthenticated(_)) => Err(Why::Unauthenticated),
            (Some(theirs), MtaBindResult::Authenticated(responder)) => {
                if responder.responder_name.text() == theirs.mta_name {
                    password_is(&responder.responder_credentials, theirs)
                } else {
                    Err(Why::OtherName)
                }
            }
        };
        checked.map_err(Why::denied)
    }

    fn check_caller(&self, caller: Caller<'_>) -> Result<(), Why> {
        let address = caller.address.to_canonical();
        let known = |one: &IpAddr| one.to_canonical() == address;
        if !self.addresses.is_empty() && !self.addresses.iter().any(known) {
            return Err(Why::Address);
        }
        let Some(wanted) = &self.certificate else {
            return Ok(());
        };
        let is_wanted = |name: &String| wanted.eq_ignore_ascii_case(name);
        match caller.certificate.iter().any(is_wanted) {
            true => Ok(()),
            false => Err(Why::Certificate),
        }
    }

    /// The answer has credentials if the argument had.
    fn result(&self, authenticated: bool) -> MtaBindResult {
        match &self.ours {
            Some(ours) if authenticated => MtaBindResult::Authenticated(MtaResponder {
                responder_name: name(ours),
                responder_credentials: credentials(ours),
                ..MtaResponder::default()
            }),
            _ => MtaBindResult::Unauthenticated(Null),
        }
    }
}

fn name(identity: &Identity) -> Ia5String {
    Ia5String::from_octets(Bytes::copy_from_slice(identity.mta_name.as_bytes()))
}

fn credentials(identity: &Identity) -> Credentials {
    Credentials::Simple(Password::ia5(identity.password.expose()))
}

fn password_is(credentials: &Credentials, identity: &Identity) -> Result<(), Why> {
    match credentials {
        Credentials::Simple(password) if password.is(identity.password.expose()) => Ok(()),
        Credentials::Simple(_) => Err(Why::Password),
        Credentials::Strong(_) | Credentials::Protected(_) => Err(Why::Credentials),
    }
}
