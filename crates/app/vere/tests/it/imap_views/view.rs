//! A client's belief about a mailbox, from nothing but the responses of the server.

use std::collections::{BTreeMap, BTreeSet};

use super::wire::{Response, numbers};

/// A client's knowledge of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) uid: Option<u32>,
    pub(super) flags: Option<BTreeSet<String>>,
    pub(super) mod_seq: u64,
}

/// The responses that a command allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Saying {
    /// Anything.
    All,
    /// No response that changes the numbers of messages (RFC 9051 section 7.5.1).
    Numbered,
}

/// A mailbox in the state of the last visit, for QRESYNC.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(super) uid_validity: u32,
    pub(super) mod_seq: u64,
    messages: BTreeMap<u32, Known>,
}

impl Left {
    /// The UIDs as a set.
    pub(super) fn uids(&self) -> Vec<u32> {
        self.messages.keys().copied().collect()
    }
}

/// The open mailbox, in the belief of its client.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) messages: Vec<Known>,
    pub(super) uid_validity: u32,
    pub(super) uid_next: u32,
    /// The last change known to the client together with all earlier changes.
    pub(super) mod_seq: u64,
    /// The greatest number of a change seen so far.
    pub(super) seen_mod_seq: u64,
    /// Whether VANISHED announces removed messages.
    qresync: bool,
    /// The knowledge before the mailbox was opened, during the opening.
    resuming: Option<BTreeMap<u32, Known>>,
    exists_while_resuming: Option<usize>,
    /// Whether the opening announces only known messages (RFC 7162 section 3.2.5.1).
    known_only: bool,
}

impl View {
    pub(super) fn new(qresync: bool, left: Option<Left>, known_only: bool) -> Self {
        Self {
            qresync,
            known_only,
            resuming: left.map(|left| left.messages),
            ..Self::default()
        }
    }

    /// The present state of the mailbox, if wholly known.
    pub(super) fn leave(&self) -> Option<Left> {
        let messages = self
            .messages
            .iter()
            .map(|known| Some((known.uid?, known.flags.is_some().then(|| known.clone())?)));
        Some(Left {
            uid_validity: self.uid_validity,
            mod_seq: self.mod_seq,
            messages: messages.collect::<Option<_>>()?,
        })
    }

    /// Takes note of an untagged response.
    pub(super) fn hear(&mut self, response: &Response, saying: Saying) {
        let text = &response.text;
        let mut words = text.split(' ').skip(1);
        let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let number = first.parse::<usize>().ok();
        match (number, first, second) {
            (Some(number), _, "EXISTS") => self.exists(number),
            (Some(number), _, "EXPUNGE") => {
                assert!(!self.qresync, "EXPUNGE after ENABLE QRESYNC: {text}");
                assert_eq!(saying, Saying::All, "numbers must stay: {text}");
                assert!(
                    (1..=self.messages.len()).contains(&number),
                    "no such number: {text}"
                );
                self.messages.remove(number - 1);
            }
            (Some(number), _, "FETCH") => self.fetched(number, response),
            (_, "VANISHED", "(EARLIER)") => self.vanished_earlier(text),
            (_, "VANISHED", set) => self.vanished(set, saying, text),
            (_, "OK", _) => self.code(response),
            _ => {}
        }
    }

    fn exists(&mut self, number: usize) {
        if self.resuming.is_some() && self.exists_while_resuming.is_none() {
            self.exists_while_resuming = Some(number);
            return;
        }
        self.opened();
        assert!(
            number >= self.messages.len(),
            "EXISTS {number} takes messages away"
        );
        self.messages.resize(number, Known::default());
    }

    fn vanished_earlier(&mut self, text: &str) {
        assert!(self.qresync, "VANISHED without ENABLE QRESYNC: {text}");
        let set = text.rsplit(' ').next().unwrap_or("");
        let gone: BTreeSet<u32> = numbers(set).into_iter().collect();
        // After a later request, the client hears of its known messages without EARLIER as well.
        if let Some(known) = &mut self.resuming {
            known.retain(|uid, _| !gone.contains(uid));
        }
    }

    fn vanished(&mut self, set: &str, saying: Saying, text: &str) {
        assert!(self.qresync, "VANISHED without ENABLE QRESYNC: {text}");
        assert_eq!(saying, Saying::All, "numbers must stay: {text}");
        self.opened();
        for uid in numbers(set) {
            let known = self
                .messages
                .iter()
                .position(|known| known.uid == Some(uid));
            // A message with only its number known: its place is before the next message with a known UID.
            let unknown = || {
                let next = |known: &Known| known.uid.is_some_and(|own| own > uid);
                let next = self.messages.iter().position(next);
                let at = next.unwrap_or(self.messages.len()).checked_sub(1)?;
                self.messages[at].uid.is_none().then_some(at)
            };
            let at = known.or_else(unknown);
            self.messages
                .remove(at.unwrap_or_else(|| panic!("{uid} was not there: {text}")));
        }
    }

    fn code(&mut self, response: &Response) {
        let number = |name: &str| response.code(name)?.first()?.parse::<u64>().ok();
        let small = |number: u64| u32::try_from(number).expect("32 bits");
        if let Some(number) = number("UIDVALIDITY") {
            self.uid_validity = small(number);
        }
        if let Some(number) = number("UIDNEXT") {
            self.uid_next = small(number);
        }
        if let Some(number) = number("HIGHESTMODSEQ") {
            assert!(number >= self.mod_seq, "HIGHESTMODSEQ went back");
            self.mod_seq = number;
            self.seen_mod_seq = self.seen_mod_seq.max(number);
        }
    }

    fn fetched(&mut self, number: usize, response: &Response) {
        let text = &response.text;
        let uid = response
            .number("(UID")
            .or_else(|| response.number(" UID"))
            .map(|uid| u32::try_from(uid).expect("32 bits"));
        let mod_seq = response.list("MODSEQ").map(|words| {
            let number = words.first().and_then(|word| word.parse::<u64>().ok());
            number.unwrap_or_else(|| panic!("no mod-sequence: {text}"))
        });
        let flags = response.list("FLAGS").map(|flags| {
            let own = flags.into_iter().filter(|flag| flag != "\\Recent");
            own.collect::<BTreeSet<String>>()
        });
        self.seen_mod_seq = self.seen_mod_seq.max(mod_seq.unwrap_or(0));
        // An unrequested message can only have changed since.
        let is_known =
            |known: &BTreeMap<u32, Known>| uid.is_some_and(|uid| known.contains_key(&uid));
        if self.known_only && self.resuming.as_ref().is_some_and(|known| !is_known(known)) {
            self.opened();
        }
        if let Some(known) = &mut self.resuming {
            let uid = uid.unwrap_or_else(|| panic!("no UID after ENABLE QRESYNC: {text}"));
            let known = known.entry(uid).or_default();
            known.uid = Some(uid);
            known.update(flags, mod_seq, text);
            return;
        }
        assert!(
            (1..=self.messages.len()).contains(&number),
            "no such number: {text}"
        );
        if self.qresync {
            assert!(uid.is_some(), "no UID after ENABLE QRESYNC: {text}");
        }
        let known = &mut self.messages[number - 1];
        if let Some(uid) = uid {
            assert!(
                known.uid.is_none_or(|own| own == uid),
                "{number} was UID {:?}: {text}",
                known.uid
            );
            known.uid = Some(uid);
        }
        known.update(flags, mod_seq, text);
        self.ascending();
    }

    fn ascending(&self) {
        let uids: Vec<u32> = self.messages.iter().filter_map(|known| known.uid).collect();
        assert!(
            uids.is_sorted_by(|one, next| one < next),
            "UIDs do not rise: {uids:?}"
        );
    }

    /// The mailbox is open now, or the changes since are announced: the earlier knowledge and the announcements must
    /// be complete, but for new messages that were not requested.
    pub(super) fn opened(&mut self) {
        let Some(known) = self.resuming.take() else {
            return;
        };
        let there = self.exists_while_resuming.expect("EXISTS");
        assert!(
            known.len() == there || (self.known_only && known.len() < there),
            "of {there} messages these are known: {:?}",
            known.keys()
        );
        self.messages = known.into_values().collect();
        // New messages have greater UIDs than all known messages.
        self.messages.resize(there, Known::default());
    }

    /// All earlier changes were announced: the client knows the whole mailbox.
    pub(super) fn synced(&mut self) {
        self.mod_seq = self.mod_seq.max(self.seen_mod_seq);
    }

    /// Flags were changed, and the server was asked not to tell them.
    pub(super) fn forget_flags(&mut self, uids: &[u32]) {
        let is_one = |known: &&mut Known| known.uid.is_some_and(|uid| uids.contains(&uid));
        for known in self.messages.iter_mut().filter(is_one) {
            known.flags = None;
        }
    }

    /// Numbers of messages of which something is not known: the first and the last.
    pub(super) fn unknown(&self) -> Option<(usize, usize)> {
        let is_unknown = |known: &Known| known.uid.is_none() || known.flags.is_none();
        let first = self.messages.iter().position(is_unknown)?;
        let last = self.messages.iter().rposition(is_unknown)?;
        Some((first + 1, last + 1))
    }

    /// The belief: UIDs and flags, if all are known.
    pub(super) fn belief(&self) -> Option<Vec<(u32, BTreeSet<String>)>> {
        self.messages
            .iter()
            .map(|known| Some((known.uid?, known.flags.clone()?)))
            .collect()
    }
}

impl Known {
    fn update(&mut self, flags: Option<BTreeSet<String>>, mod_seq: Option<u64>, text: &str) {
        if let Some(mod_seq) = mod_seq {
            assert!(mod_seq >= self.mod_seq, "mod-sequence went back: {text}");
            self.mod_seq = mod_seq;
        }
        if flags.is_some() {
            self.flags = flags;
        }
    }
}
