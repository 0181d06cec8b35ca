//! The lead as this machine knows it, and openings after another machine has changed the lead.
//!
//! The file of a volume names the lead of the beginning. The file `lead` of the state folder has the lead of today, with its
//! epoch, and the account whose log the journal's places are of.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use vere_mailfs::volume::Terms;
use vere_process::failure::Failure;

/// The lead of today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// The account.
    pub(crate) account: u16,
    /// The epoch of the last change.
    pub(crate) epoch: u32,
    /// The account that was the lead when the journal was written last.
    pub(crate) journal: u16,
}

/// The file.
pub(crate) fn file(state: &Path) -> PathBuf {
    state.join("lead")
}

impl Known {
    /// What the state folder tells; none before the first change.
    pub(crate) fn read(state: &Path) -> Result<Option<Self>, Failure> {
        let file = file(state);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::new(format!("{}: {error}", file.display()))),
        };
        let known = Self::parse(&text).ok_or_else(|| {
            Failure::new(format!(
                "{}: expected the numbers of an account, an epoch and an account; found {text:?}. Without the file the lead is looked for on the accounts",
                file.display()
            ))
        })?;
        Ok(Some(known))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let known = Self {
            account: words.next()?.parse().ok()?,
            epoch: words.next()?.parse().ok()?,
            journal: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(known)
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> String {
        format!("{} {} {}\n", self.account, self.epoch, self.journal)
    }

    /// Has terms name the lead of today.
    pub(crate) fn apply(&self, terms: &mut Terms) {
        terms.lead = self.account;
        terms.lead_epoch = self.epoch;
        terms.is_new_lead = self.journal != self.account;
    }
}

#[cfg(test)]
mod tests {
    use super::Known;

    #[test]
    fn the_lead_is_kept() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(Known::read(state.path()).unwrap(), None);
        for account in [2, 7] {
            let known = Known {
                account,
                epoch: 3,
                journal: 1,
            };
            std::fs::write(super::file(state.path()), known.text()).unwrap();
            assert_eq!(Known::read(state.path()).unwrap(), Some(known));
        }
        for wrong in ["", "1 2", "1 2 3 4", "1 x 3", "70000 1 1"] {
            std::fs::write(super::file(state.path()), wrong).unwrap();
            let text = Known::read(state.path()).unwrap_err().to_string();
            assert!(text.contains("expected the numbers"), "{text}");
        }
    }
}
