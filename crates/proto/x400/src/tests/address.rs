//! Addresses: text, encoding, comparison, routing.

use vere_ber::{Any, PrintableString, decode, encode};

use std::collections::HashMap;

use proptest::prelude::*;

use super::sample::{ADDRESSES, hex};
use crate::*;

fn attributes(text: &str) -> Attributes {
    text.parse::<OrAddress>()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .attributes()
        .unwrap()
}

fn error(text: &str) -> String {
    text.parse::<OrAddress>().unwrap_err().to_string()
}

fn key(text: &str) -> AddressKey {
    AddressKey::of(&attributes(text))
}

#[test]
fn addresses_are_read_as_written() {
    for text in ADDRESSES {
        let address: OrAddress = text.parse().unwrap();
        assert_eq!(
            decode::<OrAddress>(&encode(&address)).unwrap(),
            address,
            "{text}"
        );
        let attributes = address.attributes().unwrap();
        assert_eq!(attributes.to_address().unwrap(), address, "{text}");
        assert_eq!(
            attributes.to_string().parse::<OrAddress>().unwrap(),
            address,
            "{text}"
        );
        let mixer = attributes.to_mixer_text();
        assert_eq!(mixer.parse::<OrAddress>().unwrap(), address, "{mixer}");
    }
}

/// The octets of an address by hand, from X.411 clause 8.5.5.
#[test]
fn octets_of_an_address() {
    let address: OrAddress = "C=XX;A=ICAO;P=EUROPE;O=AFTN;OU1=LEMGZPZX".parse().unwrap();
    let expected = "302c 302a 6104 1302 5858 6206 1304 4943414f a208 1306 4555524f5045 8304 4146544e a60a 1308 4c454d475a505a58";
    assert_eq!(encode(&address), hex(expected));
    let name = OrName::from(address);
    assert_eq!(encode(&name), hex(&expected.replacen("30", "60", 1)));
}

#[test]
fn text_of_the_mixer_form() {
    let attributes = attributes(ADDRESSES[0]);
    assert_eq!(
        attributes.to_mixer_text(),
        "/G=John/I=F/S=Smith/GQ=Jr/OU=North/OU=Sales/O=Acme/PRMD=Acme/ADMD=Carrier/C=GB/DD.RFC-822=js(a)acme.example/"
    );
    assert_eq!(
        self::attributes("S=Müller/x;P=Acme;A=Carrier;C=DE").to_mixer_text(),
        "/S=*M{200}uller{047}x/PRMD=Acme/ADMD=Carrier/C=DE/"
    );
}

#[test]
fn forms_of_text_that_mean_the_same() {
    for (one, other) in [
        (
            "G=John;S=Smith;P=x;A=y;C=GB",
            "c=gb; a=y; p=x; s=Smith; g=John",
        ),
        ("S=Smith;P=x;A= ;C=GB", "S=Smith;P=x;C=GB"),
        ("S=a;;b;P=x;A=y;C=GB", "/S=a$;b/P=x/A=y/C=GB"),
        ("S=a/b;P=x;A=y;C=GB", "/S=a//b/P=x/A=y/C=GB/"),
        ("S=a=b;P=x;A=y;C=GB", "/S=a=b/P=x/A=y/C=GB/"),
        ("S=a$b;P=x;A=y;C=GB", "/S=a$$b/P=x/A=y/C=GB/"),
        ("DDA:x==y=z;P=x;A=y;C=GB", "/DD.x$=y=z/P=x/A=y/C=GB/"),
        (
            "DDA:a=1;DDA:b=2;P=x;A=y;C=GB",
            "/DD.b=2/DD.a=1/P=x/A=y/C=GB/",
        ),
        (
            "DDA:RFC-822=a(a)b;P=x;A=y;C=GB",
            "RFC-822=a(a)b;P=x;A=y;C=GB",
        ),
        (
            "OU1=high;OU2=low;P=x;A=y;C=GB",
            "/OU=low/OU=high/P=x/A=y/C=GB/",
        ),
        (
            "G=Marshall;I=MT;S=Rose;P=x;A=y;C=US",
            "/PN=Marshall.M.T.Rose/P=x/A=y/C=US/",
        ),
        ("I=J;S=Smith;P=x;A=y;C=US", "/PN=J.Smith/P=x/A=y/C=US/"),
        (
            "PD-A1=The Dome;PD-A2=The Square;P=x;A=y;C=GB",
            "/PD-ADDRESS=The Dome|The Square/P=x/A=y/C=GB/",
        ),
        ("N-ID=17;P=x;A=y;C=GB", "/UA-ID=17/PRMD=x/ADMD=y/C=GB/"),
        ("CN=Å;P=x;A=y;C=GB", "/CN=*{202}A/P=x/A=y/C=GB/"),
        ("T-TY=ia5;X.121=1;A=y;C=GB", "/T-TY=7/X121=1/ADMD=y/C=GB/"),
    ] {
        assert_eq!(attributes(one), attributes(other), "{one} {other}");
    }
}

#[test]
fn errors_name_the_column() {
    for (text, expected) in [
        (
            "",
            "expected an O/R address such as G=John;S=Smith;P=Acme;C=GB; found nothing",
        ),
        (
            "///",
            "expected an O/R address such as G=John;S=Smith;P=Acme;C=GB; found nothing",
        ),
        (
            "S=Smith;X=1;C=GB",
            "expected a keyword such as S, O, OU1, P, A or C; found \"X\" at column 9",
        ),
        (
            "S=Smith; P;C=GB",
            "expected = after P; found the end of the attribute at column 10",
        ),
        (
            "S=a;C=GB;S=b",
            "expected S once; found it again at column 10",
        ),
        ("S=;C=GB", "S: expected a value; found nothing at column 1"),
        (
            "S=a;Q=third;C=GB",
            "Q: expected at most 3 characters; found 5 at column 5",
        ),
        ("G=John;C=GB", "G: expected S too; found none at column 1"),
        (
            "S=a;OU2=x;C=GB",
            "OU2: expected OU1 too; found none at column 5",
        ),
        (
            "S=a;C=GBR",
            "C: expected two letters or three digits; found other characters at column 5",
        ),
        (
            "S=a;N-ID=x1;C=GB",
            "N-ID: expected digits and spaces; found other characters at column 5",
        ),
        (
            "S=a;P=a@b;C=GB",
            "P: expected characters of PrintableString; found other characters at column 5",
        ),
        (
            "/S=a/C=GB$",
            "expected a character after $; found the end at column 10",
        ),
        (
            "S=a;DDA:toolongtype=x;C=GB",
            "DDA: expected at most 8 characters; found 11 at column 5",
        ),
        (
            "PN=A.B.C.D.E.F.G.H;C=GB",
            "expected a name such as John.F.Smith; found \"A.B.C.D.E.F.G.H\" at column 1",
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
    assert!(
        error(&format!("S={}", "x".repeat(5_000))).starts_with("expected at most 4096 characters")
    );
}

#[test]
fn comparison() {
    for (one, other) in [
        (
            "S=Smith;P=Acme;A=Carrier;C=GB",
            "S=  sMITH ;P=ACME;A=carrier;C=gb",
        ),
        ("S=de  la Cruz;P=x;A=y;C=ES", "S=DE LA CRUZ;P=x;A=y;C=ES"),
        ("S=a;P=x;A= ;C=DE", "S=a;P=x;C=262"),
        ("S=müller;P=x;A=y;C=DE", "S=MÜLLER;P=x;A=y;C=DE"),
    ] {
        assert_eq!(key(one), key(other));
    }
    assert_ne!(key("S=a;P=x;A=y;C=DE"), key("S=a;P=x;A=z;C=DE"));
    assert_ne!(key("S=a;P=x;A=y;C=DE"), key("CN=a;P=x;A=y;C=DE"));
    assert_eq!(
        key("S=Smith;OU1=Sales;P=Acme;C=GB").to_string(),
        "C=GB;A=;P=ACME;OU1=SALES;S=SMITH"
    );
}

#[test]
fn one_text_in_three_encodings_is_one_key() {
    let printable: OrAddress = "CN=Desk;O=Acme;P=x;A=y;C=GB".parse().unwrap();
    let mut teletex = printable.clone();
    let text = vere_ber::TeletexString::new("DESK").unwrap();
    teletex.extension.0 = vec![ExtensionAttribute::new(
        ExtensionAttributeType::TeletexCommonName,
        &text,
    )];
    let mut universal = printable.clone();
    let text = UniversalText::new("desk");
    universal.extension.0 = vec![ExtensionAttribute::new(
        ExtensionAttributeType::UniversalCommonName,
        &text,
    )];
    let mut numeric = printable.clone();
    numeric.standard.country_name = Some(CountryName::new("234").unwrap());
    for other in [teletex, universal, numeric] {
        assert_eq!(printable.key().unwrap(), other.key().unwrap());
    }
}

#[test]
fn routes_by_longest_match() {
    let routes: HashMap<String, &str> = [
        ("C=GB", "gb"),
        ("C=GB;A=Carrier", "carrier"),
        ("P=Acme;A=Carrier;C=GB", "acme"),
        ("P=Acme;A=Carrier;C=GB;O=Acme;OU1=Sales", "sales"),
        ("P=Acme;A=Carrier;C=GB;CN=Desk", "desk"),
        ("C=DE;A= ;P=Werk", "werk"),
    ]
    .into_iter()
    .map(|(route, peer)| (AddressKey::route(route).unwrap().as_str().to_owned(), peer))
    .collect();
    let found = |text: &str| {
        key(text)
            .prefixes()
            .find_map(|prefix| routes.get(prefix).copied())
    };
    assert_eq!(found("S=x;A=Other;C=GB"), Some("gb"));
    assert_eq!(found("S=x;P=Else;A=Carrier;C=234"), Some("carrier"));
    assert_eq!(found("S=x;P=acme;A=carrier;C=gb"), Some("acme"));
    assert_eq!(
        found("S=x;OU1=sales;O=Acme;P=Acme;A=Carrier;C=GB"),
        Some("sales")
    );
    assert_eq!(
        found("S=x;OU1=sales2;O=Acme;P=Acme;A=Carrier;C=GB"),
        Some("acme")
    );
    assert_eq!(found("CN=DESK;P=Acme;A=Carrier;C=GB"), Some("desk"));
    assert_eq!(found("S=x;P=Werk;C=DE"), Some("werk"));
    assert_eq!(found("S=x;P=Acme;A=Carrier;C=FR"), None);
    let prefixes = key("S=x;P=p;A=a;C=FR");
    assert_eq!(prefixes.prefixes().count(), prefixes.depth() + 1);
    assert_eq!(AddressKey::default().prefixes().collect::<Vec<_>>(), [""]);
}

#[test]
fn aeronautical_addresses() {
    let xf = Amhs::of(&attributes("C=xx;A=icao;P=Europe;O=aftn;OU1=lemgzpzx")).unwrap();
    assert_eq!(
        (xf.form.clone(), xf.address.as_str()),
        (AmhsForm::Xf, "LEMGZPZX")
    );
    assert_eq!(
        AddressKey::of(&xf.attributes()),
        key("C=XX;A=ICAO;P=EUROPE;O=AFTN;OU1=LEMGZPZX")
    );
    let caas = Amhs::of(&attributes(
        "C=XX;A=ICAO;P=GERMANY;O=EDDD;OU1=EDDF;CN=EDDFYFYX",
    ))
    .unwrap();
    let AmhsForm::Caas {
        organization,
        location,
    } = &caas.form
    else {
        panic!()
    };
    assert_eq!((organization.as_str(), location.as_str()), ("EDDD", "EDDF"));
    assert_eq!(Amhs::of(&caas.attributes()), Some(caas));
    for text in [
        "C=DE;A=ICAO;P=EUROPE;O=AFTN;OU1=LEMGZPZX",
        "C=XX;A=ICAO;P=EUROPE;O=AFTN;OU1=LEMGZPZ",
        "C=XX;A=ICAO;P=EUROPE;O=LE;OU1=LEMG1;CN=LEMGZPZX",
        "C=XX;A=ICAO;P=EUROPE;O=LE;OU1=LEMG",
        "S=x;C=XX",
    ] {
        assert_eq!(Amhs::of(&attributes(text)), None, "{text}");
    }
}

#[test]
fn a_wrong_extension_attribute_is_an_error_of_the_address_only() {
    let mut address: OrAddress = "S=a;P=x;A=y;C=GB".parse().unwrap();
    let wrong = ExtensionAttribute {
        kind: ExtensionAttributeType::CommonName,
        value: Any(hex("0500")),
        ..Default::default()
    };
    address.extension.0.push(wrong);
    let address: OrAddress = decode(&encode(&address)).unwrap();
    assert_eq!(
        address.key().unwrap_err().to_string(),
        "extension_attributes: common-name: expected PrintableString; found NULL"
    );
    assert!(address.to_string().starts_with("(extension_attributes"));
}

#[test]
fn a_name_without_an_address() {
    assert!(OrAddress::default().is_absent());
    let mut name: OrName = decode(&hex("6013 3000 a00f 300d310b3009060355040613024742")).unwrap();
    assert!(name.address.is_absent() && name.directory_name().is_some());
    name.remove_directory_name();
    assert_eq!(encode(&name), hex("60023000"));
}

#[test]
fn characters_outside_printable_string_are_kept() {
    let mut address: OrAddress = "S=a;P=x;A=y;C=GB".parse().unwrap();
    address.standard.organization_name = Some(PrintableString::from_octets("R&D_x".into()));
    let read: OrAddress = decode(&encode(&address)).unwrap();
    assert_eq!(read, address);
    assert_eq!(read.to_string(), "S=a;O=R&D_x;P=x;A=y;C=GB");
}

/// Text of up to `most` characters of one of the three encodings.
fn text(most: usize) -> BoxedStrategy<String> {
    prop_oneof![
        4 => prop::collection::vec(prop::sample::select("ABCxyz019 '()+,-./:=?".chars().collect::<Vec<_>>()), 1..=most),
        2 => prop::collection::vec(prop::sample::select("Aäöüßéñ;$*|{}@_/=".chars().collect::<Vec<_>>()), 1..=most),
        1 => prop::collection::vec(prop::sample::select("日本Жю€;$*/=".chars().collect::<Vec<_>>()), 1..=most),
    ]
    .prop_map(|characters| characters.into_iter().collect())
    .boxed()
}

fn printable(most: usize) -> BoxedStrategy<String> {
    prop::collection::vec(
        prop::sample::select("ABCxyz019 '()+,-./:=?".chars().collect::<Vec<_>>()),
        1..=most,
    )
    .prop_map(|characters| characters.into_iter().collect())
    .boxed()
}

prop_compose! {
    fn any_attributes()(
        country in prop::sample::select(vec!["GB", "DE", "262"]),
        administration in printable(16),
        private in prop::option::of(printable(16)),
        organization in prop::option::of(text(64)),
        units in prop::collection::vec(text(32), 0..=4),
        common_name in prop::option::of(text(64)),
        surname in prop::option::of(text(40)),
        others in (prop::option::of(text(16)), prop::option::of(text(5)), prop::option::of(text(3))),
        numbers in (prop::option::of("[0-9 ]{1,16}"), prop::option::of("[0-9]{1,32}"), prop::option::of(printable(24))),
        postal in (prop::option::of(text(30)), prop::option::of(text(30)), prop::option::of(printable(16))),
        lines in prop::collection::vec(printable(30), 0..=6),
        domain_defined in prop::collection::vec((text(8), text(128)), 0..=4),
    ) -> Attributes {
        let mut attributes = Attributes::default();
        let mut set = |attribute, text: Option<String>| {
            if let Some(text) = text {
                attributes.set(attribute, text);
            }
        };
        set(Attribute::Country, Some(country.into()));
        set(Attribute::Administration, Some(administration));
        set(Attribute::Private, private);
        set(Attribute::Organization, organization);
        set(Attribute::CommonName, common_name);
        if surname.is_some() {
            set(Attribute::Surname, surname);
            set(Attribute::GivenName, others.0);
            set(Attribute::Initials, others.1);
            set(Attribute::GenerationQualifier, others.2);
        }
        set(Attribute::NetworkAddress, numbers.0);
        set(Attribute::NumericUserIdentifier, numbers.1);
        set(Attribute::TerminalIdentifier, numbers.2);
        set(Attribute::Street, postal.0);
        set(Attribute::LocalPostal, postal.1);
        set(Attribute::PostalCode, postal.2);
        for (attribute, unit) in Attribute::UNITS.into_iter().zip(units) {
            set(attribute, Some(unit));
        }
        for (attribute, line) in Attribute::LINES.into_iter().zip(lines) {
            set(attribute, Some(line));
        }
        attributes.domain_defined = domain_defined;
        attributes
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_addresses_are_read_as_they_were(attributes in any_attributes()) {
        let address = attributes.to_address().unwrap();
        for text in [attributes.to_string(), attributes.to_mixer_text()] {
            let read: OrAddress = text.parse().map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
            prop_assert_eq!(&read, &address, "{}", text);
        }
        prop_assert_eq!(decode::<OrAddress>(&encode(&address)).unwrap(), address.clone());
        prop_assert_eq!(address.key().unwrap(), address.to_string().parse::<OrAddress>().unwrap().key().unwrap());
    }

    #[test]
    fn any_text_is_an_address_or_an_error(text in "[/;=$*{}A-Za-z0-9:. ü日|-]{0,60}") {
        if let Ok(address) = text.parse::<OrAddress>() {
            let printed = address.to_string();
            prop_assert_eq!(printed.parse::<OrAddress>().unwrap().key().unwrap(), address.key().unwrap(), "{}", printed);
        }
    }

    #[test]
    fn keys_begin_with_their_prefixes(attributes in any_attributes()) {
        let key = AddressKey::of(&attributes);
        let prefixes: Vec<&str> = key.prefixes().collect();
        prop_assert_eq!(prefixes.first(), Some(&key.as_str()));
        prop_assert_eq!(prefixes.last(), Some(&""));
        prop_assert!(prefixes.is_sorted_by_key(|prefix| std::cmp::Reverse(prefix.len())));
    }
}
