//! Ownership of a group: epochs, and the active connection of an owner.

use vere_ports::spool_log::SpoolLogStore;
use vere_spoolwire::{Answer, CloseReason, Frame, REQUEST_FRAME_MAX, Request, Role, Seq, Txn};

use super::Node;
use super::access::Sight;
use super::account::Denial;
use super::block::reason;
use super::connection::{ConnectionId, Phase};
use super::group::Shared;
use super::handshake::Believed;

/// Maximum number of standby connections of one group.
const STANDBYS_MAX: usize = 4;

impl<S: SpoolLogStore> Node<S> {
    /// Admits a peer or refuses it. A new owner takes the group, and the earlier owner's
    /// connections are closed.
    ///
    /// # Errors
    ///
    /// [`CloseReason::Fenced`] when another owner has the group, [`CloseReason::TooMany`] for too
    /// many standby connections, and errors of the log.
    pub(super) fn admit(&mut self, hello: &Believed, index: usize) -> Result<(), CloseReason> {
        let (old, new) = (self.groups[index].store.title, hello.title);
        match hello.role {
            Role::Reader => return Ok(()),
            Role::Standby if new != old => return Err(CloseReason::Fenced),
            Role::Standby if self.of_owner(index, false).len() >= STANDBYS_MAX => {
                return Err(CloseReason::TooMany);
            }
            Role::Standby => return Ok(()),
            Role::Owner => {}
        }
        let another = new.owner != old.owner;
        if new.epoch < old.epoch || (new.epoch == old.epoch && new.epoch > 0 && another) {
            return Err(CloseReason::Fenced);
        }
        self.groups[index].own(new)?;
        if let Some(group_charter) = self.groups[index]
            .store
            .group_charter
            .after(&hello.group_charter)
        {
            self.groups[index].charter(group_charter)?;
            self.close_former_readers(index);
        }
        let reason = if new.epoch > old.epoch {
            CloseReason::Fenced
        } else {
            CloseReason::TakenOver
        };
        if new != old {
            for standby in self.of_owner(index, false) {
                self.close(standby, reason);
            }
        }
        for before in self.of_owner(index, true) {
            self.close(before, reason);
        }
        Ok(())
    }

    /// Closes readers whose accounts have lost the right to read the group.
    fn close_former_readers(&mut self, index: usize) {
        let store = &self.groups[index].store;
        let connections = self.connections.iter().enumerate();
        let former: Vec<_> = connections
            .filter_map(|(id, connection)| {
                let reader = connection.as_ref()?;
                let reads = matches!(reader.phase, Phase::Reader(group) if group == index);
                let may = store.admits(&reader.account, Role::Reader).is_ok();
                (reads && !may).then_some(ConnectionId(id))
            })
            .collect();
        for reader in former {
            self.close(reader, CloseReason::MayNotRead);
        }
    }

    /// Returns the owner's connections to a group: the active one, or the standby ones.
    fn of_owner(&self, index: usize, active: bool) -> Vec<ConnectionId> {
        let is_his = |connection: &super::Connection| match connection.phase {
            Phase::Owner(group) => active && group == index,
            Phase::Standby(group) => !active && group == index,
            _ => false,
        };
        let connections = self.connections.iter().enumerate();
        connections
            .filter(|(_, connection)| connection.as_ref().is_some_and(is_his))
            .map(|(id, _)| ConnectionId(id))
            .collect()
    }

    /// Answers requests of a reader or a standby connection; ATTACH makes the standby connection
    /// active. The rights of a reader are checked for each request: a queue may get other grants,
    /// or end, at any time.
    ///
    /// # Errors
    ///
    /// Reason for closing the connection.
    pub(super) fn read_requests(
        &mut self,
        id: ConnectionId,
        group: usize,
    ) -> Result<(), CloseReason> {
        let Some(connection) = &mut self.connections[id.0] else {
            return Ok(());
        };
        let mut shared = Shared {
            memory: &mut self.memory,
            incarnation: self.incarnation,
            frame_max: REQUEST_FRAME_MAX,
            block_max: self.config.block_max,
        };
        while !connection.output.is_over() {
            if let Some((seq, request)) = connection.waiting {
                let asked = &mut self.groups[group];
                let sight = match connection.phase {
                    Phase::Reader(_) => asked.store.group_charter.sight(&connection.account),
                    _ => Sight::All,
                };
                if let Some(queue) = asked.store.hidden(sight, request) {
                    self.denials.note(Denial {
                        account: connection.account.to_string(),
                        group: asked.name.to_string(),
                        queue: Some(queue.name.to_string()),
                        reason: CloseReason::MayNotReadQueue,
                    });
                    return Err(CloseReason::MayNotReadQueue);
                }
                let output = &mut connection.output;
                if !asked.answer(&mut shared, sight, (seq, request), output) {
                    break;
                }
                connection.waiting = None;
            }
            let input = &connection.input[..connection.fill];
            let Some(frame) = Frame::read(input, REQUEST_FRAME_MAX).map_err(reason)? else {
                break;
            };
            let request = Request::decode(&frame).map_err(reason)?;
            let (len, seq) = (frame.header.len, Seq(frame.header.number));
            connection.consume(len);
            match connection.phase {
                Phase::Standby(_) => match request {
                    Request::Stat | Request::Heartbeat => {}
                    Request::Attach { acknowledged } => {
                        return self.attach(id, group, seq, acknowledged);
                    }
                    _ => return Err(CloseReason::Malformed),
                },
                _ if is_owners(&request) => return Err(CloseReason::Malformed),
                _ => {}
            }
            connection.waiting = Some((seq, request));
        }
        Ok(())
    }

    /// Makes a standby connection active; `seen` is the last acknowledgement the owner saw.
    ///
    /// # Errors
    ///
    /// Errors of the log; [`CloseReason::TakenOver`] when the group is incomplete. The owner may
    /// not know that this process holds less than the earlier one, and must connect again with
    /// HELLO.
    pub(super) fn attach(
        &mut self,
        id: ConnectionId,
        index: usize,
        seq: Seq,
        seen: Txn,
    ) -> Result<(), CloseReason> {
        self.groups[index].check_log()?;
        if self.groups[index].store.syncing {
            return Err(CloseReason::TakenOver);
        }
        for before in self.of_owner(index, true) {
            self.close(before, CloseReason::TakenOver);
        }
        let group = &mut self.groups[index];
        let acknowledged = group.acknowledged();
        let attached = Answer::Attached {
            seq,
            processed: group.store.processed,
            acknowledged,
            refused: group.store.refused(seen, acknowledged),
        };
        group.welcome(&mut self.memory, id);
        if let Some(connection) = &mut self.connections[id.0] {
            connection.phase = Phase::Owner(index);
            connection.output.write(|out| attached.encode(out));
        }
        self.hand_over(id, index);
        self.process(id);
        Ok(())
    }
}

/// Whether only an owner may send the request.
const fn is_owners(request: &Request) -> bool {
    matches!(
        request,
        Request::Attach { .. } | Request::Complete | Request::Duty { .. } | Request::End { .. }
    )
}
