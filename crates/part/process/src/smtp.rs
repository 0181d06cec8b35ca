//! What the settings say to a machine that receives mail by SMTP.

use vere_settings::{PriorityPolicy, Settings};
use vere_smtp::limits::Limits;
use vere_smtp::server::{Role, ServerConfig};

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
