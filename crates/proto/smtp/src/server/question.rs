//! What the machine wants from its host, and what the host answers.

use crate::command::{MailFrom, RcptTo};
use crate::refusal::Refusal;
use vere_sasl::ScramKeys;
use vere_sasl::server::PasswordAttempt;

use super::config::Peer;
use super::message::Message;

/// What the host must do next.
#[derive(Debug)]
#[must_use]
pub enum Step {
    /// Read from the client and call [`Server::input`](super::Server::input).
    NeedInput,
    /// Write [`Server::output`](super::Server::output) and call [`Server::sent`](super::Server::sent).
    ///
    /// Comes only when nothing else can go on, so that the replies to pipelined commands leave together.
    Send,
    /// Find the answer and call [`Server::answer`](super::Server::answer).
    Ask(Question),
    /// The answer to the last question is missing; nothing goes on before it.
    NeedAnswer,
    /// Do the TLS handshake, throwing away whatever was read before it, and call
    /// [`Server::tls_started`](super::Server::tls_started).
    StartTls,
    /// Close the connection.
    Close,
}

/// A question to the host. At most one is open at a time.
#[derive(Debug)]
pub enum Question {
    /// Is the password right? Answered by [`Answer::Password`].
    Password(PasswordAttempt),
    /// What are the keys of this user? Answered by [`Answer::ScramUser`].
    ScramUser {
        /// The name, prepared by SASLprep.
        username: String,
    },
    /// May this sender send? Answered by [`Answer::Policy`].
    Mail(MailFrom),
    /// May this recipient be sent to? Answered by [`Answer::Policy`].
    Recipient(RcptTo),
    /// Is the message safe? Answered by [`Answer::Stored`], after which the client believes that it is.
    Message(Box<Message>),
    /// What may this client do, which a trusted proxy speaks for? Answered by [`Answer::Client`].
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
    Password(AuthOutcome),
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

/// What came of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthOutcome {
    /// It is right.
    Accepted {
        /// The account's own name.
        account: String,
    },
    /// The user does not exist, the password is wrong, or the user may not act as the other.
    Rejected,
    /// It cannot be verified now.
    Unavailable,
}

/// What came of looking up a user's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScramLookup {
    /// The user exists.
    Found {
        /// The account's own name.
        account: String,
        /// Its keys.
        keys: ScramKeys,
    },
    /// There is no such user, or it has no such keys; the exchange goes on with fake ones.
    Unknown,
    /// Nobody can say now.
    Unavailable,
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
