//! For random messages: every responsible recipient is in one part or in the report, once, and nothing else changes.

use bytes::Bytes;
use proptest::prelude::*;
use vere_x400::*;

use super::sample::*;
use crate::*;

/// A recipient: where it is, its bits, whether it has an alternate, and an unknown extension.
#[derive(Debug, Clone)]
struct One {
    place: usize,
    bits: u8,
    alternate: Option<usize>,
    extension: Option<u8>,
}

const PLACES: [&str; 8] = [
    "S=x;P=C;A=Carrier;C=GB",
    "S=smith;P=B;A=Carrier;C=GB",
    "S=jones;P=B;A=Carrier;C=GB",
    "S=nobody;P=B;A=Carrier;C=GB",
    "S=second;P=B;A=Carrier;C=GB",
    "O=AFTN;A=ICAO;C=XX;CN=LEMGZPZX",
    "S=x;A=Far;C=US",
    "S=Größe;P=C;A=Carrier;C=GB",
];

fn one() -> impl Strategy<Value = One> {
    let alternate = prop::option::weighted(0.2, 0..PLACES.len());
    let extension = prop::option::weighted(0.2, 0..4_u8);
    (0..PLACES.len(), 0..32_u8, alternate, extension).prop_map(
        |(place, bits, alternate, extension)| One {
            place,
            bits,
            alternate,
            extension,
        },
    )
}

fn criticality(number: u8) -> Criticality {
    match number {
        0 => Criticality::default(),
        1 => Criticality::FOR_SUBMISSION,
        2 => Criticality::FOR_TRANSFER,
        _ => Criticality::FOR_DELIVERY,
    }
}

fn built(ones: &[One], octets: &[u8], whole: Option<u8>) -> Message {
    let addresses: Vec<_> = ones.iter().map(|one| address(PLACES[one.place])).collect();
    let mut message = message(&addresses);
    message.content = Content::new(Bytes::copy_from_slice(octets));
    let extension = |number: u8| unknown_extension(criticality(number));
    message.envelope.extensions.0.extend(whole.map(extension));
    for (fields, one) in message.envelope.per_recipient_fields.iter_mut().zip(ones) {
        let bits = (0..5).filter(|bit| one.bits & (1 << bit) != 0);
        let bits = bits.fold(vere_ber::BitSet::NONE, |all, bit| {
            all.union(vere_ber::BitSet::bit(bit))
        });
        fields.per_recipient_indicators = PerRecipientIndicators(bits);
        fields.extensions.0.extend(one.extension.map(extension));
        if let Some(alternate) = one.alternate {
            let name = address(PLACES[alternate]).into();
            fields
                .extensions
                .set(&ExtensionValue::OriginatorRequestedAlternateRecipient(name));
        }
    }
    message
}

/// MTA B, with one of 1984 at C if asked for, and a user who has redirected messages.
fn world(old: bool, redirected: bool) -> Mta {
    let mut mta = middle();
    let list = mta.peers.iter().cloned().map(|mut terms| {
        if old && terms.name == "c" {
            terms.profile = Profile::Y1984;
        }
        terms
    });
    mta.peers = Peers::new(list.collect()).unwrap();
    if redirected {
        let jones = mta.site.users.entry("jones".to_owned()).or_default();
        jones.redirect_to = Some(user("x", "C"));
    }
    mta
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn responsibility_is_kept_and_given_once(
        ones in prop::collection::vec(one(), 1..12),
        octets in prop::collection::vec(any::<u8>(), 0..64),
        whole in prop::option::weighted(0.2, 0..4_u8),
        old in any::<bool>(),
        redirected in any::<bool>(),
        as_probe in any::<bool>(),
    ) {
        let mta = world(old, redirected);
        let message = built(&ones, &octets, whole);
        let before = message.envelope.clone();
        let apdu = if as_probe {
            Apdu::Probe(crate::subject::into_probe(message.envelope, Some(9)))
        } else {
            Apdu::Message(message)
        };
        // Over the wire, as a peer sends it.
        let apdu = Apdu::split(&apdu.to_bytes()).unwrap();
        let outcome = mta.transfer(apdu, arrival(FROM_A)).unwrap();
        let mut ended: Vec<u32> = outcome.onward.iter().flat_map(|part| part.recipients.clone()).collect();
        // Without requests deliverable recipients of probes are reported all the same.
        ended.extend(reported(&outcome).iter().map(|(number, _)| number - 1));
        ended.sort_unstable();
        let ours: Vec<u32> = (0..).zip(&before.per_recipient_fields)
            .filter(|(_, fields)| crate::subject::is_responsible(fields))
            .map(|(place, _)| place)
            .collect();
        prop_assert_eq!(&ended, &ours);
        check_parts(&mta, &outcome, &before, &octets)?;
    }
}

fn units() -> Vec<Bytes> {
    let ones: Vec<_> = (0..PLACES.len())
        .map(|place| One {
            place,
            bits: 31,
            alternate: Some(1),
            extension: Some(0),
        })
        .collect();
    let mut message = built(&ones, b"content", Some(0));
    let history = ExtensionValue::RedirectionHistory(vec![Redirection::default()]);
    let fields = &mut message.envelope.per_recipient_fields[3];
    fields.extensions.set(&history);
    message
        .envelope
        .push_internal_trace(internal("mta-b2"))
        .unwrap();
    let probe = crate::subject::into_probe(message.envelope.clone(), Some(9));
    let report = report(user("origin", "A"));
    let units = [
        Apdu::Message(message),
        Apdu::Probe(probe),
        Apdu::Report(Box::new(report)),
    ];
    units.iter().map(Apdu::to_bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Wrong octets of peers lead to refusals, causes and reports, and every part can still be sent.
    #[test]
    fn damaged_units_do_no_harm(
        which in 0..3_usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        inside in any::<bool>(),
        old in any::<bool>(),
    ) {
        let mut octets = units()[which].to_vec();
        for (place, octet) in damage {
            let place = place.index(octets.len());
            octets[place] = octet;
        }
        let Ok(apdu) = Apdu::split(&octets.into()) else {
            return Ok(());
        };
        let mta = world(old, true);
        let source = Source::Peer(if inside { "b2" } else { "a" });
        let Ok(outcome) = mta.transfer(apdu, arrival(source)) else {
            return Ok(());
        };
        for part in &outcome.onward {
            let stored: Bytes = outcome.pieces().concat().into();
            let outgoing = mta.outgoing(&stored, &part.recipients, &part.destination).unwrap();
            prop_assert_eq!(outgoing.left_out, Vec::<u32>::new());
            prop_assert!(Apdu::split(&outgoing.apdu.unwrap().to_bytes()).is_ok());
        }
        if let Some(report) = outcome.report {
            let unit = Apdu::Report(report);
            prop_assert!(Apdu::split(&unit.to_bytes()).is_ok());
        }
    }
}

/// Each part sent names its recipients alone, and carries content and extensions.
fn check_parts(
    mta: &Mta,
    outcome: &Outcome,
    before: &MessageTransferEnvelope,
    content: &[u8],
) -> Result<(), TestCaseError> {
    for part in &outcome.onward {
        let stored: Bytes = outcome.pieces().concat().into();
        let outgoing = mta
            .outgoing(&stored, &part.recipients, &part.destination)
            .unwrap();
        prop_assert_eq!(&outgoing.left_out, &Vec::<u32>::new());
        let apdu = Apdu::split(&outgoing.apdu.unwrap().to_bytes()).unwrap();
        if let Apdu::Message(message) = &apdu {
            prop_assert_eq!(message.content.to_bytes(), content);
        }
        let is_old = part
            .destination
            .peer()
            .is_some_and(|name| mta.peers.get(name).unwrap().profile == Profile::Y1984);
        let sent = crate::subject::Subject::of(apdu).unwrap().envelope;
        let numbers: Vec<u32> = sent
            .per_recipient_fields
            .iter()
            .filter(|fields| crate::subject::is_responsible(fields))
            .map(|fields| fields.originally_specified_recipient_number - 1)
            .collect();
        prop_assert_eq!(&numbers, &part.recipients);
        if !is_old {
            check_extensions(&sent, before)?;
        }
    }
    Ok(())
}

fn check_extensions(
    sent: &MessageTransferEnvelope,
    before: &MessageTransferEnvelope,
) -> Result<(), TestCaseError> {
    let unknown = |extensions: &Extensions| {
        let fields = extensions.0.iter();
        fields
            .filter(|field| field.standard_kind() == Some(StandardExtension::Other(99)))
            .cloned()
            .collect::<Vec<_>>()
    };
    prop_assert_eq!(unknown(&sent.extensions), unknown(&before.extensions));
    prop_assert_eq!(
        sent.per_recipient_fields.len(),
        before.per_recipient_fields.len()
    );
    for (after, before) in sent
        .per_recipient_fields
        .iter()
        .zip(&before.per_recipient_fields)
    {
        prop_assert_eq!(unknown(&after.extensions), unknown(&before.extensions));
    }
    Ok(())
}
