//! Release and abort.

use bytes::Bytes;
use vere_ber::External;

use super::phase::Phase;
use super::{AbortCause, Association, AssociationError, Event, Mode};
use crate::acse::{Apdu, Source};
use crate::presentation::{Abort, UserData};
use crate::rtse::{AbortReason, OutgoingState, Rtab};

impl Association {
    /// RT-CLOSE request. `Released` follows.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without the turn, and during a transfer.
    pub fn release(&mut self) -> Result<(), AssociationError> {
        let Phase::Open(agreement) = &self.phase else {
            return Err(AssociationError::Phase("RT-CLOSE request"));
        };
        if self.outgoing.is_some() || self.incoming.is_some() {
            return Err(AssociationError::Transfer("RT-CLOSE request"));
        }
        let data = match agreement.mode {
            Mode::X410(_) => Bytes::new(),
            Mode::Normal => {
                let rlrq = Apdu::Rlrq(Some(0), Vec::new()).write().into_bytes();
                UserData::one(agreement.acse, rlrq).write().into_bytes()
            }
        };
        Ok(self.session.release(data)?)
    }

    /// S-RELEASE indication.
    pub(super) fn release_indicated(&mut self, data: &Bytes) {
        let Phase::Open(agreement) = &self.phase else {
            return;
        };
        let known = match agreement.mode {
            Mode::X410(_) => true,
            Mode::Normal => {
                let value = UserData::read(data).ok();
                let single = agreement.contexts.single();
                let value = value.and_then(|data| data.value(agreement.acse, single));
                let apdu = value.and_then(|value| Apdu::read(&value).ok());
                matches!(apdu, Some(Apdu::Rlrq(..)))
            }
        };
        match known {
            true => self.tell(Event::ReleaseIndication),
            false => self.protocol_error(),
        }
    }

    /// RT-CLOSE response: the association ends.
    ///
    /// # Errors
    ///
    /// [`AssociationError`] without an indication.
    pub fn accept_release(&mut self) -> Result<(), AssociationError> {
        let Phase::Open(agreement) = &self.phase else {
            return Err(AssociationError::Phase("RT-CLOSE response"));
        };
        let data = match agreement.mode {
            Mode::X410(_) => Bytes::new(),
            Mode::Normal => {
                let rlre = Apdu::Rlre(Some(0), Vec::new()).write().into_bytes();
                UserData::one(agreement.acse, rlre).write().into_bytes()
            }
        };
        self.session.release_response(data)?;
        self.finish();
        Ok(())
    }

    /// S-RELEASE confirm.
    pub(super) fn release_confirmed(&mut self) {
        self.finish();
        self.tell(Event::Released);
    }

    /// RT-U-ABORT request: ends the association at once. A transfer of this side is not told any more; take what is left of it with
    /// [`broken`](Self::broken) before. User data are one BER value, in normal mode and session version 2 only.
    pub fn abort(&mut self, user_data: Option<Bytes>) {
        let reason = match self.mode() {
            Some(Mode::X410(_)) => AbortReason::LocalSystemProblem,
            _ => AbortReason::UserError,
        };
        let user_data = user_data.filter(|_| reason == AbortReason::UserError);
        self.paused = false;
        self.send_abort(&Rtab {
            reason: Some(reason),
            user_data,
        });
        self.end(AbortCause::Requested);
        self.finish();
    }

    const fn mode(&self) -> Option<Mode> {
        match &self.phase {
            Phase::Open(agreement) => Some(agreement.mode),
            _ => None,
        }
    }

    /// Sends RTAB where the contexts allow RTAB, and ends the session.
    pub(super) fn send_abort(&mut self, rtab: &Rtab) {
        let data = match &self.phase {
            Phase::Open(agreement) => match agreement.mode {
                Mode::X410(_) => Abort::UserX410(rtab.components()).write().into_bytes(),
                Mode::Normal => {
                    let rtab = External::of_context(agreement.rtse, rtab.write());
                    let abrt = Apdu::Abrt(Source::User, vec![rtab]).write().into_bytes();
                    let contexts = vec![agreement.acse, agreement.rtse];
                    let data = UserData::one(agreement.acse, abrt);
                    Abort::User(contexts, Some(data)).write().into_bytes()
                }
            },
            _ => Bytes::new(),
        };
        self.session.abort(data);
    }

    /// S-U-ABORT indication.
    pub(super) fn aborted(&mut self, data: &Bytes) {
        let cause = self.cause(data);
        let completed = cause == AbortCause::ReliableTransfer(AbortReason::TransferCompleted);
        let breaks_off = self.outgoing.as_ref().is_some_and(|outgoing| {
            matches!(
                outgoing.state(),
                OutgoingState::Discarding | OutgoingState::Interrupting
            )
        });
        if completed && breaks_off {
            // The peer has confirmed the APDU, before the break or while this request was under way.
            self.transferred();
        }
        self.end(cause);
    }

    fn cause(&self, data: &Bytes) -> AbortCause {
        if data.is_empty() {
            return AbortCause::User(None);
        }
        let rtab = match Abort::read(data) {
            Ok(Abort::Provider(reason)) => return AbortCause::Presentation(reason),
            Ok(Abort::UserX410(components)) => Rtab::from_components(&components).ok(),
            Ok(Abort::User(_, user_data)) => return self.association_cause(user_data.as_ref()),
            Err(_) => None,
        };
        rtab.map_or(AbortCause::User(None), rtab_cause)
    }

    /// The cause in ABRT and, within, in RTAB.
    fn association_cause(&self, user_data: Option<&UserData>) -> AbortCause {
        let (acse, rtse) = match &self.phase {
            Phase::Open(agreement) => (agreement.acse, agreement.rtse),
            _ => (super::opening::ACSE_CONTEXT, super::opening::RTSE_CONTEXT),
        };
        let value = user_data.and_then(|data| data.value(acse, Some(acse)));
        match value.and_then(|value| Apdu::read(&value).ok()) {
            Some(Apdu::Abrt(Source::Provider, _)) => AbortCause::Association,
            Some(Apdu::Abrt(Source::User, information)) => {
                let value = super::opening::rtse_value(&information, rtse).ok();
                let rtab = value.and_then(|value| Rtab::read(&value).ok());
                rtab.map_or(AbortCause::User(None), rtab_cause)
            }
            _ => AbortCause::User(None),
        }
    }
}

fn rtab_cause(rtab: Rtab) -> AbortCause {
    match rtab.reason {
        None => AbortCause::ReliableTransfer(AbortReason::PermanentProblem),
        Some(AbortReason::UserError) => AbortCause::User(rtab.user_data),
        Some(reason) => AbortCause::ReliableTransfer(reason),
    }
}
