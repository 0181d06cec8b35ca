//! The number of a writer: no other mail goes out under a number before the chain names the owner of the number.

use vere_opening::{OpenError, is_machine, registration};
use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::found::Found;
use super::record::Part;
use super::state::{RESERVED, Volume};
use super::step::{Notice, Step};
use crate::format::MailId;
use crate::posix::Numbers;
use crate::rows::{Key, RowValue, WriterRow, writers_prefix};
use crate::tree::Change;

/// The machine that has registered the number of a writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registrant {
    /// No machine, as far as the log tells.
    Nobody,
    /// This machine.
    ThisMachine,
    /// Another machine, by its name.
    Other(String),
}

impl<S: Storage> Volume<S> {
    /// The machine that has registered the number of a writer.
    ///
    /// # Errors
    /// When the row cannot be read.
    pub fn registrant(&self, writer: u16) -> Result<Registrant, Errno> {
        let Some(row) = self.fact(&Key::Writer(writer).encode())? else {
            return Ok(Registrant::Nobody);
        };
        let row = WriterRow::decode(&row).map_err(|_| Errno::Io)?;
        Ok(match is_machine(&row, &self.machine) {
            true => Registrant::ThisMachine,
            false => Registrant::Other(row.name),
        })
    }

    /// Whether the chain has not confirmed the writer's number yet.
    pub(super) const fn is_registering(&self) -> bool {
        self.follow.is_registering
    }

    /// Takes a writer's number if this folder has none, and reserves numbers. The random tells two machines of one name apart.
    pub(super) fn begin(&mut self, later: &[Found]) -> Result<(), OpenError> {
        if self.writer == 0 {
            self.follow.is_registering = true;
            let later = later.iter().flat_map(|found| &found.record.rows);
            let taken = later.filter_map(|row| match Key::decode(&row.key) {
                Ok(Key::Writer(writer)) => Some(writer),
                _ => None,
            });
            let taken = taken.max().unwrap_or(0);
            self.take_writer(taken, self.follow.registration)?;
        } else {
            self.files.end_nameless()?;
            self.keep();
        }
        let reserved = self.sequence.0.saturating_add(RESERVED);
        self.sequence.1 = reserved;
        self.reserve();
        self.journal.sync()?;
        self.ask_quotas();
        Ok(())
    }

    /// The next number behind all that are taken.
    fn take_writer(&mut self, taken: u16, id: [u8; 16]) -> Result<(), Errno> {
        let last = self.last_writer()?.max(taken).max(self.writer);
        self.writer = last.saturating_add(1);
        let row = WriterRow {
            machine: id,
            registered: self.chain.end().1.saturating_add(1),
            last_seen_ms: self.now.millis(),
            name: self.machine.name.clone(),
        };
        self.follow.registration = id;
        let key = Key::Writer(self.writer).encode();
        self.commits.quietly(key.clone());
        let value = Some(row.encode());
        // Not in the journal: a start begins another registration.
        self.files.change(Change { key, value })?;
        self.sequence = (1, 1_u64.saturating_add(RESERVED));
        self.block_end = u32::try_from(RESERVED).unwrap_or(0);
        *self.files.numbers() = Numbers::new(self.writer, 1, self.block_end);
        self.files.forget_homes();
        self.follow.last_copy = None;
        Ok(())
    }

    /// The chain is read: a registration has its commit at once.
    pub(super) fn begin_sending(&mut self) {
        if self.is_registering() {
            self.want_all(Vec::new());
        }
    }

    /// Another machine uses the writer's number: the folder is a copy, or was copied.
    pub(super) fn register(&mut self, other: MailId) {
        self.follow.is_registering = true;
        let mut random = other.0;
        for (to, from) in random.iter_mut().zip(self.follow.registration.iter().rev()) {
            *to ^= from;
        }
        let id = registration(&self.machine, random);
        self.steps.push_back(Step::Log(Notice::Copied(self.writer)));
        if let Err(error) = self.take_writer(0, id) {
            self.fail(Notice::Rows(error));
        }
        self.want_all(Vec::new());
    }

    /// The commit with the registration is lost: another machine may have the number.
    pub(super) fn register_again(&mut self) {
        let key = Key::Writer(self.writer).encode();
        let tree = self.files.tree();
        let is_ours = |row: &[u8]| {
            WriterRow::decode(row).is_ok_and(|row| row.machine == self.follow.registration)
        };
        if matches!(tree.get(&key), Ok(Some(row)) if is_ours(&row)) {
            return;
        }
        let taken = self.take_writer(0, self.follow.registration);
        if let Err(error) = taken {
            self.fail(Notice::Rows(error));
        }
    }

    /// A commit of ours is in the chain, and the registration with it.
    pub(super) fn registered(&mut self) {
        if self.is_registering() {
            let key = Key::Writer(self.writer).encode();
            let in_chain = self.files.tree().in_chain(&key).ok().flatten();
            let is_ours = in_chain
                .and_then(|row| WriterRow::decode(&row).ok())
                .is_some_and(|row| row.machine == self.follow.registration);
            if is_ours {
                self.follow.is_registering = false;
                self.reserve();
            }
        }
    }

    /// Whether another machine has registered the number of the journal: the folder is a copy.
    pub(super) fn is_of_another_machine(&self) -> bool {
        let key = Key::Writer(self.writer).encode();
        let row = self.files.tree().get(&key).ok().flatten();
        let row = row.and_then(|row| WriterRow::decode(&row).ok());
        row.is_some_and(|row| !is_machine(&row, &self.machine))
    }

    /// The highest number of a writer.
    pub(super) fn last_writer(&self) -> Result<u16, Errno> {
        let keys = self.files.tree().keys(&writers_prefix())?;
        Ok(match keys.last().map(|key| Key::decode(key)) {
            Some(Ok(Key::Writer(writer))) => writer,
            _ => 0,
        })
    }

    /// Notes where the changes of the mount lie on.
    pub(super) fn note_base(&mut self) -> Result<(), OpenError> {
        self.journal.append(&[Part::Follows(self.chain.place())])?;
        Ok(())
    }
}
