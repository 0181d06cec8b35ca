//! Connections to next hops, as the gateway makes them.

use std::sync::Arc;

use vere_outbound::{Outbound, OutboundMetrics};
use vere_process::failure::Failure;
use vere_settings::Settings;

/// The connections of a command: without metrics, and without a file of MTA-STS policies.
///
/// # Errors
/// When roots, passwords or the settings of the resolver cannot be read.
pub(crate) fn outbound(settings: &Arc<Settings>) -> Result<Outbound, Failure> {
    let resolver = vere_outbound::resolver(settings)?;
    let outbound = Outbound::new(settings, resolver, OutboundMetrics::default(), None)?;
    Ok(outbound)
}
