//! Messages with NUL replaced by another octet, read once more in raw form.
//!
//! Not every server survives the raw request: a failure must keep no message from being carried.

use super::account::{AS_BINARY, Account};
use super::doubts::Doubt;
use super::message::{Item, Message};
use super::sessions;
use vere_process::failure::Failure;

/// Limit of connections lost by raw reading, after which no message is read in raw form any more.
const ENDS_MAX: u32 = 16;

/// A message, or the reason why the server did not send the message.
type Told = Result<Message, String>;

impl Account {
    /// Returns the messages read since the last call whose copy may differ from the server's original.
    pub(super) fn doubts(&mut self) -> Vec<Doubt> {
        std::mem::take(&mut self.exact.doubts)
    }

    /// Records the damaged messages among messages just read.
    pub(super) fn doubt_damaged(&mut self, items: &[Item]) {
        for (uid, said) in std::mem::take(&mut self.exact.damaged) {
            let item = items.iter().find(|item| item.at == uid);
            self.exact.doubts.extend(item.map(|item| Doubt {
                key: item.key.clone(),
                reason: format!("it is damaged where it is: {said}"),
            }));
        }
    }

    /// Reads messages whose NUL octets the server may have replaced once more. Accepts the new copy if it differs in
    /// these octets only. A server that decodes bodies on the way has sent everything it can already.
    pub(super) async fn undo_stand_ins(
        &mut self,
        items: &[Item],
        read: &mut [Option<Message>],
    ) -> Result<(), Failure> {
        let both = items.iter().zip(read);
        let in_doubt = both.filter_map(|(item, message)| {
            let message = message.as_mut().filter(|message| message.stand_in)?;
            Some((item, message))
        });
        let (items, shown): (Vec<&Item>, Vec<&mut Message>) = in_doubt.unzip();
        if items.is_empty() {
            return Ok(());
        }
        let uids: Vec<u64> = items.iter().map(|item| item.at).collect();
        let told = self.read_exactly(&uids).await?;
        for ((item, shown), told) in items.iter().zip(shown).zip(told) {
            match told {
                Ok(mut exact) => {
                    if exact.is_shown_as(shown)? {
                        *shown = exact;
                    }
                }
                Err(reason) => self.exact.doubts.push(Doubt {
                    key: item.key.clone(),
                    reason: format!(
                        "0x80 may stand for NUL in it, which the server does not tell: {reason}"
                    ),
                }),
            }
        }
        Ok(())
    }

    /// Reads all messages at once; if the connection breaks, in turn.
    async fn read_exactly(&mut self, uids: &[u64]) -> Result<Vec<Told>, Failure> {
        if let Ok(told) = self.try_exactly(uids).await? {
            return Ok(told);
        }
        let mut all = Vec::new();
        for uid in uids {
            match self.try_exactly(&[*uid]).await? {
                Ok(told) => all.extend(told),
                Err(reason) => all.push(Err(reason)),
            }
        }
        Ok(all)
    }

    /// Reads messages over a connection that is restored afterwards; returns the reason of a lost connection.
    async fn try_exactly(&mut self, uids: &[u64]) -> Result<Result<Vec<Told>, String>, Failure> {
        if self.exact.ends >= ENDS_MAX {
            let reason = "the server ended at such messages too often";
            return Ok(Ok(uids.iter().map(|_| Err(reason.to_owned())).collect()));
        }
        match self.fetch(uids, AS_BINARY).await {
            Ok((read, refused)) => {
                let reason = refused.unwrap_or_else(|| "it did not come".to_owned());
                let told = read.into_iter();
                let told = told.map(|message| message.ok_or_else(|| reason.clone()));
                Ok(Ok(told.collect()))
            }
            Err(failure) => {
                self.exact.ends += 1;
                self.come_back().await.map_err(|error| {
                    Failure::new(format!("{failure}, and does not come back: {error}"))
                })?;
                Ok(Err(failure.to_string()))
            }
        }
    }

    /// Connects again and opens the same mailbox.
    async fn come_back(&mut self) -> Result<(), Failure> {
        let (Some(remote), Some((name, validity))) = (&self.exact.remote, self.examined.take())
        else {
            return Err(Failure::new("nothing was open"));
        };
        self.link = sessions::remote(remote).await?;
        match self.examine(name).await? == validity {
            true => Ok(()),
            false => Err(Failure::new("the mailbox was made anew meanwhile")),
        }
    }
}
