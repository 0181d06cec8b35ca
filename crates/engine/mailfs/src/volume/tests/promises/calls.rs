//! Calls of programs, each one possible in the state that programs see.

use super::*;
use vere_ports::files::{Changes, RenameMode};

const NAMES: [&str; 6] = ["a", "b", "d/a", "d/b", "e/a", "e/b"];
const FOLDERS: [&str; 2] = ["d", "e"];

impl Run {
    /// A program calls.
    pub(super) fn act(&mut self) -> Result<(), Stop> {
        match self.below(27) {
            0..=13 => self.write(),
            14 => self.cut(),
            15..=16 => self.rename(),
            17 => self.unlink(),
            18 => self.link(),
            19 => self.folder(),
            20..=22 => self.fsync(),
            23 => self.sync(),
            24 => self.pass(300),
            25 => self.pass(1_100),
            _ => self.pass(6_000),
        }
    }

    /// Everything is wanted on the servers, and nobody waits.
    fn sync(&mut self) -> Result<(), Stop> {
        let id = CallId(u64::MAX - 1 - self.seeded.next_u64() % 1_000_000);
        let now = self.world.moment();
        self.world.volume().sync(now, id);
        self.fsyncs.insert(id, self.history.len() - 1);
        self.settle()
    }

    /// The inode of a path that the model has.
    pub(super) fn inode(&mut self, path: &str) -> Result<Inode, Stop> {
        let mut at = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let lookup = Call::Lookup {
                parent: at,
                name: name.into(),
            };
            at = match self.call(lookup)? {
                Ok(Reply::Entry(of)) => of.inode,
                other => return Err(self.trouble(path, &other)),
            };
        }
        Ok(at)
    }

    fn place(&mut self, path: &str) -> Result<(Inode, Vec<u8>), Stop> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.inode(folder)?, name.into()))
    }

    /// A name whose folder is there.
    fn name(&mut self) -> Option<&'static str> {
        let name = self.pick(&NAMES);
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.model.has_folder(folder).then_some(name)
    }

    /// A name that is there.
    pub(super) fn known(&mut self) -> Option<&'static str> {
        let name = self.name()?;
        self.model.content(name).map(|_| name)
    }

    fn open(&mut self, path: &str) -> Result<Option<Handle>, Stop> {
        let flags = OpenFlags {
            read: true,
            write: true,
            ..OpenFlags::default()
        };
        if self.model.content(path).is_some() {
            let inode = self.inode(path)?;
            return match self.call(Call::Open { inode, flags })? {
                Ok(Reply::Opened { handle, .. }) => Ok(Some(handle)),
                other => Err(self.trouble(path, &other)),
            };
        }
        let (parent, name) = self.place(path)?;
        let mut model = self.model.clone();
        model.create(path);
        let call = Call::Create {
            parent,
            name,
            mode: 0o644,
            flags,
        };
        match self.change(call, model)? {
            Some(Reply::Created(_, handle)) => Ok(Some(handle)),
            _ => Ok(None),
        }
    }

    fn close(&mut self, handle: Handle) -> Result<(), Stop> {
        let _ = self.call(Call::Flush { handle })?;
        let _ = self.call(Call::Release { handle })?;
        Ok(())
    }

    fn write(&mut self) -> Result<(), Stop> {
        let Some(path) = self.name() else {
            return self.folder();
        };
        let Some(handle) = self.open(path)? else {
            return Ok(());
        };
        if let Some(content) = self.model.content(path).cloned() {
            let longest = self.pick(&[20, 20, 300, 3_000, 9_000, 80_000]);
            let length = 1 + self.below(longest);
            let offset = self.below(content.len().min(200_000) + 1);
            let octets = noise(self.seeded.next_u64(), length);
            let mut model = self.model.clone();
            model.change(path, |content| {
                content.resize(content.len().max(offset + length), 0);
                content[offset..offset + length].copy_from_slice(&octets);
            });
            let call = Call::Write {
                handle,
                offset: offset as u64,
                data: octets.into(),
                kill_set_id: false,
            };
            self.change(call, model)?;
        }
        self.close(handle)
    }

    fn cut(&mut self) -> Result<(), Stop> {
        let Some(path) = self.known() else {
            return Ok(());
        };
        let inode = self.inode(path)?;
        let length = self.model.content(path).map_or(0, Bytes::len);
        let size = self.below(length + 100);
        let mut model = self.model.clone();
        model.change(path, |content| content.resize(size, 0));
        let changes = Changes {
            size: Some(size as u64),
            ..Changes::default()
        };
        let call = Call::SetAttributes { inode, changes };
        self.change(call, model).map(drop)
    }

    fn rename(&mut self) -> Result<(), Stop> {
        let (Some(from), Some(to)) = (self.known(), self.name()) else {
            return Ok(());
        };
        if from == to || self.model.has_folder(to) || self.model.are_one(from, to) {
            return Ok(());
        }
        let (parent, name) = self.place(from)?;
        let (new_parent, new_name) = self.place(to)?;
        let mut model = self.model.clone();
        model.rename(from, to);
        let call = Call::Rename {
            parent,
            name,
            new_parent,
            new_name,
            mode: RenameMode::Replace,
        };
        self.change(call, model).map(drop)
    }

    fn unlink(&mut self) -> Result<(), Stop> {
        let Some(path) = self.known() else {
            return Ok(());
        };
        let (parent, name) = self.place(path)?;
        let mut model = self.model.clone();
        model.unlink(path);
        self.change(Call::Unlink { parent, name }, model).map(drop)
    }

    fn link(&mut self) -> Result<(), Stop> {
        let (Some(from), Some(to)) = (self.known(), self.name()) else {
            return Ok(());
        };
        if !self.model.is_free(to) {
            return Ok(());
        }
        let inode = self.inode(from)?;
        let (parent, name) = self.place(to)?;
        let mut model = self.model.clone();
        model.link(from, to);
        let call = Call::Link {
            inode,
            parent,
            name,
        };
        self.change(call, model).map(drop)
    }

    fn folder(&mut self) -> Result<(), Stop> {
        let path = self.pick(&FOLDERS);
        let (parent, name) = self.place(path)?;
        let mut model = self.model.clone();
        if !self.model.has_folder(path) {
            model.make_folder(path);
            let mode = 0o755;
            return self
                .change(Call::MakeFolder { parent, name, mode }, model)
                .map(drop);
        }
        if !self.model.is_empty(path) {
            return Ok(());
        }
        model.remove_folder(path);
        self.change(Call::RemoveFolder { parent, name }, model)
            .map(drop)
    }

    /// An fsync, which a program may wait for.
    fn fsync(&mut self) -> Result<(), Stop> {
        let Some(path) = self.known() else {
            return Ok(());
        };
        let Some(handle) = self.open(path)? else {
            return Ok(());
        };
        let state = self.history.len() - 1;
        self.log(format!("fsync of {path} at state {state}"));
        let id = self.world.begin(Call::Fsync {
            handle,
            data_only: false,
        });
        if self.below(2) == 0 {
            self.fsyncs.insert(id, state);
            return self.close(handle);
        }
        match self.reply(id)? {
            Ok(_) => {
                self.log(format!("fsync of state {state} acknowledged"));
                self.synced = self.synced.max(state);
            }
            Err(Errno::Io | Errno::RoFs) => {}
            Err(error) => return Err(format!("fsync: {error}").into()),
        }
        self.close(handle)
    }

    /// Returns whether everything is on the servers.
    pub(super) fn umount(&mut self) -> Result<bool, Stop> {
        self.log("umount");
        let id = CallId(u64::MAX);
        let now = self.world.moment();
        self.world.volume().finish(now, id);
        Ok(self.reply(id)?.is_ok())
    }
}
