//! The commands beside other programs.

mod python;
