//! `vere-bench`: load generators, a mail sink and a SIGKILL loop, which measure a mail system from outside.

use std::process::ExitCode;

/// The allocator of `vere`: figures of the generators are compared over years.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    vere_bench::cli::main()
}
