//! Authentication of received messages: DKIM (RFC 6376, RFC 8301, RFC 8463), ARC (RFC 8617), DMARC (RFC 9989) and the reverse name of the
//! client (RFC 8601 section 2.7.3), and the field Authentication-Results (RFC 8601) with their results and those of SPF.
//!
//! [`Hashing`] takes a message in pieces and keeps the header and hashes of the body; [`Message::of`] does so with a whole message.
//! [`authenticate`] then asks for keys and policies through [`Dns`], all that are known to be needed at the same time, and gives an
//! [`Authentication`]. [`Authentication::field`] writes the field; [`foreign_fields`] finds fields of that name that a message from
//! outside must not have.
//!
//! Reading order: `tags`, `signature`, `key` (texts), `body`, `canonical` (octets that are hashed), `chain`, `preference`, `message`, `dkim`, `arc`, `policy`,
//! `dmarc`, `iprev`, `results`.
//!
//! Own code instead of mail-auth, which the crate `vere-dkim` signs with: the verifier of mail-auth needs the whole message at once, while
//! the text of a long message passes a worker in parts; its resolver needs sockets, or one more evaluation for each record that was not
//! there; it reads a clock; and a line without a colon ends a header for it, but not for other readers. Verification is ring's.
//!
//! Bounds: [`HEADER_OCTETS_MAX`], [`SIGNATURES_MAX`], [`ARC_SETS_MAX`], [`QUESTIONS_MAX`]; keys of 1,024 to 8,192 bits; records of 4,096
//! octets; 4 hashes of the body. The time of an evaluation is the host's to bound: a [`Dns`] that answers [`Unavailable`] ends it.
//!
//! ```
//! # use std::net::IpAddr;
//! use vere_auth::{Dns, Family, Message, Session, Unavailable, authenticate};
//!
//! struct Empty;
//!
//! impl Dns for Empty {
//!     async fn texts(&self, _: &str) -> Result<Vec<Vec<u8>>, Unavailable> {
//!         Ok(Vec::new())
//!     }
//!     // and the other questions
//! #    async fn exists(&self, _: &str) -> Result<bool, Unavailable> {
//! #        Ok(false)
//! #    }
//! #    async fn addresses(&self, _: &str, _: Family) -> Result<Vec<IpAddr>, Unavailable> {
//! #        Ok(Vec::new())
//! #    }
//! #    async fn names(&self, _: IpAddr) -> Result<Vec<String>, Unavailable> {
//! #        Ok(Vec::new())
//! #    }
//! }
//!
//! # use std::task::{Context, Poll, Waker};
//! # let example = async {
//! let session = Session {
//!     client: "192.0.2.1".parse().unwrap(),
//!     helo: "mx.example.org",
//!     reverse_path: "ann@example.org",
//!     spf: None,
//!     spf_helo: None,
//! };
//! let message = Message::of(b"From: ann@example.org\r\n\r\nhi\r\n");
//! let authentication = authenticate(&Empty, &message, session, 1_700_000_000).await;
//! assert_eq!(
//!     String::from_utf8(authentication.field("mx.example.com", session)).unwrap(),
//!     "Authentication-Results: mx.example.com;\r\n\tarc=none;\r\n\tdmarc=none header.from=example.org;\r\n\
//!      \tiprev=permerror policy.iprev=192.0.2.1\r\n",
//! );
//! # };
//! # assert_eq!(std::pin::pin!(example).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
//! ```

#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::unwrap_used,
        clippy::expect_used,
        reason = "a panic is how a test fails"
    )
)]

mod arc;
mod body;
mod canonical;
mod chain;
mod dkim;
mod dmarc;
mod dns;
mod fault;
mod iprev;
mod key;
mod message;
mod name;
mod policy;
mod preference;
mod questions;
mod results;
mod signature;
mod tags;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use futures_util::future::join;

pub use arc::Arc;
pub use chain::{ArcFault, SETS_MAX as ARC_SETS_MAX};
pub use dkim::Signed;
pub use dmarc::{Dmarc, DmarcResult, Published, organization_of};
pub use dns::{Dns, Session};
pub use fault::{DkimResult, Fault};
pub use iprev::{Iprev, IprevResult};
pub use message::{HEADER_OCTETS_MAX, Hashing, Message};
pub use policy::Policy;
pub use preference::SIGNATURES_MAX;
pub use questions::QUESTIONS_MAX;
pub use results::{Authentication, foreign_fields};
pub use signature::Algorithm;
pub use vere_spf::{Family, SpfResult, Unavailable};

use questions::Questions;

/// The most names that are asked for at once. A message with more, such as 50 sets of ARC, asks for the rest in turn, and not beyond the first fault.
const AT_ONCE_MAX: usize = 32;

/// Authenticates a message at a time, in seconds since 1970. Where the result of SPF comes later than the message, [`LookedUp`] is faster.
pub async fn authenticate(
    dns: &impl Dns,
    message: &Message,
    session: Session<'_>,
    now: u64,
) -> Authentication {
    let looked_up = LookedUp::of(dns, message, session.client).await;
    looked_up.authenticate(message, session, now).await
}

/// The records that a message needs at least, and the check of the client's address: all that is known without SPF.
#[derive(Debug)]
pub struct LookedUp<'a, D> {
    questions: Questions<'a, D>,
    iprev: Iprev,
}

impl<'a, D: Dns> LookedUp<'a, D> {
    /// Asks for the first records at the same time.
    pub async fn of(dns: &'a D, message: &Message, client: IpAddr) -> Self {
        let questions = Questions::new(dns);
        let keys = message
            .signatures
            .iter()
            .filter_map(signature::Found::key_name);
        // The author's policy first: the sender chooses the names of keys, and may choose ones that are never answered.
        let names = dmarc::first_names(message)
            .into_iter()
            .chain(keys)
            .chain(message.chain.key_names())
            .take(AT_ONCE_MAX);
        let iprev = iprev::check(&questions, client);
        let (iprev, ()) = join(iprev, questions.prefetch(names)).await;
        Self { questions, iprev }
    }

    /// Authenticates the same message at a time, in seconds since 1970, and asks for what is missing.
    pub async fn authenticate(
        self,
        message: &Message,
        session: Session<'_>,
        now: u64,
    ) -> Authentication {
        let questions = &self.questions;
        let dkim = dkim::verify(questions, message, now).await;
        let arc = arc::verify(questions, message, now).await;
        let dmarc = dmarc::evaluate(questions, message, &dkim, session).await;
        Authentication {
            ignored: message.ignored,
            dkim,
            arc,
            dmarc,
            iprev: self.iprev,
        }
    }
}
