//! A volume over a disk that loses, tears and fails: the power goes at any write, rename, sync or removal, syncs fail, the disk
//! fills up, mails are lost on the way, and the next mount shows a state that the promises allow.

use super::*;

/// What hurts the disk in a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hurt {
    /// The power goes at some change, sync, rename or removal.
    Off,
    /// A change or a sync fails, and the disk goes on.
    Step,
    /// Syncs fail for a while, and lose what they were to bring to the disk.
    Syncs,
    /// The disk fills up.
    Full,
    /// Nothing can be read.
    Reads,
    Nothing,
}

/// The end of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Power,
    Kill,
    Umount,
}

impl Run {
    /// A life, from a mount to the next one.
    fn live(&mut self) -> Result<(), Wrong> {
        let hurt = self.pick(&[
            Hurt::Off,
            Hurt::Off,
            Hurt::Off,
            Hurt::Step,
            Hurt::Syncs,
            Hurt::Full,
            Hurt::Reads,
            Hurt::Nothing,
        ]);
        self.hurt(hurt);
        let calls = 1 + self.below(CALLS * 2);
        let mut end = self.pick(&[End::Power, End::Kill, End::Umount]);
        for _ in 0..calls {
            match self.happen(hurt) {
                Ok(()) => {}
                Err(Stop::Off) => {
                    end = End::Power;
                    break;
                }
                Err(stop) => return Err(stop.wrong()),
            }
        }
        if end == End::Umount {
            match self.umount() {
                Ok(true) => {}
                Ok(false) => end = End::Kill,
                Err(Stop::Off) => end = End::Power,
                Err(stop) => return Err(stop.wrong()),
            }
        }
        self.end(end)
    }

    fn hurt(&mut self, hurt: Hurt) {
        let steps = self.world.disk.steps();
        let at = steps + 1 + self.below(120) as u64;
        match hurt {
            Hurt::Off => self.world.disk.stop_at(at),
            Hurt::Step => self.world.disk.fail_at(at),
            Hurt::Reads => {
                self.world.disk.fail_reads(true);
                self.world.cache.fail_reads(true);
            }
            Hurt::Syncs | Hurt::Full | Hurt::Nothing => {}
        }
        self.log(format!("a life with {hurt:?} at {at}"));
        self.has_failed = hurt == Hurt::Step;
        let mut luck = Seeded(self.seeded.next_u64());
        let is_bad = self.below(2) == 0;
        self.world.fortune = Box::new(move |_, _| match luck.next_u64() % 100 {
            0..=5 if is_bad => Luck::Lost,
            6..=11 if is_bad => Luck::Unanswered,
            _ => Luck::Good,
        });
    }

    /// One thing happens.
    fn happen(&mut self, hurt: Hurt) -> Result<(), Stop> {
        match self.below(30) {
            0 if hurt == Hurt::Syncs => {
                self.has_failed = true;
                self.log("syncs fail");
                self.world.disk.fail_syncs(true);
                Ok(())
            }
            0 if hurt == Hurt::Full => {
                self.has_failed = true;
                let used = self.world.disk.used();
                let room = self.below(3_000) as u64;
                self.log(format!("room for {room} octets"));
                self.world.disk.set_capacity(Some(used + room));
                Ok(())
            }
            1 => {
                self.world.disk.fail_syncs(false);
                self.world.disk.set_capacity(None);
                self.arrive();
                Ok(())
            }
            _ => self.act(),
        }
    }

    /// A mail arrives that was on the way at the end of an earlier life.
    fn arrive(&mut self) {
        if !self.late.is_empty() {
            let at = self.below(self.late.len());
            let (account, request) = self.late.remove(at);
            let account = self.world.accounts.get_mut(&account.0).unwrap();
            let _ = account.carry_out(&request);
        }
    }

    /// The mount ends, and the next one begins.
    fn end(&mut self, end: End) -> Result<(), Wrong> {
        self.log(format!("the end: {end:?}"));
        for (_, account, request) in std::mem::take(&mut self.world.waiting) {
            let is_append = matches!(request, Request::Append { .. });
            match self.below(3) {
                0 => {
                    let account = self.world.accounts.get_mut(&account.0).unwrap();
                    let _ = account.carry_out(&request);
                }
                1 if is_append => self.late.push((account, request)),
                _ => {}
            }
        }
        self.world.kill();
        self.fsyncs.clear();
        self.world.disk.set_capacity(None);
        let least = match end {
            End::Power => self.synced,
            End::Kill | End::Umount => self.answered.max(self.synced),
        };
        match end {
            End::Power => self.power_cut(),
            End::Kill | End::Umount => {
                self.world.disk.stop_at(u64::MAX);
                self.world.disk.fail_at(0);
                self.world.disk.fail_syncs(false);
                self.world.disk.fail_reads(false);
                self.world.cache.fail_reads(false);
            }
        }
        let had_power = self.mount()?;
        self.judge(if had_power { least } else { self.synced })
    }

    fn power_cut(&mut self) {
        let mut fate = Seeded(self.seeded.next_u64());
        self.world.disk.crash(&mut fate);
        self.world.cache.crash(&mut fate);
    }

    /// A mount, which may end with the power, and is tried again.
    /// Returns whether the power was there.
    fn mount(&mut self) -> Result<bool, Wrong> {
        let mut had_power = true;
        self.world.fortune = Box::new(|_, _| Luck::Good);
        if self.below(4) == 0 {
            let at = self.world.disk.steps() + 1 + self.below(8) as u64;
            self.log(format!("a mount until {at}"));
            self.world.disk.stop_at(at);
            let mounted = self.world.mount();
            if self.world.disk.is_off() {
                self.world.kill();
                self.power_cut();
                had_power = false;
            } else if let Err(error) = mounted {
                return Err(format!("mount: {error}"));
            } else {
                self.world.kill();
                self.world.disk.stop_at(u64::MAX);
            }
        }
        self.world
            .mount()
            .map_err(|error| format!("mount: {error}"))?;
        self.world.volume().journal.limit_segments(SEGMENT);
        Ok(had_power)
    }
}

pub(super) fn run(seed: u64) -> Result<(), Wrong> {
    let mut run = Run::new(seed);
    let lived = (0..LIVES).try_for_each(|_| run.live());
    let ended = lived.and_then(|()| run.finish());
    run.told(ended)
}

/// Seeds of a run.
const SEEDS: u64 = 300;

#[test]
fn a_torn_disk_loses_nothing_that_was_promised() {
    hold(SEEDS, run);
}
