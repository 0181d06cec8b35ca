//! Fetches of several chunks of a pack by one request for the whole mail.
//!
//! A server that keeps lines with LF counts and converts a mail from its first octet on for every part that is asked for; Dovecot
//! 2.3 parses the whole body before each part besides. A whole mail goes out as the server keeps it.

use super::cached::place_of;
use super::job::OpenJob;
use super::state::{Asked, Volume};
use crate::format::{Encoding, MailCopy};
use crate::rows::{Extent, Key, PackRow, RowValue};
use bytes::Bytes;
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request};
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// Asks for chunks that nobody has asked for: many chunks of a pack by a single request.
    pub(super) fn fetch_together(&mut self, chunks: Vec<Extent>) {
        let mut packs: Vec<Vec<Extent>> = Vec::new();
        for chunk in chunks {
            match packs.iter_mut().find(|pack| is_of(pack, chunk)) {
                Some(pack) => pack.push(chunk),
                None => packs.push(vec![chunk]),
            }
        }
        for pack in packs {
            if self.is_good_part(&pack) {
                self.fetch_whole(pack);
            } else {
                for chunk in pack {
                    self.fetch_next(chunk);
                }
            }
        }
    }

    /// Whether chunks are worth the whole mail: at least two, and half of the octets.
    fn is_good_part(&self, chunks: &[Extent]) -> bool {
        let [first, _, ..] = chunks else { return false };
        let row = self.files.tree().get(&Key::Pack(first.pack.0).encode());
        let row = row
            .ok()
            .flatten()
            .and_then(|row| PackRow::decode(&row).ok());
        let wanted = chunks.iter().map(|chunk| u64::from(chunk.sealed_len));
        row.is_some_and(|row| wanted.sum::<u64>().saturating_mul(2) >= row.octets.into())
    }

    fn fetch_whole(&mut self, chunks: Vec<Extent>) {
        let fetches = chunks
            .iter()
            .filter_map(|chunk| self.reads.fetches.get(chunk));
        let urgency = fetches.map(|fetch| fetch.urgency).min();
        let first = chunks
            .first()
            .and_then(|chunk| self.reads.fetches.get(chunk));
        let accounts = &self.accounts;
        let best = first.and_then(|fetch| {
            let copies = fetch.copies.iter();
            copies
                .min_by_key(|copy| accounts.cost(copy.account))
                .copied()
        });
        let numbers = best.and_then(|copy| accounts.uid_validity(copy.account, copy.mailbox));
        let (Some(copy), Some(uid_validity), Some(urgency)) = (best, numbers, urgency) else {
            // What is missing is told chunk by chunk.
            return chunks.into_iter().for_each(|chunk| self.fetch_next(chunk));
        };
        for chunk in &chunks {
            if let Some(fetch) = self.reads.fetches.get_mut(chunk) {
                fetch.copies.retain(|other| *other != copy);
            }
        }
        let request = Request::Read {
            mailbox: super::accounts::mailbox_name(copy.mailbox),
            uid_validity,
            uid: copy.uid,
            parts: Vec::new(),
        };
        let account = AccountId(copy.account);
        self.ask(account, urgency, request, Asked::Chunks(chunks, copy));
    }

    /// An account has answered for chunks of a mail: each gets its parts of the text.
    pub(super) fn chunks_answered(
        &mut self,
        chunks: Vec<Extent>,
        copy: MailCopy,
        answer: Result<Answer, Fault>,
    ) {
        let encoding = self.accounts.encoding(copy.account);
        for chunk in chunks {
            let answer = match (&answer, encoding) {
                (Ok(Answer::Read(texts)), Some(encoding)) => {
                    let text = texts.first().cloned().unwrap_or_default();
                    Ok(Answer::Read(parts_of(&text, encoding, chunk)))
                }
                _ => answer.clone(),
            };
            self.chunk_answered(chunk, copy, answer);
        }
    }
}

fn is_of(pack: &[Extent], chunk: Extent) -> bool {
    pack.first().is_some_and(|first| first.pack == chunk.pack)
}

/// The answer of an account to a question for the parts of a chunk alone; no octets beyond the end of the text.
fn parts_of(text: &Bytes, encoding: Encoding, chunk: Extent) -> Vec<Bytes> {
    let parts = OpenJob::parts_of(encoding, place_of(chunk)).unwrap_or_default();
    let cut = |at: u32| usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
    let parts = parts.into_iter();
    let of_text = parts.map(|part| {
        let end = part.offset.saturating_add(part.length);
        text.slice(cut(part.offset)..cut(end))
    });
    of_text.collect()
}
