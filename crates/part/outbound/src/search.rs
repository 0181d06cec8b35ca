//! The search for the first of several hosts that takes messages.

use std::time::Duration;

use tokio::time::Instant;
use vere_delivery::Unroutable;

use super::hosts::{Host, Hosts};
use super::open::{OpenError, Opened};
use super::patience::Patience;
use super::{Outbound, statuses};

/// No further host is tried so long after the first: a list of hosts that all answer slowly must not hold
/// a worker for hours.
const SEARCH_MAX: Duration = Duration::from_secs(10 * 60);

impl Outbound {
    /// A connection to the first host that takes one.
    ///
    /// # Errors
    /// The last complaint, when none does: for good when every host forbids or lacks REQUIRETLS that the
    /// messages need (RFC 8689 section 4.2.1).
    pub async fn open_any(&self, hosts: &Hosts) -> Result<Opened, Unroutable> {
        self.open_first(hosts, Patience(None)).await
    }

    /// As [`open_any`](Self::open_any) for somebody who waits until `by`: each address has a part of the time, so that a silent
    /// one does not keep the others from their turn. The caller ends the search at `by`.
    ///
    /// # Errors
    /// As [`open_any`](Self::open_any).
    pub async fn open_any_by(&self, hosts: &Hosts, by: Instant) -> Result<Opened, Unroutable> {
        self.open_first(hosts, Patience(Some(by))).await
    }

    async fn open_first(&self, hosts: &Hosts, patience: Patience) -> Result<Opened, Unroutable> {
        let begun = Instant::now();
        let mut complaint = "no host to connect to".to_owned();
        let mut lacking = 0;
        let mut general = !hosts.hosts.is_empty();
        let last = last_known(&hosts.hosts);
        for (place, host) in hosts.hosts.iter().enumerate() {
            let is_last = last == Some(place);
            match self.open_host(hosts, host, (patience, is_last)).await {
                Ok(opened) => return Ok(opened),
                Err(error) => {
                    let by_wish = matches!(error, OpenError::NoRequireTls | OpenError::Unproven(_));
                    lacking += usize::from(by_wish);
                    general &= error.is_general();
                    let reply = error.into_reply();
                    tracing::debug!(remote = %host.name, site = hosts.site.as_str(), %reply, "host does not take mail");
                    complaint = format!("{}: {reply}", host.name);
                }
            }
            if begun.elapsed() > SEARCH_MAX {
                break;
            }
        }
        if lacking > 0 && lacking == hosts.hosts.len() {
            return Err(Unroutable::Permanent {
                status: statuses::NO_REQUIRE_TLS,
                reply: complaint,
            });
        }
        Err(match general {
            true => Unroutable::Site(complaint),
            false => Unroutable::Temporary(complaint),
        })
    }
}

/// Returns the place of the last host that has addresses: hosts behind it take no time.
fn last_known(hosts: &[Host]) -> Option<usize> {
    hosts
        .iter()
        .rposition(|host| host.sockets().next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_addresses_is_not_the_last_one() {
        let host = |address: Option<&str>| Host {
            name: "mx.example.org".to_owned(),
            port: 25,
            preference: None,
            addresses: match address {
                Some(address) => Ok(vec![address.parse().unwrap()]),
                None => Err("no address".to_owned()),
            },
            tlsa_bases: Vec::new(),
        };
        let (known, unknown) = (host(Some("192.0.2.1")), host(None));
        let hosts = [known.clone(), known, unknown.clone()];
        assert_eq!(last_known(&hosts), Some(1));
        assert_eq!(last_known(&[unknown]), None);
    }
}
