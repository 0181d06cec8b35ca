//! The signer role: the only process with the private keys. The signer answers the gateway over a socket in the file
//! system, in the protocol of `vere_signwire`. The signer opens no other socket, reads no message, and writes no file.
//!
//! Reading order: `keys` (the keys in memory, kept as they are on disk), `service` (a connection).

mod error;
mod keys;
mod service;

use std::convert::Infallible;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use tokio::signal::unix::{SignalKind, signal};
use vere_net::listen::bind_local;
use vere_settings::Settings;

use self::error::SignerError;
use self::keys::Keys;
use vere_process::failure::Failure;
use vere_process::log::Level;
use vere_process::{entry, life};

/// Permissions of the socket: any process that may connect can have any message signed.
const SOCKET_MODE: u32 = 0o600;
/// Maximum of simultaneous connections; a gateway has a few.
const CONNECTIONS_MAX: usize = 64;
/// Interval between two checks of the folder for changes.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after a failed accept, such as for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Runs the role until it is told to stop.
///
/// # Errors
/// When the signer cannot start: the socket, the folder of keys.
pub fn run(settings: &Settings, config: &Path, level: Level) -> Result<(), Failure> {
    Ok(serve(settings, config, &level)?)
}

fn serve(settings: &Settings, config: &Path, level: &Level) -> Result<(), SignerError> {
    let Some(dkim) = &settings.dkim else {
        return Err(SignerError::NothingToSign);
    };
    keep_memory_private()?;
    let keys = Arc::new(Keys::load(&dkim.keys)?);
    let listener = bind_local(&dkim.socket, SOCKET_MODE).map_err(|source| SignerError::Listen {
        path: dkim.socket.clone(),
        source,
    })?;
    listener.set_nonblocking(false)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("accept".to_owned())
        .spawn({
            let keys = Arc::clone(&keys);
            move || accept(&listener, &keys)
        })?;
    Ok(runtime.block_on(watch(&keys, config, level))?)
}

/// Hides the memory from other processes of the user, and keeps the memory out of core files.
fn keep_memory_private() -> nix::Result<()> {
    prctl::set_dumpable(false)?;
    prctl::set_no_new_privs()?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    Ok(())
}

/// Follows changes of the keys on disk, and applies the log level of changed settings, until a signal stops the role.
async fn watch(keys: &Keys, config: &Path, level: &Level) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    // Ctrl-C reaches the whole foreground group; the supervisor decides and sends SIGTERM.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut tick = tokio::time::interval(LOOK_INTERVAL);
    entry::notify_ready();
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {
                keys.look();
                life::reload(config, level, |_| Ok::<_, Infallible>(()));
            }
            _ = tick.tick() => {
                keys.look();
                entry::notify_watchdog();
            }
        }
    }
}

/// Serves each connection on a thread of its own: a signature occupies a processor.
fn accept(listener: &UnixListener, keys: &Arc<Keys>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) if open.load(Ordering::Relaxed) < CONNECTIONS_MAX => stream,
            // Over the maximum, the connection is closed at once: the gateway tries again.
            Ok(_) => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                std::thread::sleep(ACCEPT_PAUSE);
                continue;
            }
        };
        open.fetch_add(1, Ordering::Relaxed);
        let (keys, count) = (Arc::clone(keys), Arc::clone(&open));
        let served = std::thread::Builder::new()
            .name("sign".to_owned())
            .spawn(move || {
                if let Err(error) = service::serve(stream, &keys) {
                    tracing::warn!(%error, "connection of a gateway ended");
                }
                count.fetch_sub(1, Ordering::Relaxed);
            });
        if let Err(error) = served {
            open.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!(%error, "cannot serve a connection");
        }
    }
}
