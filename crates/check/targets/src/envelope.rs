//! The envelope of a queued message, as the spool keeps it.

use vere_queue::Envelope;

pub(crate) const SEEDS: &[&[u8]] = &[
    b"\x01\x03\x02\0\x07\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\
      \x03\0a@b\0\0\0\0\0\0\x01\0\x02\x03\0c@d\0\0",
];

/// A decoded record encodes to an equal record.
pub(crate) fn record(octets: &[u8]) {
    if let Ok(envelope) = Envelope::decode(octets) {
        assert_eq!(Envelope::decode(&envelope.encode()).as_ref(), Ok(&envelope));
    }
}
