//! The terms of the screen, from the settings.

use std::time::Duration;

use vere_screen::{Access, Banner, Deadlines, Limits, Network, Rate, Rule, Subject, Terms};
use vere_settings::{Front, Settings};

/// A network may have so many times what an address may.
const NETWORK_FACTOR: u32 = 4;
/// Entries of the tables for each connection that may be open.
const REMEMBERED_FACTOR: u32 = 4;

/// Returns the terms. Clients that may relay are known, and bound by nothing but the limits of a session.
pub(crate) fn terms(settings: &Settings, front: Front) -> Terms {
    let limits = &settings.limits;
    let per_address = limits.connections_per_client_max;
    let arrivals = unlimited_if_zero(front.connections_per_minute);
    let refused = unlimited_if_zero(front.refused_recipients_per_hour);
    let remembered = limits.connections_max.saturating_mul(REMEMBERED_FACTOR);
    let known = settings.relay.iter().filter_map(|network| {
        Some(Rule {
            subject: Subject::Network(Network::new(network.address(), network.prefix())?),
            access: Access::Allow,
        })
    });
    Terms {
        banner: Banner {
            delay: front.banner_delay.duration(),
            ..Banner::default()
        },
        limits: Limits {
            connections_max: limits.connections_max,
            connections_per_address_max: per_address,
            connections_per_network_max: per_address.saturating_mul(NETWORK_FACTOR),
            arrivals_per_address: Rate::per_minute(arrivals),
            arrivals_per_network: Rate::per_minute(arrivals.saturating_mul(NETWORK_FACTOR)),
            refusals_max: u16::try_from(front.refused_recipients_max).unwrap_or(u16::MAX),
            refused_per_address: Rate::per_hour(refused),
            refused_per_network: Rate::per_hour(refused.saturating_mul(NETWORK_FACTOR)),
            errors_max: u16::try_from(limits.errors_max).unwrap_or(u16::MAX),
            addresses: remembered,
            networks: remembered,
        },
        deadlines: Deadlines {
            idle: limits
                .command_timeout
                .duration()
                .max(Duration::from_secs(1)),
            ..Deadlines::default()
        },
        access: known.collect(),
        ..Terms::default()
    }
}

const fn unlimited_if_zero(count: u32) -> u32 {
    match count {
        0 => u32::MAX,
        count => count,
    }
}
