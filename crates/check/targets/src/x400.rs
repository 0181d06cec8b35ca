//! Envelopes of P1 and O/R addresses: a decoded value encodes to an equal value, and a printed address is the same
//! address.

use bytes::Bytes;
use vere_ber::{decode, encode};
use vere_x400::ipm::InformationObject;
use vere_x400::{
    Apdu, Attributes, MtaBindArgument, MtaBindError, MtaBindResult, OrAddress, downgrade_message,
    downgrade_probe, downgrade_report,
};

/// A message with an indefinite length and a content in segments, a probe, a report; an interpersonal message; binds.
pub(super) const APDU_SEEDS: &[&[u8]] = &[
    b"\xa0\x801nd\x11c\x0ca\x04\x13\x02GBb\x04\x13\x02CA\x16\x01a`\x0b0\x09a\x04\x13\x02GB\x83\x01AF\x01\x16i$0\x22c\
      \x0ca\x04\x13\x02GBb\x04\x13\x02CA1\x12\x80\x0d260504030201Z\x82\x01\x00\xa3\x0b0\x09\xa0\x03\x80\x01\x0e\xa2\
      \x020\x00\xa2\x161\x14`\x0b0\x09a\x04\x13\x02GB\x83\x01A\x80\x01\x01\x81\x02\x00\x98$\x80\x04\x01a\x04\x01b\
      \x00\x00\x00\x00",
    b"\xa2ad\x11c\x0ca\x04\x13\x02GBb\x04\x13\x02CA\x16\x01a`\x0b0\x09a\x04\x13\x02GB\x83\x01AF\x01\x16i$0\x22c\x0ca\
      \x04\x13\x02GBb\x04\x13\x02CA1\x12\x80\x0d260504030201Z\x82\x01\x00\xa2\x161\x14`\x0b0\x09a\x04\x13\x02GB\x83\
      \x01A\x80\x01\x01\x81\x02\x00\x98",
    b"\xa1\x81\xa31Md\x11c\x0ca\x04\x13\x02GBb\x04\x13\x02CA\x16\x01a`\x120\x10a\x04\x13\x02GBb\x03\x13\x01B\xa5\x03\
      \x80\x01Ai$0\"c\x0ca\x04\x13\x02GBb\x04\x13\x02CA1\x12\x80\r260504030201Z\x82\x01\x001Rd\x11c\x0ca\x04\x13\x02\
      GBb\x04\x13\x02CA\x16\x01a\x81\x03abc\xa0816\xa0\x120\x10a\x04\x13\x02GBb\x03\x13\x01B\xa5\x03\x80\x01A\x81\
      \x01\x01\x82\x02\x00\x00\xa3\x19\x80\r260504030201Z\xa1\x08\xa1\x06\x80\x01\x01\x81\x01\x05",
    b"\xb0\x10\xa1\x0e\x31\x0c\x80\x03mta\xa1\x05\x16\x03pwd",
    b"\xb2\x03\x02\x01\x02",
    b"\xa0\x13\x31\x05\x6b\x03\x13\x011\x30\x0a\xa0\x08\x31\x00\x16\x04text",
];

/// Texts of both forms.
pub(super) const ADDRESS_SEEDS: &[&[u8]] = &[
    b"G=John;I=F;S=Smith;Q=Jr;O=Acme;OU1=Sales;P=Acme;A=Carrier;C=GB;DDA:RFC-822=js(a)acme.example",
    b"/S=SMITH/G=john/O=ACME/PRMD=acme/ADMD=carrier/C=gb/",
    b"C=XX;A=ICAO;P=EUROPE;O=AFTN;OU1=LEMGZPZX",
    b"NET-NUM=442000000;NET-SUB=17;T-TY=g3fax;A=Carrier;C=GB",
    b"/DD.a=*{252}/S=*M{252}ller/ADMD= /C=DE/",
    "S=Größe;O=Отдел;CN=日本;P=Acme;A=Carrier;C=DE;DDA:größe==x=;;".as_bytes(),
    b"PD-C=DE;PD-PC=53113;PD-PN=Karl;PD-S=Allee 1;PD-A1=Zeile 1;A=Carrier;C=DE",
];

/// Reads the octets as whatever a peer may send.
pub(super) fn apdu(octets: &[u8]) {
    let octets = Bytes::copy_from_slice(octets);
    let middle = octets.len() / 2;
    let halves = [octets.slice(..middle), octets.slice(middle..)];
    assert_eq!(Apdu::split_pieces(&halves), Apdu::split(&octets));
    if let Ok(read) = Apdu::split(&octets) {
        same(&read);
        downgraded(read);
    }
    if let Ok((bind, form)) = MtaBindArgument::decode(&octets) {
        assert_eq!(
            MtaBindArgument::decode(&bind.encode(form)),
            Ok((bind, form))
        );
    }
    if let Ok((bind, form)) = MtaBindResult::decode(&octets) {
        assert_eq!(MtaBindResult::decode(&bind.encode(form)), Ok((bind, form)));
    }
    if let Ok((error, form)) = MtaBindError::decode(&octets) {
        assert_eq!(MtaBindError::decode(&error.encode(form)), Ok((error, form)));
    }
    if let Ok(message) = InformationObject::decode(&octets) {
        assert_eq!(
            InformationObject::decode(&message.encode()),
            Ok(message.clone())
        );
        printable(&message.to_string());
    }
}

/// What is read and written is read and written the same.
fn same(apdu: &Apdu) {
    let written = Bytes::from(apdu.to_pieces().concat());
    let Ok(again) = Apdu::split(&written) else {
        panic!("a written APDU is no APDU");
    };
    assert_eq!(again, *apdu);
    assert_eq!(again.to_bytes(), written);
    printable(&apdu.to_string());
}

fn downgraded(apdu: Apdu) {
    match apdu {
        Apdu::Message(mut message) => {
            let Ok(old) = downgrade_message(&message.envelope, true) else {
                return;
            };
            message.envelope = old.envelope;
            same(&Apdu::Message(message));
        }
        Apdu::Probe(probe) => {
            if let Ok(old) = downgrade_probe(&probe) {
                same(&Apdu::Probe(old.envelope));
            }
        }
        Apdu::Report(report) => {
            if let Ok(old) = downgrade_report(&report) {
                same(&Apdu::Report(Box::new(old)));
            }
        }
    }
}

/// Text for a terminal has no control characters but ends of lines.
fn printable(text: &str) {
    assert!(
        !text
            .chars()
            .any(|character| character.is_control() && character != '\n')
    );
}

/// Reads the octets as text, and as an encoded address.
pub(super) fn address(octets: &[u8]) {
    if let Ok(text) = std::str::from_utf8(octets)
        && let Ok(read) = text.parse::<OrAddress>()
    {
        printed(&read);
        assert_eq!(decode(&encode(&read)), Ok(read));
    }
    if let Ok(read) = decode::<OrAddress>(&Bytes::copy_from_slice(octets)) {
        assert_eq!(decode(&encode(&read)), Ok(read.clone()));
        if let Ok(attributes) = read.attributes()
            && has_text(&attributes)
            && let Ok(composed) = attributes.to_address()
        {
            printed(&composed);
        }
        printable(&read.to_string());
    }
}

/// Whether the text forms have the values: spaces at an end and control characters have no text.
fn has_text(attributes: &Attributes) -> bool {
    let plain = |text: &str| text.trim() == text && !text.chars().any(char::is_control);
    attributes.iter().all(|(_, text)| plain(text))
        && attributes
            .domain_defined
            .iter()
            .all(|(kind, text)| plain(kind) && plain(text))
}

/// Both text forms are the same address.
fn printed(address: &OrAddress) {
    let Ok(attributes) = address.attributes() else {
        panic!("an address without attributes");
    };
    let (Ok(key), Ok(composed)) = (address.key(), attributes.to_address()) else {
        panic!("{attributes}: attributes of no address");
    };
    for text in [attributes.to_string(), attributes.to_mixer_text()] {
        let Ok(again) = text.parse::<OrAddress>() else {
            panic!("printed as {text:?}, which is no address");
        };
        assert_eq!(again.key(), Ok(key.clone()), "{text:?}");
        assert_eq!(again, composed, "{text:?}");
    }
}
