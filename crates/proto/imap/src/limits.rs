//! Every bound of a session, by name, with its default and the reason for it.

use std::time::Duration;

use vere_units::ByteSize;

/// The bounds of one session.
///
/// At a bound the client gets the response that is named with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Size of a message given by APPEND, announced by APPENDLIMIT; beyond it `NO [TOOBIG]` (RFC 7889).
    pub message_size_max: ByteSize,
    /// What a client may go on sending in a literal that is refused already; for more the connection
    /// is closed (RFC 7888 section 4).
    pub refused_size_max: ByteSize,
    /// A command with its literals, the message of APPEND and sets of numbers excepted; beyond it `BAD`. RFC 7162
    /// section 4 asks for at least 8192.
    pub command_octets_max: usize,
    /// A command with its sets of numbers: clients list ten thousands of UIDs in one command. What is longer than
    /// [`Limits::command_octets_max`] takes room and comes as fast as a message does.
    pub sets_octets_max: usize,
    /// The same before login, where a connection shall cost little.
    pub login_octets_max: usize,
    /// A line of an authentication exchange.
    pub auth_octets_max: usize,
    /// Commands refused as wrong or unknown; then `BYE`.
    pub errors_max: usize,
    /// Failed logins in a session; then `BYE`.
    pub auth_failures_max: usize,
    /// Octets that wait for the client to read them; at the bound nothing more is done for it. A part
    /// of a message beyond that is not copied.
    pub output_octets_max: usize,
    /// Octets of messages that FETCH asks the host for at once: fewer questions for more memory while
    /// one is answered.
    pub fetch_octets_max: usize,
    /// Octets of a long message that are asked for at once, when the client has read those before.
    pub piece_octets_max: usize,
    /// Octets of a literal, or of a long command, per second that a client must reach over [`Limits::literal_window`]; then `BYE`. What
    /// came faster counts for a window and no longer. 0: no such bound.
    pub literal_octets_per_second_min: u64,
    /// Over how long the rate counts, and how long a literal has for its first octets.
    pub literal_window: Duration,
    /// The longest time for one command with literals, however fast they came before; then `BYE`.
    pub literal_time_max: Duration,
    /// How long a client may take before it has logged in; then `BYE`.
    pub login_timeout: Duration,
    /// How long a client may say nothing; then `BYE`. RFC 9051 section 5.4 asks for at least 30 minutes.
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

/// Keys within keys of a search; beyond it `BAD`, so that no command takes much stack.
pub const SEARCH_DEPTH_MAX: usize = 32;

/// How often a client that idles is told that the connection lives. What is between forgets connections that
/// are silent, often after five minutes, and the client would wait for news that cannot reach it.
pub const ALIVE_INTERVAL: Duration = Duration::from_secs(120);

/// Different items of a FETCH; beyond it `BAD`. Each may be as long as the message.
pub const FETCH_ITEMS_MAX: usize = 100;

/// Keys of a search for which messages may have to be read, each for itself; beyond it `NO [LIMIT]`.
pub const SEARCH_TEXTS_MAX: usize = 100;

/// Patterns of a LIST, and octets of all of them, what stands before each counted with it; beyond it `BAD`.
/// Every name is held against all of them.
pub const LIST_PATTERNS_MAX: usize = 16;
/// The octets: those of two mailbox names, which a pattern and what stands before it may have.
pub const LIST_PATTERNS_OCTETS_MAX: usize = 2_500;

/// Octets of a mailbox name; beyond it `NO [CANNOT]`.
pub const MAILBOX_NAME_OCTETS_MAX: usize = 1_000;

/// Octets of a keyword; beyond it `BAD`.
pub const KEYWORD_OCTETS_MAX: usize = 200;

/// Names of clients and their values that ID takes (RFC 2971 section 3.3).
pub const ID_PAIRS_MAX: usize = 30;
