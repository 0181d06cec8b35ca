//! Ports for servers that tests start.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// A loopback address with a port that was free at the time of the call and belongs to no other test.
///
/// Below the range that the kernel takes source ports from: there a client's connection could take
/// the port before the daemon does.
///
/// # Panics
/// When no port is free: a test fails by panicking.
#[must_use]
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
pub fn free_address() -> SocketAddr {
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Other test runs on the machine begin elsewhere.
    let start = std::process::id().wrapping_mul(7919) % u32::from(COUNT);
    for _ in 0..COUNT {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let offset = (start + step) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset).expect("below COUNT");
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener.local_addr().expect("its address");
        }
    }
    panic!("no free port");
}
