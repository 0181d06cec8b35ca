//! Every limit of a server session, by name, with the default and the reason for the default.

use std::time::Duration;

use vere_units::ByteSize;

/// The limits of a server session.
///
/// At a limit the client gets the reply named beside the limit; messages accepted before stay accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Size of a message, announced by SIZE; a larger message gets `552 5.3.4`. The default is above what large
    /// hosters take (25 to 50 MB), since base64 adds a third.
    pub message_size_max: ByteSize,
    /// Octets that a client may still send of a message already refused; beyond the limit the connection is
    /// closed, since reading on costs without end.
    pub refused_size_max: ByteSize,
    /// Recipients of a message, announced by LIMITS; beyond it `452 4.5.3`, and as many times again
    /// `421 4.7.0`. RFC 5321 section 4.5.3.1.8 asks for at least 100.
    pub recipients_max: usize,
    /// Senders and recipients refused for good in a session; then `421 4.7.0`: the client tries out
    /// addresses.
    pub refusals_max: usize,
    /// MAIL commands in a session, announced by LIMITS; at the limit `421 4.7.0`.
    pub transactions_max: usize,
    /// Commands refused in a session as wrong, unknown or out of order; then `421 4.7.0`.
    pub errors_max: usize,
    /// Commands that lead nowhere (NOOP, RSET, HELO, EHLO, VRFY, EXPN, HELP, empty chunks) since the last
    /// message; then `421 4.7.0`.
    pub idle_commands_max: usize,
    /// Failed authentications in a session; then `421 4.7.0`.
    pub auth_failures_max: usize,
    /// Octets of a command line with CRLF (RFC 5321 section 4.5.3.1.4), for commands that no extension lengthens;
    /// a longer line gets `500 5.5.2`, as for the next three limits.
    pub command_octets_max: usize,
    /// A MAIL line: 512, and SIZE 26, BODY 17, SMTPUTF8 10, AUTH 500, ENVID and RET 120 (RFC 1870, 3030,
    /// 6531, 4954, 3461).
    pub mail_octets_max: usize,
    /// A RCPT line: 512, and ORCPT 500 and NOTIFY 28 (RFC 3461 section 4).
    pub rcpt_octets_max: usize,
    /// Octets of a line in an authentication exchange; a longer line gets `500 5.5.6` (RFC 4954 section 4).
    pub auth_octets_max: usize,
    /// Octets of a line in a message, without CRLF; a longer line gets `554 5.6.0` at the end of the message.
    ///
    /// RFC 5321 section 4.5.3.1.6 asks for 998. Mail with whole paragraphs or pages of HTML in a line is common,
    /// and other servers accept or even break such lines; this server carries longer lines unchanged, up to this
    /// limit.
    pub text_line_octets_max: usize,
    /// Whether a message may contain NUL; if not, the reply at the end of the message is `554 5.6.0`.
    ///
    /// RFC 5321 section 4.5.2 forbids relays to refuse any text; but section 2.3.1 demands ASCII, and the
    /// treatment of NUL by the next server is unknown. A server of the final delivery can keep NUL.
    pub text_nul: bool,
    /// Octets of replies waiting for the client to read; at the limit no further command is read, so that the
    /// excess is at most one reply.
    pub output_octets_max: usize,
    /// How long a client may take for a whole command line, or to read replies; then `421 4.4.2`. RFC
    /// 5321 section 4.5.3.2.7 asks for 5 minutes.
    pub command_timeout: Duration,
    /// How long a client may pause within a message; then `421 4.4.2`.
    pub data_timeout: Duration,
    /// Octets of a message per second that a client must reach; then `421 4.4.2`. The rate stops clients that send
    /// single octets to hold a connection. Octets above the rate count for one `data_window` at most; a message
    /// not longer than the octets due in one window has `data_timeout` in all, for people who type.
    pub data_octets_per_second_min: u64,
    /// Over how long the rate counts.
    pub data_window: Duration,
    /// The longest time for one message, regardless of the rate; then `421 4.4.2`. Octets above the rate extend
    /// the time up to this limit only.
    pub data_time_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_size_max: ByteSize::mib(50),
            refused_size_max: ByteSize::mib(64),
            recipients_max: 1000,
            refusals_max: 100,
            transactions_max: 10_000,
            errors_max: 20,
            idle_commands_max: 100,
            auth_failures_max: 3,
            command_octets_max: 512,
            mail_octets_max: 1185,
            rcpt_octets_max: 1040,
            auth_octets_max: 12_290,
            text_line_octets_max: 65_536,
            text_nul: false,
            output_octets_max: 16_384,
            command_timeout: Duration::from_secs(300),
            data_timeout: Duration::from_secs(600),
            data_octets_per_second_min: 1024,
            data_window: Duration::from_secs(60),
            data_time_max: Duration::from_secs(2 * 3_600),
        }
    }
}

impl Limits {
    /// The longest line, with CRLF, for a command that begins with these octets.
    #[must_use]
    pub fn line_octets_max(&self, beginning: &[u8]) -> usize {
        match beginning.first_chunk::<4>() {
            Some(verb) if verb.eq_ignore_ascii_case(b"MAIL") => self.mail_octets_max,
            Some(verb) if verb.eq_ignore_ascii_case(b"RCPT") => self.rcpt_octets_max,
            Some(verb) if verb.eq_ignore_ascii_case(b"AUTH") => self.auth_octets_max,
            // The values of XCLIENT are as long as addresses and names together.
            Some(verb) if verb.eq_ignore_ascii_case(b"XCLI") => self.mail_octets_max,
            _ => self.command_octets_max,
        }
    }
}
