//! Every fault of a provider, beside an account with a copy and alone: programs read what was written or EIO, every call ends in
//! time, the mount ends in time, and nothing that was accepted is lost when the fault is over.

use super::*;
use vere_faults::accounts::MemoryMailbox;

const ROOT: Inode = Inode::ROOT;
/// `call_timeout`, and a step of time.
const LONGEST: u64 = 61_000;

/// A fault that begins at an account.
struct Trouble {
    name: &'static str,
    begin: fn(&mut World, u16),
    /// Whether mails are lost for good.
    loses: bool,
    /// Whether answers are no facts.
    lies: bool,
}

const ALL: &[Trouble] = &[
    Trouble {
        name: "unreachable",
        begin: |world, of| {
            world.fortune = Box::new(move |account, _| match account.0 == of {
                true => Luck::Lost,
                false => Luck::Good,
            });
        },
        loses: false,
        lies: false,
    },
    Trouble {
        name: "no answers",
        begin: |world, of| {
            world.fortune = Box::new(move |account, _| match account.0 == of {
                true => Luck::Unanswered,
                false => Luck::Good,
            });
        },
        loses: false,
        lies: false,
    },
    Trouble {
        name: "read-only",
        begin: |world, of| world.account(of).read_only = true,
        loses: false,
        lies: false,
    },
    Trouble {
        name: "over quota",
        begin: |world, of| {
            let octets = world.account(of).octets();
            world.account(of).quota = Some(octets);
        },
        loses: false,
        lies: false,
    },
    Trouble {
        name: "size limit lowered",
        begin: |world, of| world.account(of).mail_max = Some(500),
        loses: false,
        lies: false,
    },
    Trouble {
        name: "deleted",
        begin: |world, of| world.packs(of).mails.clear(),
        loses: true,
        lies: false,
    },
    Trouble {
        name: "altered",
        begin: |world, of| {
            for mail in world.packs(of).mails.values_mut() {
                let mut octets = mail.to_vec();
                let middle = octets.len() / 2;
                octets[middle] ^= 1;
                *mail = octets.into();
            }
        },
        loses: true,
        lies: false,
    },
    Trouble {
        name: "duplicated",
        begin: |world, of| {
            let packs = world.packs(of);
            for mail in packs.mails.values().cloned().collect::<Vec<_>>() {
                packs.mails.insert(packs.uid_next, mail);
                packs.uid_next += 1;
            }
        },
        loses: false,
        lies: false,
    },
    Trouble {
        name: "delivered again",
        begin: |world, of| {
            let packs = world.packs(of);
            for mail in std::mem::take(&mut packs.mails).into_values() {
                packs.mails.insert(packs.uid_next, mail);
                packs.uid_next += 1;
            }
        },
        loses: false,
        lies: false,
    },
    Trouble {
        name: "exchanged",
        begin: |world, of| {
            let packs = world.packs(of);
            let uids: Vec<u32> = packs.mails.keys().copied().collect();
            let mails = std::mem::take(&mut packs.mails).into_values();
            packs.mails = uids.into_iter().rev().zip(mails).collect();
        },
        loses: false,
        lies: false,
    },
    Trouble {
        name: "UIDVALIDITY changed",
        begin: |world, of| {
            let packs = world.packs(of);
            packs.uid_validity += 100;
            let mails = std::mem::take(&mut packs.mails).into_values();
            packs.mails = (7..).zip(mails).collect();
            packs.uid_next = 1_000;
        },
        loses: false,
        lies: false,
    },
    Trouble {
        name: "hostile answers",
        begin: |world, of| {
            let mut number = 0;
            world.lie = Box::new(move |_, account, _, truth| {
                number += 1;
                match account.0 == of {
                    true => nonsense(number),
                    false => truth,
                }
            });
        },
        loses: false,
        lies: true,
    },
];

/// Answers that no request has asked for, and answers without sense.
fn nonsense(number: usize) -> Said {
    match number % 9 {
        0 => Ok(Answer::Changed),
        1 => Ok(Answer::Read(Vec::new())),
        2 => Ok(Answer::Read(vec![Bytes::from_static(b"x"); 5])),
        3 => Ok(Answer::Found(9, vec![7, u32::MAX])),
        4 => Ok(Answer::Appended(None)),
        5 => Ok(Answer::Gone),
        6 => Err(Fault::Refused(String::new())),
        7 => Ok(Answer::Mailboxes(vec!["x".repeat(9)])),
        _ => Ok(Answer::Listed {
            uid_validity: 0,
            uid_next: u32::MAX,
            mails: Vec::new(),
        }),
    }
}

impl World {
    fn account(&mut self, number: u16) -> &mut MemoryAccount {
        self.accounts.get_mut(&number).unwrap()
    }

    fn packs(&mut self, number: u16) -> &mut MemoryMailbox {
        self.account(number).mailbox("data-0001").unwrap()
    }

    /// The fault is over, and accounts have rested.
    fn heal(&mut self) {
        self.fortune = Box::new(|_, _| Luck::Good);
        self.lie = Box::new(|_, _, _, truth| truth);
        for account in self.accounts.values_mut() {
            (account.quota, account.mail_max, account.read_only) = (None, None, false);
        }
    }

    /// Does something that may not take longer than a call.
    fn in_time<T>(&mut self, what: &str, act: impl FnOnce(&mut Self) -> T) -> T {
        let begun = self.now;
        let done = act(self);
        let took = self.now - begun;
        assert!(took <= LONGEST, "{what}: {took} ms");
        done
    }
}

/// A volume with a long file, read by nobody yet.
fn filled(mut world: World) -> (World, Vec<u8>) {
    let data = noise(31, 3 << 20);
    world.put(ROOT, "before", &data);
    world.sync().unwrap();
    world.kill();
    world.cache = MemoryDisk::default();
    world.mount().unwrap();
    (world, data)
}

/// A new file of several packs, with the result of its fsync.
fn write_more(world: &mut World, data: &[u8]) -> Result<Reply, Errno> {
    let (_, handle) = world.create(ROOT, "meanwhile");
    for (number, part) in data.chunks(1 << 20).enumerate() {
        world.write(handle, (number << 20) as u64, part);
    }
    let synced = world.fsync(handle);
    world.close(handle);
    synced
}

#[test]
fn beside_a_copy_no_fault_of_an_account_is_felt() {
    for trouble in ALL {
        let name = trouble.name;
        let mut world = World::new(3);
        world.terms.groups = vec![GroupTerms {
            group: 1,
            accounts: vec![2, 3],
        }];
        world.kill();
        world.mount().unwrap();
        let (mut world, before) = filled(world);
        (trouble.begin)(&mut world, 2);
        let read = world.in_time(name, |world| world.get(ROOT, "before"));
        assert!(read.unwrap() == before, "{name}");
        let more = noise(32, 2 << 20);
        let synced = world.in_time(name, |world| write_more(world, &more));
        assert_eq!(synced, Ok(Reply::Done), "{name}");
        let ended = world.in_time(name, World::finish);
        assert_eq!(ended, Ok(Reply::Done), "{name}");
        world.lose_folder();
        world.heal();
        world.mount().unwrap();
        assert!(world.get(ROOT, "before").unwrap() == before, "{name}");
        assert!(world.get(ROOT, "meanwhile").unwrap() == more, "{name}");
        // The account has every copy again, and the other one is not needed.
        world.check(true, true);
        for _ in 0..5 {
            world.pass(Duration::from_secs(200));
        }
        let report = world.check(true, false);
        assert!(report.is_clean(), "{name}: {report:?}");
        world.sync().unwrap();
        world.lose_folder();
        world.fortune = Box::new(|account, _| match account.0 {
            3 => Luck::Lost,
            _ => Luck::Good,
        });
        world.mount().unwrap();
        assert!(world.get(ROOT, "before").unwrap() == before, "{name}");
        assert!(world.get(ROOT, "meanwhile").unwrap() == more, "{name}");
    }
}

#[test]
fn a_single_account_with_a_fault_costs_no_accepted_change() {
    for trouble in ALL {
        let name = trouble.name;
        let (mut world, before) = filled(World::new(1));
        (trouble.begin)(&mut world, 1);
        let notices = world.notices.len();
        match world.in_time(name, |world| world.get(ROOT, "before")) {
            Ok(read) => assert!(read == before, "{name}"),
            Err(errno) => {
                assert_eq!(errno, Errno::Io, "{name}");
                let mut told = world.notices[notices..].iter();
                let is_told = told.any(|notice| {
                    matches!(notice, Notice::Unreadable { .. } | Notice::Account { .. })
                });
                assert!(is_told, "{name}: {:?}", world.notices);
            }
        }
        let more = noise(33, 2 << 20);
        let synced = world.in_time(name, |world| write_more(world, &more));
        let ended = world.in_time(name, World::finish);
        assert!(
            matches!(synced, Ok(Reply::Done) | Err(Errno::Io)) && ended.is_ok() >= synced.is_ok(),
            "{name}: {synced:?}, {ended:?}"
        );
        // What was accepted is in the journal, or on the servers.
        world.kill();
        world.heal();
        world.mount().unwrap();
        match world.get(ROOT, "meanwhile") {
            Ok(read) => assert!(read == more, "{name}"),
            // A server that lies has told a place, and a check corrects the place.
            Err(errno) => assert!(trouble.lies && errno == Errno::Io, "{name}: {errno}"),
        }
        for _ in 0..5 {
            world.pass(Duration::from_secs(200));
        }
        let report = world.check(true, true);
        assert_eq!(world.sync(), Ok(Reply::Done), "{name}: {report:?}");
        world.lose_folder();
        world.mount().unwrap();
        assert!(world.get(ROOT, "meanwhile").unwrap() == more, "{name}");
        match world.get(ROOT, "before") {
            Ok(read) => assert!(read == before, "{name}"),
            Err(errno) => assert!(trouble.loses && errno == Errno::Io, "{name}: {errno}"),
        }
    }
}

/// The journal does not grow while nothing has a place, and changes that make room go on.
#[test]
fn writes_are_refused_while_the_lead_or_every_account_with_packs_is_read_only() {
    for read_only in [1, 2] {
        let mut world = World::new(2);
        world.terms.groups.remove(0);
        world.kill();
        world.mount().unwrap();
        world.put(ROOT, "before", &noise(1, 200_000));
        world.put(ROOT, "gone", b"x");
        world.sync().unwrap();
        world.account(read_only).read_only = true;
        assert_eq!(write_more(&mut world, &noise(2, 500_000)), Err(Errno::Io));
        let (parent, name) = (ROOT, b"folder".to_vec());
        let mode = 0o755;
        let folder = Call::MakeFolder { parent, name, mode };
        assert_eq!(world.call(folder.clone()), Err(Errno::RoFs), "{read_only}");
        let name = b"gone".to_vec();
        assert_eq!(world.call(Call::Unlink { parent, name }), Ok(Reply::Done));
        assert!(world.get(ROOT, "before").unwrap() == noise(1, 200_000));
        world.heal();
        for _ in 0..5 {
            world.pass(Duration::from_secs(200));
        }
        assert!(matches!(world.call(folder), Ok(Reply::Entry(_))));
        world.sync().unwrap();
        world.lose_folder();
        world.mount().unwrap();
        assert!(world.get(ROOT, "meanwhile").unwrap() == noise(2, 500_000));
        assert_eq!(world.lookup(ROOT, "gone").err(), Some(Errno::NoEnt));
    }
}
