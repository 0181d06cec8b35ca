//! Mailbox `head`, which has the key slots and the facts of the volume: [`look`]ed at before a change, filled with [`outgoing`]
//! mails, and [`tidy`] afterwards.

pub mod look;
pub mod outgoing;
pub mod tidy;
