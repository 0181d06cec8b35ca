//! A server shows a mail of the log to an opening later than mails behind it.

use super::rig::Several;
use super::*;

/// Three mounts, the last one away, and two commits that race meanwhile. Returns the UID of the winner.
fn race(keeps_folder: bool, is_foreign_there: bool) -> (Several, u32) {
    let mut several = Several::new(3);
    if is_foreign_there {
        let request = Request::Append {
            mailbox: "log".to_owned(),
            mail: Bytes::from_static(b"Subject: lunch\r\n\r\nAt noon?\r\n"),
            alone: true,
        };
        let lead = several.accounts.get_mut(&1).unwrap();
        lead.carry_out(&request).unwrap();
    }
    several.put(2, "before", "known to all");
    several.sync(2).unwrap();
    several.quiet();
    several.kill(2);
    if !keeps_folder {
        several.mounts[2].disk = MemoryDisk::default();
    }
    let winner = several.log_end();
    several.put(0, "first", "of the first");
    several.put(1, "second", "of the second");
    several.begin_sync(0);
    several.begin_sync(1);
    several.quiet();
    assert!(several.log_end() >= winner + 3, "a race");
    (several, winner)
}

#[test]
fn an_opening_that_is_shown_a_mail_late_chooses_the_chain_of_all() {
    for keeps_folder in [true, false] {
        let (mut several, winner) = race(keeps_folder, false);
        several.late = Some(winner);
        several.mount(2).unwrap();
        assert_eq!(several.late, None);
        several.put(2, "third", "of the third");
        several.sync(2).unwrap();
        several.quiet();
        let tree = several.tree(0);
        assert!(several.tree(1) == tree);
        assert!(several.tree(2) == tree, "{keeps_folder}");
        assert_eq!(tree["third"], "of the third");
    }
}

#[test]
fn an_opening_without_holes_lists_the_log_once() {
    // A mail that is no commit, below what the mount has decided about, is no hole.
    let [plain, foreign] = [false, true].map(|is_foreign_there| {
        let (mut several, _) = race(true, is_foreign_there);
        several.listings = 0;
        several.mount(2).unwrap();
        several.listings
    });
    assert_eq!(foreign, plain);
    let (mut several, winner) = race(true, false);
    several.late = Some(winner);
    several.listings = 0;
    several.mount(2).unwrap();
    assert_eq!(several.listings, plain + 1);
}
