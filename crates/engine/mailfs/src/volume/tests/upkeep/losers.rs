//! Commits that lost a race leave the log with the commits of their time, if the chain has their changes.

use super::super::rig::Several;
use super::mounts::collect;
use super::*;
use crate::format::{MailId, Subject};

impl Several {
    /// The subjects of the lead's log.
    fn log(&mut self) -> Vec<(u32, Subject)> {
        let log = self.accounts.get_mut(&1).unwrap().mailbox("log").unwrap();
        let subject = |(uid, whole): (&u32, &Bytes)| {
            let end = whole.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
            let header = std::str::from_utf8(&whole[..end]).unwrap();
            let mut lines = header.lines();
            let subject = lines.find_map(|line| line.strip_prefix("Subject: "));
            (*uid, Subject::parse(subject.unwrap()).unwrap())
        };
        log.mails.iter().map(subject).collect()
    }

    /// Commits of the log that are not in the chain.
    fn outside(&mut self) -> Vec<MailId> {
        let log = self.log();
        let mut chain = vec![self.volume(0).chain.head().0];
        while let Some((_, subject)) = log
            .iter()
            .find(|(_, subject)| Some(&subject.mail) == chain.last())
        {
            chain.push(subject.parent.unwrap_or(MailId::NONE));
        }
        let ids = log.iter().map(|(_, subject)| subject.mail);
        ids.filter(|id| !chain.contains(id)).collect()
    }

    /// How many of these commits the log has.
    fn count(&mut self, commits: &[MailId]) -> usize {
        let log = self.log();
        let there = |commit: &&MailId| log.iter().any(|(_, subject)| subject.mail == **commit);
        commits.iter().filter(there).count()
    }

    /// Days of the first mount alone, each with some files, a checkpoint and a collection.
    fn days(&mut self, days: std::ops::Range<usize>) {
        for day in days {
            for file in 0..3 {
                self.put(0, &format!("{day}-{file}"), "some content");
                self.sync(0).unwrap();
            }
            self.finish(0);
            self.pass(24 * 3_600);
            collect(self, 0);
        }
    }
}

/// Both mounts commit at once. Returns the commits that have lost.
fn race() -> (Several, Vec<MailId>) {
    let mut several = Several::new(2);
    several.put(0, "first", "of the first");
    several.put(1, "second", "of the second");
    several.begin_sync(0);
    several.begin_sync(1);
    several.quiet();
    let outside = several.outside();
    assert!(!outside.is_empty());
    (several, outside)
}

#[test]
fn a_merged_commit_leaves_with_the_commits_of_its_time() {
    // A collection by the mount that has seen the merge, and by one that has not.
    for knows in [true, false] {
        let (mut several, losers) = race();
        several.finish(1);
        several.kill(1);
        several.days(0..3);
        assert_eq!(several.count(&losers), losers.len(), "within their time");
        if !knows {
            several.kill(0);
            several.mount(0).unwrap();
        }
        several.days(3..16);
        assert_eq!(several.count(&losers), 0, "{knows}");
        let tree = several.tree(0);
        assert_eq!(tree["first"], "of the first");
        assert_eq!(tree["second"], "of the second");
        several.kill(0);
        several.mounts[0].disk = MemoryDisk::default();
        several.mount(0).unwrap();
        assert!(several.tree(0) == tree);
    }
}

#[test]
fn a_commit_that_nobody_merged_stays_however_old() {
    let (mut several, losers) = race();
    several.put(1, "late", "on the way for days");
    several.begin_sync(1);
    let late = several.kill_with_mails(1);
    several.days(0..1);
    // The first mount forgets the state on which the commit lies.
    several.kill(0);
    several.mount(0).unwrap();
    several.arrive(late);
    let open = several.log().last().unwrap().1.mail;
    several.days(1..18);
    assert_eq!(several.count(&losers), 0);
    assert_eq!(several.log()[0].1.mail, open, "the oldest mail of the log");
}

#[test]
fn the_commit_that_names_a_loser_stays_until_it_is_read() {
    let (mut several, losers) = race();
    several.finish(1);
    several.kill(1);
    several.kill(0);
    several.mount(0).unwrap();
    several.days(0..6);
    several.kill(0);
    several.mount(0).unwrap();
    // Whole mails of the log cannot be read for some days.
    let log = several.log();
    let of_old = move |uid: &u32| log.iter().any(|(of, _)| of == uid);
    several.fault = Some(Box::new(
        move |request| matches!(request, Request::Read { mailbox, uid, .. } if mailbox == "log" && of_old(uid)),
    ));
    several.days(6..12);
    assert_eq!(several.count(&losers), losers.len());
    several.fault = None;
    several.days(12..24);
    assert_eq!(several.count(&losers), 0);
}
