//! Results of authentication as facts.

use vere_auth::{
    Arc as Chain, Authentication, DkimResult, Dmarc as Evaluated, DmarcResult, IprevResult, Policy,
};
use vere_handoff::question::Spf;
use vere_judge::{Arc, AuthResult, Dmarc, DmarcPolicy, Facts, Signature};

/// Adds the results of authentication to the facts.
pub(crate) fn add(authentication: &Authentication, facts: &mut Facts) {
    facts.iprev = Some(iprev(authentication.iprev.result));
    facts.arc = Some(arc(&authentication.arc));
    facts.dmarc = dmarc(&authentication.dmarc);
    let signed = authentication.dkim.iter().map(|signed| Signature {
        domain: signed.domain.clone().unwrap_or_default(),
        result: dkim(signed.result()),
    });
    facts.dkim = Some(signed.collect());
    facts.cut |= authentication.ignored > 0;
}

/// The result of SPF as a fact.
pub(crate) const fn spf(result: Spf) -> AuthResult {
    match result {
        Spf::None => AuthResult::None,
        Spf::Neutral => AuthResult::Neutral,
        Spf::Pass => AuthResult::Pass,
        Spf::Fail => AuthResult::Fail,
        Spf::SoftFail => AuthResult::SoftFail,
        Spf::TempError => AuthResult::TempError,
        Spf::PermError => AuthResult::PermError,
    }
}

/// A signature against local policy, with a short key or an old hash, proves nothing.
const fn dkim(result: DkimResult) -> AuthResult {
    match result {
        DkimResult::Pass => AuthResult::Pass,
        DkimResult::Fail => AuthResult::Fail,
        DkimResult::Policy | DkimResult::Neutral => AuthResult::Neutral,
        DkimResult::TempError => AuthResult::TempError,
        DkimResult::PermError => AuthResult::PermError,
    }
}

/// An address without a name has no result.
const fn iprev(result: IprevResult) -> AuthResult {
    match result {
        IprevResult::Pass => AuthResult::Pass,
        IprevResult::Fail => AuthResult::Fail,
        IprevResult::TempError => AuthResult::TempError,
        IprevResult::PermError => AuthResult::None,
    }
}

fn arc(chain: &Chain) -> Arc {
    let (result, sealer, dmarc_passed) = match chain {
        Chain::None => (AuthResult::None, String::new(), false),
        Chain::Pass {
            sealer,
            dmarc_passed,
            ..
        } => (AuthResult::Pass, sealer.clone(), *dmarc_passed),
        Chain::Fail(_) => (AuthResult::Fail, String::new(), false),
    };
    Arc {
        result,
        sealer,
        dmarc_passed,
    }
}

/// A message without a clear author has no domain; the From fields give a separate fact.
fn dmarc(evaluated: &Evaluated) -> Option<Dmarc> {
    let domain = evaluated.domain.clone()?;
    let result = match evaluated.result {
        DmarcResult::None => AuthResult::None,
        DmarcResult::Pass => AuthResult::Pass,
        DmarcResult::Fail => AuthResult::Fail,
        DmarcResult::TempError => AuthResult::TempError,
        DmarcResult::PermError => AuthResult::PermError,
    };
    // A domain in a test of DMARC asks for a milder policy.
    let policy = match evaluated.applied {
        None | Some(Policy::None) => DmarcPolicy::None,
        Some(Policy::Quarantine) => DmarcPolicy::Quarantine,
        Some(Policy::Reject) => DmarcPolicy::Reject,
    };
    Some(Dmarc {
        domain,
        result,
        policy,
        spf_aligned: evaluated.spf_aligned,
        dkim_aligned: evaluated.dkim_aligned,
    })
}
