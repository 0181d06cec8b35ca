//! The signer role: the process with the private keys of signatures and of the certificates at port 25. The signer answers gateway and front over a socket in the file
//! system, in the protocol of `vere_signwire`. The signer opens no other socket and reads no message.
//!
//! The web server, which strangers reach, passes its connections by a socket without a name, and has handshakes signed there and nothing else.
//!
//! Reading order: `keys` (the keys of DKIM in memory, kept as they are on disk), `waiting` (keys whose records are to be looked up), `certificates`, `secrets` (both), `service` (a connection), `passed` (connections of the web server).

mod certificates;
mod error;
mod keys;
mod passed;
mod secrets;
mod service;
mod waiting;

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
use vere_net::listen::{Inherited, bind_local};
use vere_settings::Settings;

use self::error::SignerError;
use self::secrets::Secrets;
use vere_process::failure::Failure;
use vere_process::log::Level;
use vere_process::{entry, life};

/// Permissions of the socket: any process that may connect can have any message and any handshake signed.
const SOCKET_MODE: u32 = 0o600;
/// Maximum of simultaneous connections; a gateway has a few, a front one for each thread.
const CONNECTIONS_MAX: usize = 512;
/// Interval between two checks of the folder of keys for changes, and of the files of certificates.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const CERTIFICATES_INTERVAL: Duration = Duration::from_secs(5);
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
    let mut inherited = Inherited::from_env().map_err(io::Error::other)?;
    let asking = inherited.take_channel("web-signer");
    keep_memory_private()?;
    let secrets = Arc::new(Secrets::load(settings)?);
    let path = settings.signer_socket();
    let listener =
        bind_local(&path, SOCKET_MODE).map_err(|source| SignerError::Listen { path, source })?;
    listener.set_nonblocking(false)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if let Some(asking) = asking {
        runtime.spawn(passed::accept(asking, Arc::clone(&secrets)));
    }
    std::thread::Builder::new()
        .name("accept".to_owned())
        .spawn({
            let secrets = Arc::clone(&secrets);
            move || accept(&listener, &secrets)
        })?;
    Ok(runtime.block_on(watch(&secrets, config, level))?)
}

/// Hides the memory from other processes of the user, and keeps the memory out of core files.
fn keep_memory_private() -> nix::Result<()> {
    prctl::set_dumpable(false)?;
    prctl::set_no_new_privs()?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    Ok(())
}

/// Follows changes of keys and certificates on disk, and applies the log level of changed settings, until a signal stops the role.
async fn watch(secrets: &Secrets, config: &Path, level: &Level) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    // Ctrl-C reaches the whole foreground group; the supervisor decides and sends SIGTERM.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut tick = tokio::time::interval(LOOK_INTERVAL);
    let mut certificates = tokio::time::interval(CERTIFICATES_INTERVAL);
    entry::notify_ready();
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {
                secrets.reload_keys();
                life::reload(config, level, |settings| {
                    secrets.reload(&settings);
                    Ok::<_, Infallible>(())
                });
            }
            _ = certificates.tick() => secrets.look_at_certificates(),
            _ = tick.tick() => {
                secrets.look_at_keys();
                entry::notify_watchdog();
            }
        }
    }
}

/// Serves each connection on a separate thread: a signature occupies a processor.
fn accept(listener: &UnixListener, secrets: &Arc<Secrets>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) if open.load(Ordering::Relaxed) < CONNECTIONS_MAX => stream,
            // Over the maximum, the connection is closed at once: the other side tries again.
            Ok(_) => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                std::thread::sleep(ACCEPT_PAUSE);
                continue;
            }
        };
        open.fetch_add(1, Ordering::Relaxed);
        let (secrets, count) = (Arc::clone(secrets), Arc::clone(&open));
        let served = std::thread::Builder::new()
            .name("sign".to_owned())
            .spawn(move || {
                if let Err(error) = service::serve(stream, |request| secrets.answer(request)) {
                    tracing::warn!(%error, "connection ended");
                }
                count.fetch_sub(1, Ordering::Relaxed);
            });
        if let Err(error) = served {
            open.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!(%error, "cannot serve a connection");
        }
    }
}
