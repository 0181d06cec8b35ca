//! Segments whose entries are not read when a log is opened: the outlines are enough.

use vere_ports::spool_log::{LogReader, OpenLogError};
use vere_ports::storage::Storage;

use super::format::Head;
use super::index::{self, Sealed};
use super::recover::Recovery;
use super::redo::RedoLog;
use super::sync::Syncing;

impl<S: Storage> Recovery<'_, S> {
    /// Gives the outlines of a segment instead of the entries: read from the index, or made from
    /// the whole segment. False when the segment must be read entry by entry, because it is the
    /// last segment or incomplete.
    pub(super) fn outline_segment(
        &mut self,
        index: usize,
        reader: &mut dyn LogReader,
    ) -> Result<bool, OpenLogError> {
        let file = &self.files[index];
        let at = self.path.join(&file.name);
        let (Some(outliner), Some(head)) = (reader.outliner(), file.head) else {
            return Ok(false);
        };
        let Ok(next) = self.follower(index)? else {
            return Ok(false);
        };
        let segment = sealed(&head, next.position);
        let found = index::load(self.storage, segment, &head, file.file_len, &outliner)
            .unwrap_or_else(|error| {
                let name = index::index_name(head.number);
                tracing::warn!(file = name, %error, "index unreadable, segment read instead");
                None
            });
        if found.is_some() {
            self.unread.push(head.number);
        }
        let built = match found {
            Some(index) => index,
            None => match index::build(&file.file, segment, &outliner) {
                Ok(index) => index,
                Err(_) => return Ok(false),
            },
        };
        for (entry, outline) in built.entries(segment, head.entries_at()) {
            let read = reader.outline(entry, outline);
            read.map_err(|error| OpenLogError::Unreadable {
                file: at.clone(),
                offset: entry.offset,
                reason: error.0,
            })?;
        }
        self.synced = self.synced.max(built.synced);
        self.position = segment.end;
        self.files[index].len = head.entries_at() + segment.octets();
        Ok(true)
    }

    /// Queues missing indexes, and the verification of unread segments.
    pub(super) fn look_after(&self, log: &RedoLog<S>) {
        let all = self.files.iter().zip(self.files.iter().skip(1));
        for (file, next) in all {
            let (Some(head), Some(next)) = (file.head, next.head) else {
                continue;
            };
            let segment = sealed(&head, next.position);
            if self.unread.contains(&head.number) {
                log.syncing.note_index(head.number);
                Syncing::scrub(&log.syncing, segment);
            } else {
                log.syncing.seal(segment);
            }
        }
    }
}

fn sealed(head: &Head, end: u64) -> Sealed {
    Sealed {
        log_id: head.log_id,
        number: head.number,
        position: head.position,
        end,
    }
}
