//! Garbage: what nobody needs goes after its time, whatever happens on the way, and nothing else goes.

use super::*;

/// Files that stay, files that go, and files that are written over: the files that are there at the end.
fn fill(world: &mut World) -> Vec<(&'static str, Vec<u8>)> {
    let kept = noise(1, 80_000);
    world.put(ROOT, "kept", &kept);
    world.sync().unwrap();
    world.put(ROOT, "gone", &noise(2, 150_000));
    world.sync().unwrap();
    world.put(ROOT, "over", &noise(3, 70_000));
    world.sync().unwrap();
    let inode = world.lookup(ROOT, "over").unwrap().inode;
    let handle = world.open(inode);
    let new = noise(4, 70_000);
    world.write(handle, 0, &new);
    world.close(handle);
    world.remove("gone");
    world.sync().unwrap();
    vec![("kept", kept), ("over", new)]
}

fn assert_files(world: &mut World, files: &[(&str, Vec<u8>)], when: &str) {
    for (name, content) in files {
        assert!(world.get(ROOT, name).unwrap() == *content, "{name} {when}");
    }
    assert_eq!(world.lookup(ROOT, "gone").err(), Some(Errno::NoEnt));
}

/// Mails of all data mailboxes.
fn packs(world: &mut World) -> usize {
    let accounts: Vec<u16> = world.accounts.keys().copied().collect();
    accounts
        .into_iter()
        .map(|account| world.mails(account, "data-0001").len())
        .sum()
}

#[test]
fn packs_without_files_go_after_their_time() {
    let mut world = replicated();
    let files = fill(&mut world);
    let before = packs(&mut world);
    let first = world.collect().unwrap();
    assert!(first.packs_condemned >= 2, "{first:?}");
    for day in 1..7 {
        world.days(1);
        let report = world.collect().unwrap();
        assert_eq!(
            (report.removed, report.packs_condemned),
            (0, 0),
            "day {day}"
        );
        assert_eq!(report.waiting, first.packs_condemned);
    }
    assert_eq!(packs(&mut world), before);
    world.days(1);
    let last = world.collect().unwrap();
    assert_eq!(last.removed, 2 * first.packs_condemned);
    assert!(last.octets > 400_000);
    assert_eq!(packs(&mut world), before - last.removed);
    assert_eq!(world.check(true, false).findings, []);
    assert_files(&mut world, &files, "after the collection");
    assert_eq!(world.collect().unwrap(), CollectReport::default());
    world.lose_folder();
    world.mount().unwrap();
    assert_files(&mut world, &files, "after a new beginning");
}

#[test]
fn a_pack_that_is_needed_again_stays() {
    let mut world = World::new(1);
    let content = noise(5, 400_000);
    world.put(ROOT, "a", &content);
    let (_, to) = world.create(ROOT, "b");
    world.sync().unwrap();
    let inode = world.lookup(ROOT, "a").unwrap().inode;
    let from = world.open(inode);
    // The open file keeps its chunks without a name.
    world.remove("a");
    world.sync().unwrap();
    assert_eq!(world.collect().unwrap().packs_condemned, 0);
    let copy = Call::CopyRange {
        from,
        from_offset: 0,
        to,
        to_offset: 0,
        length: 400_000,
    };
    world.call(copy).unwrap();
    world.close(from);
    world.close(to);
    world.sync().unwrap();
    world.collect().unwrap();
    world.days(8);
    assert_eq!(world.collect().unwrap().removed, 0);
    assert!(world.get(ROOT, "b").unwrap() == content);
    assert_eq!(world.check(true, false).findings, []);
}

#[test]
pub(in crate::volume::tests) fn orphans_go_after_a_day() {
    let mut world = World::new(2);
    // The client dies between the packs and their commit, and its folder is lost.
    world.fortune = Box::new(|_, request| match request {
        Request::Append { mailbox, .. } if mailbox == "log" => Luck::Lost,
        _ => Luck::Good,
    });
    let (_, handle) = world.create(ROOT, "a");
    world.write(handle, 0, &noise(6, 700_000));
    let call = Call::Fsync {
        handle,
        data_only: false,
    };
    world.begin(call);
    for _ in 0..200 {
        world.step();
    }
    let orphans = packs(&mut world);
    assert!(orphans > 0);
    world.lose_folder();
    world.fortune = Box::new(|_, _| Luck::Good);
    world.mount().unwrap();
    assert_eq!(kinds(&world.check(true, false)), ["orphan"]);
    assert_eq!(world.collect().unwrap().orphans, orphans);
    assert_eq!(world.check(true, false).findings, []);
    assert_eq!(world.collect().unwrap().removed, 0);
    world.days(1);
    assert_eq!(world.collect().unwrap().removed, orphans);
    assert_eq!(packs(&mut world), 0);
    assert_eq!(world.check(true, false).findings, []);
}

#[test]
fn duplicates_go_after_a_day_and_the_named_mail_stays() {
    let mut world = replicated();
    let files = fill(&mut world);
    let uids = world.mails(2, "data-0001");
    let shelf = world.shelf(2, "data-0001");
    for uid in &uids {
        let mail = shelf.mails[uid].clone();
        shelf.mails.insert(shelf.uid_next, mail);
        shelf.uid_next += 1;
    }
    let found = world.collect().unwrap();
    assert_eq!(found.duplicates + found.packs_condemned, uids.len());
    world.days(1);
    assert_eq!(world.collect().unwrap().removed, found.duplicates);
    world.days(7);
    world.collect().unwrap();
    // Duplicates of packs that are gone are orphans, which are verified before a tombstone names them.
    assert_eq!(world.collect().unwrap().orphans, found.packs_condemned);
    world.days(1);
    world.collect().unwrap();
    assert_eq!(world.check(true, false).findings, []);
    assert_files(&mut world, &files, "without duplicates");
    // The account that had the duplicates serves all files alone.
    world.lose_folder();
    world.fortune = Box::new(|of, _| if of.0 == 3 { Luck::Lost } else { Luck::Good });
    world.mount().unwrap();
    assert_files(&mut world, &files, "from the account with the duplicates");
}

/// Two runs, a week apart, that do all there is to do.
fn both_runs(world: &mut World) {
    world.collect();
    world.days(8);
    if world.volume().read_only().is_none() {
        world.collect();
    }
}

fn requests_of_both_runs() -> usize {
    let mut world = replicated();
    fill(&mut world);
    let before: usize = world.counts.values().sum();
    both_runs(&mut world);
    world.counts.values().sum::<usize>() - before
}

/// Ends of all runs: everything needless is gone and everything needed is there.
fn assert_settled(world: &mut World, files: &[(&str, Vec<u8>)], when: &str) {
    world.fortune = Box::new(|_, _| Luck::Good);
    world.days(1);
    for _ in 0..3 {
        world.collect().unwrap();
        world.days(8);
    }
    let report = world.check(true, false);
    assert_eq!(report.findings, [], "{when}");
    assert_eq!(world.collect().unwrap(), CollectReport::default(), "{when}");
    assert_files(world, files, when);
    world.sync().unwrap();
    world.lose_folder();
    world.mount().unwrap();
    assert_files(world, files, when);
}

#[test]
fn a_request_or_an_answer_that_is_lost_harms_no_run() {
    let requests = requests_of_both_runs();
    assert!(requests > 15, "{requests}");
    for luck in [Luck::Lost, Luck::Unanswered] {
        for hurt in 0..requests {
            let mut world = replicated();
            let files = fill(&mut world);
            let mut number = 0;
            world.fortune = Box::new(move |_, _| {
                number += 1;
                if number == hurt + 1 { luck } else { Luck::Good }
            });
            both_runs(&mut world);
            assert_settled(&mut world, &files, &format!("{luck:?} {hurt}"));
        }
    }
}

#[test]
fn a_client_that_dies_at_any_request_of_a_run_loses_nothing() {
    let requests = requests_of_both_runs();
    for luck in [Luck::Lost, Luck::Unanswered] {
        for deadly in 0..requests {
            die_at(luck, deadly, (deadly % 2 == 0) == (luck == Luck::Lost));
        }
    }
}

fn die_at(luck: Luck, deadly: usize, keeps_folder: bool) {
    let mut world = replicated();
    let files = fill(&mut world);
    let mut number = 0;
    world.fortune = Box::new(move |_, _| {
        number += 1;
        if number > deadly { luck } else { Luck::Good }
    });
    for _ in 0..2 {
        let now = world.moment();
        world.volume().collect(now, CollectTerms::DEFAULT);
        for _ in 0..500 {
            world.step();
        }
        if world.volume().take_upkept().is_none() {
            break;
        }
        world.days(8);
    }
    if keeps_folder {
        world.kill();
    } else {
        world.lose_folder();
    }
    world.fortune = Box::new(|_, _| Luck::Good);
    world.mount().unwrap();
    let when = format!("{luck:?} {deadly} {keeps_folder}");
    assert_files(&mut world, &files, &when);
    assert_settled(&mut world, &files, &when);
}
