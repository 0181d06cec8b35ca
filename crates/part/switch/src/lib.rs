//! The MTA of X.400 as the settings have it: texts of the settings become the values of `vere-mta400`, and each peer gets
//! the terms under which its associations are opened. The role and the commands read the settings through this crate.
//!
//! [`parts`] turns decisions about a unit into records of the queues, and [`report()`] the end of a record into a report. The role and the
//! simulator of `crates/check/sim` share both.
//!
//! Reading order: [`Switch`], [`Reach`], `site`, `peer`.

mod content;
mod error;
mod peer;
mod records;
mod report;
mod secret;
mod site;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use vere_mta400::{Destination, Mta, Names, Peers, RouteSetting, Routes};
use vere_net::tls::Roots;
use vere_settings::{Settings, X400};

pub use error::{Fault, SwitchError};
pub use peer::Reach;
pub use records::parts;
pub use report::report;

/// The MTA, and the ways to its peers.
#[derive(Debug)]
pub struct Switch {
    /// Names, peers, routes.
    pub mta: Mta,
    /// The ways to peers, by the names of the peers.
    pub reach: BTreeMap<String, Reach>,
    /// The roots that issue certificates of callers; `None` asks callers for no certificate.
    pub callers: Option<Roots>,
}

impl Switch {
    /// Reads the settings, and the files with passwords and root certificates that they name. `None` without a section
    /// `[x400]`.
    ///
    /// # Errors
    /// [`SwitchError`] for the first text that is no address, no route or no name, and for a file that cannot be read.
    pub fn of(settings: &Settings) -> Result<Option<Self>, SwitchError> {
        let x400 = settings.x400.as_ref();
        x400.map(|x400| Self::new(settings, x400)).transpose()
    }

    fn new(settings: &Settings, x400: &X400) -> Result<Self, SwitchError> {
        let mut terms = Vec::with_capacity(x400.peers.len());
        let mut reach = BTreeMap::new();
        for peer in &x400.peers {
            let fault = |fault| SwitchError::Peer(peer.name.clone(), fault);
            let one = peer::terms(peer).map_err(fault)?;
            let way = Reach::of(settings, peer, &one).map_err(fault)?;
            reach.insert(peer.name.clone(), way);
            terms.push(one);
        }
        Ok(Self {
            mta: Mta {
                site: site::site(x400)?,
                peers: Peers::new(terms)?,
                routes: routes(x400)?,
            },
            reach,
            callers: callers(x400)?,
        })
    }
}

fn callers(x400: &X400) -> Result<Option<Roots>, SwitchError> {
    let roots = x400.client_ca.as_deref().map(Roots::only).transpose();
    roots.map_err(|error| SwitchError::Own("client_ca", error.into()))
}

fn routes(x400: &X400) -> Result<Routes, SwitchError> {
    let setting = |route: &vere_settings::X400Route| RouteSetting {
        address: route.address.clone(),
        to: route.to.clone(),
        whole: route.whole,
    };
    let rows: Vec<RouteSetting> = x400.routes.iter().map(setting).collect();
    // Users need no section of their own: the routes name them.
    let named = x400.routes.iter().filter_map(|route| route.to.parse().ok());
    let users = named.filter_map(|to: Destination| to.user().map(str::to_owned));
    let names = Names {
        peers: x400.peers.iter().map(|peer| peer.name.clone()).collect(),
        users: users.collect(),
        gateways: x400.gateways.iter().map(|one| one.name.clone()).collect(),
    };
    Ok(Routes::new(&rows, &names)?)
}
