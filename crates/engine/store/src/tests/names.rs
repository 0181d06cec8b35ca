//! Lists of mailboxes over power cuts: what is promised of names, subscriptions and another account.

use std::collections::BTreeSet;

use super::crashes::settled;
use super::*;

/// What was promised of lists.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Names that are there, and such that are not.
    there: BTreeSet<&'static str>,
    gone: BTreeSet<&'static str>,
    /// Whether `News` is subscribed to.
    subscribed: Option<bool>,
    /// Whether the other account has its message.
    other: Option<bool>,
    /// The greatest UIDVALIDITY that the other account had before it was removed, and that of its INBOX.
    removed_validity: u32,
    validity: u32,
}

const OLD: [&str; 2] = ["Old", "Old/Deep"];
const NEW: [&str; 2] = ["New", "New/Deep"];

fn names_of(store: &mut Tested) -> Result<(BTreeSet<String>, BTreeSet<String>), StoreError> {
    let list = store.list(&account("ann"))?;
    let list = settled(store, list)?;
    let there = list.iter().filter(|entry| entry.mailbox.is_some());
    let subscribed = list.iter().filter(|entry| entry.subscribed);
    Ok((
        there.map(|entry| entry.name.to_string()).collect(),
        subscribed.map(|entry| entry.name.to_string()).collect(),
    ))
}

/// Empties what was deleted, as a host does it.
fn empty_all(store: &mut Tested) -> Result<(), StoreError> {
    while store.is_emptying() {
        store.empty_some()?;
        let at = Committed::new((), store.end().0);
        settled(store, at)?;
    }
    Ok(())
}

impl Names {
    fn begin(&mut self, changing: [&'static str; 2]) {
        for name in changing {
            self.there.remove(name);
            self.gone.remove(name);
        }
    }

    /// A mailbox and one below it.
    pub(super) fn create(&mut self, store: &mut Tested) -> Result<(), StoreError> {
        // They were made, and have another name by now.
        if names_of(store)?.0.contains(NEW[0]) {
            return Ok(());
        }
        self.begin(OLD);
        for each in OLD {
            match store.create_mailbox(&account("ann"), &name(each), None, NOW) {
                Err(StoreError::Exists) => {}
                made => drop(settled(store, made?)?),
            }
            self.there.insert(each);
        }
        // So that there is something to be removed in pieces.
        let old = store.mailbox_named(&account("ann"), &name(OLD[0]))?;
        let old = settled(store, old)?;
        for number in 81..84 {
            let added = store.deliver(&prepared(number), &[target(old)], operation(number))?;
            settled(store, added)?.remove(0)?;
        }
        Ok(())
    }

    pub(super) fn rename(&mut self, store: &mut Tested) -> Result<(), StoreError> {
        self.begin(OLD);
        self.begin(NEW);
        match store.rename_mailbox(&account("ann"), &name(OLD[0]), &name(NEW[0])) {
            // It was done, and perhaps the first of them is deleted by now.
            Err(StoreError::NoMailbox) => {}
            renamed => {
                settled(store, renamed?)?;
                self.there.extend(NEW);
            }
        }
        self.gone.extend(OLD);
        Ok(())
    }

    pub(super) fn delete(&mut self, store: &mut Tested) -> Result<(), StoreError> {
        self.begin(NEW);
        for each in [NEW[1], NEW[0]] {
            match store.delete_mailbox(&account("ann"), &name(each), NOW) {
                Err(StoreError::NoMailbox) => {}
                deleted => settled(store, deleted?)?,
            }
            self.gone.insert(each);
        }
        empty_all(store)
    }

    pub(super) fn subscribe(&mut self, store: &mut Tested, on: bool) -> Result<(), StoreError> {
        self.subscribed = None;
        let done = store.subscribe(&account("ann"), &name("News"), on)?;
        settled(store, done)?;
        self.subscribed = Some(on);
        Ok(())
    }

    /// Delivers to the INBOX of another account.
    pub(super) fn deliver(&mut self, store: &mut Tested, number: u64) -> Result<(), StoreError> {
        let was_there = self.other == Some(true);
        self.other = None;
        let inbox = store.open_account(&account("bob"), NOW)?;
        let inbox = settled(store, inbox)?;
        let added = store.deliver(&prepared(number), &[target(inbox)], operation(number))?;
        let validity = settled(store, added)?.remove(0)?.uid_validity;
        assert!(validity > self.removed_validity, "a UIDVALIDITY came again");
        assert!(!was_there || validity == self.validity);
        self.validity = validity;
        self.other = Some(true);
        Ok(())
    }

    /// Removes the other account.
    pub(super) fn remove(&mut self, store: &mut Tested) -> Result<(), StoreError> {
        self.other = None;
        let removed = store.remove_account(&account("bob"))?;
        settled(store, removed)?;
        self.removed_validity = self.validity;
        self.other = Some(false);
        empty_all(store)
    }

    /// That the lists are as promised; gives what they are.
    pub(super) fn verify(&self, store: &mut Tested, context: &str) -> Vec<Vec<u8>> {
        let (there, subscribed) = names_of(store).unwrap();
        for name in &self.there {
            assert!(there.contains(*name), "{context}: {name} is missing");
        }
        for name in &self.gone {
            assert!(!there.contains(*name), "{context}: {name} is back");
        }
        // Renamed together, or not at all.
        for (one, other) in [(OLD[0], NEW[1]), (OLD[1], NEW[0])] {
            let both = there.contains(one) && there.contains(other);
            assert!(!both, "{context}: half renamed, {there:?}");
        }
        if let Some(on) = self.subscribed {
            assert_eq!(subscribed.contains("News"), on, "{context}: subscriptions");
        }
        let holding = store.holding(&account("bob")).unwrap();
        let held = safe(store, holding);
        let expected = match self.other {
            Some(true) => (1..=2, 1..=1),
            Some(false) => (0..=0, 0..=0),
            None => (0..=2, 0..=1),
        };
        let (messages, mailboxes) = (held.usage.messages, held.mailboxes);
        assert!(
            expected.0.contains(&messages),
            "{context}: {messages} messages"
        );
        assert!(
            expected.1.contains(&mailboxes),
            "{context}: {mailboxes} mailboxes"
        );
        let lists = there.into_iter().chain(subscribed);
        let mut lists: Vec<_> = lists.map(String::into_bytes).collect();
        lists.push(messages.to_string().into_bytes());
        lists
    }
}
