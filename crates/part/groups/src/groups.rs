//! The groups of queues of a process: its own group, and groups adopted from dead processes.

use std::cell::RefCell;
use std::rc::Rc;

use super::group::{Group, set_policy};
use super::trade::Trade;

/// All groups of the process.
#[derive(Debug)]
pub struct Groups<T: Trade> {
    /// The group that bears the name of this process.
    pub own: Rc<Group<T>>,
    /// Groups of dead processes, by name.
    adopted: RefCell<Vec<(String, Rc<Group<T>>)>>,
}

impl<T: Trade> Groups<T> {
    /// Returns the groups of a process that has adopted none yet.
    pub fn new(own: Rc<Group<T>>) -> Self {
        Self {
            own,
            adopted: RefCell::default(),
        }
    }

    /// The state that the groups share.
    pub fn process(&self) -> &T {
        &self.own.host.process
    }

    /// Returns the group of this process, followed by the adopted groups.
    pub fn all(&self) -> Vec<Rc<Group<T>>> {
        self.named().into_iter().map(|(_, group)| group).collect()
    }

    /// Returns all groups with their names; the group of this process comes first, and without name.
    pub fn named(&self) -> Vec<(Option<String>, Rc<Group<T>>)> {
        let adopted = self.adopted();
        let adopted = adopted.into_iter().map(|(name, group)| (Some(name), group));
        std::iter::once((None, Rc::clone(&self.own)))
            .chain(adopted)
            .collect()
    }

    /// Returns the adopted groups with their names.
    pub(crate) fn adopted(&self) -> Vec<(String, Rc<Group<T>>)> {
        self.adopted.borrow().clone()
    }

    /// Returns an adopted group by name.
    pub(crate) fn find(&self, name: &str) -> Option<Rc<Group<T>>> {
        let adopted = self.adopted.borrow();
        let found = adopted.iter().find(|(adopted, _)| adopted == name);
        found.map(|(_, group)| Rc::clone(group))
    }

    /// Adds an adopted group.
    pub(crate) fn add(&self, name: &str, group: &Rc<Group<T>>) {
        let group = Rc::clone(group);
        self.adopted.borrow_mut().push((name.to_owned(), group));
    }

    /// Removes an adopted group.
    pub(crate) fn remove(&self, name: &str) {
        self.adopted.borrow_mut().retain(|(group, _)| group != name);
    }

    /// Whether the queues of all groups are known.
    pub fn are_recovered(&self) -> bool {
        self.all().iter().all(|group| group.is_recovered())
    }

    /// Applies the delivery rules of the settings in force to all groups.
    pub fn set_policy(&self) {
        for group in self.all() {
            set_policy(&group);
        }
    }
}
