//! Several mounts over the same accounts.

use super::*;
use crate::volume::{Local, Reopen};

pub(super) const ROOT: Inode = Inode::ROOT;

/// A mount, its machine, and what is under way.
pub(super) struct Mount {
    pub(super) disk: MemoryDisk,
    pub(super) volume: Option<Volume<MemoryDisk>>,
    pub(super) replies: BTreeMap<CallId, Result<Reply, Errno>>,
    pub(super) notices: Vec<Notice>,
    pub(super) invalidated: usize,
    /// Nothing reaches the accounts; requests wait.
    pub(super) is_held: bool,
    /// Reads of pages wait.
    pub(super) holds_pages: bool,
    machine: String,
    waiting: VecDeque<(RequestId, AccountId, Request)>,
    /// A watch, and where the log ended then.
    watching: Option<(RequestId, u32)>,
    last_call: u64,
}

/// Whether a request fails.
pub(super) type Fails = Box<dyn Fn(&Request) -> bool>;

/// Accounts and mounts.
pub(super) struct Several {
    pub(super) accounts: BTreeMap<u16, MemoryAccount>,
    pub(super) mounts: Vec<Mount>,
    pub(super) now: u64,
    pub(super) terms: Terms,
    pub(super) luck: Box<dyn FnMut() -> Luck>,
    /// A mail that the next listing of an opening lacks, though the listing should have it.
    pub(super) late: Option<u32>,
    /// Listings of openings.
    pub(super) listings: usize,
    /// Requests of mounts that fail.
    pub(super) fault: Option<Fails>,
    starts: u64,
}

fn reads_page(request: &Request) -> bool {
    matches!(request, Request::Read { mailbox, .. } if mailbox == "pages")
}

pub(super) fn create(machine: &str) -> Create {
    Create {
        machine: Machine {
            id: [9; 16],
            name: machine.to_owned(),
        },
        ..of()
    }
}

impl Several {
    pub(super) fn new(mounts: usize) -> Self {
        let mut several = Self {
            accounts: (1..=2).map(|of| (of, MemoryAccount::new())).collect(),
            mounts: Vec::new(),
            now: 1_795_916_520_000,
            terms: terms(2),
            luck: Box::new(|| Luck::Good),
            late: None,
            listings: 0,
            fault: None,
            starts: 1,
        };
        for number in 0..mounts {
            several.mounts.push(Mount {
                disk: MemoryDisk::default(),
                volume: None,
                replies: BTreeMap::new(),
                notices: Vec::new(),
                invalidated: 0,
                is_held: false,
                holds_pages: false,
                machine: format!("m{number}"),
                waiting: VecDeque::new(),
                watching: None,
                last_call: 0,
            });
        }
        let disk = several.mounts[0].disk.clone();
        let made = Volume::create(
            create("m0"),
            several.terms.clone(),
            disk,
            [1; 16],
            (CALLER, several.moment()),
        );
        several.mounts[0].volume = Some(made.unwrap());
        several.settle();
        for number in 1..mounts {
            several.mount(number).unwrap();
        }
        several.settle();
        several
    }

    pub(super) fn moment(&self) -> Moment {
        Moment {
            steady: Timestamp::from_millis(self.now),
            wall: FileTime {
                seconds: (self.now / 1_000).cast_signed(),
                nanoseconds: 0,
            },
        }
    }

    pub(super) fn mount(&mut self, number: usize) -> Result<(), OpenError> {
        let of = create(&self.mounts[number].machine);
        self.mount_by(number, of, None)
    }

    /// Mounts, and brings changes onto the newest state whose base is gone.
    pub(super) fn mount_stranded(
        &mut self,
        number: usize,
        stranded: Stranded,
    ) -> Result<(), OpenError> {
        let of = create(&self.mounts[number].machine);
        self.mount_by(number, of, Some(stranded))
    }

    pub(super) fn mount_by(
        &mut self,
        number: usize,
        of: Create,
        stranded: Option<Stranded>,
    ) -> Result<(), OpenError> {
        self.starts += 1;
        let mut random = [0; 16];
        random[..8].copy_from_slice(&self.starts.to_le_bytes());
        let mount = &self.mounts[number];
        let (terms, disk) = (self.terms.clone(), mount.disk.clone());
        let opening = match stranded {
            Some(stranded) => Opening::bring_in(terms, of, disk, random, stranded),
            None => Opening::new(terms, of, disk, random),
        };
        let opening = self.read_for(number, opening);
        let now = self.moment();
        self.mounts[number].volume = Some(Volume::open(opening, now)?);
        Ok(())
    }

    /// Opens the volume of a mount anew in its place, as a host does. Nothing of the old volume's requests is answered.
    pub(super) fn reopen(&mut self, number: usize) -> Result<Reopen, OpenError> {
        let now = self.moment();
        let begun = self.volume(number).begin_reopening(now);
        let (reason, of) = begun.expect("a reason for another opening");
        self.carry_out_steps(number);
        self.mounts[number].waiting.clear();
        self.mounts[number].watching = None;
        let mut stranded = None;
        loop {
            self.starts += 1;
            let mut random = [0; 16];
            random[..8].copy_from_slice(&self.starts.to_le_bytes());
            let (terms, of) = (self.terms.clone(), of.clone());
            let disk = self.mounts[number].disk.clone();
            let opening = match stranded {
                Some(stranded) => Opening::bring_in(terms, of, disk, random, stranded),
                None => Opening::new(terms, of, disk, random),
            };
            let opening = self.read_for(number, opening);
            let now = self.moment();
            match Volume::reopen(opening, self.volume(number), now) {
                Ok(volume) => {
                    *self.volume(number) = volume;
                    return Ok(reason);
                }
                Err(OpenError::Overtaken) if stranded.is_none() => {
                    stranded = Some(Stranded::Overtaken);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Has an opening of a mount read all its needs.
    fn read_for(&mut self, number: usize, mut opening: Opening<MemoryDisk>) -> Opening<MemoryDisk> {
        while !opening.is_over() {
            match opening.poll() {
                Some(OpenStep::Ask(id, account, _, request)) => {
                    let account = self.accounts.get_mut(&account.0).unwrap();
                    let mut answer = account.carry_out(&request);
                    let is_log =
                        matches!(&request, Request::List { mailbox, .. } if mailbox == "log");
                    if let Ok(Answer::Listed { mails, .. }) = &mut answer
                        && is_log
                    {
                        self.listings += 1;
                        let late = self.late.take_if(|late| {
                            let mut mails = mails.iter();
                            mails.any(|mail| mail.uid == *late)
                        });
                        mails.retain(|mail| Some(mail.uid) != late);
                    }
                    opening.answered(id, answer);
                }
                Some(OpenStep::Log(notice)) => self.mounts[number].notices.push(notice),
                None => panic!("the opening stands still"),
            }
        }
        opening
    }

    /// Mounts by the local disk alone.
    pub(super) fn mount_locally(&mut self, number: usize) -> Result<(), OpenError> {
        self.starts += 1;
        let mut random = [0; 16];
        random[..8].copy_from_slice(&self.starts.to_le_bytes());
        let mount = &self.mounts[number];
        let of = create(&mount.machine);
        let (terms, disk) = (self.terms.clone(), mount.disk.clone());
        let opening = Opening::local(terms, of, (disk, random), (Local::Fresh, 0));
        if !opening.is_local() {
            return Err(OpenError::Unsure);
        }
        let now = self.moment();
        self.mounts[number].volume = Some(Volume::open(opening, now)?);
        Ok(())
    }

    pub(super) fn kill(&mut self, number: usize) {
        let mount = &mut self.mounts[number];
        mount.volume = None;
        mount.waiting.clear();
        mount.watching = None;
        mount.replies.clear();
    }

    /// Every request of a mount that waits is carried out, and no answer arrives.
    pub(super) fn send_unanswered(&mut self, number: usize) {
        self.carry_out_steps(number);
        for (_, account, request) in std::mem::take(&mut self.mounts[number].waiting) {
            let account = self.accounts.get_mut(&account.0).unwrap();
            let _ = account.carry_out(&request);
        }
    }

    /// A mount ends with mails on the way to accounts, which arrive later.
    pub(super) fn kill_with_mails(&mut self, number: usize) -> Vec<(AccountId, Request)> {
        self.carry_out_steps(number);
        let waiting = std::mem::take(&mut self.mounts[number].waiting);
        self.kill(number);
        let mails = waiting
            .into_iter()
            .map(|(_, account, mail)| (account, mail));
        mails
            .filter(|(_, request)| matches!(request, Request::Append { .. }))
            .collect()
    }

    /// Mails arrive that were on the way when a mount ended.
    pub(super) fn arrive(&mut self, mails: Vec<(AccountId, Request)>) {
        for (account, mail) in mails {
            let account = self.accounts.get_mut(&account.0).unwrap();
            account.carry_out(&mail).unwrap();
        }
    }

    /// Every request of a mount that waits is carried out, and the connections end before the answers.
    pub(super) fn cut(&mut self, number: usize) {
        self.carry_out_steps(number);
        let now = self.moment();
        for (id, account, request) in std::mem::take(&mut self.mounts[number].waiting) {
            let account = self.accounts.get_mut(&account.0).unwrap();
            let _ = account.carry_out(&request);
            let fault = Fault::Unreachable("cut".to_owned());
            self.volume(number).answered(now, id, Err(fault));
        }
    }

    /// A mount goes on alone until a mail is to be appended.
    pub(super) fn until_append(&mut self, number: usize) {
        for _ in 0..1_000 {
            self.carry_out_steps(number);
            if self.has_append(number) {
                return;
            }
            if !self.step(number) {
                self.now += 1_000;
                let now = self.moment();
                self.volume(number).wake(now);
            }
        }
        panic!("nothing is appended");
    }

    fn has_append(&self, number: usize) -> bool {
        let mut waiting = self.mounts[number].waiting.iter();
        waiting.any(|(_, _, request)| matches!(request, Request::Append { .. }))
    }

    pub(super) fn volume(&mut self, number: usize) -> &mut Volume<MemoryDisk> {
        self.mounts[number].volume.as_mut().unwrap()
    }

    pub(super) fn log_end(&mut self) -> u32 {
        let log = self.accounts.get_mut(&1).and_then(|of| of.mailbox("log"));
        log.map_or(0, |log| log.uid_next)
    }

    /// One step of a mount. Returns whether anything was done.
    pub(super) fn step(&mut self, number: usize) -> bool {
        if self.mounts[number].volume.is_none() {
            return false;
        }
        let did = self.carry_out_steps(number);
        let mount = &mut self.mounts[number];
        if mount.is_held {
            return did;
        }
        let holds_pages = mount.holds_pages;
        let may_go = |request: &Request| !(holds_pages && reads_page(request));
        let mut waiting = mount.waiting.iter();
        let place = waiting.position(|(_, _, request)| may_go(request));
        if let Some((id, account, request)) = place.and_then(|at| mount.waiting.remove(at)) {
            let fails = self.fault.as_ref().is_some_and(|fails| fails(&request));
            let answer = match (self.luck)() {
                _ if fails => Err(Fault::Refused("no".to_owned())),
                Luck::Lost => Err(Fault::Unreachable("cut".to_owned())),
                luck => {
                    let account = self.accounts.get_mut(&account.0).unwrap();
                    let answer = account.carry_out(&request);
                    match luck {
                        Luck::Good => answer,
                        _ => Err(Fault::Unreachable("cut".to_owned())),
                    }
                }
            };
            let now = self.moment();
            self.volume(number).answered(now, id, answer);
            return true;
        }
        let end = self.log_end();
        if let Some((id, before)) = self.mounts[number].watching
            && before != end
        {
            self.mounts[number].watching = None;
            let now = self.moment();
            self.volume(number).answered(now, id, Ok(Answer::Changed));
            return true;
        }
        did
    }

    fn carry_out_steps(&mut self, number: usize) -> bool {
        let now = self.moment();
        let end = self.log_end();
        let mut did = false;
        let mount = &mut self.mounts[number];
        while let Some(step) = mount.volume.as_mut().unwrap().poll() {
            did = true;
            match step {
                Step::Reply(id, reply) => {
                    assert!(mount.replies.insert(id, reply).is_none());
                }
                Step::Ask(id, _, _, Request::Watch { .. }) => mount.watching = Some((id, end)),
                Step::Ask(id, account, _, request) => {
                    mount.waiting.push_back((id, account, request));
                }
                Step::Work(id, job) => {
                    mount.volume.as_mut().unwrap().done(now, id, job.run());
                }
                Step::Sync(file) => {
                    vere_ports::storage::StorageFile::sync(&file).unwrap();
                    mount.volume.as_mut().unwrap().synced(Ok(()));
                }
                Step::Invalidate(_) => mount.invalidated += 1,
                Step::Log(notice) => mount.notices.push(notice),
            }
        }
        did
    }

    pub(super) fn settle(&mut self) {
        let mut left = 200_000;
        let mut did = true;
        while did {
            did = false;
            for number in 0..self.mounts.len() {
                did |= self.step(number);
            }
            left -= 1;
            assert!(left > 0, "the mounts never rest");
        }
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        self.now += seconds * 1_000;
        self.wake();
        self.settle();
    }

    pub(super) fn wake(&mut self) {
        let now = self.moment();
        for mount in &mut self.mounts {
            if let Some(volume) = &mut mount.volume {
                volume.wake(now);
            }
        }
    }

    pub(super) fn begin(&mut self, number: usize, call: Call) -> CallId {
        let now = self.moment();
        let mount = &mut self.mounts[number];
        mount.last_call += 1;
        let id = CallId(mount.last_call);
        mount.volume.as_mut().unwrap().call(now, id, CALLER, call);
        id
    }

    /// A call, with the steps of its mount alone, and at most a minute.
    pub(super) fn call(&mut self, number: usize, call: Call) -> Result<Reply, Errno> {
        let id = self.begin(number, call);
        for _ in 0..70 {
            while self.step(number) {}
            if let Some(reply) = self.mounts[number].replies.remove(&id) {
                return reply;
            }
            self.now += 1_000;
            let now = self.moment();
            self.volume(number).wake(now);
        }
        panic!("no reply");
    }

    pub(super) fn sync(&mut self, number: usize) -> Result<Reply, Errno> {
        let id = self.begin_sync(number);
        for _ in 0..70 {
            while self.step(number) {}
            if let Some(reply) = self.mounts[number].replies.remove(&id) {
                return reply;
            }
            self.now += 1_000;
            let now = self.moment();
            self.volume(number).wake(now);
        }
        panic!("no reply");
    }

    /// A mount ends as it should, and stays.
    pub(super) fn finish(&mut self, number: usize) {
        let now = self.moment();
        let mount = &mut self.mounts[number];
        mount.last_call += 1;
        let id = CallId(mount.last_call);
        mount.volume.as_mut().unwrap().finish(now, id);
        for _ in 0..70 {
            self.settle();
            if let Some(reply) = self.mounts[number].replies.remove(&id) {
                assert_eq!(reply, Ok(Reply::Done));
                return;
            }
            self.pass(1);
        }
        panic!("no reply");
    }

    pub(super) fn begin_sync(&mut self, number: usize) -> CallId {
        let now = self.moment();
        let mount = &mut self.mounts[number];
        mount.last_call += 1;
        let id = CallId(mount.last_call);
        mount.volume.as_mut().unwrap().sync(now, id);
        id
    }

    pub(super) fn lookup(
        &mut self,
        number: usize,
        parent: Inode,
        name: &[u8],
    ) -> Result<Attributes, Errno> {
        let name = name.to_vec();
        match self.call(number, Call::Lookup { parent, name })? {
            Reply::Entry(attributes) => Ok(attributes),
            reply => panic!("{reply:?}"),
        }
    }

    /// The inode of a path.
    pub(super) fn at(&mut self, number: usize, path: &str) -> Result<Inode, Errno> {
        let mut at = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = self.lookup(number, at, name.as_bytes())?.inode;
        }
        Ok(at)
    }

    fn place(&mut self, number: usize, path: &str) -> Result<(Inode, Vec<u8>), Errno> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.at(number, folder)?, name.into()))
    }

    pub(super) fn open(&mut self, number: usize, path: &str) -> Result<Handle, Errno> {
        let flags = OpenFlags {
            read: true,
            write: true,
            ..OpenFlags::default()
        };
        let (parent, name) = self.place(number, path)?;
        let call = match self.lookup(number, parent, &name) {
            Ok(of) => Call::Open {
                inode: of.inode,
                flags,
            },
            Err(_) => Call::Create {
                parent,
                name,
                mode: 0o644,
                flags,
            },
        };
        match self.call(number, call)? {
            Reply::Opened { handle, .. } | Reply::Created(_, handle) => Ok(handle),
            reply => panic!("{reply:?}"),
        }
    }

    /// Writes behind the end of a file, and creates the file if absent.
    pub(super) fn append(
        &mut self,
        number: usize,
        path: &str,
        data: &[u8],
    ) -> Result<Handle, Errno> {
        let handle = self.open(number, path)?;
        let inode = self.volume(number).files.inode_of(handle).unwrap();
        let offset = self.volume(number).files.size(inode)?;
        let call = Call::Write {
            handle,
            offset,
            data: Bytes::copy_from_slice(data),
            kill_set_id: false,
        };
        self.call(number, call)?;
        Ok(handle)
    }

    pub(super) fn close(&mut self, number: usize, handle: Handle) {
        self.call(number, Call::Release { handle }).unwrap();
    }

    /// A file with this content behind what is there.
    pub(super) fn put(&mut self, number: usize, path: &str, data: &str) {
        let handle = self.append(number, path, data.as_bytes()).unwrap();
        self.close(number, handle);
    }

    pub(super) fn folder(&mut self, number: usize, path: &str) -> Result<Reply, Errno> {
        let (parent, name) = self.place(number, path)?;
        let mode = 0o755;
        self.call(number, Call::MakeFolder { parent, name, mode })
    }

    pub(super) fn remove(&mut self, number: usize, path: &str) -> Result<Reply, Errno> {
        let (parent, name) = self.place(number, path)?;
        self.call(number, Call::Unlink { parent, name })
    }

    pub(super) fn remove_folder(&mut self, number: usize, path: &str) -> Result<Reply, Errno> {
        let (parent, name) = self.place(number, path)?;
        self.call(number, Call::RemoveFolder { parent, name })
    }

    pub(super) fn rename(&mut self, number: usize, from: &str, to: &str) -> Result<Reply, Errno> {
        let (parent, name) = self.place(number, from)?;
        let (new_parent, new_name) = self.place(number, to)?;
        let call = Call::Rename {
            parent,
            name,
            new_parent,
            new_name,
            mode: vere_ports::files::RenameMode::Replace,
        };
        self.call(number, call)
    }

    pub(super) fn content(&mut self, number: usize, inode: Inode) -> Result<Vec<u8>, Errno> {
        let flags = OpenFlags {
            read: true,
            ..OpenFlags::default()
        };
        let opened = self.call(number, Call::Open { inode, flags })?;
        let Reply::Opened { handle, .. } = opened else {
            panic!("{opened:?}");
        };
        let call = Call::Read {
            handle,
            offset: 0,
            size: 1 << 20,
        };
        let read = self.call(number, call);
        self.close(number, handle);
        match read? {
            Reply::Octets(octets) => Ok(octets.to_vec()),
            reply => panic!("{reply:?}"),
        }
    }

    /// Every path with the content of its file; folders end with `/`.
    pub(super) fn tree(&mut self, number: usize) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        let mut folders = vec![(String::new(), ROOT)];
        while let Some((path, inode)) = folders.pop() {
            let opened = self.call(number, Call::OpenFolder { inode }).unwrap();
            let Reply::Opened { handle, .. } = opened else {
                panic!("{opened:?}");
            };
            let mut cursor = 0;
            loop {
                let call = Call::ReadFolder {
                    handle,
                    cursor,
                    with_attributes: false,
                };
                let Reply::Entries(entries) = self.call(number, call).unwrap() else {
                    panic!("no entries");
                };
                let Some(last) = entries.last() else { break };
                cursor = last.cursor;
                for entry in entries {
                    let name = String::from_utf8(entry.name).unwrap();
                    if name == "." || name == ".." {
                        continue;
                    }
                    let path = format!("{path}{name}");
                    if entry.kind == vere_ports::files::FileKind::Folder {
                        all.insert(format!("{path}/"), String::new());
                        folders.push((format!("{path}/"), entry.inode));
                    } else {
                        let content = self.content(number, entry.inode);
                        let content = content.map(|octets| String::from_utf8(octets).unwrap());
                        all.insert(path, content.unwrap_or_else(|error| error.to_string()));
                    }
                }
            }
            self.call(number, Call::ReleaseFolder { handle }).unwrap();
        }
        all
    }

    /// Everything reaches everyone.
    pub(super) fn quiet(&mut self) {
        for mount in &mut self.mounts {
            mount.is_held = false;
        }
        for _ in 0..12 {
            self.pass(16);
        }
    }

    pub(super) fn conflicts(&self, number: usize) -> Vec<crate::merge::ConflictKind> {
        let notices = self.mounts[number].notices.iter();
        let conflicts = notices.filter_map(|notice| match notice {
            Notice::Conflict(conflict) => Some(conflict.kind),
            _ => None,
        });
        conflicts.collect()
    }
}
