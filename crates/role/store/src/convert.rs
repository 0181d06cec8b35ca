//! Between the words of IMAP and those of the store.

use std::sync::Arc;

use vere_imap::command::StoreAction;
use vere_imap::date::{DateTime, Moment};
use vere_imap::flags::{Flag, Flags, SystemFlag};
use vere_imap::server::{FlagsOf, Refusal};
use vere_imap::set::UidSet;
use vere_store::{
    FlagMode, InternalDate, Keyword, Message, Snapshot, StoreError, SystemFlags, Uid,
};

const SYSTEM: [(SystemFlag, SystemFlags); 5] = [
    (SystemFlag::Answered, SystemFlags::ANSWERED),
    (SystemFlag::Flagged, SystemFlags::FLAGGED),
    (SystemFlag::Deleted, SystemFlags::DELETED),
    (SystemFlag::Seen, SystemFlags::SEEN),
    (SystemFlag::Draft, SystemFlags::DRAFT),
];

/// The flags of a message as the client is told.
pub(super) fn flags_of(snapshot: &Snapshot, message: &Message) -> FlagsOf {
    let system = SYSTEM
        .iter()
        .filter(|(_, flag)| message.flags.contains(*flag))
        .map(|(flag, _)| Flag::System(*flag));
    let keywords = snapshot
        .keywords()
        .iter()
        .enumerate()
        .filter(|(bit, _)| message.keywords >> bit & 1 == 1)
        .map(|(_, keyword)| Flag::Keyword(Arc::from(keyword.as_str())));
    let flags: Flags = system.chain(keywords).collect();
    FlagsOf {
        uid: message.uid.get(),
        flags,
        mod_seq: message.mod_seq.0,
    }
}

/// The flags and keywords of a message, in the notation of IMAP.
pub(super) fn flag_names(snapshot: &Snapshot, message: &Message) -> Vec<String> {
    let system = SYSTEM
        .iter()
        .filter(|(_, flag)| message.flags.contains(*flag));
    let system = system.map(|(flag, _)| Flag::System(*flag).to_string());
    let keywords = snapshot.keywords().iter().enumerate();
    let keywords = keywords.filter(|(bit, _)| message.keywords >> bit & 1 == 1);
    let keywords = keywords.map(|(_, keyword)| keyword.as_str().to_owned());
    system.chain(keywords).collect()
}

/// Whether a message has a flag.
pub(super) fn has_flag(snapshot: &Snapshot, message: &Message, flag: &Flag) -> bool {
    match flag {
        Flag::System(flag) => SYSTEM
            .iter()
            .any(|(own, system)| own == flag && message.flags.contains(*system)),
        Flag::Keyword(word) => {
            let Ok(word) = Keyword::new(word) else {
                return false;
            };
            let bit = snapshot.keywords().iter().position(|own| *own == word);
            bit.is_some_and(|bit| message.keywords >> bit & 1 == 1)
        }
    }
}

/// Flags that a client names.
pub(super) fn to_store(flags: &[Flag]) -> Result<vere_store::Flags, StoreError> {
    let mut converted = vere_store::Flags::default();
    for flag in flags {
        match flag {
            Flag::System(flag) => {
                for (_, system) in SYSTEM.iter().filter(|(own, _)| own == flag) {
                    converted.system = converted.system.with(*system);
                }
            }
            Flag::Keyword(word) => converted.keywords.push(Keyword::new(word)?),
        }
    }
    Ok(converted)
}

pub(super) const fn mode(action: StoreAction) -> FlagMode {
    match action {
        StoreAction::Replace => FlagMode::Replace,
        StoreAction::Add => FlagMode::Add,
        StoreAction::Remove => FlagMode::Remove,
    }
}

/// The members of a set that can be UIDs.
pub(super) fn uids(set: &UidSet) -> Vec<Uid> {
    set.iter().filter_map(Uid::new).collect()
}

pub(super) fn set(uids: impl IntoIterator<Item = Uid>) -> UidSet {
    uids.into_iter().map(Uid::get).collect()
}

/// All messages of a mailbox.
pub(super) fn all(snapshot: &Snapshot) -> UidSet {
    let mut all = UidSet::new();
    for (first, last) in snapshot.runs() {
        all.insert_range(first.get(), last.get());
    }
    all
}

/// The messages of a mailbox among these.
pub(super) fn among<'a>(
    snapshot: &'a Snapshot,
    set: &'a UidSet,
) -> impl Iterator<Item = &'a Message> + 'a {
    set.ranges().flat_map(move |(first, last)| {
        let from = Uid::new(first).map_or(0, |first| snapshot.below(first));
        snapshot
            .iter_from(from)
            .take_while(move |message| message.uid.get() <= last)
    })
}

pub(super) fn date(date: DateTime) -> InternalDate {
    InternalDate {
        seconds: date.moment().seconds(),
        zone_minutes: date.zone_minutes(),
    }
}

pub(super) fn time(date: InternalDate) -> DateTime {
    DateTime::new(Moment::from_seconds(date.seconds), date.zone_minutes)
}

/// Why the store did not do what an IMAP client asked.
pub(super) fn refusal(error: &StoreError) -> Refusal {
    match error {
        StoreError::Name => Refusal::Name,
        StoreError::KeywordsFull | StoreError::MailboxesFull | StoreError::Keyword => {
            Refusal::TooMany
        }
        StoreError::NoMailbox => Refusal::NoMailbox,
        StoreError::Exists => Refusal::Exists,
        StoreError::Inbox => Refusal::Inbox,
        StoreError::TooLarge { .. } => Refusal::TooBig,
        StoreError::OverQuota => Refusal::OverQuota,
        other => {
            tracing::error!(error = %other, "the mail store does not do as asked");
            Refusal::Unavailable
        }
    }
}

/// Maps an error about an open mailbox: a mailbox that no longer exists is gone.
pub(super) fn opened_gone(error: &StoreError) -> Refusal {
    match error {
        StoreError::NoMailbox => Refusal::Gone,
        other => refusal(other),
    }
}
