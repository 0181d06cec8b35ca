//! Peers: the terms of the engine, and the way to each peer.

use std::net::SocketAddr;

use bytes::Bytes;
use vere_associations::{Expected, Peer};
use vere_mta400::{AddressRange, Border, Identity, Profile, Terms};
use vere_net::tls::{ClientTls, Keyring, Roots, Verification};
use vere_osi::association::{Addresses, Mode};
use vere_osi::rtse::DialogueMode;
use vere_settings::{Settings, X400Border, X400Peer};
use vere_units::Secret;

use crate::error::Fault;
use crate::{content, secret};

/// The protocol that peers of 1984 expect in X.410 mode: mts-transfer-protocol-1984 (X.419).
const PROTOCOL_1984: i64 = 1;
/// Octets of a transport selector (X.224).
const SELECTOR_MAX: usize = 32;

/// The way to a peer.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Hosts and ports, in the order of attempts.
    pub hosts: Vec<(String, u16)>,
    /// Associations at once.
    pub associations_max: usize,
    /// Associations that stay open.
    pub permanent: usize,
    /// The name in the certificate, if the settings name one.
    certificate: Option<String>,
    tls: Option<ClientTls>,
    /// The terms of an association, without addresses.
    peer: Peer,
}

impl Reach {
    /// The terms of an association with the peer at one of the hosts, whose addresses the caller has looked up.
    #[must_use]
    pub fn peer(&self, host: &str, addresses: Vec<SocketAddr>) -> Peer {
        let mut peer = self.peer.clone();
        peer.addresses = addresses;
        let name = self.certificate.clone().unwrap_or_else(|| host.to_owned());
        peer.tls = self.tls.clone().map(|tls| (tls, name));
        peer
    }

    /// Shows a certificate of the keyring to the peer, if the peer asks for one.
    pub fn show(&mut self, keyring: &Keyring) {
        self.tls = self.tls.take().map(|tls| tls.showing(keyring));
    }

    pub(crate) fn of(settings: &Settings, peer: &X400Peer, terms: &Terms) -> Result<Self, Fault> {
        let tls = peer.tls.then(|| client_tls(settings)).transpose()?;
        let mut way = Peer::new(Vec::new(), terms.argument());
        way.mode = match terms.profile {
            Profile::Y1988 => Mode::Normal,
            Profile::Y1984 => Mode::X410(PROTOCOL_1984),
        };
        if !peer.two_way {
            way.dialogue_mode = DialogueMode::Monologue;
        }
        way.called = selectors(peer.selector.as_deref())?;
        way.calling = selectors(peer.own_selector.as_deref())?;
        way.expected = terms.theirs.as_ref().map(expected);
        way.bounds.connect = settings.delivery.connect_timeout.duration();
        Ok(Self {
            hosts: peer.addresses.clone(),
            associations_max: size(peer.associations_max),
            permanent: size(peer.permanent.min(peer.associations_max)),
            certificate: peer.certificate.clone(),
            tls,
            peer: way,
        })
    }
}

fn expected(theirs: &Identity) -> Expected {
    let password = Bytes::copy_from_slice(theirs.password.expose());
    Expected {
        name: theirs.mta_name.clone(),
        // A peer without a password of its own proves nothing by its answer.
        password: (!password.is_empty()).then(|| Secret::new(password)),
    }
}

fn client_tls(settings: &Settings) -> Result<ClientTls, Fault> {
    let roots = Roots::load(settings.delivery.ca.as_deref())?;
    Ok(ClientTls::new(Verification::Required, &roots)?)
}

/// The terms of a peer for the engine.
pub(crate) fn terms(peer: &X400Peer) -> Result<Terms, Fault> {
    let theirs = secret::password(&peer.password)?;
    let ours = secret::password(&peer.own_password)?;
    let identity = |mta_name: &String, password: Option<Secret<Vec<u8>>>| Identity {
        mta_name: mta_name.clone(),
        password: password.unwrap_or_else(|| Secret::new(Vec::new())),
    };
    let named = peer.mta_name.as_ref();
    Ok(Terms {
        profile: if peer.is_1984 {
            Profile::Y1984
        } else {
            Profile::Y1988
        },
        theirs: named.map(|name| identity(name, theirs)),
        ours: named.map(|_| identity(&peer.own_name, ours)),
        addresses: peer.from.clone(),
        certificate: peer.caller_certificate.clone(),
        associations_max: size(peer.associations_max),
        inbound: border(&peer.accepts)?,
        outbound: border(&peer.sends)?,
        ..Terms::new(&peer.name, content::domain(&peer.domain)?)
    })
}

fn border(section: &X400Border) -> Result<Border, Fault> {
    let range = |yes: &[String], no: &[String]| {
        let yes: Vec<&str> = yes.iter().map(String::as_str).collect();
        let no: Vec<&str> = no.iter().map(String::as_str).collect();
        AddressRange::new(&yes, &no)
    };
    Ok(Border {
        originators: range(&section.originators, &section.not_originators)?,
        recipients: range(&section.recipients, &section.not_recipients)?,
        content_types: content::types(&section.content_types)?,
        priorities: None,
        content_octets_max: section.size_max.map(|size| size.as_u64()),
    })
}

/// A transport selector: ASCII, or `0x` and hexadecimal digits.
fn selectors(text: Option<&str>) -> Result<Addresses, Fault> {
    let Some(text) = text else {
        return Ok(Addresses::default());
    };
    let octets = match text.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits),
        None => Some(text.as_bytes().to_vec()),
    };
    let fit = octets.filter(|octets| (1..=SELECTOR_MAX).contains(&octets.len()));
    let octets = fit.ok_or_else(|| Fault::Selector(text.to_owned()))?;
    Ok(Addresses {
        transport: Some(octets.into()),
        ..Addresses::default()
    })
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let octet = |pair: &[u8]| match pair {
        [high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()
        }
        _ => None,
    };
    pairs.map(octet).collect()
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
