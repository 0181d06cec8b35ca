//! Messages whose texts are asked about, read from the log. What is in them is for the processes to say that
//! decode them (`store/parser`), unless nothing has to be decoded.

use vere_disk::log::Directory as LogDirectory;
use vere_mime::{Parsed, Zone};
use vere_store::{BodyReader, Message, StoreError, Unpacker};

use crate::store::parser::{Decoders, Sought};

/// Zones that are wanted, by their number.
pub(super) type Zones = [bool; Zone::ALL.len()];

/// All of them.
pub(super) const ALL: Zones = [true; Zone::ALL.len()];

/// A bit for each of these zones.
pub(super) fn bits(zones: &Zones) -> u8 {
    let wanted = Zone::ALL.into_iter().filter(|zone| zones[*zone as usize]);
    wanted.fold(0, |bits, zone| bits | 1 << zone as u8)
}

/// Reads what of a message is needed for some zones: its header alone where that does.
///
/// # Errors
/// When it is damaged or gone.
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

/// Whether texts of these zones are all in the header of the message.
fn is_header_enough(record: &[u8], zones: &Zones) -> bool {
    if zones[Zone::Body as usize] {
        return false;
    }
    // What another version wrote is found anew, which needs all of it.
    let parsed = Parsed::decode(record);
    parsed.is_ok_and(|parsed| !zones[Zone::Header as usize] || parsed.parts.len() == 1)
}

/// The day that a message's Date field names, as it was found when it was delivered.
///
/// # Errors
/// When it is damaged or gone.
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

/// The same of one whose record is at hand, and its octets, where they are needed.
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
