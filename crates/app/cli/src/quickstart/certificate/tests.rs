use rcgen::{BasicConstraints, IsCa, Issuer};

use super::*;

const HOST: &str = "mail.example.org";

/// A directory with files of the given content.
fn files(certificate: &str, key: &str) -> (tempfile::TempDir, Pair) {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::below(folder.path());
    fs::write(&pair.certificate, certificate).unwrap();
    fs::write(&pair.key, key).unwrap();
    (folder, pair)
}

fn problem(state: State) -> Option<String> {
    match state {
        State::Foreign(problem) => problem,
        other => panic!("expected a certificate from elsewhere; found {other:?}"),
    }
}

#[test]
fn a_certificate_of_this_command_is_recognised() {
    // Names of all lengths: the lengths of the elements of DER have several forms.
    for length in [1, 40, 63] {
        let folder = tempfile::tempdir().unwrap();
        let pair = Pair::below(folder.path());
        assert_eq!(pair.state(HOST).unwrap(), State::Missing);
        let label = "a".repeat(length);
        let name = format!("{label}.{label}.{label}.example.org");
        assert_eq!(pair.make(&name).unwrap(), None);
        assert_eq!(pair.state(&name).unwrap(), State::Own);
        assert_eq!(pair.state(HOST).unwrap(), State::Outdated);
    }
}

#[test]
fn a_certificate_from_elsewhere_stays() {
    let key = KeyPair::generate().unwrap();
    // Self-signed by another program, which writes another common name.
    let other = CertificateParams::new(["old.example.org".to_owned()]).unwrap();
    let made = other.self_signed(&key).unwrap().pem();
    let (_folder, pair) = files(&made, &key.serialize_pem());
    let found = problem(pair.state(HOST).unwrap()).unwrap();
    assert_eq!(found, "it does not name mail.example.org");
    assert_eq!(problem(pair.state("old.example.org").unwrap()), None);

    // As this command's in all but the issuer.
    let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
    let mut signed = CertificateParams::new(["*.old.example".to_owned()]).unwrap();
    let common = "*.old.example";
    signed.distinguished_name.push(DnType::CommonName, common);
    let made = signed.signed_by(&key, &issuer).unwrap().pem();
    let (_folder, pair) = files(&made, &key.serialize_pem());
    assert!(problem(pair.state("a.b.old.example").unwrap()).is_some());
    assert_eq!(problem(pair.state("mx.old.example").unwrap()), None);

    // As this command's, with a chain or with another key.
    let own = self_signed("old.example.org", &key).unwrap().pem();
    let (_folder, pair) = files(&format!("{own}{made}"), &key.serialize_pem());
    assert!(problem(pair.state(HOST).unwrap()).is_some());
    let another = KeyPair::generate().unwrap().serialize_pem();
    let (_folder, pair) = files(&own, &another);
    assert!(problem(pair.state(HOST).unwrap()).is_some());
    let (_folder, pair) = files("no certificate", &another);
    let found = problem(pair.state(HOST).unwrap()).unwrap();
    assert!(found.starts_with("it cannot be used"), "{found}");
}

#[test]
fn damaged_octets_are_no_certificate() {
    let whole = self_signed(HOST, &KeyPair::generate().unwrap()).unwrap();
    let whole: &[u8] = whole.der();
    let signed = signed_part(whole).unwrap();
    assert!(signed.len() < whole.len() && whole[4..].starts_with(signed));
    for end in 0..4 + signed.len() {
        assert_eq!(signed_part(&whole[..end]), None, "{end}");
    }
    assert_eq!(signed_part(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
}
