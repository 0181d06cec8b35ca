//! Accounts on Dovecot: every request, lost connections, and a server that lies.

mod harness;
mod liar;
mod requests;
mod trouble;
mod way;
