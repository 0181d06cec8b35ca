//! The state of a session: greeting, account, transaction, and the counts with limits.

use crate::address::DomainOrLiteral;
use crate::command::{MailFrom, RcptTo};

use super::collector::Collector;

/// The state learned from the client, dropped at STARTTLS.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The argument of the last accepted HELO or EHLO.
    pub(super) helo: Option<DomainOrLiteral>,
    /// Whether the command was EHLO.
    pub(super) esmtp: bool,
    /// The account after successful authentication.
    pub(super) account: Option<String>,
    /// The last MAIL asked for a priority that the client may not give.
    pub(super) priority_lowered: bool,
    /// Present from an accepted MAIL to the end of the message.
    pub(super) transaction: Option<Box<Transaction>>,
}

/// A mail transaction.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) mail: MailFrom,
    pub(super) recipients: Vec<RcptTo>,
    /// RCPT commands not taken, for whatever reason.
    pub(super) recipients_refused: usize,
    /// The text so far, once BDAT has begun.
    pub(super) chunks: Option<Box<Collector>>,
}

/// The attributes from a trusted proxy's XCLIENT, kept over STARTTLS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Forwarded {
    pub(super) helo: Option<DomainOrLiteral>,
    pub(super) esmtp: Option<bool>,
    pub(super) login: Option<String>,
}

/// The counts of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) errors: usize,
    pub(super) idle_commands: usize,
    pub(super) auth_failures: usize,
    pub(super) transactions: usize,
    pub(super) refusals: usize,
}
