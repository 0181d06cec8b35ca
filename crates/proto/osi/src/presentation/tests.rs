use super::*;
use crate::names;
use crate::testing::hex;
use bytes::Bytes;
use vere_ber::{Encoding, ObjectIdentifier};

fn read(ssdu: &Bytes, context: i64, chunk: usize) -> Result<Vec<u8>, vere_ber::Fault> {
    let mut reader = DataReader::new(context, true);
    let mut whole = Vec::new();
    for piece in ssdu.chunks(chunk) {
        reader.push(Bytes::copy_from_slice(piece));
        while let Some(octets) = reader.read()? {
            whole.extend_from_slice(&octets);
        }
    }
    reader.end()?;
    Ok(whole)
}

#[test]
fn a_cp_of_another_stack_is_read() {
    // The connection of libiec61850's MMS client, in many public captures; its protocol data are cut to two contexts and
    // an AARQ of seven octets.
    let cp = hex(
        "313f a003800101 a238 8104 00000001 8204 00000001 a423 300f0201010604520100013004060251013010020103060528ca22020130040602510161 07 3005020101a000",
    );
    assert!(Connect::read(&cp).is_err(), "an empty single-ASN1-type");
    let cp = hex(
        "3143 a003800101 a23c 8104 00000001 8204 00000001 a423 300f0201010604520100013004060251013010020103060528ca220201300406025101 6109 3007020101a0026000",
    );
    let Connect::Normal(connect) = Connect::read(&cp).unwrap() else {
        panic!("normal mode")
    };
    assert_eq!(connect.called.clone().unwrap(), hex("00000001"));
    assert_eq!(connect.contexts.len(), 2);
    assert_eq!(
        connect.contexts[0],
        ContextDefinition::basic(1, names::ACSE)
    );
    assert_eq!(
        connect.contexts[1].abstract_syntax.to_string(),
        "1.0.9506.2.1"
    );
    assert_eq!(connect.user_data, Some(UserData::one(1, hex("6000"))));
    assert_eq!(Connect::Normal(connect).write().into_bytes(), cp);
}

#[test]
fn each_offered_context_has_one_result() {
    let offered = [
        ContextDefinition::basic(1, names::ACSE),
        ContextDefinition::basic(3, ObjectIdentifier::new(&[2, 9]).unwrap()),
        ContextDefinition {
            identifier: 5,
            abstract_syntax: names::MTSE,
            transfer_syntaxes: vec![ObjectIdentifier::new(&[2, 9]).unwrap()],
        },
        ContextDefinition::basic(7, names::MTSE),
    ];
    let supported = [names::ACSE, names::MTSE];
    let Negotiation { results, contexts } = Contexts::negotiate(&offered, &supported);
    assert_eq!(results.len(), 4);
    assert_eq!(
        results[1],
        ContextResult::ProviderRejection(ProviderRejection::AbstractSyntax)
    );
    assert_eq!(
        results[2],
        ContextResult::ProviderRejection(ProviderRejection::TransferSyntaxes)
    );
    assert_eq!(contexts.of(&names::MTSE), Some(7));
    assert_eq!(contexts.abstract_syntax(1), Some(&names::ACSE));
    assert_eq!(contexts.single(), None);
    let accept = NormalAccept {
        results,
        ..NormalAccept::default()
    };
    let octets = Accept::Normal(accept.clone()).write().into_bytes();
    assert_eq!(
        Accept::read(&octets).unwrap(),
        Accept::Normal(accept.clone())
    );
    assert_eq!(
        Contexts::confirmed(&offered, &accept.results).unwrap(),
        contexts
    );
    assert!(Contexts::confirmed(&offered, &accept.results[..3]).is_err());
    let other = vec![ContextResult::Acceptance(names::ACSE); 4];
    assert!(Contexts::confirmed(&offered, &other).is_err());
}

#[test]
fn x410_mode_has_the_octets_of_isode() {
    // PConnect, PAccept and PRefuse of ISODE's acsap/acsold.py: SET { [0] { [0] 0 }, [1] { ... } }.
    let cp = Connect::X410(hex("800101"));
    assert_eq!(cp.write().into_bytes(), hex("310a a003800100 a103800101"));
    assert_eq!(Connect::read(&cp.write().into_bytes()).unwrap(), cp);
    let cpa = Accept::X410(hex("810103"));
    assert_eq!(cpa.write().into_bytes(), hex("310a a003800100 a103810103"));
    assert_eq!(Accept::read(&cpa.write().into_bytes()).unwrap(), cpa);
    let cpr = Reject::X410(hex("800102"));
    assert_eq!(cpr.write().into_bytes(), hex("3103800102"));
    assert_eq!(Reject::read(&cpr.write().into_bytes()).unwrap(), cpr);
    let aru = Abort::UserX410(hex("800104"));
    assert_eq!(Abort::read(&aru.write().into_bytes()).unwrap(), aru);
    let turned = hex("310a a103800101 a003800100");
    assert_eq!(
        Connect::read(&turned).unwrap(),
        Connect::X410(hex("800101"))
    );
    assert!(Connect::read(&hex("3105 a003800101")).is_err());
    assert!(Connect::read(&hex("310a a003800107 a103800101")).is_err());
}

#[test]
fn ends_are_read_back() {
    let reject = Reject::Normal(NormalReject {
        responding: Some(hex("aa")),
        results: vec![ContextResult::UserRejection],
        reason: Some(RejectReason::LocalLimitExceeded),
        user_data: None,
    });
    let octets = reject.write().into_bytes();
    assert_eq!(octets, hex("300d 8301aa a505 3003 800101 8a0102"));
    assert_eq!(Reject::read(&octets).unwrap(), reject);
    let abort = Abort::User(vec![1, 3], Some(UserData::one(1, hex("6400"))));
    assert_eq!(Abort::read(&abort.write().into_bytes()).unwrap(), abort);
    let provider = Abort::Provider(Some(Abort::UNEXPECTED_PPDU));
    assert_eq!(provider.write().into_bytes(), hex("3003 800102"));
    assert_eq!(
        Abort::read(&provider.write().into_bytes()).unwrap(),
        provider
    );
}

#[test]
fn user_data_of_both_forms_are_read() {
    let simple = UserData::read(&hex("4003 020105")).unwrap();
    assert_eq!(simple.value(3, Some(3)), Some(hex("020105")));
    assert_eq!(simple.value(3, None), None);
    let full = UserData::read(&hex(
        "6180 3080 06025101 020103 a080 020105 0000 0000 3008 020105 8103 040161 0000",
    ))
    .unwrap();
    assert_eq!(full.value(3, None), Some(hex("020105")));
    assert_eq!(full.value(5, None), Some(hex("040161")));
    assert_eq!(full.value(1, None), None);
    let bits = UserData::Full(vec![Pdv {
        transfer_syntax: None,
        context: 3,
        values: Encoding::Arbitrary(vere_ber::BitString {
            unused: 4,
            octets: hex("f0"),
        }),
    }]);
    assert_eq!(UserData::read(&bits.write().into_bytes()).unwrap(), bits);
}

#[test]
fn transfers_of_every_form_are_read_in_pieces() {
    for ssdu in [
        "610c 300a 020103 a005 0403616263",
        "6180 3080 020103 a080 0403616263 0000 0000 0000",
        "6180 3080 06025101 020103 a080 2480 040161 2404 04026263 0000 0000 0000 0000",
        "610e 300c 020103 a007 2480 0403616263 0000",
        "610c 300a 020103 8105 0403616263",
        "6180 3080 020103 a180 04020403 0403616263 0000 0000 0000",
        "4005 0403616263",
        "6080 04020403 0403616263 0000",
    ] {
        let octets = hex(ssdu);
        let wrong = ssdu.starts_with("610e");
        for chunk in 1..=octets.len() {
            match read(&octets, 3, chunk) {
                Ok(content) => assert_eq!(
                    (content.as_slice(), wrong),
                    (&b"abc"[..], false),
                    "{ssdu} {chunk}"
                ),
                Err(error) => assert!(wrong, "{ssdu} {chunk}: {error}"),
            }
        }
    }
}

#[test]
fn what_is_no_transfer_is_refused() {
    for ssdu in [
        "610c 300a 020105 a005 0403616263",
        "610a 3008 020103 a003 020101",
        "610a 3008 020103 a004 0403616263",
        "3003 020101",
        "6103 020101",
        "610c 300a 020103 a005 04036162",
        "4100",
        "020101",
    ] {
        assert!(read(&hex(ssdu), 3, 4).is_err(), "{ssdu}");
    }
}

#[test]
fn simple_encoding_needs_a_single_context() {
    let mut reader = DataReader::new(3, false);
    reader.push(hex("4005 0403616263"));
    assert!(reader.read().is_err());
}

#[test]
fn a_header_fits_its_content() {
    for length in [
        0, 1, 100, 118, 119, 120, 127, 128, 255, 1024, 65_536, 10_000_000,
    ] {
        let mut ssdu = data_header(3, length).to_vec();
        ssdu.resize(ssdu.len() + usize::try_from(length).unwrap(), 7);
        let content = read(&ssdu.into(), 3, 100_000).unwrap();
        assert_eq!(u64::try_from(content.len()).unwrap(), length);
    }
    assert_eq!(data_header(3, 3), hex("610c 300a 020103 a005 0403"));
}
