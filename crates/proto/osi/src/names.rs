//! Names of abstract syntaxes, transfer syntaxes and application contexts.

use vere_ber::ObjectIdentifier;

/// ACSE version 1, abstract syntax: {2 2 1 0 1} (X.227).
pub const ACSE: ObjectIdentifier = ObjectIdentifier::from_static(&[0x52, 1, 0, 1]);
/// The basic encoding of ASN.1, transfer syntax: {2 1 1} (X.690).
pub const BASIC_ENCODING: ObjectIdentifier = ObjectIdentifier::from_static(&[0x51, 1]);
/// mts-transfer, application context: {2 6 0 1 6} (X.419).
pub const MTS_TRANSFER: ObjectIdentifier = ObjectIdentifier::from_static(&[0x56, 0, 1, 6]);
/// id-as-mta-rtse, abstract syntax of MTABind and RTSE: {2 6 0 2 12} (X.419).
pub const MTA_RTSE: ObjectIdentifier = ObjectIdentifier::from_static(&[0x56, 0, 2, 12]);
/// id-as-mtse, abstract syntax of the transfers: {2 6 0 2 7} (X.419).
pub const MTSE: ObjectIdentifier = ObjectIdentifier::from_static(&[0x56, 0, 2, 7]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_recommendations() {
        assert_eq!(MTS_TRANSFER.to_string(), "2.6.0.1.6");
        assert_eq!(MTA_RTSE.to_string(), "2.6.0.2.12");
        assert_eq!(MTSE.to_string(), "2.6.0.2.7");
        assert_eq!(ACSE.to_string(), "2.2.1.0.1");
        assert_eq!(BASIC_ENCODING.to_string(), "2.1.1");
    }
}
