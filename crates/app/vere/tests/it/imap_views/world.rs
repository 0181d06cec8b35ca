//! The common knowledge of all clients.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;

use super::wire::{Wire, numbers};

/// A message by its mailbox and UID.
pub(super) type Place = (String, u32);

/// UIDs and flags, without `\Recent`.
pub(super) type Belief = Vec<(u32, BTreeSet<String>)>;

/// The history of commands and responses.
#[derive(Debug)]
pub(super) struct World {
    pub(super) mailboxes: Vec<String>,
    /// The texts of messages, by the answers to their APPENDs.
    texts: HashMap<Place, u32>,
    /// Copies in the order of their answers: the text of a copy is known once its original is known.
    copies: Vec<(Place, Place)>,
    /// Every UID given so far.
    used: HashSet<Place>,
    /// Messages that a client meant to delete or move.
    doomed: HashSet<Place>,
    /// The texts that clients read; checked when all texts are known.
    read: Vec<(Place, String)>,
    /// The content of the mailboxes.
    there: BTreeMap<String, Belief>,
    validity: HashMap<String, u32>,
    added: u32,
    commands: BTreeMap<String, u32>,
}

impl World {
    pub(super) fn new(mailboxes: Vec<String>) -> Self {
        Self {
            mailboxes,
            texts: HashMap::new(),
            copies: Vec::new(),
            used: HashSet::new(),
            doomed: HashSet::new(),
            read: Vec::new(),
            there: BTreeMap::new(),
            validity: HashMap::new(),
            added: 0,
            commands: BTreeMap::new(),
        }
    }

    /// The number of the next message to add, which is in its text.
    pub(super) fn next_text(&mut self) -> u32 {
        self.added += 1;
        self.added
    }

    pub(super) fn count(&mut self, command: &str) {
        *self.commands.entry(command.to_owned()).or_default() += 1;
    }

    /// A message was added.
    pub(super) fn appended(&mut self, place: Place, text: u32, deleted: bool) {
        self.give(&place);
        if deleted {
            self.doomed.insert(place.clone());
        }
        self.texts.insert(place, text);
    }

    /// A message was copied.
    pub(super) fn copied(&mut self, from: Place, to: Place) {
        self.give(&to);
        self.copies.push((from, to));
    }

    fn give(&mut self, place: &Place) {
        assert!(self.used.insert(place.clone()), "given twice: {place:?}");
    }

    /// Somebody means to delete or move messages.
    pub(super) fn doom(&mut self, mailbox: &str, uids: impl IntoIterator<Item = u32>) {
        let places = uids.into_iter().map(|uid| (mailbox.to_owned(), uid));
        self.doomed.extend(places);
    }

    /// A client read a message.
    pub(super) fn read(&mut self, place: Place, text: String) {
        self.read.push((place, text));
    }

    /// The greatest UID given in a mailbox.
    pub(super) fn last_uid(&self, mailbox: &str) -> u32 {
        let uids = self.used.iter().filter(|(own, _)| own == mailbox);
        uids.map(|(_, uid)| *uid).max().unwrap_or(0)
    }

    /// Checks that a mailbox always has the same UIDVALIDITY.
    pub(super) fn validity(&mut self, mailbox: &str, validity: u32) {
        let known = *self.validity.entry(mailbox.to_owned()).or_insert(validity);
        assert_eq!(known, validity, "UIDVALIDITY of {mailbox} changed");
    }

    pub(super) fn there(&self, mailbox: &str) -> &Belief {
        &self.there[mailbox]
    }

    /// Reads the mailboxes with a fresh client, without concurrent changes, and checks the content against the
    /// commands so far.
    pub(super) fn look(&mut self, address: SocketAddr) {
        self.resolve();
        for (place, text) in std::mem::take(&mut self.read) {
            assert_eq!(self.text(&place), text, "{place:?} was read");
        }
        let mut present = HashSet::new();
        for mailbox in self.mailboxes.clone() {
            let belief = self.fetch(address, &mailbox);
            present.extend(belief.iter().map(|(uid, _)| (mailbox.clone(), *uid)));
            self.there.insert(mailbox, belief);
        }
        for place in &present {
            assert!(self.used.contains(place), "nobody made {place:?}");
        }
        let lost: Vec<&Place> = self
            .used
            .iter()
            .filter(|place| !present.contains(*place) && !self.doomed.contains(*place))
            .collect();
        assert!(lost.is_empty(), "nobody deleted {lost:?}");
    }

    fn fetch(&self, address: SocketAddr, mailbox: &str) -> Belief {
        let mut wire = Wire::connect(address);
        let mut belief = Belief::new();
        for command in [
            "LOGIN alice@example.org secret",
            &format!("EXAMINE {mailbox}"),
            "UID FETCH 1:* (FLAGS BODY.PEEK[TEXT])",
        ] {
            let tag = wire.send(command);
            loop {
                let response = wire.response();
                if let Some(end) = response.text.strip_prefix(&format!("{tag} ")) {
                    assert!(end.starts_with("OK"), "{command}: {end}");
                    break;
                }
                let (Some(flags), Some(text)) = (response.list("FLAGS"), response.literals.first())
                else {
                    continue;
                };
                let uid = response
                    .number("UID")
                    .and_then(|uid| u32::try_from(uid).ok());
                let uid = uid.expect("a UID");
                let text = String::from_utf8_lossy(text);
                assert_eq!(text, self.text(&(mailbox.to_owned(), uid)));
                let flags = flags.into_iter().filter(|flag| flag != "\\Recent");
                belief.push((uid, flags.collect()));
            }
        }
        belief
    }

    /// Finds the texts of copies, and the copies that were to be deleted like their originals.
    fn resolve(&mut self) {
        loop {
            let mut changed = false;
            for (from, to) in &self.copies {
                if self.doomed.contains(from) {
                    changed |= self.doomed.insert(to.clone());
                }
                if let Some(text) = self.texts.get(from).copied() {
                    changed |= self.texts.insert(to.clone(), text).is_none();
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn text(&self, place: &Place) -> String {
        let number = self.texts.get(place);
        number.map_or_else(|| panic!("nobody made {place:?}"), |&number| text(number))
    }

    pub(super) fn summary(&self) -> String {
        let commands: Vec<String> = self
            .commands
            .iter()
            .map(|(command, count)| format!("{count} {command}"))
            .collect();
        commands.join(", ")
    }
}

/// The text of the message with a number.
pub(super) fn text(number: u32) -> String {
    format!("message {number}\r\n")
}

/// Both sets of a COPYUID.
pub(super) fn copy_uids(words: &[&str]) -> (Vec<u32>, Vec<u32>) {
    let (from, to) = (numbers(words[1]), numbers(words[2]));
    assert_eq!(from.len(), to.len(), "COPYUID {words:?}");
    (from, to)
}
