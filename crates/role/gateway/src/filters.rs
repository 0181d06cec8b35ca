//! The content filters in use, and warnings about filters without an answer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use vere_filters::{Failure, Filters, FiltersError};
use vere_settings::Settings;
use vere_units::TraceId;

/// The least time between two warnings about a filter; further failures are counted and logged at level debug.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// The filters in use.
#[derive(Debug)]
pub(super) struct Filtering {
    filters: RefCell<Rc<Filters>>,
    warned: RefCell<Warned>,
}

/// The last warning about each filter, and the failures since.
type Warned = BTreeMap<String, (Instant, u64)>;

impl Filtering {
    /// # Errors
    /// When a file with a password cannot be used.
    pub(super) fn new(settings: &Settings) -> Result<Self, FiltersError> {
        Ok(Self {
            filters: RefCell::new(Rc::new(Filters::new(settings)?)),
            warned: RefCell::default(),
        })
    }

    /// The filters of new settings; filters with equal terms keep recent failures.
    ///
    /// # Errors
    /// As [`Filtering::new`].
    pub(super) fn renewed(&self, settings: &Settings) -> Result<Filters, FiltersError> {
        self.filters.borrow().renewed(settings)
    }

    /// Applies filters; questions under way keep theirs.
    pub(super) fn set(&self, filters: Filters) {
        let names: Vec<&str> = filters.names().collect();
        let is_known = |name: &String| names.contains(&name.as_str());
        self.warned.borrow_mut().retain(|name, _| is_known(name));
        self.filters.replace(Rc::new(filters));
    }

    /// Returns the filters in force, for teaching too.
    pub(super) fn filters(&self) -> Rc<Filters> {
        Rc::clone(&self.filters.borrow())
    }

    /// Writes a line about a filter without an answer: a warning now and then, with the number of failures since the last one.
    pub(super) fn tell_failure(&self, trace: TraceId, name: &str, failure: &Failure) {
        let mut warned = self.warned.borrow_mut();
        let now = Instant::now();
        let last = warned.get(name);
        if let Some((_, unsaid)) = last.filter(|(at, _)| now.duration_since(*at) < WARN_EVERY) {
            let counted = (last.map_or(now, |(at, _)| *at), unsaid.saturating_add(1));
            warned.insert(name.to_owned(), counted);
            tracing::debug!(queue_id = %trace, filter = name, %failure, "content filter unavailable");
            return;
        }
        let since = last.map_or(0, |(_, unsaid)| *unsaid);
        tracing::warn!(queue_id = %trace, filter = name, %failure, failures_before = since, "content filter unavailable");
        warned.insert(name.to_owned(), (now, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(sections: &str) -> Settings {
        let text = format!("version = 1\nhostname = \"mx.example.org\"\n{sections}");
        Settings::parse(&text, "/etc/vere/vere.toml").expect(sections)
    }

    fn filter(lines: &str) -> Settings {
        let section =
            format!("[[filter]]\nname = \"a\"\nkind = \"rspamd\"\naddress = \"[::1]:1\"\n{lines}");
        settings(&section)
    }

    #[test]
    fn failures_between_two_warnings_are_counted() {
        let filtering = Filtering::new(&filter("")).unwrap();
        let trace = TraceId::new(1);
        for _ in 0..3 {
            filtering.tell_failure(trace, "a", &Failure::Resting);
        }
        let unsaid = filtering
            .warned
            .borrow()
            .get("a")
            .map(|(_, unsaid)| *unsaid);
        assert_eq!(unsaid, Some(2));
        filtering.set(filtering.renewed(&settings("")).unwrap());
        assert!(filtering.warned.borrow().is_empty());
    }

    #[test]
    fn a_password_that_cannot_be_read_changes_nothing() {
        let filtering = Filtering::new(&filter("")).unwrap();
        let missing = filter("password_file = \"/nowhere/password\"\n");
        assert!(filtering.renewed(&missing).is_err());
        assert_eq!(filtering.filters().names().collect::<Vec<_>>(), ["a"]);
    }
}
