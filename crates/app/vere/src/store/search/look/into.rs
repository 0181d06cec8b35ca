//! Reading messages, to look whether something is in them.

use vere_search::Bits;
use vere_store::Unpacker;

use super::Look;
use crate::store::search::texts::{Texts, Zones, guarded};

/// Fewer messages than these are looked into by one thread.
const ALONE_MAX: usize = 32;
/// The most threads that look into messages for one search.
const THREADS_MAX: usize = 4;
/// Messages whose own fields are asked for at once.
const OWN_AT_ONCE: usize = 1_024;

/// What came of looking into messages.
pub(super) struct Looked {
    pub(super) fit: Bits,
    pub(super) octets: usize,
}

/// What is asked of messages.
pub(super) struct Asked<'q, W, F> {
    /// Whether the fields of the recipient's own are among it.
    pub(super) own: bool,
    /// The zones of a message that are.
    pub(super) wanted: &'q W,
    /// Whether it fits.
    pub(super) fits: &'q F,
}

impl<W, F> Copy for Asked<'_, W, F> {}

impl<W, F> Clone for Asked<'_, W, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Look<'_> {
    /// Reads messages and looks whether they fit.
    pub(super) fn look_into<W, F>(&self, which: &Bits, asked: Asked<'_, W, F>) -> Looked
    where
        W: Fn(usize) -> Zones + Sync,
        F: Fn(&Texts, &Zones) -> bool + Sync,
    {
        let mut looked = Looked {
            fit: Bits::none(self.messages.len()),
            octets: 0,
        };
        let which: Vec<usize> = which.iter().collect();
        for which in which.chunks(OWN_AT_ONCE) {
            let own = match asked.own {
                true => self.own_of(which),
                false => vec![Vec::new(); which.len()],
            };
            let with_own: Vec<(usize, Vec<u8>)> = which.iter().copied().zip(own).collect();
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let threads = match which.len() {
                ..ALONE_MAX => 1,
                _ => threads.min(THREADS_MAX),
            };
            let some = |part: &[(usize, Vec<u8>)]| self.look_into_some(part, asked);
            let parts = std::thread::scope(|scope| {
                let size = with_own.len().div_ceil(threads);
                let mut parts = with_own.chunks(size);
                let first = parts.next();
                let others: Vec<_> = parts.map(|part| scope.spawn(move || some(part))).collect();
                let first = first.map(some);
                let others = others.into_iter().map(|thread| match thread.join() {
                    Ok(looked) => looked,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
                first.into_iter().chain(others).collect::<Vec<_>>()
            });
            for part in parts {
                looked.fit.add(&part.fit);
                looked.octets += part.octets;
            }
        }
        looked
    }

    fn look_into_some<W, F>(&self, which: &[(usize, Vec<u8>)], asked: Asked<'_, W, F>) -> Looked
    where
        W: Fn(usize) -> Zones,
        F: Fn(&Texts, &Zones) -> bool,
    {
        let mut looked = Looked {
            fit: Bits::none(self.messages.len()),
            octets: 0,
        };
        let mut unpacker = Unpacker::default();
        for (at, own) in which {
            let Some(message) = self.messages.get(*at) else {
                continue;
            };
            let zones = (asked.wanted)(*at);
            let texts = Texts::read(&self.reader, message, own.clone(), &zones, &mut unpacker);
            match texts {
                Ok(texts) => {
                    looked.octets += texts.octets();
                    if guarded(message, || (asked.fits)(&texts, &zones)).unwrap_or(false) {
                        looked.fit.set(*at);
                    }
                }
                Err(error) => {
                    tracing::error!(%error, uid = message.uid.get(), "message cannot be searched");
                }
            }
        }
        looked
    }

    /// The own fields of messages, in their order.
    fn own_of(&self, which: &[usize]) -> Vec<Vec<u8>> {
        let with: Vec<(usize, vere_store::Uid)> = which
            .iter()
            .enumerate()
            .filter_map(|(place, at)| Some((place, self.messages.get(*at)?)))
            .filter(|(_, message)| message.own_fields)
            .map(|(place, message)| (place, message.uid))
            .collect();
        let mut own = vec![Vec::new(); which.len()];
        if with.is_empty() {
            return own;
        }
        let uids: Vec<_> = with.iter().map(|(_, uid)| *uid).collect();
        match self.own.own_fields(self.snapshot.mailbox(), &uids) {
            Ok(fields) => {
                for ((place, _), fields) in with.iter().zip(fields) {
                    if let Some(own) = own.get_mut(*place) {
                        *own = fields;
                    }
                }
            }
            Err(error) => tracing::error!(%error, "recipients' own fields cannot be searched"),
        }
        own
    }
}
