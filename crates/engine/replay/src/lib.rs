//! What the journal of a volume has and no commit. A [`Replay`] tells which records count, given the chain as the log has it; where
//! the log has lost the commit below the changes, [`bring_in`] merges them with the newest state. The crate `vere-mailfs` applies
//! the outcome.

mod bases;
mod bring;
mod inspect;
mod known;
mod replay;
#[cfg(test)]
mod tests;

use vere_mailfs_format::{format, rows};

pub use self::bases::has_base;
pub use self::bring::{Stranded, bring_in};
pub use self::inspect::{Inspected, inspect};
pub use self::known::{has_waiting, remembered};
pub use self::replay::{Lacking, Pending, Records, Replay, newest_known, newest_placed};
