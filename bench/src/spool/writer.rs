//! The bare group-commit writer: receives the floor's requests, appends the requests to a file, syncs while further
//! requests come in, and acknowledges synced requests. The writer keeps nothing in memory and parses nothing but
//! lengths.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::floor::HEAD_LEN;

/// Octets read at once.
const READ_MAX: usize = 256 << 10;

/// How far both threads are.
#[derive(Debug, Default)]
struct Progress {
    /// Requests written.
    written: u64,
    over: bool,
}

#[derive(Debug, Default)]
struct Shared {
    progress: Mutex<Progress>,
    changed: Condvar,
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress());
        self.changed.notify_all();
    }
}

/// Serves one connection at a time until the end of the process; the file is in the directory `folder`.
pub(super) fn start(folder: &Path) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    let path = folder.join("log");
    std::thread::Builder::new()
        .name("writer".to_owned())
        .spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                // The client has gone, or notices the missing answer itself.
                let _ = File::create(&path).and_then(|file| serve(stream, file));
            }
        })?;
    Ok(address)
}

fn serve(mut stream: TcpStream, mut file: File) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let shared = Arc::new(Shared::default());
    let syncer = std::thread::spawn({
        let (stream, file) = (stream.try_clone()?, file.try_clone()?);
        let shared = Arc::clone(&shared);
        move || sync(stream, &file, &shared)
    });
    let mut buffer = vec![0; READ_MAX];
    let mut requests = Requests::default();
    let result = loop {
        match stream.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(count) => {
                if let Err(error) = file.write_all(&buffer[..count]) {
                    break Err(error);
                }
                requests.pass(&buffer[..count]);
                shared.note(|progress| progress.written = requests.whole);
            }
            Err(error) => break Err(error),
        }
    };
    shared.note(|progress| progress.over = true);
    // The thread ends at once.
    let _ = syncer.join();
    result
}

/// Syncs whenever something was written since the last time.
fn sync(mut stream: TcpStream, file: &File, shared: &Shared) -> io::Result<()> {
    let mut acknowledged = 0;
    loop {
        let mut progress = shared.progress();
        while progress.written == acknowledged && !progress.over {
            progress = shared
                .changed
                .wait(progress)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if progress.over {
            return Ok(());
        }
        acknowledged = progress.written;
        drop(progress);
        file.sync_data()?;
        stream.write_all(&acknowledged.to_le_bytes())?;
    }
}

/// Counts requests in a stream that comes in pieces.
#[derive(Debug, Default)]
struct Requests {
    whole: u64,
    /// Octets still to come of the request under way.
    left: usize,
    /// The beginning of an incomplete length.
    cut: Vec<u8>,
}

impl Requests {
    fn pass(&mut self, mut piece: &[u8]) {
        loop {
            if self.left > 0 {
                let part = self.left.min(piece.len());
                self.left -= part;
                piece = &piece[part..];
                if self.left > 0 {
                    return;
                }
                self.whole += 1;
            }
            let part = piece.len().min(4 - self.cut.len());
            self.cut.extend_from_slice(&piece[..part]);
            piece = &piece[part..];
            let Some(len) = self.cut.first_chunk() else {
                return;
            };
            self.left = (u32::from_le_bytes(*len) as usize).max(HEAD_LEN) - 4;
            self.cut.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Requests;
    use crate::spool::drive::Dialect;
    use crate::spool::floor_wire::FloorWire;

    #[test]
    fn requests_are_counted_in_pieces_of_any_length() {
        let mut wire = FloorWire::new(&[7; 100], true);
        let units = wire.prepare(50);
        for len in [1, 3, 16, 17, 1000] {
            let mut requests = Requests::default();
            wire.octets()
                .chunks(len)
                .for_each(|piece| requests.pass(piece));
            assert_eq!(requests.whole, 2 * units as u64);
            assert_eq!((requests.left, requests.cut.len()), (0, 0));
        }
    }
}
