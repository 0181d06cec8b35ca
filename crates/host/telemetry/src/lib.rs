//! Structured logs, metrics and the trace of every message.
//!
//! Everything an operator can learn about a running system without stopping it comes from here:
//!
//! - [`trace`]: one event per step of each message's way, found again by trace id, `Message-ID`
//!   or recipient (`vere trace`);
//! - [`metrics`]: counters, gauges and histograms, and the HTTP endpoint of the metrics;
//! - [`log`]: messages of the process itself, on standard error.
//!
//! Not covered: alerting, shipping logs elsewhere, profiling. The files are plain JSON lines and
//! OpenMetrics text, so that common tools can do the rest.

pub mod log;
pub mod metrics;
pub mod trace;
