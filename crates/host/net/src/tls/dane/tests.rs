//! Chains against TLSA records of every kind, right and wrong.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};

use super::*;

/// root, intermediate, leaf for `mx.example.org`.
struct Chain {
    root: CertificateDer<'static>,
    middle: CertificateDer<'static>,
    leaf: CertificateDer<'static>,
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn chain(name: &str, expired: bool) -> Chain {
    let der = |certificate: &Certificate| certificate.der().clone();
    let (key, params) = (KeyPair::generate().unwrap(), authority("root"));
    let root = der(&params.self_signed(&key).unwrap());
    let root_issuer = Issuer::new(params, key);
    let (key, params) = (KeyPair::generate().unwrap(), authority("middle"));
    let middle = der(&params.signed_by(&key, &root_issuer).unwrap());
    let middle_issuer = Issuer::new(params, key);
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if expired {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    }
    let key = KeyPair::generate().unwrap();
    let leaf = der(&params.signed_by(&key, &middle_issuer).unwrap());
    Chain { root, middle, leaf }
}

fn record(usage: u8, selector: u8, matching: u8, of: &CertificateDer<'_>) -> Tlsa {
    let octets = match selector {
        0 => of.as_ref().to_vec(),
        _ => public_key(of).unwrap(),
    };
    Tlsa {
        usage,
        selector,
        matching,
        data: match matching {
            0 => octets,
            1 => Sha256::digest(&octets).to_vec(),
            _ => Sha512::digest(&octets).to_vec(),
        },
    }
}

fn verify(records: &[Tlsa], names: &[&str], chain: &Chain) -> Result<(), rustls::Error> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let verifier = DaneVerifier::new(Dane::new(records, &names).unwrap());
    let others = [chain.middle.clone(), chain.root.clone()];
    let any = ServerName::try_from("ignored.example").unwrap();
    verifier
        .verify_server_cert(&chain.leaf, &others, &any, &[], UnixTime::now())
        .map(drop)
}

const NAMES: &[&str] = &["mx.example.org", "example.org"];

#[test]
fn every_selector_and_matching_type_fits() {
    let good = chain("mx.example.org", false);
    let other = chain("mx.example.org", false);
    for selector in [0, 1] {
        for matching in [0, 1, 2] {
            for (usage, own) in [(3, &good.leaf), (2, &good.middle), (2, &good.root)] {
                let right = record(usage, selector, matching, own);
                assert_eq!(verify(&[right], NAMES, &good), Ok(()));
            }
            for (usage, foreign) in [(3, &other.leaf), (2, &other.middle), (2, &other.root)] {
                let wrong = record(usage, selector, matching, foreign);
                assert!(verify(&[wrong], NAMES, &good).is_err());
            }
            // The usage says which certificate is meant.
            let leaf_as_anchor = record(2, selector, matching, &good.leaf);
            assert!(verify(&[leaf_as_anchor], NAMES, &good).is_err());
            let anchor_as_leaf = record(3, selector, matching, &good.middle);
            assert!(verify(&[anchor_as_leaf], NAMES, &good).is_err());
        }
    }
}

/// RFC 7672 section 3.1.1: DANE-EE looks at nothing but the key; section 3.1.2: DANE-TA at all of it.
#[test]
fn names_and_dates_count_for_trust_anchors_only() {
    let misnamed = chain("other.example", false);
    let expired = chain("mx.example.org", true);
    for odd in [&misnamed, &expired] {
        assert_eq!(verify(&[record(3, 1, 1, &odd.leaf)], NAMES, odd), Ok(()));
        assert!(verify(&[record(2, 1, 1, &odd.root)], NAMES, odd).is_err());
    }
    // The next hop's domain is a name of its exchanger (RFC 7672 section 3.2.2).
    let by_domain = chain("example.org", false);
    assert_eq!(
        verify(&[record(2, 0, 1, &by_domain.root)], NAMES, &by_domain),
        Ok(())
    );
}

#[test]
fn any_of_several_records_is_enough() {
    let good = chain("mx.example.org", false);
    let old = chain("mx.example.org", false);
    let records = [record(3, 1, 1, &old.leaf), record(3, 1, 1, &good.leaf)];
    assert_eq!(verify(&records, NAMES, &good), Ok(()));
    let records = [record(3, 1, 1, &old.leaf), record(2, 0, 1, &good.root)];
    assert_eq!(verify(&records, NAMES, &good), Ok(()));
}

/// A trust anchor that is in the record whole need not be shown.
#[test]
fn an_anchor_may_come_from_the_record() {
    let good = chain("mx.example.org", false);
    let dane = Dane::new(
        &[record(2, 0, 0, &good.root)],
        &["mx.example.org".to_owned()],
    );
    let verifier = DaneVerifier::new(dane.unwrap());
    let any = ServerName::try_from("ignored.example").unwrap();
    let shown = [good.middle.clone()];
    let verified = verifier.verify_server_cert(&good.leaf, &shown, &any, &[], UnixTime::now());
    assert!(verified.is_ok());
}

/// RFC 7671 section 9: a weak digest does not count beside a strong one.
#[test]
fn the_strongest_digest_counts() {
    let good = chain("mx.example.org", false);
    let other = chain("mx.example.org", false);
    let records = [record(3, 1, 1, &good.leaf), record(3, 1, 2, &other.leaf)];
    assert!(verify(&records, NAMES, &good).is_err());
    let records = [record(3, 1, 1, &good.leaf), record(3, 0, 2, &other.leaf)];
    assert_eq!(verify(&records, NAMES, &good), Ok(()));
}

#[test]
fn what_says_nothing_is_left_out() {
    let good = chain("mx.example.org", false);
    let mut useless = vec![
        record(0, 1, 1, &good.root),
        record(1, 1, 1, &good.leaf),
        record(4, 1, 1, &good.leaf),
        Tlsa {
            selector: 2,
            ..record(3, 1, 1, &good.leaf)
        },
        Tlsa {
            matching: 3,
            ..record(3, 1, 1, &good.leaf)
        },
        Tlsa {
            matching: 2,
            ..record(3, 1, 1, &good.leaf)
        },
        Tlsa {
            data: Vec::new(),
            ..record(3, 1, 0, &good.leaf)
        },
    ];
    assert!(useless.iter().all(|record| !record.is_usable()));
    assert!(Dane::new(&useless, &[]).is_none());
    useless.push(record(3, 1, 1, &good.leaf));
    assert_eq!(verify(&useless, NAMES, &good), Ok(()));
    assert!(Dane::new(&[], &[]).is_none());
}

/// Garbage in a record or a certificate is a failure, never more.
#[test]
fn garbage_fits_nothing() {
    let good = chain("mx.example.org", false);
    let garbage = Tlsa {
        data: vec![0x30; 700],
        ..record(2, 0, 0, &good.root)
    };
    assert!(verify(&[garbage], NAMES, &good).is_err());
    let broken = Chain {
        leaf: CertificateDer::from(vec![0x30, 0x82, 0xff]),
        ..chain("mx.example.org", false)
    };
    assert!(verify(&[record(3, 1, 1, &good.leaf)], NAMES, &broken).is_err());
    assert!(verify(&[record(2, 1, 1, &broken.root)], NAMES, &broken).is_err());
}
