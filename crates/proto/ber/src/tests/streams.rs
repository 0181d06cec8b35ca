use bytes::Bytes;

use super::hex;
use crate::{Class, Element, Fault, ObjectIdentifier, Reader, Step, Tag, Walker, write};

/// The only value of the octets, which stay as long as the tests run.
fn only(text: &str) -> Result<Element<'static>, Fault> {
    Reader::new(Box::leak(Box::new(hex(text)))).only()
}

fn walk(octets: &Bytes, chunk: usize) -> Result<Vec<u8>, Fault> {
    let mut walker = Walker::new();
    let mut seen = Vec::new();
    let mut depth = 0_i32;
    for piece in octets.chunks(chunk) {
        walker.push(Bytes::copy_from_slice(piece));
        while let Some(step) = walker.step()? {
            let raw = match step {
                Step::Begin(_, raw) => {
                    depth += 1;
                    raw
                }
                Step::Content(raw) => raw,
                Step::End(raw) => {
                    depth -= 1;
                    raw
                }
            };
            seen.extend_from_slice(&raw);
        }
    }
    assert_eq!(usize::try_from(depth).unwrap(), walker.depth());
    Ok(seen)
}

#[test]
fn examples_of_x690_are_read() {
    // X.690 clauses 8.6.4, 8.9.3 and 8.19.5.
    let bits = only("03 07 04 0A 3B 5F 29 1C D0")
        .unwrap()
        .bit_string()
        .unwrap();
    assert_eq!(bits.unused, 4);
    let joined = only("23 80 03 03 00 0A 3B 03 05 04 5F 29 1C D0 00 00").unwrap();
    assert_eq!(joined.bit_string().unwrap(), bits);
    assert!(bits.has(4) && bits.has(6) && !bits.has(5) && !bits.has(999));
    let oid = only("06 03 88 37 03").unwrap().oid().unwrap();
    assert_eq!(oid.arcs(), [2, 999, 3]);
    let sequence = only("30 0A 16 05 53 6D 69 74 68 01 01 FF").unwrap();
    let mut fields = sequence.reader().unwrap();
    assert_eq!(
        fields.expect(Tag::universal(22)).unwrap().bytes().unwrap(),
        "Smith"
    );
    assert!(fields.expect(Tag::BOOLEAN).unwrap().boolean().unwrap());
    fields.end().unwrap();
}

#[test]
fn integers_are_short_and_read_back() {
    for (number, encoded) in [
        (0, "02 01 00"),
        (127, "02 01 7f"),
        (128, "02 02 00 80"),
        (-1, "02 01 ff"),
        (-129, "02 02 ff 7f"),
        (i64::MIN, "02 08 80 00 00 00 00 00 00 00"),
    ] {
        let octets = write::integer(Tag::INTEGER, number).into_bytes();
        assert_eq!(octets, hex(encoded), "{number}");
        assert_eq!(Reader::new(&octets).only().unwrap().integer(), Ok(number));
    }
    assert!(only("02 00").unwrap().integer().is_err());
    assert!(
        only("02 09 01 02 03 04 05 06 07 08 09")
            .unwrap()
            .integer()
            .is_err()
    );
    assert!(only("02 01 05").unwrap().number(4).is_err());
}

#[test]
fn identifiers_are_read_back() {
    for arcs in [
        &[2, 6, 0, 1, 6][..],
        &[0, 39],
        &[1, 3, u32::MAX],
        &[2, 999, 128, 16_384],
    ] {
        let oid = ObjectIdentifier::new(arcs).unwrap();
        assert!(
            oid.arcs()
                .into_iter()
                .eq(arcs.iter().copied().map(u64::from))
        );
    }
    assert_eq!(ObjectIdentifier::new(&[3, 1]), None);
    assert_eq!(ObjectIdentifier::new(&[1, 40]), None);
    assert!(only("06 01 80").unwrap().oid().is_err());
}

#[test]
fn lengths_of_every_form_are_read() {
    for text in ["04 03 616263", "04 81 03 616263", "04 84 00000003 616263"] {
        assert_eq!(only(text).unwrap().bytes().unwrap(), "abc", "{text}");
    }
    assert_eq!(
        only("24 80 04 01 61 24 04 04 02 6263 00 00")
            .unwrap()
            .bytes()
            .unwrap(),
        "abc"
    );
    assert_eq!(only("04 80 61 00 00").unwrap_err(), Fault::Indefinite(0));
    assert_eq!(
        only("04 89 000000000000000003 616263").unwrap_err(),
        Fault::Oversized(0)
    );
    assert_eq!(
        only("04 88 ffffffffffffffff").unwrap_err(),
        Fault::Oversized(0)
    );
    assert_eq!(only("04 05 6162").unwrap_err(), Fault::Truncated(0));
    assert_eq!(only("30 80 04 01 61").unwrap_err(), Fault::Truncated(5));
}

#[test]
fn long_tags_are_read_back() {
    for number in [0, 30, 31, 127, 128, 16_383, 16_384, (1 << 28) - 1] {
        let tag = Tag {
            class: Class::Private,
            number,
        };
        let octets = write::primitive(tag, b"x").into_bytes();
        assert_eq!(octets.len(), write::header_len(tag, 1) + 1);
        assert_eq!(Reader::new(&octets).only().unwrap().tag, tag);
    }
    assert_eq!(
        only("1f 81 80 80 80 00 00").unwrap_err(),
        Fault::Oversized(0)
    );
}

#[test]
fn nesting_is_bounded() {
    let deep: Vec<u8> = [0x30, 0x80].repeat(200);
    let deep = Bytes::from(deep);
    assert_eq!(Element::only(&deep).unwrap_err(), Fault::Depth);
    assert_eq!(walk(&deep, 7).unwrap_err(), Fault::Depth);
    let mut definite = Bytes::from_static(&[5, 0]);
    for _ in 0..100 {
        definite = write::constructed(Tag::SEQUENCE, [write::encoded(&definite)]).into_bytes();
    }
    assert_eq!(walk(&definite, 3).unwrap_err(), Fault::Depth);
    let mut element = Element::only(&definite).unwrap();
    let end = loop {
        match element.inner() {
            Ok(inner) => element = inner,
            Err(error) => break error,
        }
    };
    assert_eq!(end, Fault::Depth);
}

#[test]
fn a_walk_gives_every_octet_back() {
    let value = hex(
        "61 80 30 80 02 01 03 a0 80 24 80 04 03 616263 04 00 24 80 04 01 64 00 00 00 00 00 00 00 00 00 00",
    );
    for chunk in 1..value.len() {
        assert_eq!(walk(&value, chunk).unwrap(), value, "{chunk}");
    }
}

#[test]
fn a_value_may_not_end_behind_the_value_around_it() {
    assert_eq!(
        walk(&hex("30 04 04 03 616263"), 2).unwrap_err(),
        Fault::Truncated(2)
    );
    assert_eq!(
        walk(&hex("30 03 30 80 00 00"), 9).unwrap_err(),
        Fault::Truncated(4)
    );
}

#[test]
fn a_content_is_taken_whole() {
    let mut walker = Walker::new();
    walker.push(hex("a0 06 04 01 61 04 01 62 05 00"));
    assert!(matches!(walker.step(), Ok(Some(Step::Begin(..)))));
    assert!(walker.take_whole());
    assert_eq!(
        walker.step(),
        Ok(Some(Step::Content(hex("04 01 61 04 01 62"))))
    );
    assert_eq!(walker.step(), Ok(Some(Step::End(Bytes::new()))));
    assert!(matches!(walker.step(), Ok(Some(Step::Begin(..)))));
    assert_eq!(walker.step(), Ok(Some(Step::End(Bytes::new()))));
    assert_eq!(walker.step(), Ok(None));
}
