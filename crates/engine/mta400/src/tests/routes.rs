use proptest::prelude::*;
use vere_x400::AddressKey;

use super::sample::{address, names, route};
use crate::*;

fn fault(rows: &[RouteSetting]) -> String {
    Routes::new(rows, &names(rows)).unwrap_err().to_string()
}

#[test]
fn the_longest_row_counts() {
    let rows = [
        route("*", "peer:world"),
        route("C=GB", "peer:gb"),
        route("P=Acme;A=Carrier;C=GB", "peer:acme"),
        route("OU1=Sales;O=Head;P=Acme;A=Carrier;C=GB", "store:sales"),
    ];
    let routes = Routes::new(&rows, &names(&rows)).unwrap();
    for (text, number) in [
        ("S=x;OU1=SALES;O=head;P=ACME;A=carrier;C=gb", 4),
        ("S=x;OU1=Sales;OU2=North;O=Head;P=Acme;A=Carrier;C=234", 4),
        ("S=x;OU1=Salesman;O=Head;P=Acme;A=Carrier;C=GB", 3),
        ("S=x;P=Acme;A=Carrier;C=GB", 3),
        ("S=x;P=Acme2;A=Carrier;C=GB", 2),
        ("S=x;A=Carrier;C=DE", 1),
    ] {
        let key = address(text).key().unwrap();
        assert_eq!(routes.find(&key).unwrap().number, number, "{text}");
    }
    assert_eq!(routes.rows().count(), 4);
}

#[test]
fn a_row_for_a_whole_address_leaves_those_below() {
    let whole = RouteSetting {
        whole: true,
        ..route("S=Smith;P=Acme;A=Carrier;C=GB", "store:smith")
    };
    let rows = [
        whole,
        route("S=Smith;P=Acme;A=Carrier;C=GB", "peer:others"),
        RouteSetting {
            whole: true,
            ..route("S=Alone;C=GB", "store:alone")
        },
    ];
    let routes = Routes::new(&rows, &names(&rows)).unwrap();
    let to = |text: &str| {
        let row = routes.find(&address(text).key().unwrap())?;
        Some(row.to.as_ref().unwrap().to_string())
    };
    let smith = "S=Smith;P=Acme;A=Carrier;C=GB";
    assert_eq!(to(smith).as_deref(), Some("store:smith"));
    let other = "G=Ann;S=Smith;P=Acme;A=Carrier;C=GB";
    assert_eq!(to(other).as_deref(), Some("peer:others"));
    assert_eq!(to("S=Alone;C=GB").as_deref(), Some("store:alone"));
    assert_eq!(to("G=Not;S=Alone;C=GB"), None);
}

#[test]
fn rows_that_cannot_be_are_named() {
    let good = route("P=Acme;A=Carrier;C=GB", "peer:acme");
    for (row, text) in [
        (
            good.clone(),
            "route 2 (P=Acme;A=Carrier;C=GB): expected the address once; row 1 has it too",
        ),
        (
            route("/C=gb/ADMD=CARRIER/PRMD=acme/", "store:x"),
            "route 2 (/C=gb/ADMD=CARRIER/PRMD=acme/): expected one target for the address; row 1 has peer:acme",
        ),
        (
            route("O=Head;C=GB", "peer:acme"),
            "route 2 (O=Head;C=GB): expected A between C and lower attributes (`A= ` for an ADMD of one space); found none",
        ),
        (
            route("DDA:x=y;C=GB", "peer:acme"),
            "route 2 (DDA:x=y;C=GB): expected A between C and lower attributes (`A= ` for an ADMD of one space); found none",
        ),
        (
            route("C=DE", "mars:acme"),
            "route 2 (C=DE): expected peer:NAME, file:NAME, store:NAME or gateway:NAME; found \"mars:acme\", or unknown",
        ),
        (
            route("C=DE", "peer:"),
            "route 2 (C=DE): expected peer:NAME, file:NAME, store:NAME or gateway:NAME; found \"peer:\", or unknown",
        ),
        (
            route("C", "peer:acme"),
            "route 2 (C): expected = after C; found the end of the attribute at column 1",
        ),
    ] {
        assert_eq!(fault(&[good.clone(), row]), text);
    }
    let every = RouteSetting {
        whole: true,
        ..route("*", "peer:acme")
    };
    assert_eq!(
        fault(&[every]),
        "route 1 (*): expected an O/R address for a row with whole = true; found *"
    );
}

#[test]
fn a_row_names_what_the_settings_have() {
    for (to, text) in [
        ("peer:x", "expected a peer of the settings; found x"),
        ("file:x", "expected a file of the settings; found x"),
        ("store:x", "expected a store of the settings; found x"),
        ("gateway:x", "expected a gateway of the settings; found x"),
    ] {
        let error = Routes::new(&[route("C=GB", to)], &Names::default()).unwrap_err();
        assert_eq!(error.fault.to_string(), text);
    }
    assert!(Routes::new(&[route("C=GB", "unknown")], &Names::default()).is_ok());
}

#[test]
fn an_explanation_names_the_row_and_the_shorter_ones() {
    let rows = [
        route("*", "peer:world"),
        route("C=GB", "peer:gb"),
        route("P=Acme;A=Carrier;C=GB", "unknown"),
        RouteSetting {
            whole: true,
            ..route("S=Smith;P=Acme;A=Carrier;C=GB", "store:smith")
        },
    ];
    let routes = Routes::new(&rows, &names(&rows)).unwrap();
    let explain = |text: &str| {
        let explanation = routes.explain(&address(text).key().unwrap());
        explanation.to_string()
    };
    assert_eq!(
        explain("S=Smith;P=Acme;A=Carrier;C=GB"),
        "address: C=GB;A=CARRIER;P=ACME;S=SMITH\n\
         row 4 (C=GB;A=CARRIER;P=ACME;S=SMITH), the whole address: store:smith\n  \
         instead of row 3 (C=GB;A=CARRIER;P=ACME), 3 attributes: unknown\n  \
         instead of row 2 (C=GB), 1 attribute: peer:gb\n  \
         instead of row 1 (*), 0 attributes: peer:world\n"
    );
    assert_eq!(
        explain("S=Other;P=Acme;A=Carrier;C=GB"),
        "address: C=GB;A=CARRIER;P=ACME;S=OTHER\n\
         row 3 (C=GB;A=CARRIER;P=ACME), 3 attributes: the recipient is not known\n  \
         instead of row 2 (C=GB), 1 attribute: peer:gb\n  \
         instead of row 1 (*), 0 attributes: peer:world\n"
    );
    let none = Routes::new(&[], &Names::default()).unwrap();
    let key = AddressKey::route("C=GB").unwrap();
    assert_eq!(
        none.explain(&key).to_string(),
        "address: C=GB\nno row matches: the recipient is not known\n"
    );
}

const KEYWORDS: [&str; 7] = ["C", "A", "P", "O", "OU1", "CN", "S"];

/// The upper part of an address: values of the first attributes, some of them absent.
fn part() -> impl Strategy<Value = String> {
    prop::collection::vec(0..3_usize, 2..=7).prop_map(|values| {
        let attributes = KEYWORDS.iter().zip(values).enumerate();
        let text = attributes.filter_map(|(at, (keyword, value))| match (at, value) {
            (0, _) => Some(format!("C={}", ["GB", "DE", "FR"][value])),
            (1, _) => Some(format!("A={}", ["x", "y", " "][value])),
            (_, 0) => None,
            (_, _) => Some(format!("{keyword}={}", ["", "x", "xy"][value])),
        });
        text.collect::<Vec<_>>().join(";")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A table finds what a matcher finds that compares each row.
    #[test]
    fn a_table_matches_as_a_naive_matcher(
        parts in prop::collection::btree_set((part(), any::<bool>()), 0..40),
        sought in prop::collection::vec(part(), 1..20),
    ) {
        let settings: Vec<_> = parts
            .iter()
            .enumerate()
            .map(|(number, (address, whole))| RouteSetting {
                whole: *whole,
                ..route(address, &format!("peer:{number}"))
            })
            .collect();
        let routes = Routes::new(&settings, &names(&settings)).unwrap();
        for text in sought {
            let key = address(&text).key().unwrap();
            let naive = settings
                .iter()
                .filter_map(|setting| {
                    let row = AddressKey::route(&setting.address).unwrap();
                    let matches = if setting.whole { key == row } else { key.starts_with(&row) };
                    matches.then_some(((setting.whole, row.depth()), setting.to.clone()))
                })
                .max();
            let found = routes.find(&key).and_then(|row| row.to.as_ref()).map(ToString::to_string);
            prop_assert_eq!(found, naive.map(|(_, to)| to));
        }
    }
}
