//! Reading a message in pieces: memory holds one piece and the window of the decompression.

use vere_ports::storage::StorageFile;
use zstd::stream::raw::{Decoder, Operation as _};

use super::{BODY_HEAD, Body, PLAIN, damaged, failed};
use crate::error::StoreError;
use crate::log::format::RECORD_HEAD;
use crate::model::BlobId;

/// Octets read from the log at once.
const WINDOW: usize = 64 * 1024;

/// Maximum octets of memory for reading a message in pieces, beside the piece: the window of the decompression, and
/// blocks on the way.
pub const PIECES_MEMORY: usize = 1024 * 1024;

impl<F: StorageFile> Body<F> {
    /// Reads the whole record and verifies its checksum, without keeping any octets.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`], [`StoreError::Failed`].
    pub fn check(&self) -> Result<(), StoreError> {
        let length = u64::from(self.head.length);
        let mut window = vec![0; WINDOW.min(self.head.length as usize)];
        let mut crc = vere_checksum::Crc32::default();
        let mut read = 0;
        while read < length {
            let octets = (window.len() as u64).min(length - read) as usize;
            let part = &mut window[..octets];
            let at = self.offset + RECORD_HEAD as u64 + read;
            self.file
                .read_at(part, at)
                .map_err(|error| failed(error, self.blob))?;
            crc.update(part);
            read += octets as u64;
        }
        match crc.finish() == self.head.payload_crc {
            true => Ok(()),
            false => Err(damaged(self.blob)),
        }
    }

    /// Reads the message in pieces, from octet `from` on. Pieces are not verified; [`Body::check`] verifies the
    /// message.
    #[must_use]
    pub fn pieces(&self, from: usize) -> Pieces<F> {
        let message = self.offset + (RECORD_HEAD + BODY_HEAD + self.parsed) as u64;
        let len = self.octets();
        let at = from.min(len);
        let packed = (self.codec != PLAIN).then(|| Packed {
            decoder: None,
            stored: message + self.header as u64,
            end: self.offset + RECORD_HEAD as u64 + u64::from(self.head.length),
            input: Vec::new(),
            used: 0,
            skip: at.saturating_sub(self.header),
        });
        Pieces {
            file: self.file.clone(),
            blob: self.blob,
            message,
            header: self.header,
            len,
            at,
            packed,
        }
    }
}

/// The rest of a message.
#[derive(Debug)]
pub struct Pieces<F> {
    file: F,
    blob: BlobId,
    /// The offset of the message in the file.
    message: u64,
    header: usize,
    len: usize,
    /// The next octet of the message.
    at: usize,
    /// The compressed part, if any.
    packed: Option<Packed>,
}

/// The compressed part of a message, behind the header.
struct Packed {
    decoder: Option<Decoder<'static>>,
    /// The offset in the file of the unread part.
    stored: u64,
    end: u64,
    /// Compressed octets read from the file; the first `used` octets are decompressed.
    input: Vec<u8>,
    used: usize,
    /// Decompressed octets to skip.
    skip: usize,
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packed").finish_non_exhaustive()
    }
}

impl<F: StorageFile> Pieces<F> {
    /// Returns the number of the message's next octet.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Fills `piece` with the next octets of the message. At the end of the message `piece` is truncated.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`], [`StoreError::Failed`]; nothing can be read then.
    pub fn read(&mut self, piece: &mut Vec<u8>) -> Result<(), StoreError> {
        piece.truncate(self.len - self.at);
        let plain_until = match self.packed {
            Some(_) => self.header,
            None => self.len,
        };
        let plain = plain_until.saturating_sub(self.at).min(piece.len());
        let (plain, packed) = piece.split_at_mut(plain);
        if !plain.is_empty() {
            self.file
                .read_at(plain, self.message + self.at as u64)
                .map_err(|error| failed(error, self.blob))?;
        }
        if let Some(of) = self.packed.as_mut().filter(|_| !packed.is_empty()) {
            of.skip(&self.file, self.blob)?;
            of.fill(packed, &self.file, self.blob)?;
        }
        self.at += plain.len() + packed.len();
        Ok(())
    }
}

impl Packed {
    fn skip<F: StorageFile>(&mut self, file: &F, blob: BlobId) -> Result<(), StoreError> {
        let mut scratch = vec![0; WINDOW.min(self.skip)];
        while self.skip > 0 {
            let octets = scratch.len().min(self.skip);
            self.fill(&mut scratch[..octets], file, blob)?;
            self.skip -= octets;
        }
        Ok(())
    }

    fn fill<F: StorageFile>(
        &mut self,
        out: &mut [u8],
        file: &F,
        blob: BlobId,
    ) -> Result<(), StoreError> {
        let mut filled = 0;
        while filled < out.len() {
            if self.used == self.input.len() && self.stored < self.end {
                self.read_on(file, blob)?;
            }
            let decoder = match &mut self.decoder {
                Some(decoder) => decoder,
                none => none
                    .insert(Decoder::new().map_err(|error| StoreError::Failed(error.to_string()))?),
            };
            let input = &self.input[self.used..];
            let done = decoder
                .run_on_buffers(input, &mut out[filled..])
                .map_err(|_| damaged(blob))?;
            self.used += done.bytes_read;
            filled += done.bytes_written;
            if done.bytes_read == 0 && done.bytes_written == 0 {
                // The compressed part ends before the message does.
                return Err(damaged(blob));
            }
        }
        Ok(())
    }

    fn read_on<F: StorageFile>(&mut self, file: &F, blob: BlobId) -> Result<(), StoreError> {
        let octets = (self.end - self.stored).min(WINDOW as u64) as usize;
        self.input.resize(octets, 0);
        file.read_at(&mut self.input, self.stored)
            .map_err(|error| failed(error, blob))?;
        self.stored += octets as u64;
        self.used = 0;
        Ok(())
    }
}
