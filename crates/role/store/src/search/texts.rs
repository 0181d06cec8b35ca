//! Reads messages from the log whose texts are searched. The decoding processes (`store/parser`) examine the content,
//! unless the answer needs no decoding.

use vere_disk::log::Directory as LogDirectory;
use vere_mime::{Parsed, Zone};
use vere_store::{BodyReader, Message, StoreError, Unpacker};

use vere_parsing::{Decoders, Sought};

/// Zones to be searched, by their number.
pub(super) type Zones = [bool; Zone::ALL.len()];

/// All zones.
pub(super) const ALL: Zones = [true; Zone::ALL.len()];

/// Returns a bit for each of these zones.
pub(super) fn bits(zones: &Zones) -> u8 {
    let wanted = Zone::ALL.into_iter().filter(|zone| zones[*zone as usize]);
    wanted.fold(0, |bits, zone| bits | 1 << zone as u8)
}

/// Reads the part of a message that some zones need: the header alone where the header suffices.
///
/// # Errors
/// When the message is damaged or gone.
pub(super) fn sought(
    reader: &BodyReader<LogDirectory>,
    message: &Message,
    own: Vec<u8>,
    zones: &Zones,
    unpacker: &mut Unpacker,
) -> Result<Sought, StoreError> {
    let mut body = reader.open(message.blob)?;
    let record = body.parsed()?.to_vec();
    let octets = match is_header_enough(&record, zones) {
        true => body.header()?.to_vec(),
        false => body.message_with(unpacker)?,
    };
    Ok(Sought {
        body: message.blob.0,
        zones: bits(zones),
        own,
        record,
        octets,
    })
}

/// Whether the message's header has all texts of these zones.
fn is_header_enough(record: &[u8], zones: &Zones) -> bool {
    if zones[Zone::Body as usize] {
        return false;
    }
    // A record of another version must be made again, which needs the whole message.
    let parsed = Parsed::decode(record);
    parsed.is_ok_and(|parsed| !zones[Zone::Header as usize] || parsed.parts.len() == 1)
}

/// Returns the day of a message's Date field, as parsed at delivery.
///
/// # Errors
/// When the message is damaged or gone.
pub(super) fn sent(
    reader: &BodyReader<LogDirectory>,
    message: &Message,
    decoders: &Decoders,
) -> Result<Option<i64>, StoreError> {
    let mut body = reader.open_parsed(message.blob, Vec::new())?;
    sent_in(
        body.parsed()?,
        || reader.open(message.blob)?.message(),
        decoders,
    )
}

/// Returns the day of the Date field from a parser record. `octets` gives the message if the record has another
/// version.
pub(super) fn sent_in(
    record: &[u8],
    octets: impl FnOnce() -> Result<Vec<u8>, StoreError>,
    decoders: &Decoders,
) -> Result<Option<i64>, StoreError> {
    let parsed = match Parsed::decode(record) {
        Ok(parsed) => Some(parsed),
        Err(_) => Parsed::decode(&decoders.record(&octets()?)?).ok(),
    };
    let sent = parsed.as_ref().and_then(|parsed| parsed.envelope()?.sent);
    Ok(sent.map(|sent| sent.day))
}
