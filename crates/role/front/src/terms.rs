//! The terms of the screen, from the settings.

use std::time::Duration;

use vere_handoff::question::LOOKUP_SECONDS_MAX;
use vere_screen::{Banner, Deadlines, Greylisting, Limits, Rate, Terms};
use vere_settings::{Front, Settings};

/// A network may have so many times what an address may.
const NETWORK_FACTOR: u32 = 4;
/// How long a recipient waits for the answers of the broker: a check of SPF has 20 s (RFC 7208 section 4.6.4), and its answer has to
/// arrive.
const ANSWERS: Duration = Duration::from_secs(LOOKUP_SECONDS_MAX + 2);
/// Entries of the tables for each connection that may be open.
const REMEMBERED_FACTOR: u32 = 4;

/// Factor by which the tables of all loops together may be larger than the tables of a single loop: some networks are busier.
const UNEVENNESS: u32 = 2;

/// Returns the terms of each of so many loops. Clients that may relay are known, and bound by nothing but the limits of a session.
pub(crate) fn terms(settings: &Settings, front: &Front, loops: usize) -> Terms {
    let limits = &settings.limits;
    let per_address = limits.connections_per_client_max;
    let arrivals = unlimited_if_zero(front.connections_per_minute);
    let refused = unlimited_if_zero(front.refused_recipients_per_hour);
    let remembered = limits.connections_max.saturating_mul(REMEMBERED_FACTOR);
    let remembered = of_loop(remembered, loops);
    let usual = Greylisting::default();
    let greylisting = front.greylist_delay.map(|delay| Greylisting {
        delay: delay.duration(),
        entries: of_loop(usual.entries, loops),
        ..usual
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
            answers: ANSWERS,
            ..Deadlines::default()
        },
        access: vere_screening::rules(settings, front),
        lists: vere_screening::lists(front),
        spf: vere_screening::spf(front),
        greylisting,
    }
}

/// The entries of a loop's table, where the table of a single loop has `entries`.
fn of_loop(entries: u32, loops: usize) -> u32 {
    let loops = u32::try_from(loops).unwrap_or(u32::MAX).max(1);
    (entries / loops).saturating_mul(UNEVENNESS).min(entries)
}

const fn unlimited_if_zero(count: u32) -> u32 {
    match count {
        0 => u32::MAX,
        count => count,
    }
}

#[cfg(test)]
mod tests {
    use vere_screen::{Access, Network, Rule, Subject};

    use super::*;

    fn of(rest: &str) -> Terms {
        let text = format!("version = 1\nhostname = \"mx.example.org\"\n{rest}");
        let settings = Settings::parse(&text, "vere.toml").unwrap();
        terms(&settings, settings.front.as_ref().unwrap(), 1)
    }

    #[test]
    fn settings_become_terms() {
        let terms = of(
            "[front]\nbanner_delay = \"3s\"\nconnections_per_minute = 7\nrefused_recipients_max = 5\n\
             refused_recipients_per_hour = 9\n[relay]\nnetworks = [\"192.0.2.0/24\", \"2001:db8::/32\"]\n\
             [limits]\nconnections_max = 1000\nconnections_per_client_max = 11\n",
        );
        assert_eq!(terms.banner.delay, Duration::from_secs(3));
        let limits = &terms.limits;
        assert_eq!(limits.connections_max, 1_000);
        assert_eq!(
            (
                limits.connections_per_address_max,
                limits.connections_per_network_max
            ),
            (11, 44)
        );
        assert_eq!(limits.arrivals_per_address, Rate::per_minute(7));
        assert_eq!(limits.arrivals_per_network, Rate::per_minute(28));
        assert_eq!(limits.refused_per_address, Rate::per_hour(9));
        assert_eq!(limits.refused_per_network, Rate::per_hour(36));
        assert_eq!(
            (limits.refusals_max, limits.addresses, limits.networks),
            (5, 4_000, 4_000)
        );
        let network = |address: &str, bits| Network::new(address.parse().unwrap(), bits).unwrap();
        let known = [network("192.0.2.0", 24), network("2001:db8::", 32)];
        let rules = known.map(|network| Rule {
            subject: Subject::Network(network),
            access: Access::Allow,
        });
        assert_eq!(terms.access, rules);
    }

    /// Clients of a network come to a single loop, whose limits are the limits of the front.
    #[test]
    fn loops_share_entries_but_no_limit() {
        let text = "version = 1\nhostname = \"mx.example.org\"\n[front]\ngreylist = \"on\"\n";
        let settings = Settings::parse(text, "vere.toml").unwrap();
        let of = |loops| terms(&settings, settings.front.as_ref().unwrap(), loops);
        let entries = |terms: &Terms| {
            let greylisting = terms.greylisting.as_ref().unwrap();
            let limits = &terms.limits;
            (limits.addresses, limits.networks, greylisting.entries)
        };
        let single = of(1);
        let (addresses, networks, greylist) = entries(&single);
        assert_eq!(entries(&of(2)), (addresses, networks, greylist));
        assert_eq!(entries(&of(8)), (addresses / 4, networks / 4, greylist / 4));
        let mut eight = of(8);
        eight.limits.addresses = addresses;
        eight.limits.networks = networks;
        eight.greylisting.clone_from(&single.greylisting);
        assert_eq!(eight, single);
    }

    #[test]
    fn allowed_networks_stand_before_refused_ones() {
        let terms = of(
            "[front]\nallowed_networks = [\"192.0.2.7\"]\nrefused_networks = [\"192.0.2.0/24\"]\n\
             greylist = \"on\"\ngreylist_delay = \"90s\"\n[relay]\nnetworks = [\"192.0.2.8\"]\n",
        );
        let rules: Vec<_> = terms.access.iter().map(|rule| rule.access).collect();
        assert_eq!(rules, [Access::Allow, Access::Refuse, Access::Allow]);
        let delay = terms.greylisting.map(|greylisting| greylisting.delay);
        assert_eq!(delay, Some(Duration::from_secs(90)));
        assert_eq!(of("[front]\ngreylist_delay = \"90s\"\n").greylisting, None);
    }

    #[test]
    fn zero_is_no_limit() {
        let terms = of("[front]\nconnections_per_minute = 0\nrefused_recipients_per_hour = 0\n");
        assert_eq!(
            terms.limits.arrivals_per_address,
            Rate::per_minute(u32::MAX)
        );
        assert_eq!(terms.limits.refused_per_network, Rate::per_hour(u32::MAX));
    }
}
