//! Spare room: a file that holds nothing but blocks of the disk. When the disk is full it is given up, so
//! that messages can be deleted and the room they took can come back; until it is there again no message
//! is taken in.

use std::io;

use vere_ports::storage::{Storage, StorageFile};

use super::Log;
use crate::StoreError;

/// The name of the file.
pub(super) const SPARE: &str = "spare";

/// The state of the spare room.
#[derive(Debug, Default)]
pub(super) struct Spare {
    /// Octets that are kept; 0 for none.
    octets: u64,
    held: bool,
    /// Whether somebody who knows the disk said that it is nearly full.
    scarce: bool,
}

impl<S: Storage> Log<S> {
    /// Finds the file there is, or makes it.
    pub(super) fn open_spare(&mut self, octets: u64) -> io::Result<()> {
        self.spare.octets = octets;
        let found = match self.storage.open(SPARE) {
            Ok(file) => Some(file.len()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        match found {
            None if octets == 0 => Ok(()),
            Some(_) if octets == 0 => remove(&self.storage),
            Some(len) if len == octets => {
                self.spare.held = true;
                Ok(())
            }
            _ => self.make_spare(),
        }
    }

    /// Makes the file; on a disk that has no room for it, it is not made.
    fn make_spare(&mut self) -> io::Result<()> {
        remove(&self.storage)?;
        let file = self.storage.create(SPARE)?;
        match file.allocate(self.spare.octets) {
            Ok(()) => self.spare.held = true,
            Err(error) if error.kind() == io::ErrorKind::StorageFull => remove(&self.storage)?,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Gives the room up.
    pub(super) fn give_up_spare(&mut self) -> Result<(), StoreError> {
        self.spare.held = false;
        remove(&self.storage).map_err(|error| self.fail(error.to_string()))
    }

    /// Gives up the spare room when the disk is nearly full, and takes it back when there is room again.
    pub(crate) fn note_room(&mut self, scarce: bool) -> Result<(), StoreError> {
        self.check()?;
        self.spare.scarce = scarce;
        if self.spare.octets == 0 {
            return Ok(());
        }
        if scarce {
            return match self.spare.held {
                true => self.give_up_spare(),
                false => Ok(()),
            };
        }
        if self.spare.held {
            return Ok(());
        }
        self.make_spare()
            .map_err(|error| self.fail(error.to_string()))
    }

    /// Whether there is room for messages, and not only for getting rid of some.
    pub(crate) fn is_roomy(&self) -> bool {
        !self.spare.scarce && (self.spare.held || self.spare.octets == 0)
    }

    /// Makes sure that a message of so many octets, its head included, can be appended.
    ///
    /// # Errors
    ///
    /// As [`Log::reserve`]; the spare room is not given up for it.
    pub(crate) fn admit(&mut self, octets: u64) -> Result<(), StoreError> {
        self.check()?;
        if !self.is_roomy() {
            return Err(StoreError::DiskFull);
        }
        self.reserve_freely(octets)
    }
}

fn remove<S: Storage>(storage: &S) -> io::Result<()> {
    match storage.remove(SPARE) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
