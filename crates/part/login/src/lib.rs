//! Passwords that clients give ([`login`]), the log of them ([`login_log`]), and clients that guess
//! ([`guessing`]).

pub mod directory;
pub mod guessing;
pub mod login;
pub mod login_log;
