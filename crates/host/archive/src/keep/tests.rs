//! Machines with running times, pauses and wrong clocks; and removals cut off.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::name::Day;
use crate::tests::{MINUTE, folder, numbers, written};
use crate::verify;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: i64 = 365 * 24;
const KEEP: Duration = Duration::from_secs(30 * 86_400);

/// A machine with an archive into which each hour of running writes.
struct Machine {
    /// Hours that have passed in truth, and how many more the clock shows.
    truth: u64,
    error: i64,
    ages: Ages,
    days: BTreeMap<Day, i64>,
    /// The hours of the last writes.
    written: BTreeMap<Day, u64>,
    removed: usize,
    /// How much too early a day may go.
    slack: Duration,
}

impl Machine {
    /// A machine whose archive has been written for some days.
    fn after(days: u64) -> Self {
        let mut machine = Self {
            truth: 500_000,
            error: 0,
            ages: Ages::default(),
            days: BTreeMap::new(),
            written: BTreeMap::new(),
            removed: 0,
            slack: Duration::ZERO,
        };
        machine.start();
        machine.run(24 * days);
        machine
    }

    fn clock(&self) -> Timestamp {
        let hours = self.truth.saturating_add_signed(self.error);
        Timestamp::ZERO + HOUR * u32::try_from(hours).unwrap()
    }

    fn start(&mut self) {
        self.look(None);
    }

    fn run(&mut self, hours: u64) {
        for _ in 0..hours {
            self.truth += 1;
            let day = Day::of(self.clock());
            self.days.insert(day, self.truth as i64);
            self.written.insert(day, self.truth);
            self.look(Some(HOUR));
        }
    }

    fn off(&mut self, hours: u64) {
        self.truth += hours;
        self.start();
    }

    fn look(&mut self, ran: Option<Duration>) {
        self.ages.look(&self.days, self.clock(), ran);
        for day in self.ages.expired(&self.days, self.clock(), KEEP) {
            let age = HOUR * (self.truth - self.written[&day]) as u32;
            assert!(
                age + self.slack >= KEEP,
                "{day} removed at the age of {age:?}"
            );
            self.days.remove(&day);
            self.removed += 1;
        }
    }

    /// The days between the oldest day and the day of the clock.
    fn span(&self) -> u64 {
        let oldest = self.days.keys().next().unwrap().start();
        self.clock().saturating_since(oldest).as_secs() / 86_400
    }

    fn put_off(&self) -> usize {
        self.ages.put_off(&self.days, self.clock(), KEEP)
    }
}

#[test]
fn a_machine_that_runs_removes_a_day_each_day() {
    let mut machine = Machine::after(40);
    for _ in 0..100 {
        let before = machine.removed;
        machine.run(24);
        assert_eq!((machine.removed - before, machine.span()), (1, 30));
        assert_eq!(machine.put_off(), 0);
    }
}

#[test]
fn starts_with_a_clock_far_ahead_remove_nothing_early() {
    let mut machine = Machine::after(40);
    let removed = machine.removed;
    machine.error = YEAR;
    // Each start writes under the wrong clock, so the newest day is a year ahead.
    for _ in 0..20 {
        machine.off(1);
        machine.run(2);
    }
    assert!(machine.put_off() > 25);
    // Two days and a half have passed, and so many days may go.
    assert!(machine.removed - removed <= 3);
    machine.error = 0;
    machine.off(1);
    machine.run(24 * 30);
    // The days of the wrong year stay until the clock gets there.
    let clock = machine.clock();
    machine.days.retain(|day, _| day.start() <= clock);
    assert_eq!((machine.span(), machine.put_off()), (30, 0));
}

#[test]
fn starts_with_a_clock_that_is_wrong_each_time_in_another_way() {
    let mut machine = Machine::after(40);
    for error in [
        YEAR,
        3 * YEAR,
        0,
        -YEAR,
        YEAR,
        50,
        -50,
        2 * YEAR,
        0,
        50 * YEAR,
    ] {
        machine.error = error;
        machine.off(1);
        machine.run(5);
    }
}

/// As where the clock of the hardware has the time of another zone.
#[test]
fn hours_ahead_at_each_start_count_once() {
    let mut machine = Machine::after(40);
    machine.slack = DAY;
    for _ in 0..60 {
        machine.error = 20;
        machine.off(0);
        machine.run(1);
        machine.error = 0;
        machine.run(23);
    }
    machine.error = YEAR;
    machine.off(1);
    machine.run(2);
}

#[test]
fn a_clock_that_jumps_ahead_while_running_removes_nothing_early() {
    let mut machine = Machine::after(40);
    let removed = machine.removed;
    for _ in 0..5 {
        machine.error = YEAR;
        machine.run(24);
        machine.error = 0;
        machine.run(24);
    }
    assert!(machine.removed - removed <= 11);
}

/// Entries under a clock set back lie in days of apparent age once the clock is right again.
#[test]
fn days_of_a_clock_that_went_back_are_kept_as_long_as_others() {
    let mut machine = Machine::after(40);
    machine.error = -YEAR;
    machine.run(48);
    let old = machine.days.keys().next().copied().unwrap();
    machine.error = 0;
    machine.run(24 * 28);
    assert!(machine.days.contains_key(&old));
    machine.run(48);
    assert!(!machine.days.contains_key(&old));
    assert_eq!(machine.span(), 30);
}

#[test]
fn after_a_long_time_off_the_removal_goes_on() {
    let mut machine = Machine::after(40);
    let removed = machine.removed;
    machine.off(24 * 60);
    assert_eq!(machine.removed, removed);
    assert_eq!(machine.put_off(), 30);
    // The days before go one by one, the days behind at their time.
    machine.run(24 * 15);
    assert!((15..=16).contains(&(machine.removed - removed)));
    machine.run(24 * 17);
    assert_eq!((machine.span(), machine.put_off()), (30, 0));
}

#[test]
fn a_night_off_counts_and_a_weekend_off_delays() {
    let mut machine = Machine::after(40);
    for _ in 0..60 {
        machine.off(14);
        machine.run(10);
    }
    assert_eq!((machine.span(), machine.put_off()), (30, 0));
    for _ in 0..20 {
        machine.off(63);
        machine.run(7 * 24 - 63);
    }
    assert!(machine.span() <= 50, "{}", machine.span());
}

/// A kill may come at any time: what ran since the last look counts by the clock.
#[test]
fn a_process_that_is_killed_again_and_again_removes_days() {
    let mut machine = Machine::after(40);
    for _ in 0..24 * 40 {
        machine.truth += 1;
        machine.start();
        machine
            .written
            .insert(Day::of(machine.clock()), machine.truth);
        machine
            .days
            .insert(Day::of(machine.clock()), machine.truth as i64);
    }
    assert_eq!(machine.span(), 30);
}

#[test]
fn without_the_file_all_days_are_as_if_changed_now() {
    let mut machine = Machine::after(40);
    let removed = machine.removed;
    machine.ages = Ages::default();
    machine.start();
    machine.run(24 * 29);
    assert_eq!(machine.removed, removed);
    machine.run(24 * 3);
    assert_eq!((machine.span(), machine.put_off()), (30, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Clocks that are wrong by any number of times ten days, for any number of starts: `look` compares with the truth.
    #[test]
    fn no_day_goes_before_its_time(
        steps in prop::collection::vec((-40_i64..40, 0_u64..72, 0_u64..200), 1..12),
    ) {
        let mut machine = Machine::after(35);
        for (error, off, run) in steps {
            machine.error = if error % 3 == 0 { 0 } else { error * 240 };
            machine.off(off);
            machine.run(run);
        }
    }
}

/// Lets all days have been without a change for this long, at a time of the clock.
pub(crate) fn aged(kept: &Kept, clock: Timestamp, age: Duration) {
    let (days, mut ages) = (kept.days().unwrap(), Ages::default());
    let before = clock.as_millis() - u64::try_from(age.as_millis()).unwrap();
    ages.look(&days, Timestamp::from_millis(before), None);
    ages.look(&days, clock, Some(age));
    ages.save(kept.folder()).unwrap();
}

#[test]
fn ages_are_read_as_written() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("2026-11-01")).unwrap();
    assert_eq!(Ages::load(folder.path()), Ages::default());
    let kept = Kept::Days(folder.path().to_owned());
    aged(&kept, noon("2026-11-02"), DAY);
    let read = Ages::load(folder.path());
    let days = kept.days().unwrap();
    let mut expected = Ages::default();
    expected.look(&days, noon("2026-11-01"), None);
    expected.look(&days, noon("2026-11-02"), Some(DAY));
    assert_eq!(read, expected);
    for damaged in [&b""[..], b"{", b"[]", &[0; 64]] {
        fs::write(folder.path().join("ages"), damaged).unwrap();
        assert_eq!(Ages::load(folder.path()), Ages::default());
    }
    // A file that was half written.
    fs::write(
        folder.path().join("ages.new"),
        b"a longer text than the file has",
    )
    .unwrap();
    expected.save(folder.path()).unwrap();
    assert_eq!(Ages::load(folder.path()), expected);
}

fn noon(day: &str) -> Timestamp {
    day.parse::<Day>().unwrap().start() + DAY / 2
}

fn left(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names.join(" ")
}

#[test]
fn a_pass_removes_directories_and_files_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "2026-11-01",
        "2026-11-02",
        "2026-11-20",
        "other",
        "other.removed",
    ] {
        let day = folder.path().join(name);
        fs::create_dir(&day).unwrap();
        fs::write(day.join("1305.seg"), b"x").unwrap();
        fs::write(folder.path().join(format!("{name}.log")), b"x").unwrap();
    }
    let pass = |kept: Kept, keep| {
        Keeping::new(kept, keep).pass((noon("2026-11-20"), Instant::now()), &|| false);
        left(folder.path())
    };
    let kept = Kept::Days(folder.path().to_owned());
    aged(&kept, noon("2026-11-20"), 5 * DAY);
    let all = left(folder.path());
    // No day goes before its age has reached `keep`, and no day at all with `keep` of zero.
    assert_eq!(pass(kept.clone(), 6 * DAY), all);
    assert_eq!(pass(kept.clone(), Duration::ZERO), all);
    assert_eq!(
        pass(kept, 5 * DAY),
        "2026-11-01.log 2026-11-02.log 2026-11-20 2026-11-20.log ages other other.log other.removed \
         other.removed.log"
    );
    let kept = Kept::Files(folder.path().to_owned());
    aged(&kept, noon("2026-11-20"), 5 * DAY);
    assert_eq!(
        pass(kept, 5 * DAY),
        "2026-11-20 2026-11-20.log ages other other.log other.removed other.removed.log"
    );
}

#[test]
fn a_change_makes_a_day_young() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["2026-11-01", "2026-11-02"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let kept = Kept::Days(folder.path().to_owned());
    aged(&kept, noon("2026-11-20"), 5 * DAY);
    let long_ago = fs::File::open(folder.path().join("2026-11-01")).unwrap();
    long_ago.set_modified(std::time::UNIX_EPOCH - DAY).unwrap();
    let now = (noon("2026-11-20"), Instant::now());
    Keeping::new(kept, 5 * DAY).pass(now, &|| false);
    assert_eq!(left(folder.path()), "2026-11-01 2026-11-02 ages");
}

#[test]
fn the_thread_removes_at_its_start_and_ends_when_dropped() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["2026-11-01", "2026-11-20"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let kept = Kept::Days(folder.path().to_owned());
    aged(&kept, Timestamp::MAX, DAY);
    drop(Keeper::start(kept.clone(), Duration::ZERO, || Timestamp::MAX).unwrap());
    assert_eq!(kept.days().unwrap().len(), 2);
    let keeper = Keeper::start(kept.clone(), DAY, || Timestamp::MAX).unwrap();
    while kept.days().unwrap().len() > 1 {
        std::thread::yield_now();
    }
    drop(keeper);
    assert_eq!(left(folder.path()), "2026-11-20 ages");
}

fn is_sound(folder: &Path) -> bool {
    let verified = verify(folder, |_, _| {}).unwrap();
    verified.issues.list.is_empty()
}

/// A removal cut off at any step: readers see the whole day or no day, and the next start ends the removal.
#[test]
fn a_removal_that_is_cut_off_is_no_damage() {
    let mut steps = 0;
    loop {
        let folder = folder();
        let folder = folder.path();
        // Two segments of the first day, one two days later.
        written(folder, [0, 60, 172_800]);
        let kept = Kept::Days(folder.to_owned());
        let now = Timestamp::from_millis(MINUTE) + 10 * DAY;
        aged(&kept, now, DAY);
        let calls = Cell::new(0);
        let stop = || calls.replace(calls.get() + 1) >= steps;
        Keeping::new(kept.clone(), DAY).pass((now, Instant::now()), &stop);
        let is_cut_off = calls.get() > steps;
        assert_eq!(left(folder).contains("2026-11-29.removed"), is_cut_off);
        assert_eq!(numbers(folder), [172_800]);
        assert!(is_sound(folder), "{steps}");
        // Also where the settings keep everything meanwhile.
        Keeping::new(kept, Duration::ZERO).pass((now, Instant::now()), &|| false);
        assert_eq!(left(folder), "2026-12-01 ages lock");
        if !is_cut_off {
            break;
        }
        steps += 1;
    }
    // Once before each of four files.
    assert_eq!(steps, 4);
}

/// A directory in the way of a removal is removed first, also a directory with directories.
#[test]
fn a_leftover_is_in_nobodys_way() {
    let folder = folder();
    let folder = folder.path();
    written(folder, [0, 172_800]);
    let aside = folder.join("2026-11-29.removed");
    fs::create_dir_all(aside.join("1305.new")).unwrap();
    fs::write(aside.join("1305.idx"), b"an index without a segment").unwrap();
    assert_eq!(numbers(folder), [0, 172_800]);
    assert!(is_sound(folder));
    let kept = Kept::Days(folder.to_owned());
    let now = Timestamp::from_millis(MINUTE) + 10 * DAY;
    aged(&kept, now, DAY);
    Keeping::new(kept, DAY).pass((now, Instant::now()), &|| false);
    assert_eq!(left(folder), "2026-12-01 ages lock");
}
