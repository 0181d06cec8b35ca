//! Steps of a promotion.

use vere_ports::mail_accounts::{AccountId, Request, RequestId, Urgency};

/// What a promotion asks for.
#[derive(Debug)]
pub enum PromotionStep {
    /// Asks an account; the answer goes to `answered`.
    Ask(RequestId, AccountId, Urgency, Request),
    /// A mail that is not what its subject says stays where the mail is: account, UID, reason.
    Left(u16, u32, String),
}
