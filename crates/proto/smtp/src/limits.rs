//! Every bound of a server session, by name, with its default and the reason for it.

use std::time::Duration;

use vere_units::ByteSize;

/// The bounds of one server session.
///
/// At a bound the client gets the reply that is named with it; what was accepted before stays accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Size of a message, announced by SIZE; beyond it `552 5.3.4`. The default is above what large
    /// hosters take (25 to 50 MB), since base64 adds a third.
    pub message_size_max: ByteSize,
    /// What a client may go on sending of a message that is refused already; then the connection is
    /// closed, since reading on costs without end.
    pub refused_size_max: ByteSize,
    /// Recipients of a message, announced by LIMITS; beyond it `452 4.5.3`, and as many times again
    /// `421 4.7.0`. RFC 5321 section 4.5.3.1.8 asks for at least 100.
    pub recipients_max: usize,
    /// Senders and recipients refused for good in a session; then `421 4.7.0`: the client tries out
    /// addresses.
    pub refusals_max: usize,
    /// MAIL commands in a session, announced by LIMITS; beyond it `421 4.7.0`.
    pub transactions_max: usize,
    /// Commands refused in a session as wrong, unknown or out of order; then `421 4.7.0`.
    pub errors_max: usize,
    /// Commands that lead nowhere (NOOP, RSET, HELO, EHLO, VRFY, EXPN, HELP, empty chunks) since the last
    /// message; then `421 4.7.0`.
    pub idle_commands_max: usize,
    /// Failed authentications in a session; then `421 4.7.0`.
    pub auth_failures_max: usize,
    /// A command line with its CRLF (RFC 5321 section 4.5.3.1.4), for commands that no extension
    /// lengthens; beyond it `500 5.5.2`, as for the next three.
    pub command_octets_max: usize,
    /// A MAIL line: 512, and SIZE 26, BODY 17, SMTPUTF8 10, AUTH 500, ENVID and RET 120 (RFC 1870, 3030,
    /// 6531, 4954, 3461).
    pub mail_octets_max: usize,
    /// A RCPT line: 512, and ORCPT 500 and NOTIFY 28 (RFC 3461 section 4).
    pub rcpt_octets_max: usize,
    /// A line of an authentication exchange; beyond it `500 5.5.6` (RFC 4954 section 4).
    pub auth_octets_max: usize,
    /// A line of a message without its CRLF; beyond it `554 5.6.0` at the end of the message.
    ///
    /// RFC 5321 section 4.5.3.1.6 asks for 998. Mail with whole paragraphs or pages of HTML in a line is
    /// common, and other servers take or even break such lines; ours carries them unchanged, up to
    /// here.
    pub text_line_octets_max: usize,
    /// Whether a message may hold NUL; else `554 5.6.0` at its end.
    ///
    /// RFC 5321 section 4.5.2 has servers that relay refuse no text; but section 2.3.1 wants ASCII, and what
    /// becomes of NUL in the next server is not known. Whoever delivers to the last place can keep it.
    pub text_nul: bool,
    /// Replies waiting for the client to read them; at the bound no further command is read, so that
    /// the excess is at most one reply.
    pub output_octets_max: usize,
    /// How long a client may take for a whole command line, or to read replies; then `421 4.4.2`. RFC
    /// 5321 section 4.5.3.2.7 asks for 5 minutes.
    pub command_timeout: Duration,
    /// How long a client may pause within a message; then `421 4.4.2`.
    pub data_timeout: Duration,
    /// Octets of a message per second that a client must reach; then `421 4.4.2`. Stops clients that send an octet
    /// now and then to hold a connection. What came faster counts for `data_window` and no longer; a message that
    /// is not longer than what is due in it has `data_timeout` in all, for those who type.
    pub data_octets_per_second_min: u64,
    /// Over how long the rate counts.
    pub data_window: Duration,
    /// The longest time for one message, however fast it came before; then `421 4.4.2`. What a client has sent
    /// buys no more than this.
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
    /// The longest line that begins with these octets, with its CRLF.
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
