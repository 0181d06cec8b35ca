//! The connection of a queue owner to its spool nodes, and what it takes to speak to them.
//!
//! The engine is in `vere-spool`; the [`link`] moves its octets, reads the clock and wakes whoever waits.

mod credentials;
mod error;
pub mod link;
pub mod mark;
pub mod namesake;
pub mod no_answer;
pub mod reader;

use std::collections::BTreeMap;
use std::sync::Arc;

use vere_cluster::Register;
use vere_owner::Membership;
use vere_owner::lease::LeaseTerms;
use vere_process::encryption;
use vere_settings::{Settings, SpoolNode};
use vere_spoolwire::{Grants, KeptGrants, Right};

pub use credentials::{Credentials, account};
pub use error::SetupError;
use mark::OwnerMark;
use reader::Admission;

/// The register that says which nodes hold a group.
///
/// # Errors
/// When it cannot be used.
pub fn register(settings: &Settings) -> Result<Register, SetupError> {
    Register::open(&settings.cluster).map_err(SetupError::Register)
}

/// How long a delivery lease lasts.
pub fn lease_terms(settings: &Settings) -> LeaseTerms {
    LeaseTerms {
        lease: settings.cluster.lease.duration(),
        skew: settings.cluster.skew.duration(),
    }
}

/// Marks on this machine that the owner of this life lives.
///
/// # Errors
/// When the file cannot be used, or the group's name, which may come from the register, can be none.
pub fn mark(settings: &Settings, group: &str, life: u64) -> Result<OwnerMark, SetupError> {
    vere_settings::checked_name(group).map_err(|problem| SetupError::GroupName {
        group: group.to_owned(),
        problem,
    })?;
    let local = matches!(settings.cluster.register, vere_settings::Register::File(_));
    let folder = settings.data.join("owner");
    OwnerMark::take(&folder, group, life, local)
        .map_err(|source| SetupError::Mark { folder, source })
}

/// Whether this machine's account may own a group, as the first of its members says that says something.
/// Who claims a group in the register and is turned away by its nodes has fenced its owner for nothing.
///
/// # Errors
/// When key or certificates cannot be used, or none of the members is a node of the settings.
pub async fn admission(
    settings: &Arc<Settings>,
    group: &str,
    record: &Membership,
) -> Result<Admission, SetupError> {
    if record.members.is_empty() {
        // Nobody holds anything of it yet.
        return Ok(Admission::Granted);
    }
    let key = account(settings)?;
    let tls = encryption::certificates(settings)?;
    let is_member = |node: &&SpoolNode| record.member(&node.name).is_some();
    let nodes = settings.spool.nodes.iter();
    let members: Vec<SpoolNode> = nodes.filter(is_member).cloned().collect();
    if members.is_empty() {
        let nodes = record.members.iter().map(|one| one.node.clone());
        return Err(SetupError::NoMember {
            group: group.to_owned(),
            nodes: nodes.collect(),
        });
    }
    let group = group.to_owned();
    let ask = move || {
        let mut unknown = Vec::new();
        for node in &members {
            match Admission::ask(node, tls.as_ref(), &key, &group) {
                Admission::Unknown(error) => unknown.push(format!("{}: {error}", node.name)),
                known => return known,
            }
        }
        Admission::Unknown(unknown.join("; "))
    };
    let asked = tokio::task::spawn_blocking(ask).await;
    Ok(asked.unwrap_or_else(|error| Admission::Unknown(error.to_string())))
}

/// What this machine's gateway lets other accounts do with its queues.
pub fn grants(settings: &Settings) -> Vec<u8> {
    let spool = &settings.spool;
    let adopters = spool.adopters.iter().map(|name| (name, Right::Adopt));
    let readers = spool.readers.iter().map(|name| (name, Right::Read));
    let all = adopters.chain(readers);
    // The settings were checked for what cannot be written down.
    Grants::encode(all.map(|(name, right)| (name.as_str(), right))).unwrap_or_default()
}

/// Which accounts may read single queues of it.
pub fn queue_readers(settings: &Settings) -> BTreeMap<String, KeptGrants> {
    let queues = settings.spool.queues.iter();
    let readers = queues.map(|queue| {
        let named = queue
            .readers
            .iter()
            .map(|name| (name.as_str(), Right::Read));
        // The settings were checked for what cannot be written down.
        let octets = Grants::encode(named).unwrap_or_default();
        let grants = Grants::read(&octets).unwrap_or_default();
        (queue.name.clone(), grants.into())
    });
    readers.collect()
}
