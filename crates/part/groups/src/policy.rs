//! The delivery policy of the queue engine, made from the settings.

use vere_queue::limits::{Names, Scope};
use vere_queue::{Limits, Place, Policy, Precedence, Rate, Rules};
use vere_settings::{
    DestinationLimits, DestinationPriority, DestinationScope, NextHop, RoutePattern, Settings,
};

/// Makes the delivery policy.
#[must_use]
pub fn policy(settings: &Settings) -> Policy {
    let delivery = &settings.delivery;
    Policy {
        retry: delivery.retry.iter().map(|span| span.duration()).collect(),
        expire: delivery.expire.duration(),
        delay_notice: Some(delivery.delay_notice.duration()).filter(|after| !after.is_zero()),
        connections_per_destination_max: size(delivery.connections_per_destination_max.into()),
        connections_per_site_max: size(delivery.connections_per_site_max.into()),
        connections_max: size(delivery.connections_max.into()),
        head_memory_max: size(settings.limits.queue_memory_max.as_u64()),
        rules: rules(&settings.destinations),
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn rules(sections: &[DestinationLimits]) -> Rules {
    let mut rules = Rules::default();
    for section in sections {
        if let Some(scope) = section.scope.as_ref().and_then(scope) {
            rules.insert(scope, limits(section));
        }
    }
    rules
}

fn scope(scope: &DestinationScope) -> Option<Scope> {
    Some(match scope {
        DestinationScope::Domain(pattern) => Scope::Domains(names(pattern)),
        DestinationScope::Mx(pattern) => Scope::Hosts(names(pattern)),
        DestinationScope::NextHop(NextHop::Local) => Scope::Place(Place::Local),
        DestinationScope::NextHop(NextHop::Host { host, port }) => {
            Scope::Place(Place::relay(host, *port))
        }
        // The parser of the settings refuses this value.
        DestinationScope::NextHop(NextHop::Mx) => return None,
    })
}

fn names(pattern: &RoutePattern) -> Names {
    match pattern {
        RoutePattern::Any => Names::All,
        RoutePattern::Exact(name) => Names::One(name.clone()),
        RoutePattern::Subdomains(name) => Names::Below(name.clone()),
    }
}

fn limits(section: &DestinationLimits) -> Limits {
    Limits {
        connections_max: section.connections_max.map(|max| size(max.into())),
        messages_per_connection_max: section.messages_per_connection_max,
        rate: section.rate.map(|rate| Rate {
            messages: rate.messages,
            per: rate.per.duration(),
            burst: section.burst.unwrap_or_else(|| in_a_second(&rate)),
        }),
        connection_interval: section.connection_interval.map(|span| span.duration()),
        in_order: section.in_order,
        precedence: match section.priority {
            DestinationPriority::Low => Precedence::Low,
            DestinationPriority::Normal => Precedence::Normal,
            DestinationPriority::High => Precedence::High,
        },
    }
}

/// Returns the messages that a rate allows in a second; at least one.
fn in_a_second(rate: &vere_settings::Rate) -> u32 {
    let count = u64::from(rate.messages) * 1_000 / rate.per.as_millis().max(1);
    u32::try_from(count).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_of(text: &str) -> Rules {
        let text = format!("version = 1\nhostname = \"mx.example.org\"\n{text}");
        policy(&Settings::parse(&text, "vere.toml").expect("settings")).rules
    }

    #[test]
    fn sections_become_rules() {
        let rules = rules_of(
            "[[delivery.destination]]\ndomain = \".big.example\"\nrate = \"90/1m\"\n\
             connection_interval = \"2s\"\npriority = \"low\"\n\
             [[delivery.destination]]\nnext_hop = \"[2001:db8::1]\"\nconnections_max = 3\n\
             [[delivery.destination]]\nnext_hop = \"local\"\nmessages_per_connection_max = 7\n\
             rate = \"1000/1s\"\nburst = 5\n",
        );
        let of = |name: &str| {
            rules
                .for_destination(&name.parse().expect("a name"))
                .copied()
        };
        let big = of("a.big.example").expect("a rule");
        let rate = big.rate.expect("a rate");
        assert_eq!((rate.messages, rate.per.as_secs(), rate.burst), (90, 60, 1));
        assert_eq!(big.precedence, Precedence::Low);
        let relay = of("relay:[2001:db8::1]:25").expect("a rule");
        assert_eq!(relay.connections_max, Some(3));
        let local = of("local").expect("a rule");
        assert_eq!(local.rate.map(|rate| rate.burst), Some(5));
        assert_eq!(local.messages_per_connection_max, Some(7));
        assert_eq!(of("big.example"), None);
    }
}
