//! The part of an envelope that SMTP and LMTP read: who sends to whom, and the wishes of the sender.

/// The octets allowed in the body (RFC 6152, RFC 3030).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodyType {
    /// Lines of 7-bit octets.
    #[default]
    SevenBit,
    /// Lines of 8-bit octets (`BODY=8BITMIME`).
    EightBitMime,
    /// Any octets (`BODY=BINARYMIME`): can leave only through CHUNKING.
    BinaryMime,
}

/// How much of the message a failure report returns (RFC 3461 section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ret {
    /// The whole message.
    Full,
    /// Its header only.
    Headers,
}

/// The events about which a sender wants a report (RFC 3461 section 4.1); [`Notify::default`] is "not given":
/// failures, and delays at the system's discretion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Notify(u8);

impl Notify {
    /// `NOTIFY=NEVER`.
    pub const NEVER: Self = Self(1);

    /// `NOTIFY=` with any of SUCCESS, FAILURE and DELAY.
    #[must_use]
    pub const fn on(success: bool, failure: bool, delay: bool) -> Self {
        Self((success as u8) << 1 | (failure as u8) << 2 | (delay as u8) << 3)
    }

    /// Reads the bits of the record format; unknown bits are dropped.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 15)
    }

    /// The bits of the record format.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether the sender gave NOTIFY at all; it is passed on only then.
    #[must_use]
    pub const fn given(self) -> bool {
        self.0 != 0
    }

    /// Whether delivery is to be reported.
    #[must_use]
    pub const fn success(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether failure is to be reported.
    #[must_use]
    pub const fn failure(self) -> bool {
        !self.given() || self.0 & 4 != 0
    }

    /// Whether delay is to be reported.
    #[must_use]
    pub const fn delay(self) -> bool {
        !self.given() || self.0 & 8 != 0
    }
}

/// The sender's wish about encryption (RFC 8689).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum TlsWish {
    /// No wish: the recipient's domain decides.
    #[default]
    None,
    /// `REQUIRETLS`: encrypted only, to verified hosts with the same promise.
    Required,
    /// The header field `TLS-Required: No`: delivery counts for more than what the recipient's domain says.
    Optional,
}

/// A recipient without a final result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// The address without brackets; at most 254 octets came in by SMTP.
    pub address: String,
    /// The events about which the sender wants a report.
    pub notify: Notify,
    /// The original recipient as given (`rfc822;user@example.org`, xtext).
    pub orcpt: Option<String>,
}

/// A message's sender, recipients and parameters (RFC 5321 section 2.3.1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mail {
    /// The sender's address without brackets; `None` is the null reverse-path.
    pub reverse_path: Option<String>,
    /// The sender's identifier for reports.
    pub envid: Option<String>,
    /// How much a failure report returns.
    pub ret: Option<Ret>,
    /// Whether the message needs SMTPUTF8 (RFC 6531).
    pub smtputf8: bool,
    /// The octets allowed in the body.
    pub body_type: BodyType,
    /// The sender's wish about encryption.
    pub tls: TlsWish,
    /// The Message-ID header field's value, for tracing.
    pub message_id: Option<String>,
    /// The recipients still open; never empty in a stored record.
    pub recipients: Vec<Recipient>,
}
