//! Bounds of an association.

/// Bounds of an association, with defaults for message transfer.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest TPDU: 128 to 65,531 octets. Default 65,531: each TPDU costs seven octets.
    pub tpdu_size: u32,
    /// The most octets of a session PDU other than DATA TRANSFER. These are collected. Default 66,000: the longest that X.225 has, 65,539, fits.
    pub spdu_max: usize,
    /// The most octets of user data of a session connection. These are collected. Default 131,072: a bind with certificates
    /// has a few thousand.
    pub connect_user_data_max: usize,
    /// The longest APDU that is received. It is not collected. Default 4 GiB.
    pub apdu_max: u64,
    /// Octets that wait to be written, above which no further octets of an APDU are taken. Default 262,144: four of the
    /// largest TPDUs, enough to keep a fast network busy between two wake-ups.
    pub unwritten_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tpdu_size: crate::transport::TPDU_SIZE_MAX,
            spdu_max: 66_000,
            connect_user_data_max: 131_072,
            apdu_max: 1 << 32,
            unwritten_max: 262_144,
        }
    }
}
