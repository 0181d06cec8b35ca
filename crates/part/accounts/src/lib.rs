//! Connections to mail accounts.
