//! The store's thread, its turns taken in turn.

use std::cell::Cell;
use std::iter;

use vere_ports::directory::AccountName;
use vere_settings::BodySharing;
use vere_units::{ByteSize, Timestamp};

use super::*;
use crate::files::Files;
use crate::filled;

/// The owner of a new store, and the syncs that it asks for.
fn owner(files: &Files) -> (StoreThread, Receiver<Sync>) {
    let mut store = files.open().unwrap();
    let plan = Plan {
        reserve: ByteSize::new(0),
        reclaim_from: 100,
        backup_hold_max: vere_units::Span::from_millis(60_000),
        reclaim_share: 1,
        keep_expunged: vere_units::Span::default(),
        keep_expunged_size: ByteSize::new(0),
        sharing: BodySharing::Account,
        files_into_junk: true,
        mailboxes: Vec::new(),
    };
    let folder = files.folder().to_owned();
    let figures = Figures::default();
    let used = Used::read(&folder);
    let upkeep = Upkeep::start(plan, folder, &mut store, figures.clone(), |_| true).unwrap();
    let (to_sync, syncs) = channel();
    let owner = StoreThread {
        store,
        waiting: Vec::new(),
        syncing: false,
        was_asked: false,
        to_sync,
        watchers: Arc::default(),
        indexer: Indexer::channel().0,
        upkeep,
        used,
        figures,
        counted: Counts::default(),
        persisted: Instant::now(),
        failed: None,
    };
    (owner, syncs)
}

fn files() -> (tempfile::TempDir, Files) {
    let folder = filled::folder();
    let files = filled::lock(folder.path());
    (folder, files)
}

/// A question that changes something: it makes an account.
fn change(account: &'static str) -> Message {
    let account = AccountName::parse(account).unwrap();
    let question =
        move |store: &mut MailStore| store.open_account(&account, Timestamp::from_millis(1));
    Message::Job(job(question, |made| assert!(made.is_ok())))
}

/// A question that changes nothing.
fn look() -> Message {
    Message::Job(Box::new(|owner| assert!(owner.failed.is_none())))
}

#[test]
fn a_sync_does_not_wait_for_an_empty_queue() {
    let (_folder, files) = files();
    let (mut owner, syncs) = owner(&files);
    let asked = Cell::new(0);
    let looks = iter::repeat_with(|| {
        asked.set(asked.get() + 1);
        look()
    });
    owner.turn(iter::once(change("a@demo.test")).chain(looks.take(10_000)));
    assert!(
        asked.get() < TURN_MAX,
        "{} questions before it",
        asked.get()
    );
    assert_eq!(syncs.try_iter().count(), 1);
}

#[test]
fn the_next_sync_begins_where_one_ends() {
    let (_folder, files) = files();
    let (mut owner, syncs) = owner(&files);
    owner.turn(iter::once(change("a@demo.test")));
    let (outcome, waiting) = syncs.try_recv().unwrap().run(&mut None);
    let came = [change("b@demo.test"), Message::Synced(outcome, waiting)];
    let mut begun = 0;
    let behind = iter::once_with(|| {
        begun = syncs.try_iter().count();
        look()
    });
    owner.turn(came.into_iter().chain(behind));
    assert_eq!(begun, 1);
}
