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

#[cfg(test)]
mod tests {
    use vere_auth::{Fault, Iprev, Signed};

    use super::*;

    fn signed(domain: Option<&str>, fault: Option<Fault>) -> Signed {
        Signed {
            domain: domain.map(str::to_owned),
            selector: None,
            identity: None,
            algorithm: None,
            value: String::new(),
            fault,
            is_testing: false,
        }
    }

    fn evaluated(result: DmarcResult, applied: Option<Policy>) -> Evaluated {
        Evaluated {
            result,
            domain: Some("a.test".to_owned()),
            policy: Some(Policy::Reject),
            applied,
            record: None,
            fault: None,
            spf_aligned: false,
            dkim_aligned: true,
        }
    }

    fn facts(ignored: usize, arc: Chain, dmarc: Evaluated, iprev: IprevResult) -> Facts {
        let authentication = Authentication {
            dkim: vec![
                signed(Some("a.test"), None),
                signed(None, Some(Fault::Syntax)),
            ],
            ignored,
            arc,
            dmarc,
            iprev: Iprev {
                result: iprev,
                name: None,
            },
        };
        let mut facts = Facts::default();
        add(&authentication, &mut facts);
        facts
    }

    #[test]
    fn results_of_authentication_are_facts() {
        let chain = Chain::Pass {
            sets: 2,
            sealer: "list.test".to_owned(),
            dmarc_passed: true,
        };
        let dmarc = evaluated(DmarcResult::Fail, Some(Policy::Quarantine));
        let found = facts(0, chain, dmarc, IprevResult::PermError);
        assert_eq!(found.iprev, Some(AuthResult::None));
        let signatures = found.dkim.unwrap();
        assert_eq!(signatures.len(), 2);
        assert_eq!(
            (&*signatures[0].domain, signatures[0].result),
            ("a.test", AuthResult::Pass)
        );
        assert_eq!(signatures[1].domain, "");
        assert_ne!(signatures[1].result, AuthResult::Pass);
        let arc = found.arc.unwrap();
        assert_eq!(
            (arc.result, &*arc.sealer, arc.dmarc_passed),
            (AuthResult::Pass, "list.test", true)
        );
        let dmarc = found.dmarc.unwrap();
        assert_eq!(
            (&*dmarc.domain, dmarc.result, dmarc.policy),
            ("a.test", AuthResult::Fail, DmarcPolicy::Quarantine)
        );
        assert_eq!((dmarc.spf_aligned, dmarc.dkim_aligned), (false, true));
        assert!(!found.cut);
    }

    #[test]
    fn what_was_not_checked_is_told_and_a_message_without_author_has_no_domain() {
        let mut dmarc = evaluated(DmarcResult::PermError, None);
        dmarc.domain = None;
        let found = facts(1, Chain::None, dmarc, IprevResult::Fail);
        assert!(found.cut && found.dmarc.is_none());
        assert_eq!(found.iprev, Some(AuthResult::Fail));
        assert_eq!(found.arc.unwrap().result, AuthResult::None);
        // What was cut before stays cut.
        let mut before = Facts {
            cut: true,
            ..Facts::default()
        };
        let dmarc = evaluated(DmarcResult::TempError, None);
        let authentication = Authentication {
            dkim: Vec::new(),
            ignored: 0,
            arc: Chain::None,
            dmarc,
            iprev: Iprev {
                result: IprevResult::Pass,
                name: None,
            },
        };
        add(&authentication, &mut before);
        assert!(before.cut);
        let dmarc = before.dmarc.unwrap();
        assert_eq!(
            (dmarc.result, dmarc.policy),
            (AuthResult::TempError, DmarcPolicy::None)
        );
    }

    #[test]
    fn every_result_has_its_fact() {
        for (result, fact) in [
            (Spf::None, AuthResult::None),
            (Spf::Neutral, AuthResult::Neutral),
            (Spf::Pass, AuthResult::Pass),
            (Spf::Fail, AuthResult::Fail),
            (Spf::SoftFail, AuthResult::SoftFail),
            (Spf::TempError, AuthResult::TempError),
            (Spf::PermError, AuthResult::PermError),
        ] {
            assert_eq!(spf(result), fact);
        }
        for (result, fact) in [
            (DkimResult::Pass, AuthResult::Pass),
            (DkimResult::Fail, AuthResult::Fail),
            (DkimResult::Policy, AuthResult::Neutral),
            (DkimResult::Neutral, AuthResult::Neutral),
            (DkimResult::TempError, AuthResult::TempError),
            (DkimResult::PermError, AuthResult::PermError),
        ] {
            assert_eq!(dkim(result), fact);
        }
    }
}
