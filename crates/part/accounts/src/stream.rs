//! Streams to servers.

use vere_process::wire::Connection;

/// A stream fit for several threads.
pub trait Stream: Connection + Send {}

impl<T: Connection + Send> Stream for T {}
