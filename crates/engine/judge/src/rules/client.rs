//! Rules about the client: its address, its names, lists that have it.

use vere_settings::{Judging, Rule};

use crate::facts::{AuthResult, Facts, Greylist, HeloForm};
use crate::hit::{Found, shown};

/// How often the rules about lists in the DNS count at most.
const LISTINGS_COUNT_MAX: i64 = 10;

pub(super) fn lists(facts: &Facts, terms: &Judging, found: &mut Found<'_>) {
    if let Some(client) = facts.client {
        if terms.allow_networks.contains(client) {
            found.hit(Rule::AllowedNetwork, client.to_string());
        }
        if terms.block_networks.contains(client) {
            found.hit(Rule::BlockedNetwork, client.to_string());
        }
    }
    if let Some(login) = &facts.login {
        found.hit(Rule::Authenticated, shown(login));
    }
}

pub(super) fn names(facts: &Facts, found: &mut Found<'_>) {
    let client = facts.client.map(|client| client.to_string());
    let client = client.unwrap_or_default();
    match facts.iprev {
        Some(AuthResult::None) => found.hit(Rule::RdnsNone, client),
        Some(AuthResult::Fail) => found.hit(Rule::RdnsMismatch, client),
        _ => {}
    }
    let rule = match facts.helo {
        None | Some(HeloForm::Domain) => return,
        Some(HeloForm::Unqualified) => Rule::HeloNoDomain,
        Some(HeloForm::Literal) => Rule::HeloLiteral,
        Some(HeloForm::BareAddress) => Rule::HeloBareIp,
        Some(HeloForm::Ours) => Rule::HeloOurs,
        Some(HeloForm::Missing) => Rule::HeloNone,
    };
    found.hit(rule, facts.helo.map_or("", HeloForm::as_str));
}

pub(super) fn listings(facts: &Facts, found: &mut Found<'_>) {
    let weights = facts.listings.iter().map(|list| i64::from(list.weight));
    let sum: i64 = weights.sum();
    let lists = facts.listings.iter();
    let lists = lists.map(|list| format!("{} ({})", shown(&list.list), list.weight));
    let lists: Vec<_> = lists.collect();
    let rule = match sum {
        0 => return,
        1.. => Rule::Dnsbl,
        _ => Rule::Dnswl,
    };
    found.times(rule, sum.abs().min(LISTINGS_COUNT_MAX), lists.join(", "));
}

pub(super) fn greylist(facts: &Facts, found: &mut Found<'_>) {
    match facts.greylist {
        Some(Greylist::New) => found.hit(Rule::Greylisted, Greylist::New.as_str()),
        Some(Greylist::Passed) => found.hit(Rule::GreylistPassed, Greylist::Passed.as_str()),
        Some(Greylist::Known) => found.hit(Rule::GreylistKnown, Greylist::Known.as_str()),
        Some(Greylist::Exempt) | None => {}
    }
}
