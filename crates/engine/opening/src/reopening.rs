//! How far the opening of another volume in place of a mounted one is.

use vere_units::Timestamp;

/// How far the opening of the volume in place of this one is.
#[derive(Debug, Default)]
pub struct Reopening {
    /// Whether the host opens the volume anew after a stop.
    pub is_allowed: bool,
    /// An attempt is under way: changes wait for its end.
    pub is_under_way: bool,
    /// Journal and log belong to the next volume, since the first attempt: this one serves reads alone.
    pub is_retired: bool,
    /// The last attempt has failed.
    pub has_failed: bool,
    /// The lead has not answered since the stop, or since an attempt: another attempt would be in vain.
    pub lacks_lead: bool,
    /// When the lead is asked for a sign, while the sign is lacking.
    pub ask_at: Option<Timestamp>,
}
