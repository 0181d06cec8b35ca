//! Quantities with their units: sizes, spans, timestamps, scores, secrets, ids.
//!
//! A bare number carries neither meaning nor unit; values travel between layers only as these
//! types, with both. [`ByteSize`] and [`Span`] parse and write the text of operators in the
//! configuration (`"64 KiB"`, `"5m"`), [`Timestamp`] is the time that hosts pass into engines,
//! [`Secret`] keeps secrets out of logs, [`Score`] is the score of a message, and [`TraceId`] is the id of a message in the trace.
//! [`QueueId`] and [`RecordId`] number queues and their records.
//!
//! Not covered: calendars and time zones (times are UTC), and sizes above 2^64 - 1 octets.
//!
//! ```
//! use vere_units::{ByteSize, Span, Timestamp};
//!
//! let limit: ByteSize = "50 MiB".parse()?;
//! assert_eq!(limit.as_u64(), 50 * 1024 * 1024);
//! let retry: Span = "5m".parse()?;
//! let due = Timestamp::from_millis(0) + retry.duration();
//! assert_eq!(due.to_string(), "1970-01-01T00:05:00.000Z");
//! # Ok::<(), vere_units::ParseUnitError>(())
//! ```

mod byte_size;
mod error;
mod ids;
mod score;
mod secret;
mod span;
mod timestamp;
mod trace_id;

pub use byte_size::ByteSize;
pub use error::ParseUnitError;
pub use ids::{Incarnation, LogId, MailboxId, QueueId, RecordId, Seq, Txn};
pub use score::Score;
pub use secret::{Secret, constant_time_eq};
pub use span::Span;
pub use timestamp::Timestamp;
pub use trace_id::TraceId;
