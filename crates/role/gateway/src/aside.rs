//! The received part of a long message, in an unlinked file, so that many long messages use the disk and not memory.
//!
//! The message is read back when it is whole, for as long as it takes to make it safe.
//!
//! The nodes' logs and the mail store usually share the disk with these files. The files therefore leave a part of the
//! disk free, whatever `limits.body_disk_max` says. At that limit the messages with most octets for their rate are refused.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;
use std::sync::Arc;

use vere_settings::Settings;
use vere_smtp::server::{Message, Server};

use vere_process::memory::{BodyMemory, Receiver, Share};
use vere_process::places::Client;

/// Octets of a message held in memory before the file is written.
const FROM: usize = 1024 * 1024;

/// Divisor of the disk: the quotient is the reserve that these files leave free.
const KEPT_DIVISOR: u64 = 8;
/// Upper bound of the reserved part: a large disk needs no bigger reserve.
const KEPT_MAX: u64 = 1 << 30;
/// Divisor of the reserve. New octets may use this part of the reserve until called connections have freed theirs.
const LAST_DIVISOR: u64 = 2;

/// The file of one connection.
#[derive(Debug)]
pub(super) struct Aside {
    settings: Arc<Settings>,
    /// The file's share of the disk.
    held: Share,
    file: Option<File>,
}

/// A session whose octets are those in the file.
struct Filed<'a>(&'a mut Server);

impl Receiver for Filed<'_> {
    fn memory(&self) -> usize {
        usize::try_from(self.0.aside()).unwrap_or(usize::MAX)
    }

    fn is_authenticated(&self) -> bool {
        self.0.account().is_some()
    }

    fn refuse_for_room(&mut self) {
        self.0.refuse_for_room();
    }

    fn end(&mut self) {
        self.0.timed_out();
    }
}

impl Aside {
    /// Files go to the data folder; the room for those of all connections is `disk`.
    pub(super) fn new(settings: Arc<Settings>, disk: &Rc<BodyMemory>, client: Client) -> Self {
        Self {
            settings,
            held: disk.share(Some(client)),
            file: None,
        }
    }

    /// Writes what has come of a long message, and lets go of one that is not wanted any more. Whether the session was told
    /// something: then it has to be asked anew what is next.
    pub(super) async fn take(&mut self, server: &mut Server) -> bool {
        let called = self.write_and_count(server).await;
        // Closing the file here frees the disk space even when the client never sends another command.
        if server.aside() == 0 {
            self.file = None;
        }
        called
    }

    async fn write_and_count(&mut self, server: &mut Server) -> bool {
        if server.aside() == 0 {
            self.file = None;
        }
        if server.message_memory() < FROM {
            return self.held.count(&mut Filed(server));
        }
        match self.write(server).await {
            Ok(called) => called,
            Err(error) => {
                tracing::warn!(%error, folder = %self.settings.data.display(), "a message that is being received cannot be written: it is refused");
                server.refuse_for_room();
                self.held.count(&mut Filed(server));
                true
            }
        }
    }

    /// Returns when this connection was called to let go of what it holds: [`Aside::take`] does it.
    pub(super) async fn called(&self) {
        self.held.called().await;
    }

    /// Writes the octets in memory to the file. Returns true, without writing, when this connection was called to free
    /// its message instead.
    async fn write(&mut self, server: &mut Server) -> io::Result<bool> {
        let folder = self.settings.data.clone();
        let room = tokio::task::spawn_blocking(move || vere_disk::room(&folder));
        let room = room.await.map_err(io::Error::other)??;
        let kept = (room.all / KEPT_DIVISOR).min(KEPT_MAX);
        let signed = |octets: u64| i64::try_from(octets).unwrap_or(i64::MAX);
        self.held.set_room(signed(room.free) - signed(kept));
        let octets = server.set_aside();
        if self.held.count(&mut Filed(server)) {
            return Ok(true);
        }
        if room.free < kept / LAST_DIVISOR {
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
        Ok(false)
    }

    /// Makes a message whole again.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) async fn join(&mut self, message: &mut Message) -> io::Result<()> {
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
}
