//! XCLIENT: a trusted proxy speaks for a client (Postfix's XCLIENT_README).

use std::net::SocketAddr;

use crate::refusal::Refusal;
use crate::xclient::XclientAttributes;

use super::config::Peer;
use super::question::{ClientRights, Question};
use super::session::{Forwarded, Session};
use super::{About, Server, replies};

impl Server {
    /// Asks for the permissions of the client behind the proxy.
    pub(super) fn xclient(&mut self, attributes: XclientAttributes) {
        if !self.peer.may_xclient {
            return self.fail(replies::XCLIENT_DENIED);
        }
        if self.session.transaction.is_some() {
            return self.fail(replies::WITHIN_TRANSACTION);
        }
        let peer = self.peer_with(&attributes);
        let mut forwarded = self.forwarded.as_deref().cloned().unwrap_or_default();
        if let Some(helo) = attributes.helo {
            forwarded.helo = helo;
        }
        if let Some(login) = attributes.login {
            forwarded.login = login;
        }
        forwarded.esmtp = attributes.esmtp.or(forwarded.esmtp);
        let question = Question::Client(Box::new(peer.clone()));
        self.ask(question, About::Client(Box::new((peer, forwarded))));
    }

    fn peer_with(&self, attributes: &XclientAttributes) -> Peer {
        let Peer { address, local, .. } = self.peer;
        Peer {
            address: SocketAddr::new(
                attributes.address.unwrap_or(address.ip()),
                attributes.port.unwrap_or(address.port()),
            ),
            local: SocketAddr::new(
                attributes.local_address.unwrap_or(local.ip()),
                attributes.local_port.unwrap_or(local.port()),
            ),
            name: match &attributes.name {
                Some(name) => name.clone(),
                // The name of the proxy is not that of another address.
                None if attributes.address.is_some() => None,
                None => self.peer.name.clone(),
            },
            tls: self.peer.tls.clone(),
            may_relay: false,
            may_auth_in_clear: false,
            may_prioritise: false,
            may_xclient: self.peer.may_xclient,
            tls_available: self.peer.tls_available,
        }
    }

    /// Begins the session anew for the client, with a greeting.
    pub(super) fn client_answered(
        &mut self,
        (peer, forwarded): (Peer, Forwarded),
        result: Result<ClientRights, Refusal>,
    ) {
        match result {
            Ok(rights) => {
                self.peer = Peer {
                    may_relay: rights.may_relay,
                    may_auth_in_clear: rights.may_auth_in_clear,
                    may_prioritise: rights.may_prioritise,
                    ..peer
                };
                self.session = Session::default();
                self.forwarded = Some(Box::new(forwarded));
                self.greet();
            }
            Err(refusal) => self.refuse(&refusal),
        }
    }
}
