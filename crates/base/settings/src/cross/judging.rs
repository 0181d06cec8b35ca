//! The judgement of messages.

use std::collections::BTreeMap;

use super::found::Found;
use crate::judging::{Judging, Thresholds};
use crate::model::Settings;
use crate::nearest::nearest;

/// Octets of the name of a filter in facts.
const WORD_OCTETS_MAX: usize = 64;

pub(super) fn check(settings: &Settings, found: &mut Found<'_>) {
    let Some(judging) = &settings.judging else {
        return;
    };
    thresholds("judging", &judging.thresholds, found);
    for (n, policy) in judging.policies.iter().enumerate() {
        thresholds(
            &format!("judging.policy[{}]", n + 1),
            &policy.thresholds,
            found,
        );
    }
    recipients(judging, found);
    attachments(judging, found);
    filters(settings, judging, found);
    both(
        "senders",
        &judging.allow_senders,
        &judging.block_senders,
        found,
    );
    both(
        "networks",
        &judging.allow_networks.networks,
        &judging.block_networks.networks,
        found,
    );
}

/// A severer verdict whose threshold is lower hides the milder one.
fn thresholds(at: &str, thresholds: &Thresholds, found: &mut Found<'_>) {
    let given = thresholds.all();
    let mut given = given
        .iter()
        .filter_map(|(verdict, threshold)| Some((verdict.name(), threshold.score()?)));
    let Some(mut milder) = given.next() else {
        return;
    };
    for (verdict, score) in given {
        let (name, at_least) = milder;
        if score < at_least {
            let text = format!("expected at least {name}_at, which is {at_least}; found {score}");
            found.add(&format!("{at}.{verdict}_at"), text);
        }
        milder = (verdict, score);
    }
}

fn recipients(judging: &Judging, found: &mut Found<'_>) {
    let mut known = BTreeMap::new();
    for (n, policy) in judging.policies.iter().enumerate() {
        let key = format!("judging.policy[{}]", n + 1);
        if policy.recipients.is_empty() {
            let text = "expected at least one recipient";
            found.add(&format!("{key}.recipients"), text);
        }
        for recipient in &policy.recipients {
            if let Some(other) = known.insert(recipient, key.clone()) {
                let text = format!("{recipient:?} stands in {other} as well");
                found.add(&format!("{key}.recipients"), text);
            }
        }
    }
}

fn attachments(judging: &Judging, found: &mut Found<'_>) {
    for (n, rule) in judging.attachments.iter().enumerate() {
        if rule.names.is_empty() && rule.types.is_empty() {
            let text = "expected names or types: without either the rule matches nothing";
            found.add(&format!("judging.attachment[{}]", n + 1), text);
        }
    }
}

fn filters(settings: &Settings, judging: &Judging, found: &mut Found<'_>) {
    for (n, filter) in judging.filters.iter().enumerate() {
        let key = format!("judging.filter[{}].name", n + 1);
        let mut earlier = judging.filters.iter().take(n);
        if earlier.any(|other| other.name == filter.name) {
            found.add(&key, format!("{:?} stands twice", filter.name));
        }
        let known = || settings.filters.iter().map(|known| known.name.as_str());
        if known().any(|known| known == filter.name) {
            continue;
        }
        let near = nearest(&filter.name, known());
        let near = near.map(|near| format!(", the nearest known one is {near:?}"));
        let text = format!(
            "there is no [[filter]] named {:?}{}",
            filter.name,
            near.unwrap_or_default()
        );
        found.add(&key, text);
    }
}

/// Names of filters become words in facts, header fields and replies.
pub(super) fn word(key: &str, name: &str, found: &mut Found<'_>) {
    let is_fit = |octet: u8| octet.is_ascii_alphanumeric() || b"_.-".contains(&octet);
    if name.len() > WORD_OCTETS_MAX || !name.bytes().all(is_fit) {
        let text = format!(
            "expected at most {WORD_OCTETS_MAX} letters, digits, dots, hyphens and underscores"
        );
        found.add(key, text);
    }
}

/// The weights of an entry on both lists cancel each other out, which nobody wants.
fn both<T: PartialEq + std::fmt::Debug>(
    of: &str,
    allowed: &[T],
    blocked: &[T],
    found: &mut Found<'_>,
) {
    if let Some(entry) = blocked.iter().find(|entry| allowed.contains(entry)) {
        let text = format!("{entry:?} stands in judging.allow_{of} as well");
        found.add(&format!("judging.block_{of}"), text);
    }
}
