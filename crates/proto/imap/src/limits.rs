//! Every limit of a session, by name, with the default and the reason for the default.

use std::time::Duration;

use vere_units::ByteSize;

/// The limits of one session.
///
/// At a limit the client gets the response named beside the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Size of a message given by APPEND, announced by APPENDLIMIT; beyond it `NO [TOOBIG]` (RFC 7889).
    pub message_size_max: ByteSize,
    /// Octets that a client may still send in a literal already refused; beyond the limit the connection is closed
    /// (RFC 7888 section 4).
    pub refused_size_max: ByteSize,
    /// Octets of a command with literals, without the message of APPEND and sets of numbers; a longer command is
    /// answered `BAD`. RFC 7162 section 4 asks for at least 8192.
    pub command_octets_max: usize,
    /// Octets of a command with sets of numbers: clients list ten thousands of UIDs in one command. Octets above
    /// [`Limits::command_octets_max`] take memory, and must arrive as fast as a message.
    pub sets_octets_max: usize,
    /// The limit for a command before login, where a connection shall cost little.
    pub login_octets_max: usize,
    /// A line of an authentication exchange.
    pub auth_octets_max: usize,
    /// Commands refused as wrong or unknown; then `BYE`.
    pub errors_max: usize,
    /// Failed logins in a session; then `BYE`.
    pub auth_failures_max: usize,
    /// Octets of output that wait for the client to read; at the limit the machine stops working for the client. A
    /// part of a message above this size is not copied.
    pub output_octets_max: usize,
    /// Octets of messages that FETCH requests from the host at once: a larger value means fewer questions, but more
    /// memory per answer.
    pub fetch_octets_max: usize,
    /// Octets of a piece of a long message, requested after the client has read the previous piece.
    pub piece_octets_max: usize,
    /// Octets per second of a literal, or of a long command, that a client must reach over
    /// [`Limits::literal_window`]; a slower client gets `BYE`. Octets above the rate count for one window at most. 0:
    /// no minimum rate.
    pub literal_octets_per_second_min: u64,
    /// Over how long the rate counts, and how long a literal has for its first octets.
    pub literal_window: Duration,
    /// The longest time for one command with literals, regardless of the rate; then `BYE`.
    pub literal_time_max: Duration,
    /// How long a client may take before it has logged in; then `BYE`.
    pub login_timeout: Duration,
    /// The idle time of a client before `BYE`. RFC 9051 section 5.4 asks for at least 30 minutes.
    pub command_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_size_max: ByteSize::mib(50),
            refused_size_max: ByteSize::mib(64),
            command_octets_max: 64 * 1024,
            sets_octets_max: 1024 * 1024,
            login_octets_max: 8 * 1024,
            auth_octets_max: 12_290,
            errors_max: 20,
            auth_failures_max: 3,
            output_octets_max: 64 * 1024,
            fetch_octets_max: 256 * 1024,
            piece_octets_max: 128 * 1024,
            literal_octets_per_second_min: 1024,
            literal_window: Duration::from_secs(60),
            literal_time_max: Duration::from_secs(2 * 3_600),
            login_timeout: Duration::from_secs(60),
            command_timeout: Duration::from_secs(1800),
        }
    }
}

/// Nesting depth of search keys; a deeper search is answered `BAD`, which bounds the stack.
pub const SEARCH_DEPTH_MAX: usize = 32;

/// Interval of keepalive responses to a client in IDLE. Middleboxes drop silent connections, often after five
/// minutes, and the client would wait for news over a dead connection.
pub const ALIVE_INTERVAL: Duration = Duration::from_secs(120);

/// Different items of a FETCH; a longer list is answered `BAD`. Each item may be as long as the message.
pub const FETCH_ITEMS_MAX: usize = 100;

/// Search keys that may read messages, each on its own; a larger search is answered `NO [LIMIT]`.
pub const SEARCH_TEXTS_MAX: usize = 100;

/// Patterns of a LIST, and octets of all patterns, counting the reference before each pattern; beyond the limits
/// `BAD`. Every name is matched with every pattern.
pub const LIST_PATTERNS_MAX: usize = 16;
/// Octets of all patterns: twice the length of a mailbox name, one for the pattern and one for the reference.
pub const LIST_PATTERNS_OCTETS_MAX: usize = 2_500;

/// Octets of a mailbox name; a longer name is answered `NO [CANNOT]`.
pub const MAILBOX_NAME_OCTETS_MAX: usize = 1_000;

/// Octets of a keyword; a longer keyword is answered `BAD`.
pub const KEYWORD_OCTETS_MAX: usize = 200;

/// Pairs of field and value in ID (RFC 2971 section 3.3).
pub const ID_PAIRS_MAX: usize = 30;
