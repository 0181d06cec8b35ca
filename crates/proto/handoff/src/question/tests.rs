//! Frames there and back, cut, damaged, and drawn octet by octet.

use proptest::option;
use proptest::prelude::*;

use super::*;

fn recipient(text: &str, may_relay: bool) -> Question<'_> {
    Question::Recipient {
        address: Address::new(text).unwrap(),
        client: [192, 0, 2, 1].into(),
        may_relay,
    }
}

fn resolve(name: &str, kind: RecordType) -> Question<'_> {
    let name = Name::new(name).unwrap();
    let client = [192, 0, 2, 1].into();
    Question::Resolve { client, name, kind }
}

fn encoded(question: &Question<'_>, id: u64) -> Vec<u8> {
    let mut octets = Vec::new();
    question.encode(id, &mut octets);
    octets
}

fn answered(answer: Answer, id: u64) -> Vec<u8> {
    let mut octets = Vec::new();
    answer.encode(id, &mut octets);
    octets
}

/// All frames of the octets, which arrive in pieces of this length.
fn frames_in_pieces(octets: &[u8], piece: usize) -> Result<Vec<(u64, usize)>, WireError> {
    let mut reader = Reader::default();
    let mut frames = Vec::new();
    for mut piece in octets.chunks(piece) {
        while !piece.is_empty() {
            let space = reader.space();
            let count = space.len().min(piece.len());
            space[..count].copy_from_slice(&piece[..count]);
            reader.filled(count);
            piece = &piece[count..];
            while let Some(frame) = reader.frame()? {
                frames.push((frame.id, frame.octets));
            }
        }
    }
    assert!(!reader.has_rest());
    Ok(frames)
}

#[test]
fn golden_octets_of_questions() {
    let head = |length, kind| [length, 0, 0, 0, VERSION, kind, 2, 1, 0, 0, 0, 0, 0, 0];
    let client = [4, 192, 0, 2, 1];
    let expected = [&head(21, 1)[..], &[1], &client, &[3, 0], b"a@b"].concat();
    assert_eq!(encoded(&recipient("a@b", true), 0x0102), expected);
    let expected = [&head(28, 1)[..], &[0], &client, &[10, 0], b"postmaster"].concat();
    assert_eq!(encoded(&recipient("postmaster", false), 0x0102), expected);
    assert_eq!(answered(Answer::Accepted, 0x0102), head(10, 129));
    let expected = [&head(11, 130)[..], &[27]].concat();
    assert_eq!(answered(Answer::Refused(27), 0x0102), expected);
    assert_eq!(answered(Answer::Unknown, 0x0102), head(10, 131));
    let sender = Sender::new([192, 0, 2, 1].into(), "mx.a", "a@b").unwrap();
    let expected = [
        &head(25, 2)[..],
        &[4, 192, 0, 2, 1, 4],
        b"mx.a",
        &[3, 0],
        b"a@b",
    ]
    .concat();
    assert_eq!(encoded(&Question::Spf(sender), 0x0102), expected);
    let expected = [&head(21, 3)[..], &client, &[1, 4], b"2.a."].concat();
    assert_eq!(encoded(&resolve("2.a.", RecordType::A), 0x0102), expected);
    let results = SpfResults {
        sender: Spf::TempError,
        helo: Some(Spf::Pass),
    };
    let expected = [&head(11, 132)[..], &[0b011_110]].concat();
    assert_eq!(answered(Answer::Spf(results), 0x0102), expected);
    let records = Records::new([Record::A([127, 0, 0, 2].into()), Record::Txt(b"x".to_vec())]);
    let expected = [&head(21, 133)[..], &[0, 2, 1, 127, 0, 0, 2, 16, 1, 0], b"x"].concat();
    assert_eq!(answered(Answer::Records(records), 0x0102), expected);
    let expected = [&head(11, 134)[..], &[2]].concat();
    assert_eq!(
        answered(Answer::Nothing(NoRecords::Unavailable), 0x0102),
        expected
    );
    assert_eq!(encoded(&Question::Figures, 0x0102), head(10, 4));
    let figures = Figures {
        calls_accepted: 1,
        connections: 2,
        ..Figures::default()
    };
    let [first, last] = [1_u64, 2].map(u64::to_le_bytes);
    let expected = [&head(74, 135)[..], &first, &[0; 48], &last].concat();
    assert_eq!(answered(Answer::Figures(figures), 0x0102), expected);
}

#[test]
fn every_cut_waits_for_more_and_every_length_is_checked() {
    let sender = Sender::new(std::net::Ipv6Addr::LOCALHOST.into(), "mx.a", "a@b").unwrap();
    let questions = [
        resolve("2.0.0.127.list.example", RecordType::Txt),
        Question::Spf(sender),
        recipient("ann@example.org", false),
    ];
    let wholes = questions.map(|question| encoded(&question, 1));
    for whole in &wholes {
        for end in 0..whole.len() {
            assert_eq!(Frame::read(&whole[..end]), Ok(None), "cut at {end}");
            // A frame that ends where its length says, and too early for its content.
            let mut cut = whole[..end].to_vec();
            if end >= 14 {
                cut[..4].copy_from_slice(&u32::try_from(end - 4).unwrap().to_le_bytes());
                let frame = Frame::read(&cut).unwrap().expect("whole");
                assert_eq!(Question::decode(&frame), Err(WireError::Content), "{end}");
            }
        }
    }
    let [.., whole] = wholes;
    for length in [
        0,
        9,
        FRAME_OCTETS_MAX + 1,
        usize::try_from(u32::MAX).unwrap(),
    ] {
        let mut wrong = whole.clone();
        wrong[..4].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
        // The length alone suffices to refuse the frame.
        assert_eq!(Frame::read(&wrong[..4]), Err(WireError::Length(length)));
        assert_eq!(Frame::read(&wrong), Err(WireError::Length(length)));
    }
    let mut newer = whole.clone();
    for version in [VERSION - 1, VERSION + 1] {
        newer[4] = version;
        assert_eq!(Frame::read(&newer), Err(WireError::Version(version)));
    }
    let told = WireError::Version(1).to_string();
    assert_eq!(told, "expected version 3; found version 1");
}

#[test]
fn only_what_the_protocol_draws_is_understood() {
    fn decode(octets: &[u8]) -> Result<Question<'_>, WireError> {
        Question::decode(&Frame::read(octets).unwrap().expect("whole"))
    }
    let whole = encoded(&recipient("a@b", false), 1);
    let with = |at: usize, octet: u8| {
        let mut octets = whole.clone();
        octets[at] = octet;
        octets
    };
    assert_eq!(decode(&with(5, 8)), Err(WireError::Kind(8)));
    assert_eq!(decode(&with(5, 129)), Err(WireError::Kind(129)));
    assert_eq!(decode(&with(14, 2)), Err(WireError::Content), "a flag");
    assert_eq!(decode(&with(15, 5)), Err(WireError::Content), "a family");
    assert_eq!(decode(&with(20, 2)), Err(WireError::Content), "behind");
    assert_eq!(decode(&with(20, 4)), Err(WireError::Content), "beyond");
    assert_eq!(decode(&with(22, 0xff)), Err(WireError::Content), "no UTF-8");
    let mut empty = whole[..22].to_vec();
    (empty[0], empty[20]) = (18, 0);
    assert_eq!(decode(&empty), Err(WireError::Address(0)));
    let mut long = answered(Answer::Accepted, 1);
    long[0] = 11;
    long.push(0);
    let frame = Frame::read(&long).unwrap().expect("whole");
    assert_eq!(Answer::decode(&frame), Err(WireError::Content));
}

#[test]
fn an_address_has_bounds() {
    let most = "a".repeat(ADDRESS_OCTETS_MAX);
    let octets = encoded(&recipient(&most, true), u64::MAX);
    let frame = Frame::read(&octets).unwrap().expect("whole");
    assert_eq!(Question::decode(&frame), Ok(recipient(&most, true)));
    let more = format!("{most}a");
    assert_eq!(Address::new(&more), Err(WireError::Address(1_025)));
    assert_eq!(Address::new(""), Err(WireError::Address(0)));
}

#[test]
fn names_and_senders_have_bounds() {
    let name = "a".repeat(NAME_OCTETS_MAX);
    let question = resolve(&name, RecordType::Ptr);
    let octets = encoded(&question, 1);
    let frame = Frame::read(&octets).unwrap().expect("whole");
    assert_eq!(Question::decode(&frame), Ok(question));
    assert_eq!(Name::new(&format!("{name}a")), Err(WireError::Address(255)));
    assert_eq!(Name::new(""), Err(WireError::Address(0)));
    assert_eq!(Name::new("a b"), Err(WireError::Content));
    assert_eq!(Name::new("\u{e9}.example"), Err(WireError::Content));
    let client = [192, 0, 2, 1].into();
    let (helo, path) = ("a".repeat(HELO_OCTETS_MAX), "a".repeat(ADDRESS_OCTETS_MAX));
    let question = Question::Spf(Sender::new(client, &helo, &path).unwrap());
    let octets = encoded(&question, 1);
    let frame = Frame::read(&octets).unwrap().expect("whole");
    assert_eq!(Question::decode(&frame), Ok(question));
    assert_eq!(
        Sender::new(client, &format!("{helo}a"), ""),
        Err(WireError::Address(256))
    );
    assert_eq!(
        Sender::new(client, "", &format!("{path}a")),
        Err(WireError::Address(1_025))
    );
}

#[test]
fn records_that_an_answer_has_no_room_for_are_left_off() {
    let kept = |records: Vec<Record>| {
        let records = Records::new(records);
        let octets = answered(Answer::Records(records.clone()), 1);
        assert!(octets.len() <= FRAME_OCTETS_MAX);
        let frame = Frame::read(&octets).unwrap().expect("whole");
        assert_eq!(Answer::decode(&frame), Ok(Answer::Records(records.clone())));
        (records.as_slice().len(), records.is_cut())
    };
    let address = Record::A([127, 0, 0, 2].into());
    assert_eq!(kept(Vec::new()), (0, false));
    assert_eq!(
        kept(vec![address.clone(); RECORDS_MAX]),
        (RECORDS_MAX, false)
    );
    assert_eq!(kept(vec![address; RECORDS_MAX + 1]), (RECORDS_MAX, true));
    assert_eq!(kept(vec![Record::Txt(vec![0; 3_997])]), (1, false));
    assert_eq!(kept(vec![Record::Txt(vec![0; 3_998])]), (0, true));
    let hosts = vec![Record::Mx(1, String::new()), Record::Ptr("a b".to_owned())];
    assert_eq!(kept(hosts), (1, true));
}

/// Records of each kind, and a text that takes the rest of the 4,000 octets.
#[test]
fn the_octets_of_every_kind_of_record_count() {
    let octets = |records: &[Record]| {
        let records = Records::new(records.to_vec());
        assert!(!records.is_cut());
        answered(Answer::Records(records), 1).len()
    };
    for record in [
        Record::A([127, 0, 0, 2].into()),
        Record::Aaaa(std::net::Ipv6Addr::LOCALHOST),
        Record::Ptr("mx.a".to_owned()),
        Record::Mx(5, "mx.a".to_owned()),
        Record::Txt(b"text".to_vec()),
    ] {
        let alone = octets(std::slice::from_ref(&record)) - octets(&[]);
        let text = |more: usize| Record::Txt(vec![7; 4_000 - alone - 3 + more]);
        let fits = Records::new([record.clone(), text(0)]);
        assert_eq!((fits.as_slice().len(), fits.is_cut()), (2, false));
        let cut = Records::new([record.clone(), text(1)]);
        assert_eq!((cut.as_slice(), cut.is_cut()), (&[record][..], true));
    }
}

#[test]
fn records_of_more_octets_than_an_answer_has_are_malformed() {
    let records = Records::new([Record::Txt(vec![7; 3_997])]);
    let mut octets = answered(Answer::Records(records), 1);
    let decoded = |octets: &[u8]| Answer::decode(&Frame::read(octets).unwrap().expect("whole"));
    assert!(decoded(&octets).is_ok());
    // A second text, with which the frame is within its own bound.
    octets[15] += 1;
    octets.extend([16, 2, 0, b'a', b'b']);
    octets[0] += 5;
    assert!(octets.len() < FRAME_OCTETS_MAX);
    assert_eq!(decoded(&octets), Err(WireError::Content));
}

#[test]
fn a_question_says_what_was_asked() {
    let address = "ann@example.org";
    assert_eq!(Address::new(address).unwrap().as_str(), address);
    let name = "2.0.0.127.list.example.";
    assert_eq!(Name::new(name).unwrap().as_str(), name);
    let client = [192, 0, 2, 1].into();
    let sender = Sender::new(client, "mx.a", address).unwrap();
    let said = (sender.client(), sender.helo(), sender.reverse_path());
    assert_eq!(said, (client, "mx.a", address));
}

#[test]
fn records_beyond_the_bounds_are_malformed() {
    let records = Records::new(vec![Record::A([127, 0, 0, 2].into()); RECORDS_MAX]);
    let mut octets = answered(Answer::Records(records), 1);
    octets[15] += 1;
    octets.extend([1, 127, 0, 0, 2]);
    octets[0] += 5;
    let frame = Frame::read(&octets).unwrap().expect("whole");
    assert_eq!(Answer::decode(&frame), Err(WireError::Content));
    for (answer, at, wrong) in [
        (Answer::Spf(Spf::None.into()), 14, 0),
        (Answer::Spf(Spf::None.into()), 14, 0b010_000),
        (Answer::Spf(Spf::None.into()), 14, 0b1_000_001),
        (Answer::Nothing(NoRecords::NoData), 14, 3),
        (Answer::Records(Records::new([])), 14, 2),
        (Answer::Records(Records::new([])), 15, 1),
    ] {
        let mut octets = answered(answer, 1);
        octets[at] = wrong;
        let frame = Frame::read(&octets).unwrap().expect("whole");
        assert_eq!(Answer::decode(&frame), Err(WireError::Content));
    }
}

#[test]
fn no_flipped_bit_makes_a_reader_panic() {
    let frames = [
        encoded(&recipient("änn@example.org", true), 77),
        answered(Answer::Refused(9), 77),
        encoded(&resolve("2.0.0.127.list.example", RecordType::A), 77),
        encoded(
            &Question::Spf(Sender::new([192, 0, 2, 1].into(), "mx.a", "a@b").unwrap()),
            77,
        ),
        answered(
            Answer::Records(Records::new([Record::Mx(5, "mx.a".to_owned())])),
            77,
        ),
        answered(Answer::Figures(Figures::default()), 77),
    ];
    for whole in &frames {
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(Some(frame)) = Frame::read(&flipped) {
                let _ = Question::decode(&frame);
                let _ = Answer::decode(&frame);
            }
        }
    }
}

#[test]
fn a_reader_takes_frames_however_they_arrive() {
    let longest = "a".repeat(ADDRESS_OCTETS_MAX);
    let texts = ["a@b", &longest, "postmaster", "ann@example.org"];
    let mut octets = Vec::new();
    let mut expected = Vec::new();
    for (id, text) in (0..).zip(texts.iter().cycle().take(100)) {
        let before = octets.len();
        recipient(text, false).encode(id, &mut octets);
        expected.push((id, octets.len() - before));
    }
    for piece in [1, 7, 1_000, BUFFER_OCTETS, octets.len()] {
        assert_eq!(frames_in_pieces(&octets, piece).as_ref(), Ok(&expected));
    }
    let mut wrong = octets;
    wrong[4] = 9;
    assert_eq!(frames_in_pieces(&wrong, 5), Err(WireError::Version(9)));
}

#[test]
fn a_reader_has_space_whenever_its_whole_frames_are_taken() {
    let mut reader = Reader::default();
    // The longest frame but for its last octet.
    let mut octets = (FRAME_OCTETS_MAX as u32).to_le_bytes().to_vec();
    octets.extend([VERSION, 1]);
    octets.resize(FRAME_OCTETS_MAX + 3, 0);
    reader.space()[..octets.len()].copy_from_slice(&octets);
    reader.filled(octets.len());
    assert_eq!(reader.frame(), Ok(None));
    assert!(reader.has_rest());
    assert_eq!(reader.space().len(), BUFFER_OCTETS - octets.len());
    reader.filled(usize::MAX);
    assert_eq!(reader.space().len(), 0);
}

fn record() -> impl Strategy<Value = Record> {
    let host = || "[!-~]{0,60}";
    prop_oneof![
        any::<[u8; 4]>().prop_map(|octets| Record::A(octets.into())),
        any::<[u8; 16]>().prop_map(|octets| Record::Aaaa(octets.into())),
        host().prop_map(Record::Ptr),
        (any::<u16>(), host()).prop_map(|(preference, host)| Record::Mx(preference, host)),
        prop::collection::vec(any::<u8>(), 0..600).prop_map(Record::Txt),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Accepted),
        any::<u8>().prop_map(Answer::Refused),
        Just(Answer::Unknown),
        (
            prop::sample::select(Spf::ALL),
            option::of(prop::sample::select(Spf::ALL))
        )
            .prop_map(|(sender, helo)| Answer::Spf(SpfResults { sender, helo })),
        prop::sample::select(NoRecords::ALL).prop_map(Answer::Nothing),
        any::<[u64; 2]>().prop_map(|[calls_refused, answers_kept]| {
            Answer::Figures(Figures {
                calls_refused,
                answers_kept,
                ..Figures::default()
            })
        }),
        prop::collection::vec(record(), 0..40)
            .prop_map(|records| Answer::Records(Records::new(records))),
    ]
}

proptest! {
    #[test]
    fn questions_survive(id in any::<u64>(), text in "\\PC{1,250}", may_relay in any::<bool>()) {
        let question = recipient(&text, may_relay);
        let octets = encoded(&question, id);
        let frame = Frame::read(&octets).unwrap().unwrap();
        prop_assert_eq!((frame.id, frame.octets), (id, octets.len()));
        prop_assert_eq!(Question::decode(&frame), Ok(question));
    }

    #[test]
    fn questions_about_the_dns_survive(
        client in any::<std::net::IpAddr>(),
        helo in "\\PC{0,60}",
        path in "\\PC{0,250}",
        name in "[!-~]{1,254}",
        kind in prop::sample::select(RecordType::ALL),
    ) {
        let sender = Sender::new(client, &helo, &path).unwrap();
        for question in [Question::Spf(sender), resolve(&name, kind)] {
            let octets = encoded(&question, 7);
            let frame = Frame::read(&octets).unwrap().unwrap();
            prop_assert_eq!(Question::decode(&frame), Ok(question));
        }
    }

    #[test]
    fn answers_survive(id in any::<u64>(), answer in answer()) {
        let octets = answered(answer.clone(), id);
        let frame = Frame::read(&octets).unwrap().unwrap();
        prop_assert_eq!((frame.id, frame.octets), (id, octets.len()));
        prop_assert_eq!(Answer::decode(&frame), Ok(answer));
    }

    #[test]
    fn any_octets_are_read_without_a_panic(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some(frame)) = Frame::read(&octets) {
            let _ = Question::decode(&frame);
            let _ = Answer::decode(&frame);
        }
    }
}

#[test]
fn an_answer_says_whether_every_list_has_answered() {
    for complete in [true, false] {
        let answer = Answer::Lists(ListsAnswer::new(complete, Vec::new(), "", ""));
        let mut octets = Vec::new();
        answer.encode(1, &mut octets);
        let frame = Frame::read(&octets).unwrap().unwrap();
        let Ok(Answer::Lists(read)) = Answer::decode(&frame) else {
            panic!("expected the answer about lists");
        };
        assert_eq!(read.is_complete(), complete);
    }
}
