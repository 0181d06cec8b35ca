//! Transfers of the peer.

use bytes::Bytes;
use vere_ber::Fault;

use super::phase::Phase;
use super::{AbortCause, Association, AssociationError, Event, Mode, ResumeIndication};
use crate::presentation::DataReader;
use crate::rtse::{
    AbortReason, Checkpoint, Incoming, IncomingState, Rtab, SessionConnectionIdentifier,
};
use crate::session::{ActivityResume, Exception};

impl Association {
    fn incoming_state(&self) -> Option<IncomingState> {
        self.incoming.as_ref().map(Incoming::state)
    }

    /// S-ACTIVITY-START indication.
    pub(super) fn transfer_begins(&mut self, activity: Bytes) {
        if self.outgoing.is_some() || !matches!(self.phase, Phase::Open(_)) {
            return self.protocol_error();
        }
        self.begin_incoming(
            activity.clone(),
            Checkpoint::default(),
            IncomingState::Receiving,
        );
        self.tell(Event::TransferBegins(activity));
    }

    fn begin_incoming(&mut self, activity: Bytes, from: Checkpoint, state: IncomingState) {
        self.incoming = Some(Incoming::new(activity, from, state));
        self.reader = None;
        self.confirmed_last = false;
    }

    /// S-ACTIVITY-RESUME indication: the host has to name the octets on its disk.
    pub(super) fn transfer_resumes(&mut self, resume: &ActivityResume) {
        if self.outgoing.is_some() || !matches!(self.phase, Phase::Open(_)) {
            return self.protocol_error();
        }
        // Its state is that of an answer that is awaited: nothing of the activity is looked at until then.
        let from = Checkpoint {
            serial: resume.serial,
            position: 0,
        };
        self.begin_incoming(resume.activity.clone(), from, IncomingState::Refused);
        self.paused = true;
        self.tell(Event::ResumeIndication(ResumeIndication {
            session: SessionConnectionIdentifier::from_session(&resume.connection),
            old_activity: resume.old_activity.clone(),
            activity: resume.activity.clone(),
            checkpoint: resume.serial,
        }));
    }

    fn answer_resume(
        &mut self,
        request: &'static str,
        from: Option<u64>,
        state: IncomingState,
    ) -> Result<(), AssociationError> {
        let Some(incoming) = self.incoming.as_ref().filter(|_| self.paused) else {
            return Err(AssociationError::Transfer(request));
        };
        let from = Checkpoint {
            serial: incoming.secured().serial,
            position: from.unwrap_or(0),
        };
        let activity = incoming.activity().clone();
        self.begin_incoming(activity, from, state);
        self.paused = false;
        Ok(())
    }

    /// Answers a `ResumeIndication`: the host has the octets before the checkpoint, of which it tells the number. Octets behind it that
    /// the host has are void.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without such an indication.
    pub fn continue_from(&mut self, position: u64) -> Result<(), AssociationError> {
        let state = IncomingState::Receiving;
        self.answer_resume("RT-TRANSFER response", Some(position), state)
    }

    /// Answers a `ResumeIndication`: the host has the whole APDU, and has confirmed it before. It is confirmed once more when the
    /// peer ends the activity, and told by `Reconfirmed`.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without such an indication.
    pub fn already_received(&mut self) -> Result<(), AssociationError> {
        let state = IncomingState::Completed;
        self.answer_resume("RT-TRANSFER response", None, state)
    }

    /// Refuses the transfer that is received or resumed: an exception is reported, and the peer interrupts or discards it. A
    /// resumed activity that is not known is refused with [`Exception::UnrecoverableProceduralError`].
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without a transfer of the peer.
    pub fn refuse_transfer(&mut self, reason: Exception) -> Result<(), AssociationError> {
        let Some(incoming) = self.incoming.as_mut() else {
            return Err(AssociationError::Transfer("S-U-EXCEPTION-REPORT request"));
        };
        self.session.exception_report(reason, Bytes::new())?;
        incoming.set_state(IncomingState::Refused);
        self.paused = false;
        Ok(())
    }

    /// S-DATA indication.
    pub(super) fn data(&mut self, octets: Bytes, end: bool) {
        let Phase::Open(agreement) = &self.phase else {
            return;
        };
        match self.incoming_state() {
            Some(IncomingState::Receiving) => {}
            Some(IncomingState::Completed | IncomingState::Refused) => return,
            _ => return self.protocol_error(),
        }
        let done = match agreement.mode {
            Mode::X410(_) => {
                self.take_octets(octets);
                Ok(())
            }
            Mode::Normal => {
                let single = agreement.contexts.single() == Some(agreement.rtse);
                let fresh = DataReader::new(agreement.rtse, single);
                let reader = self.reader.take().unwrap_or(fresh);
                self.read_data(reader, octets, end)
            }
        };
        let length = self.incoming.as_ref().map_or(0, Incoming::position);
        if done.is_err() {
            self.protocol_error();
        } else if length > self.limits.apdu_max {
            self.send_abort(&Rtab::because(AbortReason::LocalSystemProblem));
            self.end(AbortCause::Ours(AbortReason::LocalSystemProblem));
        }
    }

    fn read_data(&mut self, mut reader: DataReader, octets: Bytes, end: bool) -> Result<(), Fault> {
        reader.push(octets);
        while let Some(octets) = reader.read()? {
            self.take_octets(octets);
        }
        if !end {
            self.reader = Some(reader);
        } else if reader.end().is_err()
            && let Some(incoming) = self.incoming.as_mut()
        {
            incoming.set_state(IncomingState::Cut);
        }
        Ok(())
    }

    fn take_octets(&mut self, octets: Bytes) {
        if octets.is_empty() {
            return;
        }
        if let Some(incoming) = self.incoming.as_mut() {
            incoming.advance(octets.len());
        }
        self.tell(Event::Apdu(octets));
    }

    /// S-SYNC-MINOR indication.
    pub(super) fn checkpoint(&mut self, serial: u32, explicit: bool) {
        let Phase::Open(agreement) = &self.phase else {
            return;
        };
        let window = usize::try_from(agreement.window).unwrap_or(usize::MAX);
        let Some(incoming) = self.incoming.as_mut() else {
            return self.protocol_error();
        };
        match incoming.state() {
            IncomingState::Receiving if !explicit => {}
            IncomingState::Receiving if incoming.unsecured() < window => {
                let point = incoming.checkpoint(serial);
                self.tell(Event::Checkpoint(point));
            }
            IncomingState::Completed => {
                // The session has just told of the point, so the session awaits a confirmation.
                let _confirmed = self.session.sync_minor_response(serial);
            }
            IncomingState::Refused => {}
            _ => self.protocol_error(),
        }
    }

    /// The host has the octets before this checkpoint; all checkpoints before it count as well. The peer need not send them again
    /// after a break.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] for a checkpoint that awaits nothing.
    pub fn secured(&mut self, serial: u32) -> Result<(), AssociationError> {
        let Some(incoming) = self.incoming.as_mut() else {
            return Err(AssociationError::Transfer("S-SYNC-MINOR response"));
        };
        if !incoming.secure(serial) {
            return Err(AssociationError::Checkpoint(serial));
        }
        Ok(self.session.sync_minor_response(serial)?)
    }

    /// S-ACTIVITY-END indication.
    pub(super) fn transfer_ended(&mut self) {
        let Some(incoming) = self.incoming.as_mut() else {
            return self.protocol_error();
        };
        let length = incoming.position();
        let activity = incoming.activity().clone();
        match incoming.state() {
            IncomingState::Receiving if length > 0 => {
                incoming.set_state(IncomingState::Ended);
                self.tell(Event::Received(length));
            }
            IncomingState::Completed => {
                // The state is STA 10B, so the session confirms.
                let _confirmed = self.session.activity_end_response();
                self.incoming = None;
                self.confirmed_last = true;
                self.tell(Event::Reconfirmed(activity));
            }
            IncomingState::Refused => {}
            _ => self.protocol_error(),
        }
    }

    /// RT-TRANSFER response: the APDU is safe, and from now on the receiver is responsible.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without a complete APDU.
    pub fn confirm(&mut self) -> Result<(), AssociationError> {
        if self.incoming_state() != Some(IncomingState::Ended) {
            return Err(AssociationError::Transfer("RT-TRANSFER response"));
        }
        self.session.activity_end_response()?;
        self.incoming = None;
        self.confirmed_last = true;
        Ok(())
    }

    /// S-ACTIVITY-INTERRUPT indication.
    pub(super) fn transfer_interrupted(&mut self, reason: Exception) {
        let Some(incoming) = self.incoming.take() else {
            return self.already_completed();
        };
        self.reader = None;
        // The state is STA 11B, so the session answers.
        let _answered = self.session.activity_interrupt_response();
        self.tell(Event::TransferInterrupted(incoming.secured(), reason));
    }

    /// The peer breaks off a transfer that this side has confirmed: the request has crossed the confirmation, or the host knows the
    /// activity from before.
    fn already_completed(&mut self) {
        if !self.confirmed_last {
            return self.protocol_error();
        }
        self.send_abort(&Rtab::because(AbortReason::TransferCompleted));
        self.end(AbortCause::Ours(AbortReason::TransferCompleted));
    }

    /// S-ACTIVITY-DISCARD indication. A completed transfer cannot be discarded: the abort tells the peer so.
    pub(super) fn transfer_discarded(&mut self, reason: Exception) {
        let Some(incoming) = self.incoming.take() else {
            return self.already_completed();
        };
        self.reader = None;
        if incoming.state() == IncomingState::Completed {
            self.confirmed_last = true;
            return self.already_completed();
        }
        // The state is STA 11C, so the session answers.
        let _answered = self.session.activity_discard_response();
        self.tell(Event::TransferDiscarded(reason));
    }
}
