//! Contradictions between settings of the X.400 MTA. `vere-switch` checks addresses, routes and passwords.

use std::collections::BTreeSet;

use super::found::Found;
use crate::model::Settings;
use crate::name::name as checked_name;
use crate::outgoing::LocalDelivery;
use crate::x400::{X400, X400Password};

/// Characters of the name of an MTA (`ub-mta-name-length` of X.411).
const MTA_NAME_MAX: usize = 32;

pub(super) fn check(settings: &Settings, found: &mut Found<'_>) {
    let Some(x400) = &settings.x400 else {
        return;
    };
    if x400.listen.is_empty() && x400.listen_tls.is_empty() {
        found.add("x400.listen", "expected an address; found none");
    }
    if x400.mta_name.len() > MTA_NAME_MAX {
        let text = format!("expected at most {MTA_NAME_MAX} characters");
        found.add("x400.mta_name", text);
    }
    if !x400.listen_tls.is_empty() && settings.tls.default.is_none() && settings.acme.is_none() {
        found.add(
            "x400.listen_tls",
            "needs a certificate: [tls] with files, or [acme]",
        );
    }
    found.socket("x400.socket", &x400.socket);
    if x400.size_max > settings.limits.message_size_max {
        found.add(
            "x400.size_max",
            "is above limits.message_size_max, which the spool nodes take",
        );
    }
    peers(x400, found);
    names(x400, found);
    for (number, route) in (1..).zip(&x400.routes) {
        if let Some(Err(error)) = route.to.strip_prefix("file:").map(checked_name) {
            found.add(&format!("x400.route[{number}].to"), error);
        }
        if route.to.starts_with("store:") && settings.delivery.local != LocalDelivery::Store {
            let key = format!("x400.route[{number}].to");
            found.add(&key, "needs delivery.local = \"store\"");
        }
    }
}

fn peers(x400: &X400, found: &mut Found<'_>) {
    for (number, peer) in (1..).zip(&x400.peers) {
        let key = |name: &str| format!("x400.peer[{number}].{name}");
        found.alone(&key("password"), &key("password_file"));
        found.alone(&key("own_password"), &key("own_password_file"));
        if peer.mta_name.is_none() && peer.password != X400Password::None {
            found.add(&key("nameless"), "stands beside password");
        }
        let asks = x400.client_ca.is_some() && !x400.listen_tls.is_empty();
        if peer.caller_certificate.is_some() && !asks {
            found.add(
                &key("caller_certificate"),
                "needs x400.listen_tls and x400.client_ca",
            );
        }
        if peer.tls && peer.addresses.is_empty() {
            found.add(&key("tls"), "needs addresses in the same section");
        }
    }
}

fn names(x400: &X400, found: &mut Found<'_>) {
    let peers = x400.peers.iter().map(|peer| &peer.name);
    let users = x400.users.iter().map(|user| &user.name);
    let gateways = x400.gateways.iter().map(|gateway| &gateway.name);
    twice("x400.peer", peers, found);
    twice("x400.user", users, found);
    twice("x400.gateway", gateways, found);
}

fn twice<'a>(section: &str, names: impl Iterator<Item = &'a String>, found: &mut Found<'_>) {
    let mut known = BTreeSet::new();
    for (number, name) in (1..).zip(names) {
        if !known.insert(name) {
            let text = format!("expected another name; found {name} twice");
            found.add(&format!("{section}[{number}].name"), text);
        }
    }
}
