//! What this system observes of DMARC and TLS, for the reports to other systems.
//!
//! ```text
//! judged message ──▶ Observing ──policy──▶ counts ──▶ Files ──▶ a file for each day (Observed)
//! ```
//!
//! Not covered: the counts and reports themselves ([`vere_reports`]), and when reports are made and sent, which is the gateway's.

pub mod destinations;
mod files;
mod observed;
mod observing;

pub use files::Files;
pub use observed::{Observed, REWRITE_OCTETS};
pub use observing::{Checked, Observing};
