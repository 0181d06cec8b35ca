//! The received part of a long message, in an unlinked file, so that many long messages use the disk and not memory.
//!
//! The whole message is read back, until the message is safe.
//!
//! The nodes' logs and the mail store usually share the disk with these files. The files therefore leave a part of the
//! disk free, whatever `limits.body_disk_max` says. At that limit the messages with most octets for their rate are refused.

mod closer;
mod filed;

use std::io;

use vere_smtp::server::{Message, Server};

use vere_process::memory::Receiver;

pub(super) use closer::Closer;
pub(super) use filed::Filed;

/// Octets of a message held in memory before the file is written.
const FROM: usize = 1024 * 1024;

/// The file of one connection.
#[derive(Debug)]
pub(super) struct Aside {
    filed: Filed,
}

/// A session whose octets are those in the file.
struct InFile<'a>(&'a mut Server);

impl Receiver for InFile<'_> {
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
    /// Writes what is long to this file.
    pub(super) const fn new(filed: Filed) -> Self {
        Self { filed }
    }

    /// Writes the received part of a long message, and releases an unwanted message. True if the session was told
    /// something: then the session has to be asked anew for the next step.
    pub(super) async fn take(&mut self, server: &mut Server) -> bool {
        let called = self.write_and_count(server).await;
        // Closing the file here frees the disk space even when the client never sends another command.
        if server.aside() == 0 {
            self.filed.close();
        }
        called
    }

    async fn write_and_count(&mut self, server: &mut Server) -> bool {
        if server.aside() == 0 {
            self.filed.close();
        }
        if server.message_memory() < FROM {
            return self.filed.held.count(&mut InFile(server));
        }
        match self.write(server).await {
            Ok(called) => called,
            Err(error) => {
                self.filed.log(&error);
                server.refuse_for_room();
                self.filed.held.count(&mut InFile(server));
                true
            }
        }
    }

    /// Returns once the connection is called to release the held data; [`Aside::take`] does the release.
    pub(super) async fn called(&self) {
        self.filed.held.called().await;
    }

    /// Writes the octets in memory to the file. Returns true, without writing, when this connection was called to free
    /// its message instead.
    async fn write(&mut self, server: &mut Server) -> io::Result<bool> {
        let room = self.filed.room().await?;
        let octets = server.set_aside();
        if self.filed.held.count(&mut InFile(server)) {
            return Ok(true);
        }
        self.filed.append(room, octets).await?;
        Ok(false)
    }

    /// Makes a message whole again.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) async fn join(&mut self, message: &mut Message) -> io::Result<()> {
        self.filed.join(message).await
    }
}
