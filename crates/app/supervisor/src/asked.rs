//! Answers commands over `supervisor.sock`, a file for the system's user only.
//!
//! Each connection has a request and a separate thread to wait for the client; the deciding thread gets whole requests
//! and never waits.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use vere_control::supervision::SupervisorRequest;
use vere_control::{Answer, REQUEST_MAX};
use vere_net::listen::bind_local;

/// Permissions of the socket: of the system's user alone.
const MODE: u32 = 0o600;
/// Connections served at once; further ones are closed.
const CLIENTS_MAX: usize = 16;
/// Longest silence of a client. A slow client occupies a place of [`CLIENTS_MAX`]; the socket admits the system's user
/// alone.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request of a command, and where the answer goes.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: SupervisorRequest,
    pub(super) answer: SyncSender<Answer>,
}

/// The socket's file, removed with the supervisor.
#[derive(Debug)]
pub(super) struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // On failure, the next start replaces the file.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Gives a request to the deciding thread; false once the thread is gone.
pub(super) trait Hand: Fn(Asked) -> bool + Clone + Send + 'static {}

impl<H: Fn(Asked) -> bool + Clone + Send + 'static> Hand for H {}

/// Answers at `path` from now on.
pub(super) fn serve(path: &Path, hand: impl Hand) -> io::Result<Socket> {
    let listener = bind_local(path, MODE)?;
    listener.set_nonblocking(false)?;
    thread::Builder::new()
        .name("commands".into())
        .spawn(move || accept(&listener, &hand))?;
    Ok(Socket(path.to_owned()))
}

fn accept(listener: &UnixListener, hand: &impl Hand) {
    let places = Arc::new(());
    for stream in listener.incoming() {
        match stream {
            Ok(stream) if Arc::strong_count(&places) <= CLIENTS_MAX => {
                let (place, hand) = (Arc::clone(&places), hand.clone());
                let serve = move || {
                    // A closed connection needs no answer.
                    let _ = answer(&stream, &hand);
                    drop(place);
                };
                // Without a thread, the connection of the client is closed.
                let _ = thread::Builder::new().name("command".into()).spawn(serve);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept the connection of a command");
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

fn answer(stream: &UnixStream, hand: &impl Hand) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = Vec::new();
    let most = REQUEST_MAX as u64;
    BufReader::new(stream.take(most)).read_until(b'\n', &mut line)?;
    let answer = match serde_json::from_slice(&line) {
        Ok(request) => decided(request, hand)?,
        Err(error) => Answer::Error(format!("expected a request in JSON; found {error}")),
    };
    let mut text = serde_json::to_vec(&answer)?;
    text.push(b'\n');
    let mut stream = stream;
    stream.write_all(&text)
}

/// The answer of the deciding thread.
fn decided(request: SupervisorRequest, hand: &impl Hand) -> io::Result<Answer> {
    let (answer, answered) = sync_channel(1);
    let gone = || io::Error::from(ErrorKind::BrokenPipe);
    if !hand(Asked { request, answer }) {
        return Err(gone());
    }
    answered.recv().map_err(|_| gone())
}
