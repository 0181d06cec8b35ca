//! Mounts with the real kernel and an engine in memory: every kind of call, driven through system calls. Without root or
//! /dev/fuse each test says so and does nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a panic is how a test fails, and a skipped test says why"
)]

mod content;
mod ends;
mod errors;
mod facts;
mod fixture;
mod folders;
mod memory;
mod names;
