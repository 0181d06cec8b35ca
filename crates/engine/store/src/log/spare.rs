//! Spare files, which only reserve blocks of the disk. On a full disk the store gives them up, so that messages can
//! be deleted and their space reclaimed. Until the spare files exist again the store accepts no message.
//!
//! The first file is for the records of deletions, and given up as soon as the disk is nearly full. The second file
//! is for writing segments again, and keeps other programs from filling that space too.

use std::io;

use vere_ports::storage::{Storage, StorageFile};

use super::Log;
use crate::error::StoreError;

/// The names of the files, in the order in which they are given up.
pub const SPARES: [&str; 2] = ["spare-1", "spare-2"];

/// The state of the spare room.
#[derive(Debug, Default)]
pub(super) struct Spare {
    /// Octets of each spare file; 0 for no spare files.
    octets: u64,
    held: [bool; 2],
    /// Whether the host reported the disk as nearly full.
    scarce: bool,
    /// Whether a message did not fit since room was looked at.
    refuses: bool,
}

impl<S: Storage> Log<S> {
    /// Opens the existing spare files, of `octets` in all; spare files of another size are removed.
    pub(super) fn find_spare(&mut self, octets: u64) -> io::Result<()> {
        self.spare.octets = octets / 2;
        for (number, name) in SPARES.iter().enumerate() {
            let found = match self.storage.open(name) {
                Ok(file) => Some(file.len()?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            let right = found.is_some_and(|len| len == self.spare.octets);
            self.spare.held[number] = right && octets > 0;
            if found.is_some() && !self.spare.held[number] {
                remove(&self.storage, name)?;
            }
        }
        Ok(())
    }

    /// Creates the missing spare files. A file that does not fit on the disk is not created.
    pub(crate) fn make_spare(&mut self) -> io::Result<()> {
        if self.spare.octets == 0 {
            return Ok(());
        }
        for (number, name) in SPARES.iter().enumerate() {
            if self.spare.held[number] {
                continue;
            }
            remove(&self.storage, name)?;
            let made = self.storage.create(name);
            match made.and_then(|file| file.allocate(self.spare.octets)) {
                Ok(()) => self.spare.held[number] = true,
                Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                    remove(&self.storage, name)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Gives up the next spare file. Returns false if no spare file exists.
    pub(crate) fn give_up_spare(&mut self) -> Result<bool, StoreError> {
        match self.spare.held.iter().position(|held| *held) {
            Some(number) => self.give_up(number).map(|()| true),
            None => Ok(false),
        }
    }

    fn give_up(&mut self, number: usize) -> Result<(), StoreError> {
        self.spare.held[number] = false;
        let removed = remove(&self.storage, SPARES[number]);
        removed.map_err(|error| self.fail(error.to_string()))
    }

    /// Gives up the first spare file on a nearly full disk; otherwise creates missing spare files again.
    pub(crate) fn note_room(&mut self, scarce: bool) -> Result<(), StoreError> {
        self.check()?;
        (self.spare.scarce, self.spare.refuses) = (scarce, false);
        match (scarce, self.spare.held) {
            (true, [true, _]) => self.give_up(0),
            (false, [true, true]) | (true, _) => Ok(()),
            (false, _) => self
                .make_spare()
                .map_err(|error| self.fail(error.to_string())),
        }
    }

    /// Whether the disk has space for new messages, and not only for removals.
    pub(crate) fn is_roomy(&self) -> bool {
        !self.spare.scarce && (self.spare.octets == 0 || self.spare.held == [true, true])
    }

    /// Makes sure that a message of `octets`, its record head included, can be appended.
    ///
    /// # Errors
    ///
    /// As [`Log::reserve`]; the spare files are not given up.
    pub(crate) fn admit(&mut self, octets: u64) -> Result<(), StoreError> {
        self.check()?;
        if !self.is_roomy() || self.spare.refuses {
            return Err(StoreError::DiskFull);
        }
        let admitted = self.reserve_freely(octets);
        if matches!(admitted, Err(StoreError::DiskFull)) && self.spare.octets > 0 {
            // The next message would try to create a whole segment as well; the host reports when space returns. A
            // message that needs a separate segment proves nothing about smaller messages.
            self.spare.refuses = octets <= self.segment_size;
        }
        admitted
    }
}

fn remove<S: Storage>(storage: &S, name: &str) -> io::Result<()> {
    match storage.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
