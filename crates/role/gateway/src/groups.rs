//! The groups of queues of a process: its own group, and groups adopted from dead gateways.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use vere_settings::Settings;

use super::error::GatewayError;
use super::group::{Group, set_policy};
use super::process::Process;

/// All groups of the process.
#[derive(Debug)]
pub(super) struct Groups {
    /// The group that bears this gateway's name.
    pub(super) own: Rc<Group>,
    /// Groups of dead gateways, by name.
    adopted: RefCell<Vec<(String, Rc<Group>)>>,
}

impl Groups {
    /// Returns the groups of a process that has adopted none yet.
    pub(super) fn new(own: Rc<Group>) -> Self {
        Self {
            own,
            adopted: RefCell::default(),
        }
    }

    /// The state that the groups share.
    pub(super) fn process(&self) -> &Process {
        &self.own.host.process
    }

    /// Returns this gateway's group, followed by the adopted groups.
    pub(super) fn all(&self) -> Vec<Rc<Group>> {
        self.named().into_iter().map(|(_, group)| group).collect()
    }

    /// Returns all groups with their names; this gateway's group comes first, and without name.
    pub(super) fn named(&self) -> Vec<(Option<String>, Rc<Group>)> {
        let adopted = self.adopted();
        let adopted = adopted.into_iter().map(|(name, group)| (Some(name), group));
        std::iter::once((None, Rc::clone(&self.own)))
            .chain(adopted)
            .collect()
    }

    /// Returns the adopted groups with their names.
    pub(super) fn adopted(&self) -> Vec<(String, Rc<Group>)> {
        self.adopted.borrow().clone()
    }

    /// Returns an adopted group by name.
    pub(super) fn find(&self, name: &str) -> Option<Rc<Group>> {
        let adopted = self.adopted.borrow();
        let found = adopted.iter().find(|(adopted, _)| adopted == name);
        found.map(|(_, group)| Rc::clone(group))
    }

    /// Adds an adopted group.
    pub(super) fn add(&self, name: &str, group: &Rc<Group>) {
        let group = Rc::clone(group);
        self.adopted.borrow_mut().push((name.to_owned(), group));
    }

    /// Removes an adopted group.
    pub(super) fn remove(&self, name: &str) {
        self.adopted.borrow_mut().retain(|(group, _)| group != name);
    }

    /// Whether the queues of all groups are known.
    pub(super) fn are_recovered(&self) -> bool {
        self.all().iter().all(|group| group.is_recovered())
    }

    /// Applies other settings; sessions and attempts under way keep theirs.
    ///
    /// # Errors
    /// When root certificates or passwords cannot be used; then nothing changes.
    pub(super) fn set_settings(&self, settings: Arc<Settings>) -> Result<(), GatewayError> {
        self.process().set_settings(Arc::clone(&settings))?;
        for group in self.all() {
            set_policy(&group, &settings);
        }
        Ok(())
    }
}
