//! A large message on the way to a client, piece by piece out of the log.

use bytes::Bytes;
use vere_disk::log::{Directory as LogDirectory, DirectoryFile as LogFile};
use vere_imap::server::{PieceQuery, Refusal};
use vere_store::{BlobId, BodyReader, Message, Pieces, StoreError};

/// Where the message is found, also when it is expunged meanwhile.
#[derive(Debug)]
pub(super) struct Large {
    uid: u32,
    blob: BlobId,
    /// The fields before it.
    own: Vec<u8>,
    reader: BodyReader<LogDirectory>,
    /// What comes next, once a piece was read.
    pieces: Option<Pieces<LogFile>>,
}

impl Large {
    pub(super) fn new(message: &Message, own: &[u8], reader: &BodyReader<LogDirectory>) -> Self {
        Self {
            uid: message.uid.get(),
            blob: message.blob,
            own: own.to_vec(),
            reader: reader.clone(),
            pieces: None,
        }
    }

    pub(super) const fn uid(&self) -> u32 {
        self.uid
    }

    pub(super) const fn is_begun(&self) -> bool {
        self.pieces.is_some()
    }

    /// Reads a piece where it may take its time.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn piece(&mut self, query: PieceQuery) -> Result<Bytes, Refusal> {
        let end = query.first.saturating_add(query.octets);
        let of_own = self.own.get(query.first..).unwrap_or_default();
        let of_own = &of_own[..of_own.len().min(query.octets)];
        let from = query.first.saturating_sub(self.own.len());
        let octets = end.saturating_sub(self.own.len()).saturating_sub(from);
        let known = self.pieces.take().filter(|pieces| pieces.at() == from);
        let (reader, blob) = (self.reader.clone(), self.blob);
        // Made here: what another thread makes goes back to that one.
        let mut piece = vec![0; octets];
        let read = move || {
            let mut pieces = match known {
                Some(pieces) => pieces,
                None => reader.open(blob)?.pieces(from),
            };
            pieces.read(&mut piece)?;
            Ok((pieces, piece))
        };
        let read = tokio::task::spawn_blocking(read).await;
        let read: Result<_, StoreError> = read.map_err(|_| Refusal::Unavailable)?;
        let (pieces, piece) = read.map_err(|error| {
            tracing::error!(%error, uid = self.uid, "message cannot be read to its end");
            Refusal::Unavailable
        })?;
        self.pieces = Some(pieces);
        Ok(match of_own {
            [] => piece.into(),
            own => [own, &piece].concat().into(),
        })
    }
}
