//! The handshake: an unauthenticated connection becomes an owner's or a reader's.

use vere_ports::spool_log::{LogError, SpoolLogStore};
use vere_spoolwire::{
    CloseReason, DEFAULT_ACCOUNT, Frame, HANDSHAKE_FRAME_MAX, Hello, Role, SECRET_LEN, Txn,
    VERSION, Welcome,
};

use super::Node;
use super::account::Denial;
use super::block::reason;
use super::connection::{ConnectionId, Phase};
use super::group::Group;
use super::group_charter::GroupCharter;
use super::ingest::Tail;
use super::journal::Duty;
use super::snapshot;
use super::store::Store;
use super::title::Title;

/// An authenticated HELLO.
pub(super) struct Believed {
    pub(super) role: Role,
    pub(super) title: Title,
    /// The authenticated account, and the charter that it wants for its own group.
    pub(super) group_charter: GroupCharter,
    makes_groups: bool,
    logged: bool,
    group: String,
    acknowledged: Txn,
    proof: [u8; SECRET_LEN],
    /// Length of the HELLO, in octets.
    len: usize,
}

impl<S: SpoolLogStore> Node<S> {
    /// Processes a HELLO in the input of an unauthenticated connection.
    pub(super) fn handshake(&mut self, id: ConnectionId) -> Result<(), CloseReason> {
        let Some(hello) = self.believe(id)? else {
            return Ok(());
        };
        if let Some(connection) = &mut self.connections[id.0] {
            connection.account = hello.group_charter.account.clone();
        }
        let index = self.group_for(&hello).inspect_err(|reason| {
            if reason.is_denial() {
                self.denials.note(Denial {
                    account: hello.group_charter.account.to_string(),
                    group: hello.group.clone(),
                    queue: None,
                    reason: *reason,
                });
            }
        })?;
        if hello.role != Role::Owner {
            self.check_places(&hello.group_charter.account)?;
        }
        let before = self.groups[index].store.title;
        self.admit(&hello, index)?;
        let group = &mut self.groups[index];
        let acknowledged = group.acknowledged();
        let welcome = Welcome {
            processed: group.store.processed,
            acknowledged,
            owner: before.owner,
            epoch: before.epoch,
            synced: group.is_logged(),
            syncing: group.store.syncing,
            frame_max: self.config.frame_max,
            proof: hello.proof,
            refused: group.store.refused(hello.acknowledged, acknowledged),
        };
        let Some(connection) = &mut self.connections[id.0] else {
            return Ok(());
        };
        self.strangers -= 1;
        connection.group = Some(index);
        connection.output.write(|out| welcome.encode(out));
        connection.consume(hello.len);
        match hello.role {
            Role::Owner => {
                connection.phase = Phase::Owner(index);
                group.welcome(&mut self.memory, id);
                self.hand_over(id, index);
            }
            Role::Reader => connection.phase = Phase::Reader(index),
            Role::Standby => connection.phase = Phase::Standby(index),
        }
        self.process(id);
        Ok(())
    }

    /// Whether an account may have one more connection that is no owner's. Such connections leave
    /// places for owners, and those of one account leave places for other accounts.
    fn check_places(&self, account: &str) -> Result<(), CloseReason> {
        let (mut all, mut own) = (0, 0);
        for connection in self.connections.iter().flatten() {
            if matches!(connection.phase, Phase::Reader(_) | Phase::Standby(_)) {
                all += 1;
                own += usize::from(*connection.account == *account);
            }
        }
        let full = all >= self.config.readers_max() || own >= self.config.readers_of_one_max();
        if full {
            return Err(CloseReason::TooMany);
        }
        Ok(())
    }

    fn believe(&self, id: ConnectionId) -> Result<Option<Believed>, CloseReason> {
        let Some(connection) = &self.connections[id.0] else {
            return Ok(None);
        };
        let Phase::Greeted(greeting) = &connection.phase else {
            return Ok(None);
        };
        let input = &connection.input[..connection.fill];
        let Some(frame) = Frame::read(input, HANDSHAKE_FRAME_MAX).map_err(reason)? else {
            return Ok(None);
        };
        let hello = Hello::decode(&frame).map_err(reason)?;
        if hello.version != VERSION {
            return Err(CloseReason::Version);
        }
        let mut accounts = self.config.accounts.iter();
        let account = accounts
            .find(|account| account.name == hello.account)
            .filter(|account| hello.is_proven(greeting, &account.secret))
            .ok_or(CloseReason::NotAuthenticated)?;
        Ok(Some(Believed {
            role: hello.role,
            title: Title {
                owner: hello.owner,
                epoch: hello.epoch,
            },
            group_charter: GroupCharter::new(hello.account, hello.charter),
            makes_groups: account.makes_groups,
            logged: hello.logged,
            group: hello.group.to_owned(),
            acknowledged: hello.acknowledged,
            proof: hello.answer(greeting, &account.secret),
            len: frame.header.len,
        }))
    }

    /// Returns the index of the group if the peer's account may open it in its role; creates a
    /// missing group for an owner. Only the default account, that of the operator, may open a group
    /// of which just the name is known: the group may belong to any account.
    fn group_for(&mut self, hello: &Believed) -> Result<usize, CloseReason> {
        let known = self
            .groups
            .iter()
            .position(|group| *group.name == *hello.group);
        let whose = |index: usize| self.groups[index].store.group_charter.is_known();
        if let Some(index) = known.filter(|index| whose(*index)) {
            let store = &self.groups[index].store;
            store.admits(&hello.group_charter.account, hello.role)?;
            return Ok(index);
        }
        if hello.role != Role::Owner {
            return Err(CloseReason::NoGroup);
        }
        if known.is_some() && *hello.group_charter.account != *DEFAULT_ACCOUNT {
            return Err(CloseReason::MayNotOwn);
        }
        if !hello.makes_groups {
            return Err(CloseReason::MayNotMake);
        }
        if let Some(index) = known {
            self.groups[index].charter(hello.group_charter.clone())?;
            return Ok(index);
        }
        self.check_groups(&hello.group_charter.account)?;
        let mut store = Store::new(self.config.queues_max);
        store.group_charter = hello.group_charter.clone();
        // By the membership record this node may have held the group, so the group is complete only
        // after COMPLETE. An owner without an epoch has no record.
        store.syncing = hello.title.epoch > 0;
        let log = match &mut self.store {
            // A group in memory only is incomplete after the loss of that memory.
            Some(logs) => {
                let incomplete = store.syncing || !hello.logged;
                let head = snapshot::encode(&store, self.incarnation, incomplete);
                let log = logs.create(&hello.group, &head);
                Some(log.map_err(|error| match error {
                    LogError::Full => CloseReason::LogFull,
                    LogError::Failed(_) | LogError::Damaged(_) => CloseReason::LogFailed,
                })?)
            }
            None => None,
        };
        let mut group = Group::new(&hello.group, store, Tail::default(), log);
        if let Some(journal) = group.log.as_mut().filter(|_| !hello.logged) {
            journal.duty = Duty::Rests;
        }
        Ok(self.enter(group))
    }

    /// Moves octets that an owner sent after its HELLO to the group's segment.
    pub(super) fn hand_over(&mut self, id: ConnectionId, group: usize) {
        let Some(connection) = &mut self.connections[id.0] else {
            return;
        };
        let early = &connection.input[..connection.fill];
        let group = &mut self.groups[group];
        group.buffer(&mut self.memory)[..early.len()].copy_from_slice(early);
        group.tail.received(&mut group.store, early.len());
        connection.fill = 0;
        connection.input = Box::default();
    }
}
