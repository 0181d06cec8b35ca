//! Reads messages to examine their content, or sends the content to processes if a text must be decoded.

use vere_disk::log::Directory as LogDirectory;
use vere_mime::wire::Question;
use vere_search::Bits;
use vere_store::{BodyReader, Snapshot, StoreError, Unpacker};

use crate::index::{Stop, Verdicts};
use crate::search::own_fields::OwnFields;
use crate::search::raw;
use crate::search::texts::{self, Zones};
use vere_parsing::{Decoders, Sought, are_enough};

/// Number of messages below which one thread examines all messages.
const ALONE_MAX: usize = 32;
/// Threads at most that examine messages for one search.
const THREADS_MAX: usize = 4;
/// Messages whose recipients' own fields are requested at once.
const OWN_AT_ONCE: usize = 1_024;

/// Result of examining messages.
pub(super) struct Looked {
    pub(super) fit: Bits,
    /// Messages without an answer.
    pub(super) unclear: Bits,
    /// Matching messages whose undecoded octets matched: another attempt may be able to decode these messages.
    raw: Bits,
    pub(super) octets: usize,
    /// Messages not examined, because an earlier verdict was remembered.
    pub(super) remembered: usize,
    /// Whether some messages were examined without their recipients' own fields.
    is_doubtful: bool,
}

/// A question about messages.
pub(super) struct Asked<'q, W> {
    /// Whether the question concerns the recipient's own fields.
    pub(super) own: bool,
    /// The zones of a message that the question concerns.
    pub(super) wanted: &'q W,
    /// The text to be found in these zones.
    pub(super) question: Question<'q>,
}

/// A message's position in the mailbox, and the recipient's own fields.
type Placed = (usize, Vec<u8>);

/// The messages of a mailbox, and the means to examine their content.
pub(super) struct Contents<'a> {
    pub(super) snapshot: Snapshot,
    pub(super) reader: BodyReader<LogDirectory>,
    pub(super) own: &'a dyn OwnFields,
    pub(super) decoders: &'a Decoders,
    pub(super) verdicts: &'a Verdicts,
    pub(super) stop: Stop,
}

impl Contents<'_> {
    fn nothing(&self) -> Looked {
        Looked {
            fit: Bits::none(self.snapshot.len()),
            unclear: Bits::none(self.snapshot.len()),
            raw: Bits::none(self.snapshot.len()),
            octets: 0,
            remembered: 0,
            is_doubtful: false,
        }
    }

    /// Examines messages, except where a verdict is remembered.
    ///
    /// # Errors
    /// When no process to examine messages is available, or the search is to end.
    pub(super) fn look_into<W: Fn(usize) -> Zones + Sync>(
        &self,
        which: &Bits,
        asked: &Asked<'_, W>,
    ) -> Result<Looked, StoreError> {
        let read = |which: &Bits| {
            self.in_threads(which, asked.own, |part| self.look_into_some(part, asked))
        };
        let mailbox = self.snapshot.mailbox();
        let Some(verdicts) = self.verdicts.of(mailbox, asked.question) else {
            return read(which);
        };
        let message = |at: usize| {
            let zones = texts::bits(&(asked.wanted)(at));
            Some((self.snapshot.get(at)?.uid, zones))
        };
        let (mut fit, mut rest) = (Bits::none(which.len()), which.clone());
        let mut known = Bits::none(which.len());
        for (at, has) in which.iter().zip(verdicts.known(which.iter().map(message))) {
            match has {
                Some(true) => fit.set(at),
                Some(false) => {}
                None => continue,
            }
            known.set(at);
        }
        rest.without(&known);
        let mut looked = read(&rest)?;
        if !looked.is_doubtful {
            rest.without(&looked.unclear);
            rest.without(&looked.raw);
            let verdict = |at: usize| Some((message(at)?, looked.fit.has(at)));
            verdicts.remember(rest.iter().filter_map(verdict));
        }
        looked.fit.add(&fit);
        looked.remembered = known.count();
        Ok(looked)
    }

    /// Compares the days on which messages were sent.
    ///
    /// # Errors
    /// When the search is to end.
    pub(super) fn look_at_days(
        &self,
        which: &Bits,
        fits: impl Fn(Option<i64>) -> bool + Sync,
    ) -> Result<Looked, StoreError> {
        self.in_threads(which, false, |part| {
            let mut looked = self.nothing();
            for (at, _) in part {
                self.stop.go_on()?;
                let Some(message) = self.snapshot.get(*at) else {
                    continue;
                };
                match texts::sent(&self.reader, message, self.decoders) {
                    Ok(sent) if fits(sent) => looked.fit.set(*at),
                    Ok(_) => {}
                    Err(error) => self.unreadable(*at, &error, &mut looked),
                }
            }
            Ok(looked)
        })
    }

    fn in_threads(
        &self,
        which: &Bits,
        own: bool,
        some: impl Fn(&[Placed]) -> Result<Looked, StoreError> + Sync,
    ) -> Result<Looked, StoreError> {
        let mut looked = self.nothing();
        let which: Vec<usize> = which.iter().collect();
        for which in which.chunks(OWN_AT_ONCE) {
            self.stop.go_on()?;
            let own = match own {
                true => self.own_of(which, &mut looked.is_doubtful),
                false => vec![Vec::new(); which.len()],
            };
            let with_own: Vec<Placed> = which.iter().copied().zip(own).collect();
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let threads = match which.len() {
                ..ALONE_MAX => 1,
                _ => threads.min(THREADS_MAX),
            };
            let some = &some;
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
                let part = part?;
                looked.fit.add(&part.fit);
                looked.unclear.add(&part.unclear);
                looked.raw.add(&part.raw);
                looked.octets += part.octets;
            }
        }
        Ok(looked)
    }

    fn look_into_some<W: Fn(usize) -> Zones>(
        &self,
        which: &[Placed],
        asked: &Asked<'_, W>,
    ) -> Result<Looked, StoreError> {
        let mut looked = self.nothing();
        let mut unpacker = Unpacker::default();
        let (mut places, mut together) = (Vec::new(), Vec::new());
        for (at, own) in which {
            self.stop.go_on()?;
            let Some(message) = self.snapshot.get(*at) else {
                continue;
            };
            let zones = (asked.wanted)(*at);
            match texts::sought(&self.reader, message, own.clone(), &zones, &mut unpacker) {
                Ok(sought) => {
                    looked.octets += sought.octets.len();
                    match sought.plainly_holds(asked.question) {
                        Some(true) => looked.fit.set(*at),
                        Some(false) => {}
                        None => {
                            places.push(*at);
                            together.push(sought);
                        }
                    }
                }
                Err(error) => self.unreadable(*at, &error, &mut looked),
            }
            if are_enough(&together) {
                self.ask(&places, &together, asked.question, &mut looked)?;
                places.clear();
                together.clear();
            }
        }
        self.ask(&places, &together, asked.question, &mut looked)?;
        Ok(looked)
    }

    fn ask(
        &self,
        places: &[usize],
        together: &[Sought],
        question: Question<'_>,
        looked: &mut Looked,
    ) -> Result<(), StoreError> {
        let held = self.decoders.hold(question, together)?;
        for ((at, sought), held) in places.iter().zip(together).zip(held) {
            match held {
                Some(true) => looked.fit.set(*at),
                Some(false) => {}
                None if raw::holds(sought, question) => {
                    looked.fit.set(*at);
                    looked.raw.set(*at);
                }
                None => looked.unclear.set(*at),
            }
        }
        Ok(())
    }

    /// Notes a message that cannot be read.
    fn unreadable(&self, at: usize, error: &StoreError, looked: &mut Looked) {
        let uid = self.snapshot.get(at).map(|message| message.uid.get());
        tracing::error!(%error, uid, "message cannot be searched");
        looked.unclear.set(at);
    }

    /// Returns the recipients' own fields of messages, in order. If the store cannot read them, the fields are empty
    /// and the result is doubtful.
    fn own_of(&self, which: &[usize], is_doubtful: &mut bool) -> Vec<Vec<u8>> {
        let with: Vec<(usize, vere_store::Uid)> = which
            .iter()
            .enumerate()
            .filter_map(|(place, at)| Some((place, self.snapshot.get(*at)?)))
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
            Err(error) => {
                tracing::error!(%error, "recipients' own fields cannot be searched");
                *is_doubtful = true;
            }
        }
        own
    }
}
