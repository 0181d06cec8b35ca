//! Accounts over IMAP, as sources and targets.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use vere_imap::Uid;
use vere_imap::client::{
    AppendTo, Code, Command, Event, Fetched, Listed, Namespace, Response, Status,
};
use vere_imap::flags::SystemFlag;

use super::bodies::{Bodies, Room};
use super::doubts::Exact;
use super::listing;
use super::message::{Hash, Item, Message, batches};
use super::names::{self, Folder};
use super::outcome::Put;
use super::sessions;
use vere_accounts::Remote;
use vere_accounts::{Link, deaf};
use vere_process::failure::Failure;

/// Pause after which a server that stored no further message has processed everything sent earlier.
const SETTLE: Duration = Duration::from_secs(2);
/// Upper bound of that wait: other clients may store messages all the time.
const SETTLE_MAX: Duration = Duration::from_secs(20);

/// Limit in octets of the metadata of a mailbox's messages: some millions of messages.
const ITEMS_OCTETS_MAX: usize = 2 << 30;

/// An account.
pub(super) struct Account {
    pub(super) link: Link,
    /// The mailboxes of the account.
    pub(super) listed: Vec<Listed>,
    /// Whether the server reported the subscribed mailboxes.
    pub(super) tells_subscribed: bool,
    /// Namespace of the account's own mailboxes.
    pub(super) own: Namespace,
    /// Whether messages of an earlier session have settled. The local store opens no session before the end of the
    /// session before.
    settled: bool,
    /// How messages are read.
    reading: &'static str,
    /// The open mailbox, and its UIDVALIDITY.
    pub(super) examined: Option<(Vec<u8>, u32)>,
    pub(super) exact: Exact,
}

/// How messages are read: as literals, which exclude NUL (RFC 9051 section 9, CHAR8), or raw where the server decodes
/// no encodings (RFC 3516 section 4.2).
const AS_LITERALS: &str = "(UID BODY.PEEK[])";
pub(super) const AS_BINARY: &str = "(UID BINARY.PEEK[])";

/// The state of a target mailbox before the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Begin {
    pub(super) uid_validity: u32,
    pub(super) uid_next: Uid,
}

impl Account {
    /// Of our own store.
    pub(super) async fn own(link: Link) -> Result<Self, Failure> {
        let mut account = Self::new(link).await?;
        account.settled = true;
        account.reading = AS_BINARY;
        Ok(account)
    }

    /// Of another server.
    pub(super) async fn remote(remote: Remote) -> Result<Self, Failure> {
        let mut account = Self::new(sessions::remote(&remote).await?).await?;
        account.exact.remote = Some(remote);
        Ok(account)
    }

    async fn new(mut link: Link) -> Result<Self, Failure> {
        let (listed, tells_subscribed) = listing::list(&mut link).await?;
        let own = match link.can("NAMESPACE") {
            true => namespace(&mut link).await?,
            false => None,
        };
        let own = own.unwrap_or_else(|| Namespace {
            prefix: Vec::new(),
            delimiter: delimiter(&listed),
        });
        Ok(Self {
            link,
            listed,
            tells_subscribed,
            own,
            settled: false,
            reading: AS_LITERALS,
            examined: None,
            exact: Exact::default(),
        })
    }

    /// Opens a mailbox without changes, and lists its messages.
    pub(super) async fn open(&mut self, folder: &Folder) -> Result<Vec<Item>, Failure> {
        let name = self.listed[folder.number].name.clone();
        let validity = self.examine(name).await?;
        let mut items = Vec::new();
        let mut room = Room(ITEMS_OCTETS_MAX);
        let mut hear = |event: Event<'_>| {
            if let Event::Said(Response::Fetched(one)) = event
                && let Some(item) = item(*one, validity)
            {
                let flags = item
                    .flags
                    .iter()
                    .map(|flag| size_of::<String>() + flag.len());
                room.take(size_of::<Item>() + item.key.len() + flags.sum::<usize>())?;
                items.push(item);
            }
            Ok(())
        };
        let command = Command::Fetch {
            first: 1,
            last: None,
            items: "(UID FLAGS INTERNALDATE RFC822.SIZE)".into(),
        };
        self.link.run(&command, &mut hear).await?;
        items.sort_by_key(|item| item.at);
        items.dedup_by_key(|item| item.at);
        Ok(items)
    }

    /// Opens a mailbox without changes, and returns its UIDVALIDITY.
    pub(super) async fn examine(&mut self, name: Vec<u8>) -> Result<u32, Failure> {
        let mut validity = 0;
        let mut hear = |event: Event<'_>| {
            if let Event::Said(Response::Status(Status {
                code: Some(Code::UidValidity(number)),
                ..
            })) = event
            {
                validity = number;
            }
            Ok(())
        };
        let command = Command::Examine(name.clone());
        self.link.run(&command, &mut hear).await?;
        self.examined = Some((name, validity));
        Ok(validity)
    }

    /// Reads messages of the open mailbox; messages removed meanwhile are `None`.
    pub(super) async fn read(&mut self, items: &[Item]) -> Result<Vec<Option<Message>>, Failure> {
        let uids: Vec<u64> = items.iter().map(|item| item.at).collect();
        let (mut read, refused) = self.fetch(&uids, self.reading).await?;
        if let Some(said) = refused {
            return Err(Failure::new(format!("cannot be read: {said}")));
        }
        self.doubt_damaged(items);
        if self.reading != AS_BINARY && self.link.can("BINARY") {
            self.undo_stand_ins(items, &mut read).await?;
        }
        Ok(read)
    }

    /// Fetches messages, and returns the received messages, with the server's text if the server refused a message.
    pub(super) async fn fetch(
        &mut self,
        uids: &[u64],
        items: &'static str,
    ) -> Result<(Vec<Option<Message>>, Option<String>), Failure> {
        let mut tokens = Vec::new();
        for uid in uids {
            let uid = Uid::try_from(*uid)?;
            tokens.push(self.link.send(&Command::Fetch {
                first: uid,
                last: Some(uid),
                items: items.into(),
            }));
        }
        let mut bodies = Bodies::of(uids.iter().copied());
        let mut refused = None;
        for (uid, token) in uids.iter().copied().zip(tokens) {
            let status = self
                .link
                .wait(token, &mut |event| bodies.hear(event))
                .await?;
            refused = self.exact.refusal(uid, status).or(refused);
        }
        Ok((uids.iter().map(|uid| bodies.take(*uid)).collect(), refused))
    }

    pub(super) fn wire_name(&self, folder: &Folder) -> Vec<u8> {
        names::to_wire(&folder.path, &self.own)
    }

    /// Adds messages and returns the outcome of each: all at once where the server can (RFC 3502), with a single sync
    /// for all; else, and after a refusal of the batch, in sequence without waiting.
    pub(super) async fn put(
        &mut self,
        folder: &Folder,
        batch: &mut [(Item, Message)],
    ) -> Result<Vec<Put>, Failure> {
        let mailbox = self.wire_name(folder);
        let binary = self.link.can("BINARY");
        let (mut put, mut fit, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (item, message)) in batch.iter_mut().enumerate() {
            let reason = match (message.size, message.nul && !binary) {
                (0, _) => "it is empty",
                (_, true) => "it holds NUL, which the server does not take",
                _ => {
                    fit.push((append_to(&mailbox, item, message), message));
                    places.push(place);
                    ""
                }
            };
            put.push(Put::Refused(reason.to_owned()));
        }
        let together = fit.len() > 1 && self.link.can("MULTIAPPEND");
        let all = match together {
            true => self.put_together(&mut fit).await?,
            false => None,
        };
        let all = match all {
            Some(all) => all,
            None => self.put_singly(&mut fit).await?,
        };
        for (place, became) in places.into_iter().zip(all) {
            put[place] = became;
        }
        Ok(put)
    }

    /// Adds all messages by a single command; `None` when the server refused the batch.
    async fn put_together(
        &mut self,
        messages: &mut [(AppendTo, &mut Message)],
    ) -> Result<Option<Vec<Put>>, Failure> {
        let Some(token) = sessions::append_several(&mut self.link, messages).await? else {
            return Ok(None);
        };
        let status = self.link.wait(token, &mut deaf).await?;
        let uids = match (status.is_ok(), status.code) {
            (false, _) => return Ok(None),
            (true, Some(Code::AppendUid { uids, .. })) => uids,
            (true, _) => Vec::new(),
        };
        // The server's word for how many there are is not taken.
        let each = uids.into_iter().flat_map(|(first, last)| first..=last);
        let uids: Vec<Uid> = each.take(messages.len() + 1).collect();
        let known = uids.len() == messages.len();
        let place = |place| Put::Kept(uids.get(place).copied().filter(|_| known));
        Ok(Some((0..messages.len()).map(place).collect()))
    }

    async fn put_singly(
        &mut self,
        messages: &mut [(AppendTo, &mut Message)],
    ) -> Result<Vec<Put>, Failure> {
        let mut tokens = Vec::new();
        for (to, message) in messages {
            tokens.push(sessions::append(&mut self.link, to, message).await?);
        }
        let mut put = Vec::new();
        for token in tokens {
            put.push(of_status(self.link.wait(token, &mut deaf).await?));
        }
        Ok(put)
    }

    /// Searches the target for messages in doubt: messages from UID `from` on whose UID is not in `known`.
    pub(super) async fn find(
        &mut self,
        folder: &Folder,
        from: Uid,
        sizes: &HashSet<u64>,
        known: &HashSet<Uid>,
    ) -> Result<Vec<(Hash, Uid)>, Failure> {
        let name = self.wire_name(folder);
        self.settle(&name).await?;
        self.examine(name).await?;
        let mut candidates: Vec<Item> = Vec::new();
        let mut room = Room(ITEMS_OCTETS_MAX);
        let mut hear = |event: Event<'_>| {
            if let Event::Said(Response::Fetched(one)) = event
                && let (Some(uid), Some(size)) = (one.uid, one.size)
                && uid >= from
                && sizes.contains(&size)
                && !known.contains(&uid)
            {
                // Unrequested responses are not kept.
                let uid = one.uid;
                let plain = Fetched {
                    uid,
                    ..Fetched::default()
                };
                let item = item(plain, 0);
                room.take(size_of::<Item>() + item.as_ref().map_or(0, |item| item.key.len()))?;
                candidates.extend(item);
            }
            Ok(())
        };
        let command = Command::Fetch {
            first: from,
            last: None,
            items: "(UID RFC822.SIZE)".into(),
        };
        self.link.run(&command, &mut hear).await?;
        let mut found = Vec::new();
        for candidate in batches(&candidates) {
            let read = self.read(candidate).await?;
            let both = candidate.iter().zip(read);
            found.extend(
                both.filter_map(|(item, message)| {
                    Some((message?.hash, Uid::try_from(item.at).ok()?))
                }),
            );
        }
        Ok(found)
    }

    /// Waits until no further messages arrive: the server may still accept messages of a killed run.
    async fn settle(&mut self, mailbox: &[u8]) -> Result<(), Failure> {
        if std::mem::replace(&mut self.settled, true) {
            return Ok(());
        }
        let mut before = self.numbers(mailbox.to_vec()).await?;
        let deadline = Instant::now() + SETTLE_MAX;
        while Instant::now() < deadline {
            tokio::time::sleep(SETTLE).await;
            let now = self.numbers(mailbox.to_vec()).await?;
            if now == before {
                break;
            }
            before = now;
        }
        Ok(())
    }

    /// Says good-bye.
    pub(super) async fn close(mut self) {
        // The transfer is complete: the answer to LOGOUT changes nothing.
        let _ = self.link.run(&Command::Logout, &mut deaf).await;
    }
}

/// Asks for the namespace of the account's own mailboxes. A server that announces NAMESPACE and does not answer is
/// asked once only.
async fn namespace(link: &mut Link) -> Result<Option<Namespace>, Failure> {
    let mut own = None;
    let mut hear = |event: Event<'_>| {
        if let Event::Said(Response::Namespace(said)) = event {
            own = said;
        }
        Ok(())
    };
    let token = link.send(&Command::Namespace);
    link.wait(token, &mut hear).await?;
    Ok(own)
}

/// The level separator, where the server did not report the separator for all mailboxes at once.
fn delimiter(listed: &[Listed]) -> Option<char> {
    let inbox = |one: &&Listed| one.name.eq_ignore_ascii_case(b"INBOX");
    let one = listed.iter().find(inbox).or(listed.first());
    one.map_or(Some('/'), |one| one.delimiter)
}

fn of_status(status: Status) -> Put {
    match (status.is_ok(), status.code) {
        (true, Some(Code::AppendUid { uids, .. })) => {
            Put::Kept(uids.first().map(|(first, _)| *first))
        }
        (true, _) => Put::Kept(None),
        (false, Some(code)) if code.is("OVERQUOTA") => Put::Full(status.text),
        (false, Some(Code::Other(code))) => Put::Refused(format!("[{code}] {}", status.text)),
        (false, _) => Put::Refused(status.text),
    }
}

/// How a message is added.
fn append_to(mailbox: &[u8], item: &Item, message: &Message) -> AppendTo {
    let flags = item.flags.iter().filter(|flag| may_be_set(flag));
    AppendTo {
        mailbox: mailbox.to_vec(),
        flags: flags.cloned().collect(),
        date: item.date,
        binary: message.nul,
    }
}

/// `\Recent` and flags invented by servers cannot be set.
fn may_be_set(flag: &str) -> bool {
    match flag.strip_prefix('\\') {
        Some(name) => SystemFlag::from_name(name).is_some(),
        None => true,
    }
}

fn item(one: Fetched, validity: u32) -> Option<Item> {
    let uid = one.uid?;
    Some(Item {
        key: format!("{validity}.{uid}"),
        flags: one.flags.unwrap_or_default(),
        date: one.date,
        size: one.size.unwrap_or(0),
        at: uid.into(),
    })
}
