//! The audit log: a line of JSON for each arrival, attempt, report and association, a file a day.

mod line;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use line::steers_terminal;
pub use line::{AuditRecipient, Line, LineKind};
pub use writer::{Audit, AuditOptions};
