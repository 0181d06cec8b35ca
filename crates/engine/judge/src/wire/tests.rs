use proptest::prelude::*;

use super::*;
use crate::tests::{every_fact, facts};

#[test]
fn golden_octets() {
    assert_eq!(
        Facts::default().encode(),
        [
            &[1][..],
            &[0; 3],
            &[0; 4],
            &[0; 4],
            &[0; 3],
            &[0; 2],
            &[0; 3],
            &[0; 2],
            &[0; 2],
            &[0]
        ]
        .concat()
    );
    let facts = Facts {
        client: Some([192, 0, 2, 1].into()),
        login: Some("l".to_owned()),
        reverse_path: Some(String::new()),
        recipients: 2,
        helo: Some(HeloForm::Ours),
        spf: Some(AuthResult::Fail),
        dkim: Some(vec![Signature {
            domain: "d".to_owned(),
            result: AuthResult::Pass,
        }]),
        dmarc: Some(Dmarc {
            domain: "e".to_owned(),
            result: AuthResult::Fail,
            policy: DmarcPolicy::Reject,
            spf_aligned: false,
            dkim_aligned: true,
        }),
        listings: vec![Listing {
            list: "b".to_owned(),
            weight: -2,
        }],
        greylist: Some(Greylist::Passed),
        filters: vec![Filter {
            name: "f".to_owned(),
            action: Some(Verdict::Reject),
            symbols: vec![Symbol {
                name: "S".to_owned(),
                score: Score::from_hundredths(-5),
            }],
        }],
        cut: true,
        ..Facts::default()
    };
    let expected = [
        &[1, 4, 192, 0, 2, 1][..],
        &[1, 1, 0, b'l', 1, 0, 0, 2, 0, 0, 0, 5],
        &[0, 4, 0],
        &[1, 1, 0, 1, 0, b'd', 3],
        &[1, 1, 0, b'e', 4, 3, 0, 1],
        &[0],
        &[1, 0, 1, 0, b'b', 0xfe, 0xff],
        &[2, 0, 0],
        &[
            1, 0, 1, 0, b'f', 5, 1, 0, 1, 0, b'S', 0xfb, 0xff, 0xff, 0xff,
        ],
        &[0, 0, 1],
    ]
    .concat();
    assert_eq!(facts.encode(), expected);
    assert_eq!(Facts::decode(&expected), Ok(facts));
}

/// A program without version 2 must not judge as if nobody knew the author.
#[test]
fn facts_about_a_learned_author_have_version_2() {
    let facts = every_fact();
    let plain = Facts {
        learned: false,
        ..facts.clone()
    };
    let expected = [&[2], &plain.encode()[1..]].concat();
    assert_eq!(facts.encode(), expected);
    assert_eq!(Facts::decode(&expected), Ok(facts));
}

#[test]
fn every_fact_is_kept() {
    let facts = every_fact();
    assert_eq!(Facts::decode(&facts.encode()), Ok(facts));
}

#[test]
fn every_cut_and_every_surplus_is_an_error() {
    let octets = every_fact().encode();
    for end in 0..octets.len() {
        let found = Facts::decode(&octets[..end]);
        assert!(
            matches!(found, Err(FactsError::Short(_))),
            "{end}: {found:?}"
        );
    }
    let surplus = [&octets[..], &[0, 0]].concat();
    assert_eq!(Facts::decode(&surplus), Err(FactsError::Surplus(2)));
    assert_eq!(Facts::decode(&[3]), Err(FactsError::Version(3)));
    assert_eq!(
        FactsError::Version(3).to_string(),
        "expected facts of version 1 or 2; found version 3"
    );
}

/// Other notations of a value would decode to the same facts.
#[test]
fn values_that_no_facts_have_are_refused() {
    let at = |octets: &mut Vec<u8>, at: usize, value: &[u8]| {
        octets[at..at + value.len()].copy_from_slice(value);
    };
    let none = Facts::default().encode();
    // Client, two flags, HELO, results, flags of values, the end.
    for (place, value) in [
        (1, 5),
        (2, 2),
        (3, 2),
        (8, 7),
        (9, 8),
        (12, 2),
        (17, 5),
        (24, 2),
    ] {
        let mut octets = none.clone();
        at(&mut octets, place, &[value]);
        let found = Facts::decode(&octets);
        assert!(
            matches!(found, Err(FactsError::Value { .. })),
            "{place}: {found:?}"
        );
    }
    let mapped = [
        &[1, 6][..],
        &[0; 10],
        &[0xff, 0xff, 192, 0, 2, 1],
        &none[2..],
    ]
    .concat();
    let found = Facts::decode(&mapped);
    assert!(matches!(
        found,
        Err(FactsError::Value {
            wanted: "the address of a client",
            ..
        })
    ));

    let listed = |list: &str, weight: i16| {
        let facts = Facts {
            listings: vec![Listing {
                list: "x".to_owned(),
                weight: 0,
            }],
            ..Facts::default()
        };
        let mut octets = facts.encode();
        let place = octets.iter().position(|octet| *octet == b'x').unwrap();
        at(&mut octets, place, list.as_bytes());
        at(&mut octets, place + 1, &weight.to_le_bytes());
        Facts::decode(&octets)
    };
    assert!(listed("y", WEIGHT_MAX).is_ok() && listed("y", -WEIGHT_MAX).is_ok());
    assert!(listed(" ", 1).is_err() && listed("y", WEIGHT_MAX + 1).is_err());
    assert!(listed("y", -WEIGHT_MAX - 1).is_err());
}

#[test]
fn lists_and_texts_are_cut_to_their_bounds() {
    let symbol = |name: &str, points| Symbol {
        name: name.to_owned(),
        score: Score::from_points(points),
    };
    let facts = Facts {
        client: Some("::ffff:192.0.2.1".parse().unwrap()),
        reverse_path: Some("é".repeat(ADDRESS_OCTETS_MAX)),
        filters: vec![Filter {
            name: "a b\r\n".to_owned(),
            action: None,
            symbols: vec![symbol("", 20_000), symbol(&"x".repeat(65), -20_000)],
        }],
        structure: Some(Structure {
            attachments: vec![
                Attachment {
                    name: format!("{}.exe", "é".repeat(80)),
                    media_type: "a".to_owned(),
                };
                ATTACHMENTS_MAX + 1
            ],
            ..Structure::default()
        }),
        ..Facts::default()
    };
    let found = Facts::decode(&facts.encode()).unwrap();
    assert_eq!(found, facts.clone().bounded());
    assert!(found.cut);
    assert_eq!(found.client, Some([192, 0, 2, 1].into()));
    assert_eq!(found.reverse_path.unwrap().len(), ADDRESS_OCTETS_MAX);
    assert_eq!(found.filters[0].name, "a_b__");
    assert_eq!(
        found.filters[0].symbols,
        [symbol("_", 10_000), symbol(&"x".repeat(64), -10_000)]
    );
    let attachments = found.structure.unwrap().attachments;
    assert_eq!(attachments.len(), ATTACHMENTS_MAX);
    let name = &attachments[0].name;
    assert!(
        name.ends_with("é.exe") && name.len() == NAME_OCTETS_MAX,
        "{name}"
    );
    assert!(
        !every_fact().bounded().cut,
        "facts within their bounds are not cut"
    );
}

proptest! {
    #[test]
    fn facts_are_read_as_they_were_written(facts in facts()) {
        let bounded = facts.clone().bounded();
        prop_assert_eq!(bounded.clone().bounded(), bounded.clone());
        prop_assert_eq!(Facts::decode(&facts.encode()), Ok(bounded));
    }

    #[test]
    fn what_was_decoded_encodes_to_the_same_again(
        facts in facts(), place in any::<prop::sample::Index>(), octet: u8,
    ) {
        let mut octets = facts.encode();
        let place = place.index(octets.len());
        octets[place] = octet;
        if let Ok(decoded) = Facts::decode(&octets) {
            prop_assert_eq!(decoded.encode(), octets);
        }
    }

    #[test]
    fn no_octets_are_a_panic(octets: Vec<u8>) {
        if let Ok(decoded) = Facts::decode(&octets) {
            prop_assert_eq!(decoded.encode(), octets);
        }
    }
}
