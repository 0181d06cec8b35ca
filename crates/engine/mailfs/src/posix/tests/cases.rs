//! Cases by hand.
