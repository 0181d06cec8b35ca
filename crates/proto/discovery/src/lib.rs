//! What mail programs and other systems read at the web names of a domain, as texts without sockets:
//!
//! | module | read by | source |
//! |---|---|---|
//! | [`autoconfig`] | Thunderbird and other programs | Thunderbird's format 1.1 |
//! | [`autodiscover`] | Outlook | MS-OXDSCLI (POX), Autodiscover v2 (JSON) |
//! | [`profile`] | Apple Mail | Configuration Profile Reference, `com.apple.mail.managed` |
//! | [`policy`] | systems that send mail to the domain | RFC 8461 |
//! | [`security`] | finders of security holes | RFC 9116 |
//! | [`page`] | people | |
//!
//! No text depends on accounts: every address of a domain has the same answer. [`names`] says which domain a web name belongs to.
//!
//! Not covered: ActiveSync, EWS.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod address;
pub mod autoconfig;
pub mod autodiscover;
mod error;
pub mod names;
pub mod page;
pub mod policy;
pub mod profile;
pub mod security;
mod services;
#[cfg(test)]
mod tests;
mod xml;

pub use address::{ADDRESS_OCTETS_MAX, Address};
pub use error::RequestError;
pub use services::{Access, Security, Services};
