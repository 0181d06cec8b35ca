//! Spare room: files that hold nothing but blocks of the disk. When the disk is full they are given up, so
//! that messages can be deleted and the room they took can come back; until they are there again no message
//! is taken in.
//!
//! One is for the records of what is deleted, and given up as soon as the disk is nearly full. The other is
//! for writing segments again, so that whoever else fills the disk does not take that as well.

use std::io;

use vere_ports::storage::{Storage, StorageFile};

use super::Log;
use crate::StoreError;

/// The names of the files, in the order in which they are given up.
pub const SPARES: [&str; 2] = ["spare-1", "spare-2"];

/// The state of the spare room.
#[derive(Debug, Default)]
pub(super) struct Spare {
    /// Octets of each file; 0 for none.
    octets: u64,
    held: [bool; 2],
    /// Whether somebody who knows the disk said that it is nearly full.
    scarce: bool,
    /// Whether a message did not fit since room was looked at.
    refuses: bool,
}

impl<S: Storage> Log<S> {
    /// Finds the files there are, of so many octets in all; others are removed.
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

    /// Makes the files that are missing; on a disk that has no room for one, it is not made.
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

    /// Gives up the next file that is there; false when none is.
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

    /// Gives up the first file when the disk is nearly full, and makes them again when it is not.
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

    /// Whether there is room for messages, and not only for getting rid of some.
    pub(crate) fn is_roomy(&self) -> bool {
        !self.spare.scarce && (self.spare.octets == 0 || self.spare.held == [true, true])
    }

    /// Makes sure that a message of so many octets, its head included, can be appended.
    ///
    /// # Errors
    ///
    /// As [`Log::reserve`]; the spare room is not given up for it.
    pub(crate) fn admit(&mut self, octets: u64) -> Result<(), StoreError> {
        self.check()?;
        if !self.is_roomy() || self.spare.refuses {
            return Err(StoreError::DiskFull);
        }
        let admitted = self.reserve_freely(octets);
        if matches!(admitted, Err(StoreError::DiskFull)) && self.spare.octets > 0 {
            // The next message would try to make a whole segment as well; whoever knows the disk says
            // when it is worth while. One that needs a segment of its own says nothing about others.
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
