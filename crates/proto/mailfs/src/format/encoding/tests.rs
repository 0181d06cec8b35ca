use proptest::prelude::*;

use super::*;

const BOTH: [Encoding; 2] = [Encoding::EightBit, Encoding::Base64];

/// Octets as from a generator of random numbers.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// What the page says of a text.
fn check_eight_bit(text: &[u8]) {
    assert!(!text.contains(&0));
    for line in text.split_inclusive(|octet| *octet == b'\n') {
        let line = line.strip_suffix(b"\r\n").unwrap();
        assert!((2..=972).contains(&line.len()));
        assert!(!line.contains(&b'\r') && !line.contains(&b'\n'));
        assert!(!line.ends_with(b" ") && !line.ends_with(b"\t"));
        for key in line.chunks(81).map(|block| block[0]) {
            assert!(!b"\0\t\n\r .=>F".contains(&key));
        }
    }
}

#[test]
fn words_and_numbers() {
    assert_eq!(BOTH.map(Encoding::word), ["8bit", "base64"]);
    assert_eq!(BOTH.map(|encoding| encoding as u8), [1, 2]);
}

#[test]
fn known_texts() {
    let eight = |body: &[u8]| Encoding::EightBit.encode(body);
    assert_eq!(eight(b""), b"");
    assert_eq!(eight(b"abc"), b"\x01bcd\r\n");
    // 255 + 1 is NUL, 8 + 2 is LF, 10 + 3 is CR.
    assert_eq!(eight(b"\xff\x08\x0a"), b"\x04\x03\x0c\x0e\r\n");
    // The last octet becomes a blank with the key 1 and a TAB with the key 3; 2 stays.
    assert_eq!(eight(b"\x1f"), b"\x02\x21\r\n");
    assert_eq!(eight(b"\x08\x06"), b"\x01\x09\x07\r\n");
    assert_eq!(eight(b"\x06\x08"), b"\x03\x09\x0b\r\n");
    let line = eight(&[0x60; 961]);
    assert_eq!(line[..81], [&b"\x01"[..], &[0x61; 80]].concat());
    assert_eq!(line[972..], *b"\r\n\x01\x61\r\n");
    let base64 = Encoding::Base64.encode(&[0; 58]);
    assert_eq!(base64, [&[b'A'; 76][..], b"\r\nAA==\r\n"].concat());
}

/// The least key by the definition, octet by octet.
#[test]
fn keys_are_the_least_that_fit() {
    let body = noise(9_600, 3);
    let text = Encoding::EightBit.encode(&body);
    for (index, block) in body.chunks(80).enumerate() {
        let fits = |key: &u8| {
            let coded: Vec<u8> = block.iter().map(|octet| octet.wrapping_add(*key)).collect();
            let ends = index % 12 == 11 && matches!(coded.last(), Some(b' ' | b'\t'));
            !b"\0\t\n\r .=>F".contains(key)
                && !coded.iter().any(|octet| b"\0\n\r".contains(octet))
                && !ends
        };
        let least = (0..=u8::MAX).find(fits).unwrap();
        assert_eq!(text[index / 12 * 974 + index % 12 * 81], least);
    }
}

/// Blocks for which only the last numbers fit as keys: octets that exclude every number before.
#[test]
fn a_key_always_exists() {
    for allowed in 1..=u8::MAX {
        if b"\t\n\r .=>F".contains(&allowed) {
            continue;
        }
        // Each octet excludes its negative, and that plus LF, and that plus CR; `allowed` must stay.
        let mut octets = Vec::new();
        for key in (1..allowed).filter(|key| !b"\t\n\r .=>F".contains(key)) {
            let excluded = |key: u8| {
                octets
                    .iter()
                    .any(|o: &u8| b"\0\n\r".contains(&o.wrapping_add(key)))
            };
            if excluded(key) {
                continue;
            }
            let hits = [0, 10, 13].map(|line_end: u8| line_end.wrapping_sub(key));
            let spares = |octet: &u8| !b"\0\n\r".contains(&octet.wrapping_add(allowed));
            octets.extend(hits.into_iter().find(spares));
        }
        for len in [1, 79, 80] {
            let mut block = octets.clone();
            block.truncate(len);
            block.resize(len, 0_u8.wrapping_sub(allowed).wrapping_add(0x61));
            let text = Encoding::EightBit.encode(&block);
            check_eight_bit(&text);
            assert_eq!(Encoding::EightBit.decode(&text), Ok(block));
        }
    }
}

#[test]
fn lengths_and_offsets() {
    for encoding in BOTH {
        for len in [
            0, 1, 2, 3, 56, 57, 58, 79, 80, 81, 959, 960, 961, 1_919, 1_920, 1_921,
        ] {
            let text = encoding.encode(&noise(len, 5));
            assert_eq!(text.len(), encoding.encoded_len(len), "{len} octets");
        }
    }
    assert_eq!(Encoding::EightBit.encoded_len(960), 974);
    assert_eq!(Encoding::EightBit.encoded_len(4 << 20), 4_255_473);
    assert_eq!(Encoding::Base64.encoded_len(57), 78);
}

#[test]
fn texts_there_and_back() {
    for encoding in BOTH {
        for len in (0..2_000).chain([100_000]) {
            let body = noise(len, len as u64 + 9);
            let text = encoding.encode(&body);
            if encoding == Encoding::EightBit {
                check_eight_bit(&text);
            }
            assert_eq!(encoding.decode(&text), Ok(body), "{len} octets");
        }
    }
}

#[test]
fn rewritten_line_ends_are_tolerated() {
    for encoding in BOTH {
        for len in [1, 80, 900, 960, 1_000, 1_920, 5_000] {
            let body = noise(len, 11);
            let text = encoding.encode(&body);
            let replaced = |by: &[u8]| {
                let lines: Vec<_> = text.split(|octet| *octet == b'\n').collect();
                let lines = lines
                    .iter()
                    .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
                lines.collect::<Vec<_>>().join(by)
            };
            for changed in [
                replaced(b"\n"),
                replaced(b"\r"),
                text[..text.len() - 2].to_vec(),
                text[..text.len() - 1].to_vec(),
                [&text[..], b"\r\n\r\n"].concat(),
                [&text[..], b"\n"].concat(),
            ] {
                assert_eq!(
                    encoding.decode(&changed).as_ref(),
                    Ok(&body),
                    "{len} octets"
                );
            }
        }
        assert_eq!(encoding.decode(b"\r\n"), Ok(Vec::new()));
    }
}

#[test]
fn nothing_else_is_tolerated() {
    let text = Encoding::EightBit.encode(&noise(2_000, 13));
    let refused = |text: Vec<u8>| assert!(Encoding::EightBit.decode(&text).is_err());
    let with = |at: usize, octet: u8| {
        let mut changed = text.clone();
        changed[at] = octet;
        changed
    };
    for key in *b"\0\t\n\r .=>F" {
        refused(with(0, key));
        refused(with(81, key));
        refused(with(974 * 2, key));
    }
    for octet in *b"\0\n\r" {
        refused(with(5, octet));
        refused(with(974 * 2 + 5, octet));
    }
    refused([&text[..972], &text[974..]].concat());
    refused([&text[..974], b"\r\n", &text[974..]].concat());
    refused([&text[..971], &text[972..]].concat());
    refused([&text[..972], b"x", &text[972..]].concat());
    refused([&text[..], b"\r\n\x01"].concat());
    refused([&text[..], b"\r\n\x01a"].concat());
    refused(b"\x01".to_vec());
    refused([&text[..974], b"\x01\r\n"].concat());

    let refused = |text: &[u8]| assert!(Encoding::Base64.decode(text).is_err());
    for text in [
        &b"AAA"[..],
        b"AA==AAAA",
        b"AAAA=",
        b"AB==",
        b"AA A",
        b"AA=\r\n",
        b"----",
    ] {
        refused(text);
    }
}

#[test]
fn texts_have_bounds() {
    for encoding in BOTH {
        let most = encoding.encoded_len(MAIL_OCTETS_MAX) + 16;
        let text = encoding.decode(&vec![b'\n'; most + 1]).unwrap_err();
        assert_eq!(
            text.to_string(),
            format!(
                "octets of a mail's text: expected at most {most}; found {}",
                most + 1
            )
        );
        assert_eq!(encoding.decode(&vec![b'\n'; most]), Ok(Vec::new()));
    }
}

/// A server that keeps `text` and is asked for a part.
fn fetch(text: &[u8], part: Part) -> &[u8] {
    let from = (part.offset as usize).min(text.len());
    let to = (from + part.length as usize).min(text.len());
    &text[from..to]
}

#[test]
fn known_spans() {
    let eight = Encoding::EightBit.span(68, 80 * 12).unwrap();
    assert_eq!((eight.part.offset, eight.part.length), (0, 974 + 81));
    let aligned = Encoding::EightBit.span(960, 960).unwrap();
    assert_eq!((aligned.part.offset, aligned.part.length), (974, 972));
    let within = Encoding::EightBit.span(960 + 81, 1).unwrap();
    assert_eq!((within.part.offset, within.part.length), (974 + 81, 81));
    let base64 = Encoding::Base64.span(56, 2).unwrap();
    assert_eq!((base64.part.offset, base64.part.length), (72, 4 + 2 + 4));
    let none = Encoding::Base64.span(58, 0).unwrap();
    assert_eq!((none.part.offset, none.part.length), (78, 0));
    assert_eq!(
        Encoding::Base64.decode_part(&none, b""),
        Ok(BytesMut::new())
    );
}

#[test]
fn parts_have_bounds() {
    for encoding in BOTH {
        let end = MAIL_OCTETS_MAX as u32;
        assert!(encoding.span(end - 5, 5).is_ok());
        for (at, len) in [(end - 5, 6), (end, 1), (u32::MAX, u32::MAX), (0, u32::MAX)] {
            let text = encoding.span(at, len).unwrap_err().to_string();
            assert!(text.starts_with("octets of a mail: expected at most 4194304; found "));
        }
        let span = encoding.span(10, 10).unwrap();
        let more = vec![b'A'; span.part.length as usize + 1];
        assert!(matches!(
            encoding.decode_part(&span, &more),
            Err(FormatError::Above { .. })
        ));
    }
}

#[test]
fn short_and_rewritten_parts_are_refused() {
    let body = noise(3_000, 17);
    for encoding in BOTH {
        let text = encoding.encode(&body);
        let span = encoding.span(100, 1_500).unwrap();
        let part = fetch(&text, span.part);
        for cut in 0..part.len() {
            assert!(encoding.decode_part(&span, &part[..cut]).is_err(), "{cut}");
        }
        let lines: Vec<u8> = text
            .iter()
            .copied()
            .filter(|octet| *octet != b'\r')
            .collect();
        assert!(
            encoding
                .decode_part(&span, fetch(&lines, span.part))
                .is_err()
        );
        // The wanted octets end behind the body.
        let behind = encoding.span(2_990, 11).unwrap();
        let found = encoding.decode_part(&behind, fetch(&text, behind.part));
        assert_eq!(
            found.unwrap_err().to_string(),
            "part of a mail's text: expected 11 more octets; found 10"
        );
    }
    let text = Encoding::EightBit.encode(&body);
    let span = Encoding::EightBit.span(0, 1_000).unwrap();
    let mut part = fetch(&text, span.part).to_vec();
    part[972..974].copy_from_slice(b"xy");
    assert_eq!(
        Encoding::EightBit.decode_part(&span, &part).unwrap_err(),
        LINE_END
    );
}

proptest! {
    #[test]
    fn any_body_there_and_back(body: Vec<u8>) {
        for encoding in BOTH {
            prop_assert_eq!(encoding.decode(&encoding.encode(&body)), Ok(body.clone()));
        }
    }

    #[test]
    fn parts_are_those_of_the_whole(len in 1_usize..4_000, from: usize, count: usize, seed: u64) {
        let body = noise(len, seed);
        let from = from % len;
        let count = count % (len - from + 1);
        for encoding in BOTH {
            let text = encoding.encode(&body);
            let span = encoding.span(from as u32, count as u32).unwrap();
            let part = fetch(&text, span.part);
            let found = encoding.decode_part(&span, part);
            prop_assert_eq!(found.as_deref(), Ok(&body[from..from + count]));
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic(text: Vec<u8>, at in 0_u32..3_000, len in 0_u32..3_000) {
        for encoding in BOTH {
            let _ = encoding.decode(&text);
            let span = encoding.span(at, len).unwrap();
            if let Ok(octets) = encoding.decode_part(&span, &text) {
                prop_assert_eq!(octets.len(), len as usize);
            }
        }
    }
}

/// `cargo test -p vere-mailfs --config profile.dev.package.vere-mailfs.opt-level=3 speed -- --ignored --nocapture`
#[test]
#[ignore = "measures; needs optimisation"]
#[allow(clippy::disallowed_methods, reason = "a measurement")]
fn speed() {
    let body = noise(MAIL_OCTETS_MAX, 19);
    for encoding in BOTH {
        let text = encoding.encode(&body);
        let mut rates = [0.0_f64; 2];
        for _ in 0..10 {
            let start = std::time::Instant::now();
            let coded = encoding.encode(&body);
            let between = std::time::Instant::now();
            let plain = encoding.decode(&text).unwrap();
            let end = std::time::Instant::now();
            assert_eq!((coded.len(), plain.len()), (text.len(), body.len()));
            let rate = |from: std::time::Instant, to: std::time::Instant| {
                body.len() as f64 / 1e6 / (to - from).as_secs_f64()
            };
            rates[0] = rates[0].max(rate(start, between));
            rates[1] = rates[1].max(rate(between, end));
        }
        let [encode, decode] = rates;
        println!(
            "{}: encode {encode:.0} MB/s, decode {decode:.0} MB/s",
            encoding.word()
        );
    }
}
