//! Changes of the lead: planned ones, ones without the lead, broken off ones, and who finds out.

use vere_promotion::{Promoted, Promotion, PromotionError, PromotionStep, Source};

use super::rig::{Several, create};
use super::stand_ins::{check, fill, lose, world};
use super::*;

const ROOT: Inode = Inode::ROOT;

/// Carries out a promotion, or its first requests: `lost` accounts do not answer.
fn promote_for(
    accounts: &mut BTreeMap<u16, MemoryAccount>,
    (terms, of): (&Terms, Create),
    (source, to): (Source, u16),
    requests: usize,
    lost: &[u16],
) -> Option<Result<Promoted, PromotionError>> {
    let date = Timestamp::from_millis(1_700_000_000_000);
    let mut promotion = Promotion::new(terms, of, (source, to), (0, date));
    let mut done = 0;
    while let Some(step) = promotion.poll() {
        if let PromotionStep::Ask(id, account, _, request) = step {
            if done >= requests {
                return None;
            }
            done += 1;
            let answer = match lost.contains(&account.0) {
                true => Err(Fault::Unreachable("cut".to_owned())),
                false => accounts.get_mut(&account.0).unwrap().carry_out(&request),
            };
            promotion.answered(id, answer);
        }
    }
    assert!(promotion.is_over(), "the promotion stands still");
    Some(promotion.finish())
}

fn promote(world: &mut World, source: Source, to: u16, lost: &[u16]) -> Promoted {
    let terms = world.terms.clone();
    let of = world.of.clone();
    let all = usize::MAX;
    let done = promote_for(&mut world.accounts, (&terms, of), (source, to), all, lost);
    done.unwrap().unwrap()
}

/// A volume whose metadata lie on both accounts, with checkpoints and commits behind them.
fn filled() -> (World, Vec<(String, Vec<u8>)>) {
    let mut world = world();
    let files = fill(&mut world);
    (world, files)
}

impl World {
    /// Opens under a lead that the journal may not know.
    fn mount_under(&mut self, lead: u16, epoch: u32) -> Result<(), OpenError> {
        self.terms.lead = lead;
        self.terms.lead_epoch = epoch;
        self.starts += 1;
        let storage = (self.disk.clone(), [self.starts; 16]);
        let terms = self.terms.clone();
        let opening = Opening::under_new_lead(terms, self.of.clone(), storage, 1 << 40);
        self.open_by(opening)
    }
}

#[test]
fn another_account_becomes_the_lead() {
    let (mut world, mut files) = filled();
    world.put(ROOT, "waits", b"not sent");
    files.push(("waits".to_owned(), b"not sent".to_vec()));
    world.kill();
    let promoted = promote(&mut world, Source::Lead(1), 2, &[]);
    assert_eq!((promoted.lead.account, promoted.lead.epoch), (2, 2));
    // A second run finds the change.
    let again = promote(&mut world, Source::Lead(1), 2, &[]);
    assert_eq!((again.lead, again.copied), (promoted.lead, 0));
    let found = world.mount().unwrap_err();
    let expected = OpenError::LeadChanged {
        account: 2,
        epoch: 2,
    };
    assert_eq!(found.to_string(), expected.to_string());
    world.mount_under(2, 2).unwrap();
    check(&mut world, &files);
    world.put(ROOT, "behind", b"under the new lead");
    files.push(("behind".to_owned(), b"under the new lead".to_vec()));
    world.sync().unwrap();
    world.finish().unwrap();
    // The journal has the new places, and the former lead is needed for nothing but its packs.
    lose(&mut world, 1);
    world.remount();
    check(&mut world, &files);
    world.kill();
    world.lose_folder();
    world.mount().unwrap();
    check(&mut world, &files);
    assert_eq!(world.status().read_only, None);
    world.put(ROOT, "last", b"without the former lead");
    world.sync().unwrap();
}

/// The commits below the checkpoint have left the log, as old ones do.
#[test]
fn a_log_without_its_first_commits_changes_its_place() {
    let (mut world, files) = filled();
    let covered = world.volume().checkpoints.newest().unwrap().covered_uid;
    world.kill();
    let log = world.accounts.get_mut(&1).unwrap().mailbox("log").unwrap();
    log.mails.retain(|uid, _| *uid >= covered);
    let promoted = promote(&mut world, Source::Lead(1), 2, &[]);
    world.lose_folder();
    world.mount_under(2, promoted.lead.epoch).unwrap();
    check(&mut world, &files);
    world.put(ROOT, "behind", b"under the new lead");
    world.sync().unwrap();
    world.finish().unwrap();
    lose(&mut world, 1);
    world.remount();
    check(&mut world, &files);
    assert_eq!(world.status().read_only, None);
}

/// A promotion that ends anywhere leaves a volume that opens under the former lead or says where to look; the next one ends it.
#[test]
fn a_promotion_may_end_anywhere() {
    let (mut base, files) = filled();
    base.kill();
    let (mut lasting, mut changed) = (true, 0);
    let mut requests = 0;
    while lasting {
        let mut accounts = base.accounts.clone();
        let of = || base.of.clone();
        let ends = (Source::Lead(1), 2);
        let first = promote_for(&mut accounts, (&base.terms, of()), ends, requests, &[]);
        lasting = first.is_none();
        let mut world = World::new(2);
        world.terms = base.terms.clone();
        world.accounts = accounts;
        world.kill();
        world.lose_folder();
        match world.mount() {
            Ok(()) => {
                check(&mut world, &files[..3]);
                world.put(ROOT, "between", b"before the second run");
                world.sync().unwrap();
                world.kill();
            }
            Err(OpenError::LeadChanged { account: 2, .. }) => changed += 1,
            Err(error) => panic!("{requests}: {error}"),
        }
        let promoted = promote(&mut world, Source::Lead(1), 2, &[]);
        world.lose_folder();
        world.mount_under(2, promoted.lead.epoch).unwrap();
        check(&mut world, &files[..3]);
        assert_eq!(world.status().read_only, None, "{requests}");
        requests += 7;
    }
    assert!(changed > 0, "no promotion ended behind its change");
}

/// The lead is gone for good: its copy on the other account becomes the log.
#[test]
fn a_copy_becomes_the_log() {
    let (mut world, mut files) = filled();
    world.put(ROOT, "waits", b"not sent");
    files.push(("waits".to_owned(), b"not sent".to_vec()));
    world.kill();
    lose(&mut world, 1);
    let promoted = promote(&mut world, Source::Copy(2), 2, &[1]);
    world.mount_under(2, promoted.lead.epoch).unwrap();
    check(&mut world, &files);
    assert_eq!(world.sync(), Ok(Reply::Done));
    world.finish().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    check(&mut world, &files);
    for _ in 0..3 {
        world.pass(Duration::from_secs(3_600));
    }
    assert_eq!(world.status().read_only, None);
}

/// There and back: what lies in the log of an earlier time gives the chain no other course.
#[test]
fn the_first_lead_becomes_the_lead_again() {
    let (mut world, mut files) = filled();
    for (round, (from, to)) in [(1, 2), (2, 1), (1, 2)].into_iter().enumerate() {
        world.kill();
        let promoted = promote(&mut world, Source::Lead(from), to, &[]);
        assert_eq!(promoted.lead.epoch as usize, round + 2);
        world.mount_under(to, promoted.lead.epoch).unwrap();
        check(&mut world, &files);
        let name = format!("round {round}");
        world.put(ROOT, &name, name.as_bytes());
        world.sync().unwrap();
        files.push((name.clone(), name.into_bytes()));
        for _ in 0..3 {
            world.pass(Duration::from_secs(60));
        }
        world.finish().unwrap();
        world.lose_folder();
        world.mount().unwrap();
        check(&mut world, &files);
    }
}

/// Whoever comes by an earlier lead is led on to the present one, whatever epoch the machine knows.
#[test]
fn a_former_lead_leads_on() {
    let mut world = World::new(3);
    world.put(ROOT, "file", b"content");
    world.sync().unwrap();
    world.finish().unwrap();
    world.kill();
    for (from, to) in [(1, 2), (2, 3)] {
        promote(&mut world, Source::Lead(from), to, &[]);
    }
    let first = (world.terms.lead, world.terms.lead_epoch);
    assert_eq!(first, (1, 1));
    let led = |error: OpenError| match error {
        OpenError::LeadChanged { account, epoch } => (account, epoch),
        other => panic!("{other}"),
    };
    assert_eq!(led(world.mount().unwrap_err()), (2, 2));
    for epoch in [2, 3] {
        assert_eq!(led(world.mount_under(2, epoch).unwrap_err()), (3, 3));
    }
    world.lose_folder();
    world.mount_under(3, 3).unwrap();
    assert_eq!(world.get(ROOT, "file"), Ok(b"content".to_vec()));
    world.put(ROOT, "more", b"under the third");
    world.sync().unwrap();
    // The command on a machine that was away makes no former state the newest one.
    world.kill();
    let (terms, of) = (terms(3), world.of.clone());
    let ends = (Source::Lead(1), 3);
    let done = promote_for(&mut world.accounts, (&terms, of), ends, usize::MAX, &[]);
    let found = done.unwrap().unwrap();
    assert_eq!(
        (found.lead.account, found.lead.epoch, found.copied),
        (3, 3, 0)
    );
    world.mount_under(3, 3).unwrap();
    assert_eq!(world.get(ROOT, "more"), Ok(b"under the third".to_vec()));
}

/// Mounts that look at other logs once an hour.
fn several(mounts: usize) -> Several {
    let mut several = Several::new(mounts);
    several.terms.metadata_accounts = 2;
    several.terms.refresh = Duration::from_secs(3_600);
    for number in 0..mounts {
        several.kill(number);
        several.mount(number).unwrap();
    }
    several.settle();
    several
}

impl Several {
    fn promote(&mut self, source: Source, lost: &[u16]) -> Promoted {
        let terms = self.terms.clone();
        let of = create("promoter");
        let ends = (source, 2);
        let done = promote_for(&mut self.accounts, (&terms, of), ends, usize::MAX, lost);
        done.unwrap().unwrap()
    }

    fn has_stopped(&self, number: usize) -> bool {
        let mut notices = self.mounts[number].notices.iter();
        notices.any(|notice| matches!(notice, Notice::LeadChanged { .. }))
    }

    /// Mounts under the second account, as the host does: changes whose base is gone are brought in.
    fn go_over(&mut self, number: usize, epoch: u32) {
        self.kill(number);
        self.terms.lead = 2;
        self.terms.lead_epoch = epoch;
        self.terms.is_new_lead = true;
        match self.mount(number) {
            Err(OpenError::Overtaken) => self.mount_stranded(number, Stranded::Overtaken).unwrap(),
            opened => opened.unwrap(),
        }
        self.terms.is_new_lead = false;
    }
}

/// A mount that is there while the lead changes stops, and loses nothing.
#[test]
fn a_mount_finds_the_change() {
    for is_planned in [true, false] {
        let mut several = several(1);
        several.put(0, "first", "one");
        several.sync(0).unwrap();
        several.quiet();
        let source = match is_planned {
            true => Source::Lead(1),
            false => Source::Copy(2),
        };
        let lost: &[u16] = if is_planned { &[] } else { &[1] };
        several.mounts[0].is_held = true;
        several.put(0, "second", "two");
        let promoted = several.promote(source, lost);
        several.mounts[0].is_held = false;
        let synced = several.sync(0);
        // A log with the change in its chain takes nothing more; one without takes on until the mount looks at the other log.
        assert_eq!(synced.is_ok(), !is_planned, "{synced:?}");
        several.pass(3_601);
        assert!(several.has_stopped(0), "planned: {is_planned}");
        several.go_over(0, promoted.lead.epoch);
        several.quiet();
        several.quiet();
        let tree = several.tree(0);
        assert_eq!(tree.get("first").map(String::as_str), Some("one"));
        assert_eq!(
            tree.get("second").map(String::as_str),
            Some("two"),
            "{tree:?}"
        );
    }
}

/// Two machines, and a change without the lead: one went on there meanwhile.
#[test]
fn what_a_former_lead_took_is_merged() {
    let mut several = several(2);
    several.put(0, "shared", "before");
    several.sync(0).unwrap();
    several.quiet();
    let promoted = several.promote(Source::Copy(2), &[1]);
    several.mounts[1].is_held = true;
    several.put(0, "left", "at the former lead");
    let synced = several.sync(0);
    assert!(synced.is_ok(), "{:?}", several.mounts[0].notices);
    several.put(0, "shared", ", and more");
    several.sync(0).unwrap();
    // A checkpoint there says more of generations than the new chain has.
    for number in 0..6 {
        several.put(0, &format!("more {number}"), "at the former lead");
        several.sync(0).unwrap();
    }
    several.finish(0);
    // The machine that made the changes does not come back.
    several.kill(0);
    several.mounts[1].is_held = false;
    several.go_over(1, promoted.lead.epoch);
    several.put(1, "right", "at the new lead");
    several.sync(1).unwrap();
    several.quiet();
    several.quiet();
    let tree = several.tree(1);
    assert!(
        !several.mounts[1]
            .notices
            .iter()
            .any(|of| matches!(of, Notice::Gap { .. }))
    );
    assert_eq!(
        tree.keys().filter(|name| name.starts_with("more")).count(),
        6
    );
    assert_eq!(
        tree.get("left").map(String::as_str),
        Some("at the former lead"),
        "{tree:?}"
    );
    assert_eq!(
        tree.get("right").map(String::as_str),
        Some("at the new lead")
    );
    assert_eq!(
        tree.get("shared").map(String::as_str),
        Some("before, and more")
    );
    // Nothing is merged twice, and the machine whose commits were merged mounts with what it had.
    several.kill(1);
    several.mount(1).unwrap();
    several.go_over(0, promoted.lead.epoch);
    several.put(0, "again", "from the first machine");
    several.sync(0).unwrap();
    several.pass(3_601);
    several.quiet();
    let mut expected = tree;
    expected.insert("again".to_owned(), "from the first machine".to_owned());
    for number in 0..2 {
        assert_eq!(several.tree(number), expected, "mount {number}");
    }
}

/// Another machine commits just before the change: the change lies behind that commit in the end.
#[test]
fn a_change_that_loses_a_race_is_made_again() {
    let mut several = several(1);
    several.put(0, "first", "one");
    several.sync(0).unwrap();
    several.quiet();
    let before = several.by_promoters();
    let (terms, of) = (several.terms.clone(), create("promoter"));
    let date = Timestamp::from_millis(1_700_000_000_000);
    let mut promotion = Promotion::new(&terms, of, (Source::Lead(1), 2), (0, date));
    let mut races = 0;
    while let Some(step) = promotion.poll() {
        let PromotionStep::Ask(id, account, urgency, request) = step else {
            continue;
        };
        if urgency == Urgency::Commit && races < 2 {
            races += 1;
            several.put(0, &format!("race {races}"), "won");
            several.sync(0).unwrap();
        }
        let account = several.accounts.get_mut(&account.0).unwrap();
        promotion.answered(id, account.carry_out(&request));
    }
    let promoted = promotion.finish().unwrap();
    assert_eq!(races, 2);
    several.go_over(0, promoted.lead.epoch);
    let names: Vec<String> = several.tree(0).into_keys().collect();
    assert_eq!(names, ["first", "race 1", "race 2"]);
    several.put(0, "last", "one");
    several.sync(0).unwrap();
    // Of the changes that lost nothing is left.
    assert_eq!(several.by_promoters(), before + 1);
}

impl Several {
    /// Mails in the first account's log that no writer has made.
    fn by_promoters(&mut self) -> usize {
        let log = self.accounts.get_mut(&1).unwrap().mailbox("log").unwrap();
        let mails = log.mails.values();
        mails
            .filter(|mail| String::from_utf8_lossy(mail).contains(" w0000 "))
            .count()
    }
}
