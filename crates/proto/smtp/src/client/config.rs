//! The settings of a client machine.

use std::time::Duration;

use vere_sasl::NonceSource;
use vere_sasl::client::Credentials;

/// Settings of a client machine, shared by all connections to one kind of destination.
#[derive(Debug)]
pub struct ClientConfig {
    /// Who we are, the argument of EHLO, HELO and LHLO: a domain name, or an address literal.
    pub hostname: String,
    /// Whether the connection is to be encrypted.
    pub tls: TlsMode,
    /// The user to authenticate as; with credentials, no message is sent to a server that refuses the
    /// credentials.
    pub auth: Option<Credentials>,
    /// Whether a password may travel without TLS: for a loopback or tunnelled next hop only.
    pub auth_in_clear: bool,
    /// LMTP (RFC 2033) instead of SMTP.
    pub lmtp: bool,
    /// Sends 8-bit lines to a server without 8BITMIME instead of returning the message.
    ///
    /// Deviates: RFC 6152 section 3 forbids 8-bit lines there, but practically every such server accepts them.
    pub just_send_8bit: bool,
    /// Messages up to this size are sent together with the envelope, by BDAT behind MAIL and RCPT, where the
    /// server offers PIPELINING and CHUNKING: a single round trip instead of two. 0: never.
    ///
    /// A larger message would be sent in vain too often, as a server may refuse all recipients.
    pub one_round_max: usize,
    /// The timeout of each stage.
    pub timeouts: Timeouts,
    /// The source of nonces for SCRAM.
    pub nonces: NonceSource,
}

impl ClientConfig {
    /// Makes settings for SMTP with opportunistic TLS, from the host name of the client and 32 random octets
    /// as the seed of SCRAM nonces.
    #[must_use]
    pub fn new(hostname: impl Into<String>, nonce_seed: [u8; 32]) -> Self {
        Self {
            hostname: hostname.into(),
            tls: TlsMode::Opportunistic,
            auth: None,
            auth_in_clear: false,
            lmtp: false,
            just_send_8bit: false,
            one_round_max: 0,
            timeouts: Timeouts::default(),
            nonces: NonceSource::new(nonce_seed),
        }
    }
}

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsMode {
    /// Never asks for TLS.
    Off,
    /// STARTTLS if the server offers it, plaintext otherwise (RFC 7435). When the handshake fails,
    /// the host closes and may connect again with [`TlsMode::Off`].
    Opportunistic,
    /// STARTTLS is required; without TLS no message is sent.
    Required,
    /// The host has shaken hands before the first octet (RFC 8314 section 3.3).
    Implicit,
}

/// How long the client waits; the defaults are the figures of RFC 5321 section 4.5.3.2, which are
/// meant as minima.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the greeting.
    pub greeting: Duration,
    /// For the replies to EHLO, HELO, LHLO, STARTTLS and AUTH, for the TLS handshake, and for RSET.
    pub command: Duration,
    /// For the reply to MAIL.
    pub mail: Duration,
    /// For the reply to RCPT.
    pub recipient: Duration,
    /// For the reply to DATA.
    pub data: Duration,
    /// For a part of the message to be sent. A connection without progress is closed after this time at the
    /// earliest and twice this time at the latest.
    pub data_block: Duration,
    /// For the reply to the whole message. Long on purpose: if a client gives up after the server has accepted
    /// the message, the server gets the message again.
    pub data_end: Duration,
    /// For the reply to QUIT, which affects no message.
    pub quit: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        const MINUTE: u64 = 60;
        Self {
            greeting: Duration::from_secs(5 * MINUTE),
            command: Duration::from_secs(5 * MINUTE),
            mail: Duration::from_secs(5 * MINUTE),
            recipient: Duration::from_secs(5 * MINUTE),
            data: Duration::from_secs(2 * MINUTE),
            data_block: Duration::from_secs(3 * MINUTE),
            data_end: Duration::from_secs(10 * MINUTE),
            quit: Duration::from_secs(10),
        }
    }
}
