//! What an operator ordered for a destination, as the spool keeps it.

use vere_queue::Order;

pub(crate) const SEEDS: &[&[u8]] = &[
    b"\x01\0\x02\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x03\0a.b",
    b"\x01\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x05\0local",
];

/// What was decoded is the same again when encoded.
pub(crate) fn record(octets: &[u8]) {
    if let Ok(order) = Order::decode(octets) {
        assert_eq!(Order::decode(&order.encode()).as_ref(), Ok(&order));
    }
}
