//! A change of the lead: another account gets the log and the pages of a volume, and a commit says that its log orders the
//! commits from then on (docs/internals/mailfs.md, "Change of the lead").
//!
//! A [`Promotion`] looks at the mails of both accounts, does the next missing step, and looks again, until the log of the new lead
//! has the commit of the change in its chain. So a promotion that was broken off anywhere is taken up by the next one, of any
//! machine, and two at once come to one end.

mod copying;
mod error;
mod plan;
mod promotion;
mod shelf;
mod step;
#[cfg(test)]
mod tests;

use vere_mailfs_format::{format, rows};

pub use self::error::PromotionError;
pub use self::plan::Source;
pub use self::promotion::{Promoted, Promotion};
pub use self::step::PromotionStep;
