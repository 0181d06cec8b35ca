//! `vere fs`.
