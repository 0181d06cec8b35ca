//! The record of a report about a judged message (RFC 9990 section 3.1).

use std::net::IpAddr;

use vere_auth::{Policy as Wish, Published};
use vere_judge::{AuthResult, Facts, HitName, Judgement, Rule, Verdict};
use vere_reports::{
    Alignment, AuthWord, Discovery, Disposition, Dkim, DmarcSeen, Override, Policy, Reason, Record,
    Spf,
};
use vere_smtp::server::SessionInfo;

/// A message after the check by DMARC, without the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The record, with the disposition and without reasons.
    record: Record,
    /// Whether a trusted sealer has vouched for the message.
    is_vouched: bool,
}

impl Checked {
    /// Makes the record of the facts; `None` for a message without a result, and for a deferred message: the client comes again.
    pub fn of(
        facts: &Facts,
        judgement: &Judgement,
        session: &SessionInfo,
        results: &[u8],
    ) -> Option<Self> {
        let dmarc = facts.dmarc.as_ref()?;
        let is_pass = match dmarc.result {
            AuthResult::Pass => true,
            AuthResult::Fail => false,
            _ => return None,
        };
        let disposition = match judgement.verdict {
            Verdict::Defer => return None,
            // RFC 9990: no policy applied, whatever else was found.
            _ if is_pass => Disposition::Pass,
            Verdict::Accept | Verdict::Tag => Disposition::None,
            Verdict::Quarantine => Disposition::Quarantine,
            Verdict::Reject => Disposition::Reject,
        };
        let sender = facts.reverse_path.as_deref().unwrap_or_default();
        let sender = sender.rsplit_once('@').map_or("", |(_, domain)| domain);
        let record = Record {
            source: source(facts, session),
            count: 1,
            disposition,
            dkim_aligned: dmarc.dkim_aligned,
            spf_aligned: dmarc.spf_aligned,
            reasons: Vec::new(),
            header_from: dmarc.domain.clone(),
            envelope_from: Some(sender.to_ascii_lowercase()),
            envelope_to: None,
            dkim: signatures(facts, results),
            spf: spf(facts, session, sender).into_iter().collect(),
        };
        let arc = HitName::Rule(Rule::DmarcArc);
        Some(Self {
            record,
            is_vouched: judgement.hits.iter().any(|hit| hit.name == arc),
        })
    }

    /// The domain of the author.
    pub fn author(&self) -> &str {
        &self.record.header_from
    }

    /// Adds the policy, and the reason for another disposition.
    pub fn seen(mut self, published: &Published) -> DmarcSeen {
        self.record.reasons = self.reason(published).into_iter().collect();
        DmarcSeen {
            policy: policy(published),
            record: self.record,
        }
    }

    fn reason(&self, published: &Published) -> Option<Reason> {
        let (done, wanted) = (self.record.disposition, disposition(published.wanted));
        if done == Disposition::Pass || done == wanted {
            return None;
        }
        let kind = match () {
            () if self.is_vouched && done < wanted => Override::TrustedForwarder,
            () if published.is_testing && done == disposition(published.applied) => {
                Override::PolicyTestMode
            }
            () => Override::LocalPolicy,
        };
        Some(Reason {
            kind,
            comment: None,
        })
    }
}

fn source(facts: &Facts, session: &SessionInfo) -> IpAddr {
    let client = facts.client.unwrap_or_else(|| session.address.ip());
    client.to_canonical()
}

const fn disposition(wish: Wish) -> Disposition {
    match wish {
        Wish::None => Disposition::None,
        Wish::Quarantine => Disposition::Quarantine,
        Wish::Reject => Disposition::Reject,
    }
}

fn policy(published: &Published) -> Policy {
    let alignment = |is_strict| match is_strict {
        true => Alignment::Strict,
        false => Alignment::Relaxed,
    };
    Policy {
        domain: published.domain.clone(),
        discovery: Some(Discovery::TreeWalk),
        domain_policy: disposition(published.policy),
        subdomain_policy: published.subdomains.map(disposition),
        nonexistent_policy: published.absent.map(disposition),
        failure_options: None,
        dkim_alignment: Some(alignment(published.is_dkim_strict)),
        spf_alignment: Some(alignment(published.is_spf_strict)),
        testing: Some(published.is_testing),
    }
}

fn word(result: AuthResult) -> AuthWord {
    AuthWord::of(result.as_str()).unwrap_or(AuthWord::None)
}

/// The result of SPF: about the domain of the reverse-path, or about the HELO name of a null reverse-path (RFC 7208 section 2.4).
fn spf(facts: &Facts, session: &SessionInfo, sender: &str) -> Option<Spf> {
    let result = word(facts.spf?);
    let is_helo = sender.is_empty();
    let helo = || session.helo.as_ref().map(ToString::to_string);
    let domain = match is_helo {
        true => helo().unwrap_or_default(),
        false => sender.to_owned(),
    };
    Some(Spf {
        domain: domain.to_ascii_lowercase(),
        is_helo,
        result,
        text: None,
    })
}

/// The signatures, with the selectors in the fields with the results, in the same order.
fn signatures(facts: &Facts, results: &[u8]) -> Vec<Dkim> {
    let results = String::from_utf8_lossy(results);
    let stated = results
        .split(';')
        .map(str::trim_ascii)
        .filter(|result| result.starts_with("dkim="))
        .map(|result| (property(result, "header.d="), property(result, "header.s=")));
    let mut stated: Vec<_> = stated.collect();
    let signatures = facts.dkim.iter().flatten();
    let of = |signature: &vere_judge::Signature| {
        let domain = signature.domain.to_ascii_lowercase();
        let is_same = |stated: &str| stated.eq_ignore_ascii_case(&domain);
        let mut all = stated.iter();
        let at = all.position(|(stated, _)| stated.is_some_and(is_same));
        let selector = at.and_then(|at| stated.remove(at).1);
        Dkim {
            selector: selector.map(str::to_owned),
            domain,
            result: word(signature.result),
            text: None,
        }
    };
    signatures.map(of).collect()
}

fn property<'a>(result: &'a str, name: &str) -> Option<&'a str> {
    let mut words = result.split_ascii_whitespace();
    words.find_map(|word| word.strip_prefix(name))
}

#[cfg(test)]
mod tests;
