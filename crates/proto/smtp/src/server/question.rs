//! The questions of the machine, and the answers of the host.

use crate::command::{MailFrom, RcptTo};
use crate::refusal::Refusal;
use vere_sasl::server::{PasswordAttempt, PasswordOutcome, ScramLookup};

use super::config::Peer;
use super::message::Message;

/// The next step of the host.
#[derive(Debug)]
#[must_use]
pub enum Step {
    /// Read from the client and call [`Server::input`](super::Server::input).
    NeedInput,
    /// Write [`Server::output`](super::Server::output) and call [`Server::sent`](super::Server::sent).
    ///
    /// Comes only when the machine cannot continue otherwise, so that the replies to pipelined commands
    /// are sent together.
    Send,
    /// Find the answer and call [`Server::answer`](super::Server::answer).
    Ask(Question),
    /// The answer to the last question is missing, and the session waits for the answer.
    NeedAnswer,
    /// Do the TLS handshake, throwing away whatever was read before it, and call
    /// [`Server::tls_started`](super::Server::tls_started).
    StartTls,
    /// Close the connection.
    Close,
}

/// A question to the host. At most one question is open at a time.
#[derive(Debug)]
pub enum Question {
    /// Is the password right? Answered by [`Answer::Password`].
    Password(PasswordAttempt),
    /// Looks up the SCRAM keys of a user. Answered by [`Answer::ScramUser`].
    ScramUser {
        /// The name, prepared by SASLprep.
        username: String,
    },
    /// Asks whether the sender is allowed to send. Answered by [`Answer::Policy`].
    Mail(MailFrom),
    /// Asks whether the recipient is accepted. Answered by [`Answer::Policy`].
    Recipient(RcptTo),
    /// Stores the message. Answered by [`Answer::Stored`] once the message is safe on disk: the client
    /// relies on that answer.
    Message(Box<Message>),
    /// Asks for the permissions of a client behind a trusted proxy. Answered by [`Answer::Client`].
    ///
    /// The peer has the attributes of XCLIENT in place and no rights.
    Client(Box<Peer>),
}

/// The answer to a [`Question`].
///
/// An answer that does not fit the question is taken as [`Refusal::LocalError`].
#[derive(Debug)]
pub enum Answer {
    /// To [`Question::Password`].
    Password(PasswordOutcome),
    /// To [`Question::ScramUser`].
    ScramUser(ScramLookup),
    /// To [`Question::Mail`] and [`Question::Recipient`].
    Policy(Result<(), Refusal>),
    /// To [`Question::Message`]: the name under which the message is found again.
    Stored(Result<String, Refusal>),
    /// To [`Question::Message`] of LMTP: a result for each recipient, in order.
    Filed(Vec<Result<(), Refusal>>),
    /// To [`Question::Client`].
    Client(Result<ClientRights, Refusal>),
}

/// What a client behind a proxy may do, as the fields of [`Peer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientRights {
    /// See [`Peer::may_relay`].
    pub may_relay: bool,
    /// See [`Peer::may_auth_in_clear`].
    pub may_auth_in_clear: bool,
    /// See [`Peer::may_prioritise`].
    pub may_prioritise: bool,
}
