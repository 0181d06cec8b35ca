//! Facts about a message, gathered while the message passes: the signatures of DKIM and ARC, the policy of DMARC, the reverse name of the client,
//! authors and structure.
//!
//! [`Gathering`] takes the octets in pieces of any length and keeps the header, hashes of the body and the
//! [outline](vere_judge::Outline). [`Gathering::finish`] asks for keys and policies, and gives the [`Gathered`] facts with the
//! field Authentication-Results. A worker does so at the end of DATA; `vere explain` does so with a message in a file.
//!
//! Not covered: findings of filters, added by the gateway, and the judgement ([`vere_judge`]).

mod facts;
mod foreign;
mod gathering;
mod helo;
mod names;
mod results;

pub use foreign::remove_foreign;
pub use gathering::{Gathered, Gathering, Told};
pub use helo::helo_form;
pub use names::Names;
pub use results::told;
pub use vere_auth::{Dns, Family, Unavailable};
