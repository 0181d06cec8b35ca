use super::{
    AddrSpec, AddressError, AddressLiteral, Domain, DomainOrLiteral, ForwardPath, ReversePath,
};
use proptest::prelude::{any, proptest};

#[test]
fn addresses_take_their_canonical_form() {
    for (text, canonical, unquoted) in [
        ("Jones@XYZ.com", "Jones@xyz.com", "Jones"),
        ("a.b.c@d", "a.b.c@d", "a.b.c"),
        ("\"plain\"@d.e", "plain@d.e", "plain"),
        ("\"Joe.\\Blow\"@d.e", "Joe.Blow@d.e", "Joe.Blow"),
        ("\"with space\"@d.e", "\"with space\"@d.e", "with space"),
        ("\"a\\\"b\\\\\"@d.e", "\"a\\\"b\\\\\"@d.e", "a\"b\\"),
        ("\"a@b\"@d.e", "\"a@b\"@d.e", "a@b"),
        ("\"dot..dot.\"@d.e", "\"dot..dot.\"@d.e", "dot..dot."),
        ("u@[192.0.2.1]", "u@[192.0.2.1]", "u"),
        ("u@[ipv6:2001:DB8:0::1]", "u@[IPv6:2001:db8::1]", "u"),
        ("Pelé@Müller.example", "Pelé@Müller.example", "Pelé"),
        (
            "!#$%&'*+-/=?^_`{|}~@d",
            "!#$%&'*+-/=?^_`{|}~@d",
            "!#$%&'*+-/=?^_`{|}~",
        ),
    ] {
        let address = AddrSpec::parse(text).unwrap();
        assert_eq!(
            address.as_str(),
            canonical.replace("Müller", "müller"),
            "{text}"
        );
        assert_eq!(address.local_part_unquoted(), unquoted, "{text}");
        assert_eq!(
            AddrSpec::parse(address.as_str()).unwrap(),
            address,
            "{text}"
        );
        assert_eq!(
            AddrSpec::new(unquoted, address.domain()).unwrap(),
            address,
            "{text}"
        );
    }
}

#[test]
fn malformed_addresses_are_refused_by_cause() {
    for (text, error) in [
        ("", AddressError::Empty),
        ("postmaster", AddressError::MissingAt),
        ("@d", AddressError::LocalPart),
        ("a..b@d", AddressError::LocalPart),
        (".a@d", AddressError::LocalPart),
        ("a.@d", AddressError::LocalPart),
        ("a b@d", AddressError::LocalPart),
        ("a<b@d", AddressError::LocalPart),
        ("a\0@d", AddressError::LocalPart),
        ("\"\"@d", AddressError::LocalPart),
        ("\"a@d", AddressError::LocalPart),
        ("\"a\r\n\"@d", AddressError::LocalPart),
        ("\"a\\\u{7f}\"@d", AddressError::LocalPart),
        ("\"a\"b@d", AddressError::MissingAt),
        ("a@", AddressError::Domain),
        ("a@b@c", AddressError::Domain),
        ("a@d.", AddressError::Domain),
        ("a@.d", AddressError::Domain),
        ("a@-d", AddressError::Domain),
        ("a@d-", AddressError::Domain),
        ("a@d_e", AddressError::Domain),
        ("a@d/../../e", AddressError::Domain),
        ("a@d\0", AddressError::Domain),
        ("a@d\u{9b}", AddressError::Domain),
        ("a@d\u{7f}", AddressError::Domain),
        ("a@[300.0.2.1]", AddressError::Literal),
        ("a@[2001:db8::1]", AddressError::Literal),
        ("a@[IPv6:192.0.2.1]", AddressError::Literal),
        ("a@[x400:c=de]", AddressError::Literal),
        ("a@[192.0.2.1", AddressError::Literal),
    ] {
        assert_eq!(AddrSpec::parse(text), Err(error), "{text}");
    }
    let long = "x".repeat(256);
    assert_eq!(
        AddrSpec::parse(&format!("{long}@d")),
        Err(AddressError::LocalPartTooLong(256))
    );
    assert_eq!(
        AddrSpec::parse(&format!("a@{long}")),
        Err(AddressError::DomainTooLong(256))
    );
    assert_eq!(
        Domain::parse(&"x".repeat(64)),
        Err(AddressError::DomainTooLong(64))
    );
}

#[test]
fn paths_drop_source_routes_and_know_null_and_postmaster() {
    assert_eq!(ReversePath::parse("<>"), Ok(ReversePath::Null));
    assert_eq!(ReversePath::Null.to_string(), "<>");
    let routed = ReversePath::parse("<@hosta.int,@jkl.org:userc@d.bar.org>").unwrap();
    assert_eq!(routed.to_string(), "<userc@d.bar.org>");
    assert_eq!(
        ForwardPath::parse("<PostMaster>"),
        Ok(ForwardPath::Postmaster)
    );
    assert_eq!(ForwardPath::Postmaster.to_string(), "<postmaster>");
    for (text, error) in [
        ("", AddressError::MissingBrackets),
        ("a@b", AddressError::MissingBrackets),
        ("<a@b", AddressError::MissingBrackets),
        ("<", AddressError::MissingBrackets),
        ("<@a", AddressError::MissingBrackets),
        ("<@a>", AddressError::SourceRoute),
        ("<@a,b:c@d>", AddressError::SourceRoute),
        ("<@:c@d>", AddressError::SourceRoute),
        ("<>", AddressError::Empty),
    ] {
        assert_eq!(ForwardPath::parse(text), Err(error), "{text}");
    }
}

#[test]
fn literals_and_names_are_told_apart() {
    assert_eq!(
        DomainOrLiteral::parse("[127.0.0.1]"),
        Ok(DomainOrLiteral::Literal(AddressLiteral::V4(
            [127, 0, 0, 1].into()
        )))
    );
    assert_eq!(
        DomainOrLiteral::parse("MX.Example").unwrap().to_string(),
        "mx.example"
    );
    assert!(
        AddrSpec::parse("a@[127.0.0.1]")
            .unwrap()
            .literal()
            .is_some()
    );
    assert!(AddrSpec::parse("a@b").unwrap().literal().is_none());
}

proptest! {
    #[test]
    fn parsing_never_panics_and_canonical_forms_are_stable(text in any::<String>()) {
        let _ = ReversePath::parse(&text);
        let _ = ForwardPath::parse(&format!("<{text}>"));
        if let Ok(address) = AddrSpec::parse(&text) {
            assert_eq!(AddrSpec::parse(address.as_str()), Ok(address));
        }
    }

    #[test]
    fn every_local_part_without_controls_survives_quoting(local in "[ -~é]{1,60}") {
        let address = AddrSpec::new(&local, "example.org").unwrap();
        assert_eq!(address.local_part_unquoted(), local.as_str());
        assert_eq!(AddrSpec::parse(address.as_str()), Ok(address));
    }
}
