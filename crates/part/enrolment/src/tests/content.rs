//! The content of certificates and requests, octet by octet where a use depends on it (RFC 5280 section 4.2.1).

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::*;

/// The key usages `keyCertSign` and `cRLSign`, and `digitalSignature`: critical.
const SIGNS_CERTIFICATES: &[u8] = b"\x55\x1D\x0F\x01\x01\xFF\x04\x04\x03\x02\x01\x06";
const SIGNS_DATA: &[u8] = b"\x55\x1D\x0F\x01\x01\xFF\x04\x04\x03\x02\x07\x80";
/// Basic constraints of a CA without CAs below, and of none: critical.
const IS_CA: &[u8] = b"\x55\x1D\x13\x01\x01\xFF\x04\x08\x30\x06\x01\x01\xFF\x02\x01\x00";
const IS_NO_CA: &[u8] = b"\x55\x1D\x13\x01\x01\xFF\x04\x02\x30\x00";
/// The identifiers of the authority's key, and of the use for servers and for clients.
const AUTHORITY_KEY: &[u8] = b"\x55\x1D\x23";
const SERVERS: &[u8] = b"\x2B\x06\x01\x05\x05\x07\x03\x01";
const CLIENTS: &[u8] = b"\x2B\x06\x01\x05\x05\x07\x03\x02";
const CA_NAME: &[u8] = b"Veredarius spool CA";
/// A part of the library's default name.
const DEFAULT_NAME: &[u8] = b"rcgen";

fn has(der: &[u8], part: &[u8]) -> bool {
    der.windows(part.len()).any(|window| window == part)
}

fn assert_parts(der: &[u8], there: &[&[u8]], absent: &[&[u8]]) {
    for part in there {
        assert!(has(der, part), "{part:02x?} is missing in {der:02x?}");
    }
    for part in absent {
        assert!(!has(der, part), "{part:02x?} is in {der:02x?}");
    }
}

#[test]
fn certificates_are_for_their_uses_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, who) = (Machine::below(folder.path()), owner(folder.path()));
    let authority = Authority::open_or_create(&machine, who).unwrap();
    let absent = [SIGNS_DATA, IS_NO_CA, SERVERS, CLIENTS, DEFAULT_NAME];
    assert_parts(
        authority.der(),
        &[SIGNS_CERTIFICATES, IS_CA, CA_NAME],
        &absent,
    );
    let candidate = Candidate::new().unwrap();
    let names = ["mail2".to_owned()];
    let sign = |purpose| {
        let issued = authority.sign_request(&names, purpose, &candidate.request);
        issued.unwrap().der
    };
    let there = [SIGNS_DATA, IS_NO_CA, CA_NAME, AUTHORITY_KEY, SERVERS];
    let absent = [SIGNS_CERTIFICATES, IS_CA, DEFAULT_NAME];
    let node = sign(Purpose::Node);
    assert_parts(&node, &there, &absent);
    assert!(!has(&node, CLIENTS));
    // The name is in the subject and in the alternative names.
    assert_eq!(node.windows(5).filter(|part| part == b"mail2").count(), 2);
    let gateway = sign(Purpose::Gateway);
    assert_parts(&gateway, &[&there[..], &[CLIENTS]].concat(), &absent);
    let pem = Leaf::of(&CertificateDer::from(node)).unwrap();
    assert_eq!(pem.names, names);
}

#[test]
fn a_request_names_nothing_of_the_machine() {
    let candidate = Candidate::new().unwrap();
    let der = rustls::pki_types::CertificateSigningRequestDer::from_pem_slice(
        candidate.request.as_bytes(),
    );
    let der = der.unwrap();
    assert_parts(&der, &[b"node"], &[DEFAULT_NAME]);
    assert!(!has(candidate.request.as_bytes(), b"PRIVATE"));
}
