//! Accounts on Dovecot: every request, lost connections, and a server that lies.

#![allow(clippy::expect_used, reason = "a panic is how a test fails")]

mod budgets;
mod compressed;
mod harness;
mod hostile;
mod liar;
mod message_limit;
mod requests;
mod slow;
mod tokens;
mod trouble;
mod way;
