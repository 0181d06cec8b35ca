//! A proxy for TCP that hands everything on late, and for a time not at all.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// The delay of all octets.
const DELAY: Duration = Duration::from_millis(2);
/// Octets handed on at a time.
const BLOCK: usize = 64 * 1024;

/// A proxy in front of an address; the proxy forwards all accepted octets, however late, also after the end of the
/// sender.
pub(crate) struct Delay {
    pub(crate) address: SocketAddr,
    gate: Arc<Gate>,
}

/// Whether anything passes.
#[derive(Debug, Default)]
struct Gate {
    shut: Mutex<bool>,
    opened: Condvar,
    ended: AtomicBool,
}

impl Gate {
    fn pass(&self) {
        let mut shut = self.shut.lock().expect("no panic");
        while *shut {
            shut = self.opened.wait(shut).expect("no panic");
        }
    }

    fn set(&self, shut: bool) {
        *self.shut.lock().expect("no panic") = shut;
        self.opened.notify_all();
    }
}

impl Delay {
    /// Starts a proxy.
    pub(crate) fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let gate = Arc::<Gate>::default();
        let shared = Arc::clone(&gate);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.ended.load(Ordering::Relaxed) {
                    return;
                }
                // Without a listener at the target, the proxy closes the connection of the client.
                let Ok(server) = TcpStream::connect(target) else {
                    continue;
                };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let from = from.try_clone().expect("a descriptor");
                    let to = to.try_clone().expect("a descriptor");
                    let gate = Arc::clone(&shared);
                    thread::spawn(move || hand_on(from, to, &gate));
                }
            }
        });
        Self { address, gate }
    }

    /// Forwards nothing for a time, and then the octets that arrived meanwhile.
    pub(crate) fn pause(&self) {
        self.gate.set(true);
    }

    /// Ends a pause.
    pub(crate) fn go_on(&self) {
        self.gate.set(false);
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.gate.ended.store(true, Ordering::Relaxed);
        self.go_on();
        let _ = TcpStream::connect(self.address);
    }
}

/// Ends with the first side to end, and closes the other side in order.
fn hand_on(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let mut buffer = vec![0; BLOCK];
    while let Ok(count) = from.read(&mut buffer) {
        thread::sleep(DELAY);
        gate.pass();
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
