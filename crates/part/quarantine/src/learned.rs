//! Senders whom releases from the quarantine have taught (`vere quarantine release --learn`), each for the recipients of the released message.
//!
//! An entry counts only for a message whose author is proven again, and a message teaches only a proven author: anybody can write any address.
//! The list is of this gateway: what another one learns counts there.

mod file;
mod senders;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use vere_delivery::is_meant;
use vere_process::clock;
use vere_units::Timestamp;

use self::file::{Change, SendersFile};
use self::senders::{Pair, Senders};

/// The file below the data folder.
const FILE: &str = "learned-senders";
const DAY_MILLIS: u64 = 86_400_000;
/// The time without notes of use after a failure: with a full disk, not each message has the disk tried.
const PAUSE: Duration = Duration::from_secs(60);

/// The learned senders.
#[derive(Debug)]
pub struct Learned {
    senders: RefCell<Senders>,
    /// The file, or why there is none.
    file: RefCell<Result<SendersFile, String>>,
    /// The last failure of a note of use.
    failed: Cell<Option<Instant>>,
}

/// An entry, for people.
#[derive(Debug)]
pub struct Entry {
    /// The address of the sender.
    pub sender: String,
    /// The account or address that the sender counts for.
    pub recipient: String,
    /// The day of the last noted use.
    pub used: Timestamp,
}

impl Learned {
    /// Opens the list in the data folder. With a file that cannot be used nothing is learned, and no entry counts.
    #[must_use]
    pub fn open(data: &Path) -> Self {
        let path = data.join(FILE);
        let (senders, file) = match SendersFile::open(path.clone()) {
            Ok((file, senders)) => (senders, Ok(file)),
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "learned senders cannot be read");
                (Senders::default(), Err(error.to_string()))
            }
        };
        Self {
            senders: RefCell::new(senders),
            file: RefCell::new(file),
            failed: Cell::new(None),
        }
    }

    /// The number of entries.
    #[must_use]
    pub fn count(&self) -> usize {
        self.senders.borrow().len()
    }

    /// Notes a sender for recipients.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn learn(&self, sender: &str, recipients: &BTreeSet<String>) -> io::Result<()> {
        let pairs = recipients.iter().filter_map(|one| Pair::of(sender, one));
        pairs.into_iter().try_for_each(|pair| self.note(pair))
    }

    /// Removes a sender from the entries of recipients. Returns how many entries there were.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn unlearn(&self, sender: &str, recipients: &BTreeSet<String>) -> io::Result<usize> {
        let pairs = recipients.iter().filter_map(|one| Pair::of(sender, one));
        self.remove(pairs.collect())
    }

    /// Removes the entries of a sender or a sender's domain, of one recipient or of all. Returns how many.
    ///
    /// # Errors
    /// When the list cannot be written.
    pub fn forget(&self, sender: &str, recipient: Option<&str>) -> io::Result<usize> {
        let found = self.list(Some(sender), recipient).into_iter();
        let pairs = found.filter_map(|one| Pair::of(&one.sender, &one.recipient));
        self.remove(pairs.collect())
    }

    /// The entries that count, of a sender and of a recipient, or of their domains.
    #[must_use]
    pub fn list(&self, sender: Option<&str>, recipient: Option<&str>) -> Vec<Entry> {
        let (senders, day) = (self.senders.borrow(), today());
        let fits = |wanted: Option<&str>, address: &str| {
            wanted.is_none_or(|wanted| is_meant(wanted, address))
        };
        let found = senders.iter().filter(|(pair, _)| {
            let is_asked = fits(sender, &pair.sender) && fits(recipient, &pair.recipient);
            is_asked && senders.has(pair, day)
        });
        let entry = |(pair, used): (&Pair, u32)| Entry {
            sender: pair.sender.clone(),
            recipient: pair.recipient.clone(),
            used: Timestamp::from_millis(u64::from(used).saturating_mul(DAY_MILLIS)),
        };
        found.map(entry).collect()
    }

    /// Handles to sync what was written; absent without a file.
    ///
    /// # Errors
    /// When the system gives no handle.
    pub fn handles(&self) -> io::Result<Vec<File>> {
        match &*self.file.borrow() {
            Ok(file) => file.handles(),
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Whether any recipient has the sender, so that a closer look is worth its time.
    #[must_use]
    pub fn has_sender(&self, sender: &str) -> bool {
        self.senders.borrow().has_sender(sender)
    }

    /// Whether all these recipients have the sender.
    #[must_use]
    pub fn knows(&self, sender: &str, recipients: &BTreeSet<String>) -> bool {
        let (senders, day) = (self.senders.borrow(), today());
        let has = |recipient: &String| {
            Pair::of(sender, recipient).is_some_and(|pair| senders.has(&pair, day))
        };
        !recipients.is_empty() && recipients.iter().all(has)
    }

    /// Notes that entries were used, mostly without a line in the file. Within a minute of a failure nothing is noted.
    pub fn note_use(&self, sender: &str, recipients: &BTreeSet<String>) {
        let has_pause = |failed: Instant| failed.elapsed() < PAUSE;
        if self.failed.get().is_some_and(has_pause) {
            return;
        }
        for pair in recipients.iter().filter_map(|one| Pair::of(sender, one)) {
            let is_due = self.senders.borrow().wants_note(&pair, today());
            // A failure is in the log.
            if is_due && self.note(pair).is_err() {
                self.failed.set(Some(Instant::now()));
                return;
            }
        }
    }

    fn note(&self, pair: Pair) -> io::Result<()> {
        let day = today();
        let gone = self.senders.borrow().surplus(&pair);
        let gone = gone.map(|one| (Change::Removed, day, one));
        self.change(
            gone.into_iter()
                .chain([(Change::Noted, day, pair)])
                .collect(),
        )
    }

    fn remove(&self, pairs: Vec<Pair>) -> io::Result<usize> {
        let there = pairs
            .into_iter()
            .filter(|pair| self.senders.borrow().used(pair).is_some());
        let changes: Vec<_> = there.map(|pair| (Change::Removed, today(), pair)).collect();
        let count = changes.len();
        if count > 0 {
            self.change(changes)?;
        }
        Ok(count)
    }

    /// Makes changes in memory and in the file; in neither, if the disk takes nothing.
    fn change(&self, changes: Vec<(Change, u32, Pair)>) -> io::Result<()> {
        let mut file = self.file.borrow_mut();
        let file = match &mut *file {
            Ok(file) => file,
            Err(why) => return Err(io::Error::other(why.clone())),
        };
        let mut senders = self.senders.borrow_mut();
        let mut undo = Vec::with_capacity(changes.len());
        for (change, day, pair) in &changes {
            let used = match change {
                Change::Noted => Some(*day),
                Change::Removed => None,
            };
            undo.push((pair.clone(), senders.set(pair, used)));
        }
        let written = file.add(&changes, &senders, today());
        if let Err(error) = &written {
            tracing::warn!(%error, path = %file.path().display(), "learned senders cannot be written");
            for (pair, used) in undo.iter().rev() {
                senders.set(pair, *used);
            }
        }
        written
    }
}

/// Days since 1970.
fn today() -> u32 {
    let days = clock::now().as_millis().checked_div(DAY_MILLIS);
    days.and_then(|days| u32::try_from(days).ok())
        .unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipients(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn a_sender_is_known_to_the_recipients_of_a_release_alone_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let ann = recipients(&["ann@a.example"]);
        let both = recipients(&["ann@a.example", "bob@a.example"]);
        let learned = Learned::open(folder.path());
        learned.learn("News@shop.example", &ann).unwrap();
        for learned in [learned, Learned::open(folder.path())] {
            assert!(learned.has_sender("news@Shop.example"));
            assert!(learned.knows("news@shop.example", &ann));
            assert!(!learned.knows("news@shop.example", &both));
            assert!(!learned.knows("news@shop.example", &recipients(&[])));
            assert_eq!(learned.handles().unwrap().len(), 2);
        }
        let learned = Learned::open(folder.path());
        learned.learn("other@shop.example", &both).unwrap();
        assert_eq!(learned.list(Some("shop.example"), None).len(), 3);
        assert_eq!(learned.list(None, Some("bob@a.example")).len(), 1);
        learned.unlearn("other@shop.example", &ann).unwrap();
        assert_eq!(
            learned
                .forget("shop.example", Some("bob@a.example"))
                .unwrap(),
            1
        );
        assert_eq!(learned.forget("shop.example", None).unwrap(), 1);
        assert_eq!(learned.forget("shop.example", None).unwrap(), 0);
        assert_eq!(Learned::open(folder.path()).count(), 0);
    }

    #[test]
    fn with_a_file_that_cannot_be_used_nothing_is_learned() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "vere learned senders 9\n").unwrap();
        let learned = Learned::open(folder.path());
        let error = learned
            .learn("a@b.example", &recipients(&["c@d.example"]))
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("expected \"vere learned senders 1\""),
            "{error}"
        );
        assert_eq!(learned.count(), 0);
        assert!(learned.handles().unwrap().is_empty());
    }

    #[test]
    fn a_failure_of_the_disk_pauses_the_notes_of_use() {
        let folder = tempfile::tempdir().unwrap();
        let ann = recipients(&["ann@a.example"]);
        let learned = Learned::open(folder.path());
        let pair = Pair::of("a@b.example", "ann@a.example").unwrap();
        learned.senders.borrow_mut().set(&pair, Some(0));
        // The new file has no place.
        let place = folder.path().join(FILE).with_extension("new");
        std::fs::create_dir(&place).unwrap();
        learned.note_use("a@b.example", &ann);
        std::fs::remove_dir(&place).unwrap();
        learned.note_use("a@b.example", &ann);
        assert!(!folder.path().join(FILE).exists(), "nothing is tried");
        learned.failed.set(None);
        learned.note_use("a@b.example", &ann);
        assert!(learned.knows("a@b.example", &ann));
    }

    #[test]
    fn a_clock_that_is_ahead_costs_no_entry() {
        let folder = tempfile::tempdir().unwrap();
        let old = today() - 400;
        let pair = Pair::of("a@b.example", "ann@a.example").unwrap();
        let learned = Learned::open(folder.path());
        learned.change(vec![(Change::Noted, old, pair)]).unwrap();
        let learned = Learned::open(folder.path());
        assert_eq!(learned.count(), 1, "the entry is there");
        assert!(!learned.knows("a@b.example", &recipients(&["ann@a.example"])));
    }
}
