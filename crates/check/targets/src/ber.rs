//! BER: all readers agree on what is a value, and on what is inside.

use bytes::Bytes;
use vere_ber::{
    Any, Element, Fault, ObjectIdentifier, Reader, Step, Tag, Walker, decode, encode, normalise,
    segments,
};

/// Values in every form: nested and indefinite, strings in segments, a long tag, an identifier, an envelope's bits.
pub(super) const SEEDS: &[&[u8]] = &[
    b"\x30\x80\x02\x01\x05\xa0\x80\x04\x82\x00\x03abc\x00\x00\x00\x00",
    b"\x24\x80\x04\x01a\x24\x04\x04\x02bc\x00\x00",
    b"\x23\x80\x03\x02\x00\x80\x03\x02\x06\x40\x00\x00",
    b"\x30\x0e\xbf\x8a\x3b\x02\x05\x00\x06\x03\x88\x37\x03\x01\x01\xff",
    b"\x02\x05\x00\x00\x00\x00\x05",
];

/// Reads the octets as one value.
pub(super) fn values(octets: &[u8]) {
    let source = Bytes::copy_from_slice(octets);
    let walked = walk(&source, usize::MAX);
    assert_eq!(walk(&source, 1), walked, "the same, octet by octet");
    let Ok(definite) = normalise(&source) else {
        let read = Element::only(&source).and_then(|value| primitives(value, &mut Vec::new()));
        assert!(read.is_err(), "a value for one reader alone");
        return;
    };
    assert!(walked.is_ok_and(|(whole, seen)| whole && seen == octets));
    assert_eq!(normalise(&definite), Ok(definite.clone()));
    let (mut sent, mut rewritten) = (Vec::new(), Vec::new());
    let element = only(&source, &mut sent);
    only(&definite, &mut rewritten);
    assert_eq!(sent, rewritten);
    meanings(&element, &definite);
}

fn only<'a>(octets: &'a Bytes, found: &mut Vec<(Tag, &'a [u8])>) -> Element<'a> {
    let element = Element::only(octets).unwrap_or_else(|fault| panic!("a value, and {fault}"));
    if let Err(fault) = primitives(element, found) {
        panic!("a value, and inside {fault}");
    }
    element
}

/// Finds the primitive values inside.
fn primitives<'a>(element: Element<'a>, found: &mut Vec<(Tag, &'a [u8])>) -> Result<(), Fault> {
    if !element.constructed {
        found.push((element.tag, element.contents));
        return Ok(());
    }
    let mut values = element.reader()?;
    while let Some(value) = values.read()? {
        primitives(value, found)?;
    }
    Ok(())
}

/// What the contents mean does not depend on the form.
fn meanings(element: &Element<'_>, definite: &Bytes) {
    let again = Reader::new(definite)
        .only()
        .unwrap_or_else(|fault| panic!("a value, and {fault}"));
    assert_eq!(element.bytes(), again.bytes());
    assert_eq!(element.bit_string(), again.bit_string());
    assert_eq!(element.integer(), again.integer());
    assert_eq!(element.oid(), again.oid());
    assert!(segments(definite).is_ok());
    assert_eq!(decode(definite), Ok(Any(definite.clone())));
    if let Ok(number) = decode::<i64>(definite) {
        assert_eq!(decode(&encode(&number)), Ok(number));
    }
    if let Ok(name) = decode::<ObjectIdentifier>(definite) {
        assert_eq!(decode(&encode(&name)), Ok(name.clone()));
        let read: Result<ObjectIdentifier, _> = name.to_string().parse();
        assert!(
            read.is_ok_and(|read| read.arcs() == name.arcs())
                || name.arcs().iter().any(|arc| *arc >= 1 << 31)
        );
    }
}

/// Walks through the octets: whether a whole number of values ends with them, and all octets again.
fn walk(octets: &Bytes, chunk: usize) -> Result<(bool, Vec<u8>), Fault> {
    let mut walker = Walker::new();
    let mut seen = Vec::new();
    for piece in octets.chunks(chunk) {
        walker.push(Bytes::copy_from_slice(piece));
        while let Some(step) = walker.step()? {
            match step {
                Step::Begin(_, raw) | Step::Content(raw) | Step::End(raw) => {
                    seen.extend_from_slice(&raw);
                }
            }
        }
    }
    Ok((walker.depth() == 0 && walker.waiting() == 0, seen))
}
