//! Rules about the authentication of senders: own lists, SPF, DKIM, DMARC, ARC.

use vere_settings::{Judging, Rule, Verdict};

use crate::facts::{AuthResult, Dmarc, DmarcPolicy, Facts, Signature};
use crate::hit::{Found, shown};
use crate::pattern::has_sender;

/// Own lists. A blocked sender counts however the address came into the message: who forges a blocked address gains nothing. An allowed
/// sender must be proven, since anybody can write any address.
pub(super) fn sender(facts: &Facts, terms: &Judging, found: &mut Found<'_>) {
    let authors = facts.author.iter().flat_map(|author| &author.addresses);
    let mut claimed = authors.chain(&facts.reverse_path);
    if let Some(blocked) = claimed.find(|address| has_sender(&terms.block_senders, address)) {
        let text = if blocked.is_empty() { "<>" } else { blocked };
        found.hit(Rule::BlockedSender, shown(text));
    }
    let mut authors = facts.author.iter().flat_map(|author| &author.addresses);
    let is_allowed = |address: &&String| has_sender(&terms.allow_senders, address);
    let Some(allowed) = authors.find(is_allowed) else {
        return;
    };
    let rule = match is_proven(facts, terms) {
        true => Rule::AllowedSender,
        false => Rule::AllowedSenderUnproven,
    };
    found.hit(rule, shown(allowed));
}

/// The author by the recipients' releases from the quarantine. Without a proof the author counts for nothing: anybody can write any
/// address.
pub(super) fn learned(facts: &Facts, terms: &Judging, found: &mut Found<'_>) {
    if let Some(author) = proven_author(facts, terms).filter(|_| facts.learned) {
        found.hit(Rule::AllowedLearned, shown(author));
    }
}

fn is_proven(facts: &Facts, terms: &Judging) -> bool {
    proven_author(facts, terms).is_some()
}

/// The only author of a message, with a domain proven by DMARC, by aligned SPF or DKIM, or by a trusted sealer.
pub(crate) fn proven_author<'a>(facts: &'a Facts, terms: &Judging) -> Option<&'a str> {
    let (author, dmarc) = (facts.author.as_ref()?, facts.dmarc.as_ref()?);
    let [address] = &author.addresses[..] else {
        return None;
    };
    let domain = address.rsplit_once('@').map(|(_, domain)| domain);
    let is_alone = author.fields == 1 && author.total == 1;
    let is_same = domain.is_some_and(|domain| domain.eq_ignore_ascii_case(&dmarc.domain));
    let passes = dmarc.result == AuthResult::Pass || dmarc.spf_aligned || dmarc.dkim_aligned;
    let is_proven = is_alone && is_same && (passes || is_vouched(facts, terms));
    is_proven.then_some(address)
}

/// Whether a trusted sealer states that DMARC passed before (RFC 8617 section 7.2.1).
fn is_vouched(facts: &Facts, terms: &Judging) -> bool {
    facts.arc.as_ref().is_some_and(|arc| {
        let mut trusted = terms.trusted_arc_sealers.iter();
        let is_trusted = trusted.any(|sealer| sealer.eq_ignore_ascii_case(&arc.sealer));
        arc.result == AuthResult::Pass && arc.dmarc_passed && is_trusted
    })
}

pub(super) fn spf(facts: &Facts, found: &mut Found<'_>) {
    let path = facts.reverse_path.as_deref().unwrap_or_default();
    let rule = match facts.spf {
        None | Some(AuthResult::None) => None,
        Some(AuthResult::Pass) => Some(Rule::SpfPass),
        Some(AuthResult::Neutral) => Some(Rule::SpfNeutral),
        Some(AuthResult::SoftFail) => Some(Rule::SpfSoftfail),
        Some(AuthResult::Fail) => Some(Rule::SpfFail),
        Some(AuthResult::PermError) => Some(Rule::SpfPermerror),
        Some(AuthResult::TempError) => Some(Rule::SpfTemperror),
    };
    if let Some(rule) = rule {
        found.hit(rule, shown(path));
    }
    if facts.spf_helo == Some(AuthResult::Fail) {
        found.hit(Rule::SpfHeloFail, AuthResult::Fail.as_str());
    }
}

/// One valid signature is enough: others may be of mailing lists and forwarders on the way. A neutral one, malformed or of a domain that tests
/// DKIM, is as if it were not there (RFC 6376 sections 6.1 and 3.6.1).
pub(super) fn dkim(facts: &Facts, found: &mut Found<'_>) {
    let signatures = facts.dkim.as_deref().unwrap_or_default();
    let with = |result| signatures.iter().find(|found| found.result == result);
    let is_neutral = |found: &&Signature| found.result == AuthResult::Neutral;
    let (rule, signature) = if let Some(valid) = with(AuthResult::Pass) {
        (Rule::DkimValid, valid)
    } else if let Some(unknown) = with(AuthResult::TempError) {
        (Rule::DkimTemperror, unknown)
    } else if let Some(invalid) = signatures.iter().find(|found| !is_neutral(found)) {
        (Rule::DkimInvalid, invalid)
    } else {
        return;
    };
    found.hit(rule, shown(&signature.domain));
}

pub(super) fn dmarc(facts: &Facts, terms: &Judging, found: &mut Found<'_>) {
    let Some(dmarc) = &facts.dmarc else {
        return;
    };
    let domain = shown(&dmarc.domain);
    match dmarc.result {
        AuthResult::Pass => found.hit(Rule::DmarcPass, domain),
        AuthResult::TempError => found.hit(Rule::DmarcTemperror, domain),
        AuthResult::PermError => found.hit(Rule::DmarcPermerror, domain),
        AuthResult::Fail if is_vouched(facts, terms) => {
            let sealer = facts.arc.as_ref().map_or("", |arc| &arc.sealer);
            let text = format!("{domain}, sealed by {}", shown(sealer));
            found.hit(Rule::DmarcArc, text);
        }
        AuthResult::Fail => failed(dmarc, domain, terms, found),
        AuthResult::None | AuthResult::Neutral | AuthResult::SoftFail => {}
    }
}

/// The failure of a domain's policy. `p=reject` alone is no reason to reject (RFC 9989 section 7.4), unless the settings say so.
fn failed(dmarc: &Dmarc, domain: String, terms: &Judging, found: &mut Found<'_>) {
    let (rule, verdict) = match dmarc.policy {
        DmarcPolicy::None => (Rule::DmarcNone, Verdict::Accept),
        DmarcPolicy::Quarantine => (Rule::DmarcQuarantine, Verdict::Quarantine),
        DmarcPolicy::Reject => (Rule::DmarcReject, Verdict::Reject),
    };
    let is_allowed = found.has(Rule::AllowedNetwork) || found.has(Rule::AllowedSender);
    if terms.follows_dmarc && !is_allowed {
        found.rule(rule, verdict, domain.clone());
    }
    found.hit(rule, domain);
}

pub(super) fn arc(facts: &Facts, found: &mut Found<'_>) {
    let Some(arc) = &facts.arc else {
        return;
    };
    match arc.result {
        AuthResult::Pass => found.hit(Rule::ArcValid, shown(&arc.sealer)),
        AuthResult::Fail | AuthResult::PermError => {
            found.hit(Rule::ArcInvalid, shown(&arc.sealer));
        }
        _ => {}
    }
}
