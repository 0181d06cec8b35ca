//! Where the reports to a domain go (RFC 9989 section 4.7, RFC 9990 section 4).

use vere_auth::{Dns, Unavailable, organization_of};
use vere_reports::{Destination, confirmation_name, confirmed, dmarc_destinations};

/// The destinations of a domain's record with their proof. Several records count as none.
///
/// # Errors
/// [`Unavailable`]: the DNS does not answer.
pub async fn of(names: &impl Dns, domain: &str) -> Result<Vec<Destination>, Unavailable> {
    let records = names.texts(&format!("_dmarc.{domain}")).await?;
    let all = records.iter().map(|record| dmarc_destinations(record));
    let mut all = all.filter(|destinations| !destinations.is_empty());
    let (Some(destinations), None) = (all.next(), all.next()) else {
        return Ok(Vec::new());
    };
    let mut proven = Vec::new();
    for destination in destinations {
        proven.extend(prove(names, domain, destination).await?);
    }
    Ok(proven)
}

/// The destination, or a destination in the place of the first, of the same organization or with a proof.
async fn prove(
    names: &impl Dns,
    domain: &str,
    destination: Destination,
) -> Result<Option<Destination>, Unavailable> {
    let host = destination.host();
    let is_own = host == domain
        || organization_of(names, &host).await? == organization_of(names, domain).await?;
    if is_own {
        return Ok(Some(destination));
    }
    let Some(name) = confirmation_name(domain, &host) else {
        return Ok(None);
    };
    let records = names.texts(&name).await?;
    let found = confirmed(&destination, &records);
    if found.is_none() {
        tracing::info!(
            domain,
            host,
            "destination of reports does not say that it wants them"
        );
    }
    Ok(found)
}
/// The web servers among destinations, each once.
#[must_use]
pub fn web_servers(all: &[Destination]) -> Vec<String> {
    let mut uris = Vec::new();
    for destination in all {
        if let Destination::Https { uri } = destination
            && !uris.contains(uri)
        {
            uris.push(uri.clone());
        }
    }
    uris
}
