//! Transfers of this side, and the turn.

use bytes::Bytes;
use vere_ber::{Pieces, Tag, write};

use super::phase::{Agreement, Phase};
use super::{AbortCause, Association, AssociationError, Event, Mode, TransferFrom};
use crate::presentation::{UserData, data_header};
use crate::rtse::{self, AbortReason, Broken, Checkpoint, Outgoing, OutgoingState, Rtab, Segment};
use crate::session::{ActivityResume, ConnectionIdentifier, Exception, SERIAL_MAX, Tokens};

/// The largest activity number: an activity identifier has at most six octets.
const ACTIVITY_MAX: u32 = i32::MAX as u32;

/// The most octets that fill a segment that is given up. A segment that lacks more is cut off by an abort.
const FILL_MAX: u64 = 1 << 20;
/// Octets that fill a segment.
static ZEROS: [u8; 16_384] = [0; 16_384];

/// Whether there are serial numbers for all checkpoints of this many octets, after those that were used.
fn has_numbers(segment: u64, octets: u64, used: u32) -> bool {
    let checkpoints = octets.checked_div(segment).unwrap_or(0);
    checkpoints.saturating_add(u64::from(used)) < SERIAL_MAX
}

/// The identifier of an activity: an encoded INTEGER, as X.228 has it.
fn activity_identifier(number: u32) -> Bytes {
    write::integer(Tag::INTEGER, i64::from(number)).into_bytes()
}

impl Association {
    fn agreement(&self, request: &'static str) -> Result<&Agreement, AssociationError> {
        match &self.phase {
            Phase::Open(agreement) => Ok(agreement),
            _ => Err(AssociationError::Phase(request)),
        }
    }

    fn may_begin(&self, request: &'static str) -> Result<&Agreement, AssociationError> {
        let agreement = self.agreement(request)?;
        match self.outgoing.is_none() && self.incoming.is_none() {
            true => Ok(agreement),
            false => Err(AssociationError::Transfer(request)),
        }
    }

    const fn count_activity(&mut self) {
        self.next_activity = match self.next_activity {
            ACTIVITY_MAX => 1,
            number => number.saturating_add(1),
        };
    }

    /// RT-TRANSFER request of an APDU of this length; gives the number of the activity. [`supply`](Self::supply) takes
    /// the octets. In normal mode they begin with [`wrapper`](crate::rtse::wrapper).
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without the turn, during a transfer, and for an APDU without octets or with more checkpoints than
    /// there are serial numbers.
    pub fn transfer(&mut self, length: u64) -> Result<TransferFrom, AssociationError> {
        let agreement = self.may_begin("RT-TRANSFER request")?;
        let (segment, window) = (agreement.segment, agreement.window);
        if length == 0 || !has_numbers(segment, length, 0) {
            return Err(AssociationError::Length);
        }
        let activity = self.next_activity;
        self.session.activity_start(activity_identifier(activity))?;
        self.count_activity();
        self.outgoing = Some(Outgoing::new(activity, length, segment, window));
        let checkpoint = Checkpoint::default();
        Ok(TransferFrom {
            activity,
            checkpoint,
        })
    }

    /// Octets of the APDU that [`supply`](Self::supply) takes now.
    #[must_use]
    pub fn room(&self) -> usize {
        let outgoing = self.outgoing.as_ref();
        let room = outgoing.map_or(0, Outgoing::room);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        room.min(
            self.limits
                .unwritten_max
                .saturating_sub(self.transport.unwritten()),
        )
    }

    /// Takes octets of the APDU off the front of `octets`, as many as window and waiting octets allow, and gives their
    /// number. The end of the APDU ends the activity.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without a transfer.
    pub fn supply(&mut self, octets: &mut Bytes) -> Result<usize, AssociationError> {
        let before = octets.len();
        loop {
            let room = self.room().min(octets.len());
            if room == 0 {
                return Ok(before.saturating_sub(octets.len()));
            }
            self.send_octets(octets.split_to(room))?;
            self.flush();
        }
    }

    fn send_octets(&mut self, octets: Bytes) -> Result<(), AssociationError> {
        let agreement = self.agreement("RT-TRANSFER request")?;
        let (mode, rtse) = (agreement.mode, agreement.rtse);
        let Some(outgoing) = self.outgoing.as_mut() else {
            return Err(AssociationError::Transfer("RT-TRANSFER request"));
        };
        let mut pieces = Pieces::new();
        if let Some(length) = outgoing.begins()
            && mode == Mode::Normal
        {
            pieces.push(data_header(rtse, length));
        }
        let count = u64::try_from(octets.len()).unwrap_or(u64::MAX);
        pieces.push(octets);
        let next = outgoing.advance(count);
        self.session.data(pieces, next != Segment::Open)?;
        match next {
            Segment::Open => {}
            Segment::Checkpoint => {
                let serial = self.session.sync_minor()?;
                outgoing.checkpoint(serial);
            }
            Segment::Last => {
                self.session.activity_end()?;
                outgoing.wait_for(OutgoingState::Ended);
            }
        }
        Ok(())
    }

    /// The rest of the transfer of this side at an end of the association now.
    #[must_use]
    pub fn broken(&self) -> Option<Broken> {
        match (&self.phase, &self.outgoing) {
            (Phase::Open(agreement), Some(outgoing)) => {
                Some(outgoing.broken(&agreement.identifier))
            }
            _ => None,
        }
    }

    /// Fills the segment that has begun with zeros, so that its length is that of its header. Octets behind the last confirmed
    /// checkpoint are void for the peer once the transfer is interrupted or discarded.
    fn fill_segment(&mut self) {
        let mut lacks = self.outgoing.as_ref().map_or(0, Outgoing::lacks);
        while lacks > 0 {
            let zeros = Bytes::from_static(&ZEROS);
            let count = usize::try_from(lacks)
                .unwrap_or(usize::MAX)
                .min(zeros.len());
            lacks = lacks.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
            let zeros = Pieces::from(zeros.slice(..count));
            if self.session.data(zeros, lacks == 0).is_err() {
                return;
            }
        }
    }

    /// Whether the segment that has begun lacks more than is filled: then the association is aborted.
    fn cuts_off(&mut self) -> bool {
        let lacks = self.outgoing.as_ref().map_or(0, Outgoing::lacks);
        if lacks > FILL_MAX {
            let reason = AbortReason::LocalSystemProblem;
            self.send_abort(&Rtab::because(reason));
            self.end(AbortCause::Ours(reason));
        }
        lacks > FILL_MAX
    }

    /// Interrupts the transfer: `NotTransferred` follows with what can be resumed. A segment that lacks more than 1 MiB cannot be
    /// ended so: then the association is aborted, and `Aborted` follows.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without a transfer of this side.
    pub fn interrupt(&mut self, reason: Exception) -> Result<(), AssociationError> {
        if self.cuts_off() {
            return Ok(());
        }
        self.fill_segment();
        let Some(outgoing) = self.outgoing.as_mut() else {
            return Err(AssociationError::Transfer("S-ACTIVITY-INTERRUPT request"));
        };
        self.session.activity_interrupt(reason)?;
        outgoing.wait_for(OutgoingState::Interrupting);
        Ok(())
    }

    /// Discards the transfer: `NotTransferred` follows, or `Aborted` as for [`interrupt`](Self::interrupt).
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without a transfer of this side.
    pub fn discard(&mut self, reason: Exception) -> Result<(), AssociationError> {
        if self.cuts_off() {
            return Ok(());
        }
        self.fill_segment();
        let Some(outgoing) = self.outgoing.as_mut() else {
            return Err(AssociationError::Transfer("S-ACTIVITY-DISCARD request"));
        };
        self.session.activity_discard(reason)?;
        outgoing.wait_for(OutgoingState::Discarding);
        Ok(())
    }

    /// Resumes a transfer that was interrupted here, or broke off elsewhere. The host supplies the octets behind the checkpoint
    /// that is given.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without the turn, during a transfer, and for a transfer without a confirmed checkpoint.
    pub fn resume(&mut self, broken: &Broken) -> Result<TransferFrom, AssociationError> {
        if !broken.is_resumable() {
            return Err(AssociationError::Checkpoint(0));
        }
        if broken.checkpoint.position >= broken.length {
            return Err(AssociationError::Length);
        }
        self.begin_again(broken)
    }

    /// Asks the peer to forget a transfer that broke off elsewhere and cannot be resumed: it is resumed and discarded at once
    /// (X.228 clause 7.8). `NotTransferred` follows, or `Transferred` if the peer has the APDU.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without the turn, and during a transfer.
    pub fn discard_broken(&mut self, broken: &Broken) -> Result<(), AssociationError> {
        self.begin_again(broken)?;
        self.discard(Exception::NonSpecific)
    }

    fn begin_again(&mut self, broken: &Broken) -> Result<TransferFrom, AssociationError> {
        let agreement = self.may_begin("RT-TRANSFER request")?;
        let (segment, window) = (agreement.segment, agreement.window);
        let x410 = matches!(agreement.mode, Mode::X410(_));
        let rest = broken.length.saturating_sub(broken.checkpoint.position);
        if !has_numbers(segment, rest, broken.checkpoint.serial) {
            return Err(AssociationError::Length);
        }
        let elsewhere = broken.session != agreement.identifier;
        let activity = self.next_activity;
        self.session.activity_resume(ActivityResume {
            called: None,
            connection: match elsewhere {
                true => broken.session.to_session(x410),
                false => ConnectionIdentifier::default(),
            },
            old_activity: activity_identifier(broken.activity),
            serial: broken.checkpoint.serial,
            activity: activity_identifier(activity),
        })?;
        self.count_activity();
        self.outgoing = Some(Outgoing::resumed(activity, broken, segment, window));
        let checkpoint = broken.checkpoint;
        Ok(TransferFrom {
            activity,
            checkpoint,
        })
    }

    /// S-SYNC-MINOR confirm.
    pub(super) fn checkpoint_confirmed(&mut self, serial: u32) {
        if let Some(outgoing) = self.outgoing.as_mut() {
            outgoing.confirm(serial);
        }
        if let Some(broken) = self.broken() {
            self.tell(Event::CheckpointConfirmed(broken));
        }
    }

    /// S-ACTIVITY-END confirm: the peer is responsible.
    pub(super) fn transferred(&mut self) {
        match self.outgoing.take() {
            Some(outgoing) => self.tell(Event::Transferred(outgoing.activity())),
            None => self.protocol_error(),
        }
    }

    /// S-ACTIVITY-INTERRUPT confirm.
    pub(super) fn interrupt_confirmed(&mut self) {
        let broken = self.broken().filter(Broken::is_resumable);
        self.outgoing = None;
        self.tell(Event::NotTransferred(broken));
    }

    /// S-ACTIVITY-DISCARD confirm.
    pub(super) fn discard_confirmed(&mut self) {
        self.outgoing = None;
        self.tell(Event::NotTransferred(None));
    }

    /// The peer reports an exception (X.228 clause 7.8.2): the transfer is interrupted if it can be resumed and the reason
    /// leaves it to us, else discarded.
    pub(super) fn exception(&mut self, reason: Exception) {
        let Some(broken) = self.broken() else {
            return;
        };
        let resumes = matches!(
            reason,
            Exception::LocalUserError | Exception::UserSequenceError | Exception::NonSpecific
        );
        self.tell(Event::Exception(reason));
        let done = match resumes && broken.is_resumable() {
            true => self.interrupt(Exception::NonSpecific),
            false => self.discard(Exception::NonSpecific),
        };
        if done.is_err() {
            self.protocol_error();
        }
    }

    /// RT-TURN-PLEASE request: asks for the turn, at any time but when this side has it.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] with the turn, in a monologue, and while a session service waits.
    pub fn please_turn(&mut self, priority: u32) -> Result<(), AssociationError> {
        let agreement = self.agreement("RT-TURN-PLEASE request")?;
        if agreement.monologue {
            return Err(AssociationError::Monologue("RT-TURN-PLEASE request"));
        }
        if self.session.has_tokens() {
            return Err(AssociationError::Phase("RT-TURN-PLEASE request"));
        }
        let priority = rtse::apdu::write_priority(priority);
        let data = match agreement.mode {
            Mode::X410(_) => priority,
            Mode::Normal => UserData::one(agreement.rtse, priority).write().into_bytes(),
        };
        Ok(self.session.token_please(Tokens::DATA, data)?)
    }

    /// RT-TURN-GIVE request: gives the turn to the peer.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without the turn, in a monologue, and during a transfer.
    pub fn give_turn(&mut self) -> Result<(), AssociationError> {
        let agreement = self.may_begin("RT-TURN-GIVE request")?;
        if agreement.monologue {
            return Err(AssociationError::Monologue("RT-TURN-GIVE request"));
        }
        Ok(self.session.control_give()?)
    }

    /// S-TOKEN-PLEASE indication.
    pub(super) fn turn_pleased(&mut self, data: &Bytes) {
        let Phase::Open(agreement) = &self.phase else {
            return;
        };
        let value = match agreement.mode {
            Mode::X410(_) => Some(data.clone()),
            Mode::Normal => UserData::read(data)
                .ok()
                .and_then(|data| data.value(agreement.rtse, agreement.contexts.single())),
        };
        let priority = value.and_then(|value| rtse::apdu::read_priority(&value).ok());
        match priority {
            Some(priority) if !agreement.monologue => self.tell(Event::TurnPlease(priority)),
            _ => self.protocol_error(),
        }
    }

    /// S-CONTROL-GIVE indication.
    pub(super) fn turn_given(&mut self) {
        match &self.phase {
            Phase::Open(agreement) if !agreement.monologue => self.tell(Event::TurnGiven),
            _ => self.protocol_error(),
        }
    }

    /// The peer has broken the protocol: the association is aborted.
    pub(super) fn protocol_error(&mut self) {
        self.send_abort(&Rtab::because(AbortReason::ProtocolError));
        self.end(AbortCause::Ours(AbortReason::ProtocolError));
    }
}
