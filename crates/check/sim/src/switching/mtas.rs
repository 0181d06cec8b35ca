//! The MTAs of a row: a private domain each, with neighbours and users.

use vere_mta400::{Identity, Mta, Names, Peers, RouteSetting, Routes, Site, Terms};
use vere_units::Secret;
use vere_x400::{GlobalDomainIdentifier, OrAddress};

/// The names of the MTAs.
pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];
/// Users of each domain.
const USERS: [&str; 2] = ["x", "y"];

/// The private domain of an MTA.
pub(super) fn domain(mta: usize) -> GlobalDomainIdentifier {
    let private = NAMES[mta].to_uppercase();
    GlobalDomainIdentifier::new("GB", "Carrier", Some(&private)).unwrap_or_default()
}

/// A user of the domain of an MTA.
pub(super) fn user(name: &str, mta: usize) -> OrAddress {
    let text = format!("S={name};{}", domain_text(mta));
    text.parse().unwrap_or_default()
}

fn domain_text(mta: usize) -> String {
    format!("P={};A=Carrier;C=GB", NAMES[mta].to_uppercase())
}

/// The number of a peer in the row.
pub(super) fn place(name: &str) -> Option<usize> {
    NAMES.iter().position(|one| *one == name)
}

fn identity(mta: usize) -> Identity {
    Identity {
        mta_name: format!("mta-{}", NAMES[mta]),
        password: Secret::new(format!("secret of {mta}").into_bytes()),
    }
}

fn terms(mta: usize, neighbour: usize) -> Terms {
    Terms {
        ours: Some(identity(mta)),
        theirs: Some(identity(neighbour)),
        ..Terms::new(NAMES[neighbour], domain(neighbour))
    }
}

fn row_to(address: String, to: String) -> RouteSetting {
    RouteSetting {
        address,
        to,
        whole: false,
    }
}

/// The routes of an MTA: own users, and all other domains by the neighbour in their direction.
fn routes(mta: usize, count: usize) -> Vec<RouteSetting> {
    let mut rows = vec![row_to(domain_text(mta), "unknown".to_owned())];
    for name in USERS {
        rows.push(row_to(user(name, mta).to_string(), format!("file:{name}")));
    }
    for other in (0..count).filter(|other| *other != mta) {
        let next = if other > mta { mta + 1 } else { mta - 1 };
        rows.push(row_to(domain_text(other), format!("peer:{}", NAMES[next])));
    }
    rows
}

/// The MTAs of a row.
///
/// # Errors
/// Never, unless the names above are wrong.
pub(super) fn row(count: usize) -> Result<Vec<Mta>, Box<dyn std::error::Error>> {
    let one = |mta: usize| {
        let is_neighbour = |other: &usize| other.abs_diff(mta) == 1;
        let peers: Vec<_> = (0..count).filter(is_neighbour).collect();
        let names = Names {
            peers: peers.iter().map(|peer| NAMES[*peer].to_owned()).collect(),
            users: USERS.map(str::to_owned).into(),
            ..Names::default()
        };
        let peers = peers.iter().map(|peer| terms(mta, *peer)).collect();
        Ok(Mta {
            site: Site::new(domain(mta), &identity(mta).mta_name)?,
            peers: Peers::new(peers)?,
            routes: Routes::new(&routes(mta, count), &names)?,
        })
    };
    (0..count).map(one).collect()
}
