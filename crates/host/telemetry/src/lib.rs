//! Structured logs, metrics and the trace of every message.
//!
//! Everything an operator can learn about a running system without stopping it comes from here:
//!
//! - [`trace`]: one event per step of each message's way, found again by trace id, `Message-ID`
//!   or recipient (`vere trace`);
//! - [`metrics`]: counters, gauges and histograms, and the HTTP endpoint that shows them;
//! - [`log`]: what the process itself has to say, on standard error.
//!
//! Not covered: alerting, shipping logs elsewhere, profiling. The files are plain JSON lines and
//! OpenMetrics text, so that the usual tools do that.

pub mod log;
pub mod metrics;
pub mod trace;
