//! The encoding: types, forms, bounds.

use bytes::Bytes;

use super::hex;
use crate::{
    BITS_MAX, BerError, BitSet, BmpString, DEPTH_MAX, Element, External, Fault, GeneralString,
    Ia5String, NumericString, ObjectIdentifier, PrintableString, TeletexString, UniversalString,
    decode, encode, normalise,
};

fn fault<T: crate::Value + std::fmt::Debug>(octets: &str) -> Fault {
    decode::<T>(&hex(octets)).unwrap_err().fault
}

#[test]
fn integers() {
    for (value, octets) in [
        (0_i64, "020100"),
        (127, "02017f"),
        (128, "02020080"),
        (256, "02020100"),
        (-1, "0201ff"),
        (-128, "020180"),
        (-129, "0202ff7f"),
        (i64::MAX, "02087fffffffffffffff"),
        (i64::MIN, "02088000000000000000"),
    ] {
        assert_eq!(encode(&value), hex(octets));
        assert_eq!(decode::<i64>(&hex(octets)).unwrap(), value);
    }
    // Longer than needed, as some systems send.
    assert_eq!(decode::<i64>(&hex("020500000000 05")).unwrap(), 5);
    assert_eq!(
        decode::<i64>(&hex("020affffffffffffffffff85")).unwrap(),
        -123
    );
    assert_eq!(
        fault::<i64>("0209008000000000000000"),
        Fault::Invalid("an INTEGER of at most 8 octets")
    );
    assert_eq!(
        fault::<i64>("0200"),
        Fault::Invalid("an INTEGER with contents")
    );
    assert_eq!(
        fault::<u32>("0201ff"),
        Fault::Invalid("an INTEGER from 0 to 4294967295")
    );
}

fn bits(octets: &str) -> Result<Vec<u32>, BerError> {
    let octets = normalise(&hex(octets))?;
    Ok(BitSet::read(&Element::only(&octets)?)?.numbers().collect())
}

#[test]
fn bit_strings_of_any_length() {
    assert_eq!(bits("030100").unwrap(), []);
    assert_eq!(bits("03020640").unwrap(), [1]);
    assert_eq!(bits("03020780").unwrap(), [0]);
    // Bits after the last used one are not bits.
    assert_eq!(bits("030207ff").unwrap(), [0]);
    // More bits than have names, and more octets than are kept, all zero.
    assert_eq!(bits("03040080 0001").unwrap(), [0, 23]);
    assert_eq!(bits("030b00 80 000000000000000000").unwrap(), [0]);
    assert!(bits("030b00 80 000000000000000001").is_err());
    // Segments.
    assert_eq!(bits("2380 03020080 0302 0640 0000").unwrap(), [0, 9]);
    for wrong in ["0300", "03020800", "030101"] {
        assert!(bits(wrong).is_err(), "{wrong}");
    }
    assert_eq!(BitSet::bit(u32::try_from(BITS_MAX).unwrap()), BitSet::NONE);
}

#[test]
fn strings() {
    let text = PrintableString::new("O'Neil (R&D)").unwrap_err();
    assert_eq!(
        text.to_string(),
        "expected characters of PrintableString; found '&'"
    );
    assert_eq!(NumericString::new("12a").unwrap_err().found, 'a');
    assert_eq!(Ia5String::new("ü").unwrap_err().found, 'ü');
    // Strings of peers are kept, in and out of the alphabet.
    let octets = hex("1304 615f40fc");
    let string: PrintableString = decode(&octets).unwrap();
    assert_eq!((string.text().as_ref(), string.is_valid()), ("a_@ü", false));
    assert_eq!(encode(&string), octets);
    assert_eq!(
        encode(&BmpString::new("é日").unwrap()),
        hex("1e04 00e965e5")
    );
    assert_eq!(BmpString::new("𝄞").unwrap_err().found, '𝄞');
    assert_eq!(
        encode(&UniversalString::new("𝄞").unwrap()),
        hex("1c04 0001d11e")
    );
    assert_eq!(
        GeneralString::new("Ünal").unwrap().octets().as_ref(),
        b"\xDCnal"
    );
}

#[test]
fn teletex_strings_put_the_accent_first() {
    for (text, octets) in [
        ("Müller", "14074dc875 6c6c6572"),
        ("Ångström", "140aca416e677374 72c86f6d"),
        ("Æsop ß ø", "1408e1736f7020fb20f9"),
        ("Dvořák", "1408 44766fcf72c2616b"),
    ] {
        let string = TeletexString::new(text).unwrap();
        assert_eq!(encode(&string), hex(octets), "{text}");
        assert_eq!(string.text(), text);
    }
    assert!(TeletexString::new("日").is_err());
    // An accent at the end, two accents, an octet without a character.
    let string = TeletexString::from_octets(Bytes::from_static(b"\xC8\xC8a\xFF\xC1"));
    assert_eq!(string.text(), "\u{308}ä\u{FF}\u{300}");
}

#[test]
fn object_identifiers() {
    for text in ["2.6.1.10.1", "0.0", "1.39.4294967295", "2.999.3"] {
        let identifier: ObjectIdentifier = text.parse().unwrap();
        assert_eq!(identifier.to_string(), text);
        assert_eq!(
            decode::<ObjectIdentifier>(&encode(&identifier)).unwrap(),
            identifier
        );
    }
    assert_eq!(
        encode(&"2.6.1.4.11".parse::<ObjectIdentifier>().unwrap()),
        hex("0604 5601040b")
    );
    for text in ["", "1", "3.1", "1.40", "1.2.x", "2.4294967295"] {
        assert!(text.parse::<ObjectIdentifier>().is_err(), "{text}");
    }
    let wrong = Fault::Invalid("an OBJECT IDENTIFIER of 1 to 128 octets");
    assert_eq!(fault::<ObjectIdentifier>("0600"), wrong);
    assert_eq!(fault::<ObjectIdentifier>("060180"), wrong);
    // An arc that fits no number.
    let long: ObjectIdentifier = decode(&hex("060c 2a ffffffffffffffffffff7f")).unwrap();
    assert_eq!(long.arcs(), [1, 2, u64::MAX]);
}

#[test]
fn definite_octets_are_not_copied() {
    let octets = hex("3084 0000000a 3003 020105 1303 616263");
    assert_eq!(normalise(&octets).unwrap().as_ptr(), octets.as_ptr());
}

#[test]
fn indefinite_lengths_become_definite() {
    let inner = "3080 0201 05 a080 0482 0003 616263 0000 0000";
    assert_eq!(
        normalise(&hex(inner)).unwrap(),
        hex("300a 020105 a005 0403616263")
    );
    // A definite length around an indefinite one, and a tag of several octets.
    assert_eq!(
        normalise(&hex("3008 bf8a3b 80 0500 0000")).unwrap(),
        hex("3006 bf8a3b02 0500")
    );
    assert_eq!(
        normalise(&hex("3008 bf8a3b 80 0000 0500")).unwrap(),
        hex("3006 bf8a3b00 0500")
    );
    // A long value gets a long length.
    let mut long = vec![0x30, 0x80, 0x04, 0x82, 0x01, 0x00];
    long.extend([7; 256]);
    long.extend([0, 0]);
    let definite = normalise(&long.into()).unwrap();
    assert_eq!(
        definite[..8],
        [0x30, 0x82, 0x01, 0x04, 0x04, 0x82, 0x01, 0x00]
    );
}

#[test]
fn faults_of_the_structure() {
    for (octets, fault) in [
        ("", Fault::Truncated(0)),
        ("30", Fault::Truncated(0)),
        ("3002 02", Fault::Truncated(0)),
        ("3003 020205", Fault::Truncated(2)),
        ("3080 020105", Fault::Truncated(5)),
        ("0280 0000", Fault::Indefinite(0)),
        ("0500 00", Fault::Trailing(1)),
        ("3f ffffffff7f 00", Fault::Oversized(0)),
        ("0489 000000000000000001 00", Fault::Oversized(0)),
        ("0488 ffffffffffffffff 00", Fault::Oversized(0)),
        ("0488 7fffffffffffffff 00", Fault::Truncated(0)),
        // An inner value may not pass the end of an outer one.
        ("3004 0403 6161 61", Fault::Truncated(2)),
        ("3004 3080 0500 0000", Fault::Truncated(6)),
    ] {
        assert_eq!(
            normalise(&hex(octets)).unwrap_err().fault,
            fault,
            "{octets}"
        );
    }
    let nested = |depth: usize| [[0x30, 0x80].repeat(depth), [0, 0].repeat(depth)].concat();
    assert!(normalise(&nested(DEPTH_MAX).into()).is_ok());
    assert_eq!(
        normalise(&nested(DEPTH_MAX + 1).into()).unwrap_err().fault,
        Fault::Depth
    );
}

#[test]
fn external_is_read_back() {
    let external = External::of_context(5, hex("04 01 61"));
    let octets = encode(&external);
    assert_eq!(octets, hex("28 08 02 01 05 a0 03 04 01 61"));
    assert_eq!(decode::<External>(&octets).unwrap(), external);
    let other = hex("28 0f 06 03 883703 02 01 01 07 01 41 81 02 6162");
    let other = decode::<External>(&other).unwrap();
    assert_eq!(other.encoding.value().unwrap(), &hex("6162"));
    assert_eq!(other.indirect_reference, Some(1));
}
