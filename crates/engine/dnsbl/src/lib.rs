//! DNS block lists (RFC 5782), and their maps of 128 neighbours (Pathak et al., "Spam-aware mail server architecture",
//! section 7).
//!
//! A classic list answers about one address: an A record for `w.z.y.x.ZONE`. A list with maps answers about all 128
//! addresses of the client's /25 at once: the AAAA record of `0.z.y.x.ZONE` (w < 128) or `1.z.y.x.ZONE` has one bit for
//! each. The server of the list and its clients share [`Map`].
//!
//! A client keeps answers and merges equal questions in a [`cache`], and has a [`policy`] for lists that do not answer, serve
//! no maps, or say something else than a list does. Time is an argument, and the queries themselves are the host's.
//!
//! [`zone`] answers queries from [`data`], [`limit`] bounds the answers to addresses that may be spoofed.

pub mod cache;
pub mod data;
pub mod limit;
mod map;
pub mod policy;
pub mod zone;

pub use self::map::{Map, MapName};
