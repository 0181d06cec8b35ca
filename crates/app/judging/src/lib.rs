//! What judgement and content filters say of a message: `vere explain` and `vere filter`.
//!
//! `explain` has the facts about a message from its trace, or gathers them again for a file, and judges them by the settings
//! of now. `filter` shows a message to the filters, as the gateway does at the end of DATA.

pub mod explain;
pub mod filter;
