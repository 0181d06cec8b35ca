//! A volume over accounts in memory that is opened anew by its host.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use vere_faults::accounts::MemoryAccount;
use vere_mailfs::format::{Encoding, Keys, ROWS_MAX, VolumeId, VolumeKey};
use vere_mailfs::volume::{
    AccountTerms, Create, GroupTerms, Machine, Notice, Reopen, Terms, Volume,
};
use vere_ports::files::{Call, CallId, Caller, Errno, FileTime, Handle, Inode, OpenFlags, Reply};
use vere_ports::mail_accounts::{AccountId, Fault, Request};
use vere_units::Timestamp;

use super::Means;
use crate::host::{Engine as _, Now, Step};
use crate::volume::{Live, moment, random, storage};

const CALLER: Caller = Caller { uid: 0, gid: 0 };

/// A host in invented time.
struct World {
    live: Live,
    account: MemoryAccount,
    is_away: bool,
    now: u64,
    replies: Vec<(CallId, Result<Reply, Errno>)>,
    lines: Vec<String>,
    disk: VecDeque<Box<dyn FnOnce() -> crate::host::Effect<Live> + Send>>,
    last_call: u64,
}

fn terms() -> Terms {
    Terms {
        lead_epoch: 1,
        is_new_lead: false,
        accounts: vec![AccountTerms {
            account: 1,
            encoding: Encoding::EightBit,
        }],
        lead: 1,
        metadata_accounts: 1,
        groups: vec![GroupTerms {
            group: 1,
            accounts: vec![1],
        }],
        strong: false,
        call_timeout: Duration::from_secs(60),
        sync_copies: 1,
        flush_interval: Duration::from_secs(5),
        journal_sync: Duration::from_secs(1),
        unsent_max: 64 << 20,
        cache_max: 64 << 20,
        fetches_max: 64,
        rows_max: ROWS_MAX,
        refresh: Duration::from_secs(30),
    }
}

fn at(now: u64) -> Now {
    Now {
        steady: Timestamp::from_millis(now),
        wall: FileTime {
            seconds: 1_700_000_000,
            nanoseconds: 0,
        },
    }
}

fn create() -> Create {
    Create {
        volume: VolumeId([3; 16]),
        epoch: 1,
        keys: Arc::new(Keys::derive(&VolumeKey([7; 32]))),
        machine: Machine::default(),
    }
}

impl World {
    fn new(journal: &Path) -> Self {
        let now = 1_000_000;
        let made = Volume::create(
            create(),
            terms(),
            storage(journal).unwrap(),
            random().unwrap(),
            (CALLER, moment(at(now))),
        );
        let mut world = Self {
            live: Live::new(made.unwrap()),
            account: MemoryAccount::new(),
            is_away: false,
            now,
            replies: Vec::new(),
            lines: Vec::new(),
            disk: VecDeque::new(),
            last_call: 0,
        };
        world.settle();
        world
    }

    fn allow(&mut self, journal: &Path) {
        self.live.reopens(Means {
            journal: journal.to_owned(),
            terms: Box::new(terms),
        });
    }

    fn settle(&mut self) {
        loop {
            while let Some(step) = self.live.poll() {
                self.carry_out(step);
            }
            let Some(work) = self.disk.pop_front() else {
                return;
            };
            work()(&mut self.live, at(self.now));
        }
    }

    fn carry_out(&mut self, step: Step<Live>) {
        match step {
            Step::Reply(id, reply) => self.replies.push((id, reply)),
            Step::Ask(_, _, _, Request::Watch { .. }) => {}
            Step::Ask(id, AccountId(_), _, request) => {
                let answer = match self.is_away {
                    true => Err(Fault::Unreachable("away".to_owned())),
                    false => self.account.carry_out(&request),
                };
                self.live.answered(at(self.now), id, answer);
            }
            Step::Work(work) | Step::Disk(work) => self.disk.push_back(work),
            Step::Invalidate(_) => {}
            Step::Log(_, line) => self.lines.push(line),
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += seconds * 1_000;
        self.live.wake(at(self.now));
        self.settle();
    }

    fn call(&mut self, call: Call) -> Result<Reply, Errno> {
        self.last_call += 1;
        let id = CallId(self.last_call);
        self.live.call(at(self.now), id, CALLER, call);
        for _ in 0..70 {
            self.settle();
            if let Some(place) = self.replies.iter().position(|(of, _)| *of == id) {
                return self.replies.remove(place).1;
            }
            self.pass(1);
        }
        panic!("no reply");
    }

    fn stop(&mut self) {
        self.live.volume.stop(moment(at(self.now)), Notice::Behind);
    }

    fn has(&self, text: &str) -> usize {
        let lines = self.lines.iter();
        lines.filter(|line| line.contains(text)).count()
    }
}

impl World {
    /// A file on the servers, with octets behind that no server has.
    fn unsent_file(&mut self) -> Handle {
        let flags = OpenFlags {
            read: true,
            write: true,
            ..OpenFlags::default()
        };
        let made = self.call(Call::Create {
            parent: Inode::ROOT,
            name: b"file".to_vec(),
            mode: 0o644,
            flags,
        });
        let Ok(Reply::Created(_, handle)) = made else {
            panic!("{made:?}");
        };
        self.call(Call::Fsync {
            handle,
            data_only: false,
        })
        .unwrap();
        let written = self.call(Call::Write {
            handle,
            offset: 0,
            data: "unsent".into(),
            kill_set_id: false,
        });
        assert_eq!(written, Ok(Reply::Written(6)));
        handle
    }
}

/// The host opens a stopped volume anew as soon as the lead answers, with an open file and its unsent octets; and the end of the
/// mount waits for an attempt under way.
#[test]
fn a_host_opens_a_stopped_volume_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path());
    let handle = world.unsent_file();
    world.allow(folder.path());
    world.is_away = true;
    world.stop();
    world.pass(1);
    assert_eq!(world.has("reopening: "), 1, "{:?}", world.lines);
    assert_eq!(world.has("reopening failed: "), 1, "{:?}", world.lines);
    let (line, last) = world.live.reopening_lines();
    assert_eq!(line.as_deref(), Some("as soon as the lead account answers"));
    assert_eq!(last, None);
    world.pass(300);
    assert_eq!(world.has("reopening: "), 1);
    world.is_away = false;
    // Within the time of a refresh the lead is asked, and the attempt follows.
    for _ in 0..31 {
        world.pass(1);
    }
    assert_eq!(world.has("reopened: "), 1, "{:?}", world.lines);
    let read = world.call(Call::Read {
        handle,
        offset: 0,
        size: 10,
    });
    assert_eq!(read, Ok(Reply::Octets("unsent".into())));
    world
        .call(Call::Fsync {
            handle,
            data_only: false,
        })
        .unwrap();
    assert_eq!(world.live.reopening_lines().0, None);
    assert_eq!(
        world.live.reopening_lines().1,
        Some(Reopen::Behind.to_string())
    );
    // A further stop soon waits for its pause, and the end of the mount waits for the attempt.
    world.stop();
    world.live.tend(at(world.now));
    world.settle();
    assert_eq!(world.has("reopening: "), 2, "{:?}", world.lines);
    world.now += 5_000;
    world.live.wake(at(world.now));
    let (done, all_done) = channel();
    world.live.finish(at(world.now), done);
    assert!(all_done.try_recv().is_err());
    world.settle();
    assert_eq!(world.has("reopened: "), 2, "{:?}", world.lines);
    assert_eq!(all_done.try_recv(), Ok(Ok(())));
}
