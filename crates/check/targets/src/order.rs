//! An operator's order for a destination, as stored in the spool.

use vere_queue::Order;

pub(crate) const SEEDS: &[&[u8]] = &[
    b"\x01\0\x02\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x03\0a.b",
    b"\x01\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x05\0local",
];

/// A decoded order encodes to an equal order.
pub(crate) fn record(octets: &[u8]) {
    if let Ok(order) = Order::decode(octets) {
        assert_eq!(Order::decode(&order.encode()).as_ref(), Ok(&order));
    }
}
