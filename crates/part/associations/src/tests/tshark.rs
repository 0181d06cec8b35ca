//! tshark.
