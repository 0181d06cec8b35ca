//! How a process reaches a group of queues, and owns its own one.

use std::rc::Rc;

use vere_settings::{Durability, Settings, SpoolNode};
use vere_units::ByteSize;

use super::error::OwnError;
use vere_link as nodes;
use vere_link::link::{LinkOptions, NodeAddresses, SlowTerms, random_life};
use vere_link::mark::OwnerMark;
use vere_link::namesake::{self, By, Namesake};
use vere_process::encryption::{self, Encryption};

/// Makes this process the owner of the group of that name, unless a second process of the name lives. The mark is
/// kept as long as the process owns the group.
///
/// # Errors
/// When the group cannot be reached, or a second process has it.
pub async fn own(settings: &Settings, group: &str) -> Result<(LinkOptions, OwnerMark), OwnError> {
    let life = random_life();
    let mark = nodes::mark(settings, group, life)?;
    if mark.is_elsewhere() {
        tracing::warn!(group, "another process of this machine owns the queues");
    }
    let mut options = link_options(settings, group)?;
    let seen = namesake::look(
        &options.register,
        group,
        options.lease,
        &mark.dead,
        By::Itself,
    )
    .await;
    if seen == Namesake::Alive {
        return Err(OwnError::Namesake {
            group: group.to_owned(),
        });
    }
    (options.life, options.dead) = (life, mark.dead.clone());
    Ok((options, mark))
}

/// How the group of that name is reached.
///
/// # Errors
/// When the register, certificates or keys of the settings cannot be used.
pub(crate) fn link_options(
    settings: &Settings,
    group: &str,
) -> Result<LinkOptions, nodes::SetupError> {
    let spool = &settings.spool;
    let tls = encryption::certificates(settings)?;
    let addresses = |(node, machine): (&SpoolNode, usize)| NodeAddresses {
        name: node.name.clone(),
        machine,
        addresses: node.addresses().collect(),
        encryption: Encryption::of(tls.as_ref(), node),
    };
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let nodes = spool.nodes.iter().zip(spool.log_places());
    Ok(LinkOptions {
        durable: spool.durability == Durability::Synced,
        replicas: count(spool.replicas),
        replicas_min: count(spool.replicas_min),
        slow: SlowTerms {
            after: spool.slow_after.duration(),
            lag: spool.slow_lag.duration(),
            rest: spool.slow_rest.duration(),
        },
        lease: nodes::lease_terms(settings),
        grants: nodes::grants(settings),
        readers: nodes::queue_readers(settings),
        group_max: spool.group_max.map_or(u64::MAX, ByteSize::as_u64),
        ..LinkOptions::new(
            nodes.map(addresses).collect(),
            Rc::new(nodes::register(settings)?),
            group,
            nodes::account(settings)?,
        )
    })
}
