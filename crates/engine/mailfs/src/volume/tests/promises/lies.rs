//! Servers that lie: rows of listings that are absent, late, doubled or out of order, wrong UIDs of APPEND, mails of other places,
//! altered octets, wrong sizes, limits that fall, mailboxes that are set back, renumbered or damaged.
//!
//! A lie that ends harms nothing: the mount goes on, or the next one does, and nothing that a program was told is lost. A lie that
//! stays is an error: a program reads what was written, or EIO, and every call ends in time.

use super::*;
use vere_ports::mail_accounts::Listed;

/// A server that lies in so many of a hundred answers.
struct Liar {
    seeded: Seeded,
    percent: u64,
    /// Mails that so many listings lack.
    late: BTreeMap<(u16, String, u32), u64>,
}

impl Liar {
    fn below(&mut self, count: u64) -> u64 {
        self.seeded.next_u64() % count.max(1)
    }

    fn say(
        &mut self,
        accounts: &mut BTreeMap<u16, MemoryAccount>,
        account: AccountId,
        request: &Request,
        truth: Said,
    ) -> Said {
        let lies = self.below(100) < self.percent;
        match (request, truth) {
            (
                Request::List { mailbox, .. },
                Ok(Answer::Listed {
                    uid_validity,
                    uid_next,
                    mails,
                }),
            ) => {
                let mails = self.without_late(account.0, mailbox, mails);
                let truth = (uid_validity, uid_next, mails);
                let (uid_validity, uid_next, mails) = if lies { self.listed(truth) } else { truth };
                Ok(Answer::Listed {
                    uid_validity,
                    uid_next,
                    mails,
                })
            }
            (_, truth) if !lies => truth,
            (Request::Append { mailbox, .. }, Ok(Answer::Appended(place))) => {
                let again = accounts.get_mut(&account.0).unwrap();
                self.appended((account, mailbox), place, || drop(again.carry_out(request)))
            }
            (Request::Read { mailbox, .. }, Ok(Answer::Read(parts))) => {
                let other = accounts.get_mut(&account.0).unwrap();
                let other = other
                    .mailbox(mailbox)
                    .and_then(|of| of.mails.values().next());
                let other = other.cloned();
                self.read(parts, other)
            }
            (Request::Find { .. }, Ok(Answer::Found(validity, mut uids))) => {
                match self.below(3) {
                    0 => uids.clear(),
                    // A mail that is nowhere is one that the provider has lost.
                    1 if !uids.is_empty() => uids.insert(0, 1),
                    _ => uids.reverse(),
                }
                Ok(Answer::Found(validity, uids))
            }
            (Request::Quota, _) => Ok(Answer::Quota(Some((7, 3)))),
            (_, truth) => truth,
        }
    }

    fn without_late(&mut self, account: u16, mailbox: &str, mails: Vec<Listed>) -> Vec<Listed> {
        let mut shown = Vec::new();
        for mail in mails {
            match self.late.get_mut(&(account, mailbox.to_owned(), mail.uid)) {
                Some(0) | None => shown.push(mail),
                Some(left) => *left -= 1,
            }
        }
        shown
    }

    fn listed(&mut self, truth: (u32, u32, Vec<Listed>)) -> (u32, u32, Vec<Listed>) {
        let (mut uid_validity, mut uid_next, mut mails) = truth;
        let place = usize::try_from(self.below(mails.len() as u64)).unwrap();
        match self.below(8) {
            0 if !mails.is_empty() => drop(mails.remove(place)),
            1 => mails.reverse(),
            2 if !mails.is_empty() => mails.push(mails[place].clone()),
            3 => mails.iter_mut().for_each(|mail| mail.size = 0),
            4 => mails.iter_mut().for_each(|mail| mail.size = u32::MAX),
            5 if !mails.is_empty() => mails[place].subject.clear(),
            6 => uid_next = 0,
            _ => (uid_validity, uid_next, mails) = (0, 0, Vec::new()),
        }
        (uid_validity, uid_next, mails)
    }

    fn appended(
        &mut self,
        (account, mailbox): (AccountId, &str),
        place: Option<(u32, u32)>,
        again: impl FnOnce(),
    ) -> Said {
        let Some((validity, uid)) = place else {
            return Ok(Answer::Appended(place));
        };
        let told = match self.below(8) {
            0 => {
                again();
                place
            }
            1 => None,
            2 => Some((validity, uid + 1)),
            3 => Some((validity, 1)),
            4 => Some((validity + 1, uid)),
            5 => Some((validity, u32::MAX)),
            6 => return Err(Fault::Refused("NO it is stored all the same".to_owned())),
            _ => {
                let listings = 1 + self.below(3);
                self.late
                    .insert((account.0, mailbox.to_owned(), uid), listings);
                place
            }
        };
        Ok(Answer::Appended(told))
    }

    fn read(&mut self, mut parts: Vec<Bytes>, other: Option<Bytes>) -> Said {
        match self.below(7) {
            0 => return Ok(Answer::Gone),
            1 => parts.clear(),
            2 => parts.push(Bytes::from_static(b"more")),
            3 => parts
                .iter_mut()
                .for_each(|part| part.truncate(part.len() / 2)),
            4 => parts
                .iter_mut()
                .for_each(|part| *part = other.clone().unwrap_or_default()),
            5 => parts.reverse(),
            _ => {
                let octets: Vec<Vec<u8>> = parts.iter().map(|part| part.to_vec()).collect();
                parts = octets
                    .into_iter()
                    .map(|mut part| {
                        let at = usize::try_from(self.below(part.len() as u64)).unwrap();
                        if let Some(octet) = part.get_mut(at) {
                            *octet ^= 1 << self.below(8);
                        }
                        part.into()
                    })
                    .collect();
            }
        }
        Ok(Answer::Read(parts))
    }
}

/// Damage of an account that stays.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Alter,
    Delete,
    Swap,
    Renumber,
    SetBack,
    Foreign,
}

impl Run {
    fn honest(&mut self) {
        self.world.lie = Box::new(|_, _, _, truth| truth);
        self.world.fortune = Box::new(|_, _| Luck::Good);
        for account in self.world.accounts.values_mut() {
            (account.quota, account.mail_max, account.read_only) = (None, None, false);
        }
    }

    fn lying(&mut self) {
        let percent = self.pick(&[2, 10, 40]);
        let mut liar = Liar {
            seeded: Seeded(self.seeded.next_u64()),
            percent,
            late: BTreeMap::new(),
        };
        self.log(format!("{percent} % of the answers are lies"));
        self.world.lie = Box::new(move |accounts, account, request, truth| {
            liar.say(accounts, account, request, truth)
        });
    }

    /// Limits of an account fall, or rise.
    fn limit(&mut self) {
        let number = self.pick(&[1, 2]);
        let what = self.below(6);
        self.log(format!("account {number}: limit {what}"));
        let account = self.world.accounts.get_mut(&number).unwrap();
        match what {
            0 => account.read_only = true,
            1 => account.quota = Some(account.octets() + 1_000),
            2 => account.mail_max = Some(20_000),
            3 => account.tells_uids = !account.tells_uids,
            _ => {
                (account.quota, account.mail_max) = (None, None);
                account.read_only = false;
            }
        }
    }

    /// A program reads what was written, or is told that nothing can be read.
    fn read(&mut self) -> Result<(), Stop> {
        let Some(path) = self.known() else {
            return Ok(());
        };
        let inode = self.inode(path)?;
        let content = self.read_whole(inode)?;
        match content {
            Ok(content) if Some(&content) == self.model.content(path) => Ok(()),
            Ok(content) => Err(format!("{path}: {} wrong octets", content.len()).into()),
            Err(Errno::Io) => Ok(()),
            Err(error) => Err(format!("{path}: {error}").into()),
        }
    }

    fn lie_and_act(&mut self) -> Result<(), Stop> {
        let acted = match self.below(10) {
            0 => {
                self.limit();
                Ok(())
            }
            1..=3 => self.read(),
            _ => self.act(),
        };
        match acted {
            Err(Stop::Failed) => Ok(()),
            other => other,
        }
    }

    fn live_among_liars(&mut self) -> Result<(), Wrong> {
        self.lying();
        self.may_fail = true;
        let calls = 1 + self.below(CALLS * 2);
        for _ in 0..calls {
            self.lie_and_act().map_err(Stop::wrong)?;
        }
        if self.below(3) == 0 {
            self.umount().map(drop).map_err(Stop::wrong)?;
        }
        self.log("the end");
        self.fsyncs.clear();
        self.world.kill();
        if self.below(2) == 0 || !self.mounts_among_liars() {
            self.world.kill();
            self.honest();
            self.world
                .mount()
                .map_err(|error| format!("mount: {error}"))?;
        }
        self.honest();
        if let Some(notice) = self.world.volume().read_only() {
            let text = notice.to_string();
            self.log(format!("read-only after a mount among liars: {text}"));
            self.world.kill();
            self.world
                .mount()
                .map_err(|error| format!("mount: {error}"))?;
        }
        // Accounts rest after faults.
        for _ in 0..5 {
            self.world.pass(Duration::from_secs(200));
        }
        // Rows have the places that servers told.
        let report = self.world.check(true, true);
        self.log(format!("{report:?}"));
        self.may_fail = false;
        self.judge(self.answered)
    }

    fn mounts_among_liars(&mut self) -> bool {
        let mounted = self.world.mount();
        self.log(format!("a mount among liars: {mounted:?}"));
        mounted.is_ok()
    }

    fn damage(&mut self, old: &BTreeMap<u16, MemoryAccount>) {
        let damage = self.pick(&[
            Damage::Alter,
            Damage::Delete,
            Damage::Swap,
            Damage::Renumber,
            Damage::SetBack,
            Damage::Foreign,
        ]);
        let number = self.pick(&[1, 2]);
        let names: Vec<String> = self.world.accounts[&number]
            .names()
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            return;
        }
        let name = &names[self.below(names.len())];
        let dice = self.seeded.next_u64();
        self.log(format!("account {number}, {name}: {damage:?}"));
        let account = self.world.accounts.get_mut(&number).unwrap();
        let mailbox = account.mailbox(name).unwrap();
        let uids: Vec<u32> = mailbox.mails.keys().copied().collect();
        let Some(last) = uids.last().copied() else {
            return;
        };
        // The newest mails are those that matter.
        let near = uids.len().min(6) as u64;
        let uid = uids[uids.len() - 1 - usize::try_from(dice % near).unwrap()];
        match damage {
            Damage::Alter => {
                let mut mail = mailbox.mails[&uid].to_vec();
                let at = usize::try_from(dice >> 8).unwrap() % mail.len();
                mail[at] ^= 1;
                mailbox.mails.insert(uid, mail.into());
            }
            Damage::Delete => drop(mailbox.mails.remove(&uid)),
            Damage::Swap => {
                let (one, other) = (mailbox.mails[&uid].clone(), mailbox.mails[&last].clone());
                mailbox.mails.insert(uid, other);
                mailbox.mails.insert(last, one);
            }
            Damage::Renumber => {
                mailbox.uid_validity += 100;
                let mails = std::mem::take(&mut mailbox.mails).into_values();
                mailbox.mails = (1..).zip(mails).collect();
                mailbox.uid_next = u32::try_from(mailbox.mails.len()).unwrap() + 1;
            }
            Damage::SetBack => {
                let mut old = old[&number].clone();
                if let Some(old) = old.mailbox(name) {
                    *mailbox = old.clone();
                }
            }
            Damage::Foreign => {
                mailbox.mails.insert(
                    last + 1,
                    Bytes::from_static(b"Subject: hello\r\n\r\nhello\r\n"),
                );
                mailbox.uid_next = last + 2;
            }
        }
    }

    fn live_with_damage(&mut self) -> Result<(), Wrong> {
        for _ in 0..=self.below(CALLS) {
            self.act().map_err(Stop::wrong)?;
        }
        let old = self.world.accounts.clone();
        for _ in 0..=self.below(CALLS) {
            self.act().map_err(Stop::wrong)?;
        }
        self.may_fail = true;
        if self.below(2) == 0 {
            self.damage(&old);
        }
        for _ in 0..=self.below(CALLS) {
            self.lie_and_act().map_err(Stop::wrong)?;
        }
        let ended = self.umount().map_err(Stop::wrong)?;
        self.log(format!("umount: {ended}"));
        self.world.kill();
        self.honest();
        self.damage(&old);
        for keeps_folder in [true, false] {
            if keeps_folder {
                self.world.kill();
            } else {
                self.world.lose_folder();
            }
            match self.world.mount() {
                Ok(()) => self.read_all(keeps_folder)?,
                Err(error) => self.log(format!("mount: {error}")),
            }
        }
        Ok(())
    }

    /// Every file has content that was written, or none that can be read; with the folder, the last one.
    fn read_all(&mut self, keeps_folder: bool) -> Result<(), Wrong> {
        let seen = match self.tree() {
            Ok(seen) => seen,
            Err(Stop::Failed) => return Ok(()),
            Err(stop) => return Err(stop.wrong()),
        };
        let last = self.history.last().unwrap().seen();
        let ever: std::collections::HashSet<Bytes> = self
            .history
            .iter()
            .flat_map(|state| state.seen().into_values())
            .collect();
        for (path, content) in &seen {
            let is_right = match keeps_folder {
                true => last.get(path) == Some(content),
                false => ever.contains(content),
            };
            if !is_right {
                let octets = content.len();
                return Err(format!(
                    "{path}: {octets} octets that are not the file's ({keeps_folder})"
                ));
            }
        }
        Ok(())
    }
}

pub(super) fn run_among_liars(seed: u64) -> Result<(), Wrong> {
    let mut run = Run::new(seed ^ 0x11a2);
    let lived = (0..3).try_for_each(|_| run.live_among_liars());
    let ended = lived.and_then(|()| run.finish());
    run.told(ended)
}

fn run_with_damage(seed: u64) -> Result<(), Wrong> {
    let mut run = Run::new(seed ^ 0xda3a);
    let ended = run.live_with_damage();
    run.told(ended)
}

/// A file whose place a server has told wrongly is made good by a check.
#[test]
fn lies_that_end_lose_nothing() {
    hold(300, run_among_liars);
}

#[test]
fn lies_that_stay_are_errors() {
    hold(300, run_with_damage);
}
