//! What the settings say to a machine that receives mail by SMTP.

use std::net::SocketAddr;

use vere_settings::{Front, PriorityPolicy, Settings};
use vere_smtp::limits::Limits;
use vere_smtp::server::{Peer, Role, ServerConfig};

/// Returns the configuration of a listener that offers no authentication.
#[must_use]
pub fn config(settings: &Settings, role: Role) -> ServerConfig {
    let mut config = ServerConfig::new(settings.hostname.clone(), role);
    config.limits = limits(settings);
    config.extensions.mt_priority = Some(match settings.priority.policy {
        PriorityPolicy::None => "",
        PriorityPolicy::Mixer => "MIXER",
        PriorityPolicy::Stanag4406 => "STANAG4406",
        PriorityPolicy::Nsep => "NSEP",
    });
    config
}

/// Returns the configuration of the two machines of a session at port 25, in the front and in a worker.
///
/// The front's screen refuses and ends by the same number, so that the number holds for the whole session.
#[must_use]
pub fn at_port_25(settings: &Settings, front: &Front) -> ServerConfig {
    let mut config = config(settings, Role::Mx);
    // The machine ends the session at the refusal above its limit, the setting names the last one.
    let refused = usize::try_from(front.refused_recipients_max).unwrap_or(usize::MAX);
    config.limits.refusals_max = refused.saturating_sub(1);
    config
}

/// Returns a client at port 25, with the rights of its address.
#[must_use]
pub fn peer(settings: &Settings, address: SocketAddr, local: SocketAddr) -> Peer {
    let mut peer = Peer::new(address, local);
    peer.may_relay = settings.relay.contains(address.ip());
    peer.may_prioritise = settings.priority.networks.contains(address.ip());
    peer
}

fn limits(settings: &Settings) -> Limits {
    let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let octets = |size: vere_units::ByteSize| usize::try_from(size.as_u64()).unwrap_or(usize::MAX);
    let from = &settings.limits;
    Limits {
        message_size_max: from.message_size_max,
        recipients_max: count(from.recipients_max),
        transactions_max: count(from.messages_per_connection_max),
        errors_max: count(from.errors_max),
        auth_failures_max: count(from.auth_failures_max),
        command_octets_max: octets(from.command_line_length_max),
        text_line_octets_max: octets(from.text_line_length_max),
        command_timeout: from.command_timeout.duration(),
        data_timeout: from.data_timeout.duration(),
        data_time_max: from.data_time_max.duration(),
        ..Limits::default()
    }
}
