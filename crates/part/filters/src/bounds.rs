//! Bounds of the answers of filters.

/// Bounds of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The longest answer of rspamd, in octets. Default 1 MiB.
    pub answer_octets: usize,
    /// The most symbols of rspamd. Default 1,000.
    pub symbols: usize,
    /// The most options of a symbol; further options are left out. Default 32.
    pub options: usize,
    /// The longest name or option of a symbol, in octets; longer texts are cut. Default 256.
    pub text_octets: usize,
    /// The most changes of a message. Default 256.
    pub changes: usize,
    /// The most octets of changed headers and addresses together. Default 256 KiB.
    pub change_octets: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            answer_octets: 1024 * 1024,
            symbols: 1_000,
            options: 32,
            text_octets: 256,
            changes: 256,
            change_octets: 256 * 1024,
        }
    }
}
