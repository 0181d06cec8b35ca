//! A file without a name, with a part of a message.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use vere_disk::Room;
use vere_process::memory::Share;
use vere_settings::Settings;
use vere_smtp::server::Message;

use super::closer::Closer;

/// Divisor of the disk: the quotient is the reserve that these files leave free.
const KEPT_DIVISOR: u64 = 8;
/// Upper bound of the reserved part: a large disk needs no bigger reserve.
const KEPT_MAX: u64 = 1 << 30;
/// Divisor of the reserve. New octets may use this part of the reserve until called connections have freed theirs.
const LAST_DIVISOR: u64 = 2;

/// A file in the data folder, once octets were written, and its share of the disk.
#[derive(Debug)]
pub(crate) struct Filed {
    settings: Arc<Settings>,
    /// The file's share of the disk.
    pub(crate) held: Share,
    file: Option<File>,
    closer: Closer,
}

impl Drop for Filed {
    fn drop(&mut self) {
        self.close();
    }
}

impl Filed {
    /// The file goes to the data folder; `held` is the share of the room for all files of long messages, and `closer` closes the file.
    pub(crate) const fn new(settings: Arc<Settings>, held: Share, closer: Closer) -> Self {
        Self {
            settings,
            held,
            file: None,
            closer,
        }
    }

    /// Looks how much room the disk has, which bounds the octets in the files of all connections.
    ///
    /// # Errors
    /// When the system does not say.
    pub(crate) async fn room(&self) -> io::Result<Room> {
        let folder = self.settings.data.clone();
        let room = tokio::task::spawn_blocking(move || vere_disk::room(&folder));
        let room = room.await.map_err(io::Error::other)??;
        let signed = |octets: u64| i64::try_from(octets).unwrap_or(i64::MAX);
        // No connection has to free what is about to be freed.
        let free = room.free.saturating_add(self.closer.octets());
        self.held.set_room(signed(free) - signed(kept(&room)));
        Ok(room)
    }

    /// Writes octets at the end of the file.
    ///
    /// # Errors
    /// When the disk has no room, or the file cannot be written.
    pub(crate) async fn append(&mut self, room: Room, octets: Vec<u8>) -> io::Result<()> {
        if room.free < kept(&room) / LAST_DIVISOR {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (folder, file) = (self.settings.data.clone(), self.file.take());
        let written = tokio::task::spawn_blocking(move || {
            let mut file = match file {
                Some(file) => file,
                None => tempfile::tempfile_in(folder)?,
            };
            file.write_all(&octets)?;
            Ok::<_, io::Error>(file)
        });
        self.file = Some(written.await.map_err(io::Error::other)??);
        Ok(())
    }

    /// Makes a message whole again, whose first octets are those in the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) async fn join(&mut self, message: &mut Message) -> io::Result<()> {
        if message.aside == 0 {
            return Ok(());
        }
        let file = self
            .file
            .take()
            .ok_or_else(|| io::Error::other("its file is gone"))?;
        let aside = usize::try_from(message.aside).map_err(io::Error::other)?;
        let rest = std::mem::take(&mut message.body);
        let read = tokio::task::spawn_blocking(move || {
            let mut body = Vec::with_capacity(aside + rest.len());
            body.resize(aside, 0);
            file.read_exact_at(&mut body, 0)?;
            body.extend_from_slice(&rest);
            Ok::<_, io::Error>(body)
        });
        message.body = read.await.map_err(io::Error::other)??;
        message.aside = 0;
        Ok(())
    }

    /// Lets go of the file.
    pub(crate) fn close(&mut self) {
        if let Some(file) = self.file.take() {
            let octets = file.metadata().map_or(0, |found| found.len());
            self.closer.close(file, octets);
        }
    }

    /// Logs that the file cannot be written.
    pub(crate) fn log(&self, error: &io::Error) {
        tracing::warn!(%error, folder = %self.settings.data.display(), "a message that is being received cannot be written: it is refused");
    }
}

fn kept(room: &Room) -> u64 {
    (room.all / KEPT_DIVISOR).min(KEPT_MAX)
}
