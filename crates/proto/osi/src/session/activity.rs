//! Activities, minor synchronization points and exceptions of a session.

use bytes::Bytes;

use super::spdu::requirement;
use super::{ActivityResume, Exception, NotAllowed, Session, SessionEvent, Spdu, State, Token};

/// The largest serial number (X.225 clause 8.3).
pub const SERIAL_MAX: u64 = 999_999;

impl Session {
    const fn has_unit(&self, unit: u16) -> bool {
        self.requirements & unit != 0
    }

    /// Whether this side may act in an activity: it has the three tokens.
    fn drives(&self) -> bool {
        self.tokens.may(Token::Data)
            && self.tokens.may(Token::SynchronizeMinor)
            && self.tokens.holds(Token::MajorActivity)
    }

    /// Whether the peer may.
    fn peer_drives(&self) -> bool {
        self.tokens.peer_may(Token::Data)
            && self.tokens.peer_may(Token::SynchronizeMinor)
            && self.tokens.peer_holds(Token::MajorActivity)
    }

    /// V(M) > serial number >= V(A): the point awaits its confirmation.
    const fn is_unconfirmed(&self, serial: u32) -> bool {
        serial < self.vm && serial >= self.va
    }

    /// S-ACTIVITY-START request.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] without the tokens, and in an activity.
    pub fn activity_start(&mut self, activity: Bytes) -> Result<(), NotAllowed> {
        if self.state != State::Sta713 || self.activity || !self.drives() {
            return Err(self.refuse_request("S-ACTIVITY-START request"));
        }
        self.send(&Spdu::ActivityStart(activity));
        self.begin_activity(0);
        Ok(())
    }

    /// S-ACTIVITY-RESUME request.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] without the tokens, and in an activity.
    pub fn activity_resume(&mut self, resume: ActivityResume) -> Result<(), NotAllowed> {
        if self.state != State::Sta713 || self.activity || !self.drives() {
            return Err(self.refuse_request("S-ACTIVITY-RESUME request"));
        }
        let serial = resume.serial;
        self.send(&Spdu::ActivityResume(resume));
        self.begin_activity(serial);
        Ok(())
    }

    /// Special actions 12, 26 and 27.
    fn begin_activity(&mut self, serial: u32) {
        self.activity = true;
        let next = serial.saturating_add(1);
        (self.va, self.vm, self.vr) = (next, next, 1);
    }

    /// S-SYNC-MINOR request with confirmation; gives the serial number.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] without the tokens, outside of an activity, and after 999,998 points of it.
    pub fn sync_minor(&mut self) -> Result<u32, NotAllowed> {
        let may = self.activity && self.tokens.holds(Token::SynchronizeMinor);
        if self.state != State::Sta713 || !may || u64::from(self.vm) >= SERIAL_MAX {
            return Err(self.refuse_request("S-SYNC-MINOR request"));
        }
        let serial = self.vm;
        self.send(&Spdu::MinorSyncPoint(serial, true));
        self.point_sent();
        Ok(serial)
    }

    /// Special action 24.
    fn point_sent(&mut self) {
        if self.vsc {
            self.va = self.vm;
        }
        self.vsc = false;
        self.vm = self.vm.saturating_add(1);
    }

    /// Special action 23.
    fn point_received(&mut self) {
        if !self.vsc {
            self.va = self.vm;
        }
        self.vsc = true;
        self.vm = self.vm.saturating_add(1);
    }

    /// Special action 31.
    fn end_received(&mut self) {
        if !self.vsc {
            self.va = self.vm;
        }
        self.vm = self.vm.saturating_add(1);
    }

    /// S-SYNC-MINOR response: confirms this point and all before it.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] for a serial number that awaits no confirmation.
    pub fn sync_minor_response(&mut self, serial: u32) -> Result<(), NotAllowed> {
        // In STA 10B the last number is that of ACTIVITY END, which has a confirmation of its own.
        let last = self.state == State::Sta10B && serial == self.vm.saturating_sub(1);
        let here = matches!(self.state, State::Sta713 | State::Sta10B) && !last;
        if !here || !self.vsc || !self.is_unconfirmed(serial) {
            return Err(self.refuse_request("S-SYNC-MINOR response"));
        }
        self.send(&Spdu::MinorSyncAck(serial));
        self.va = serial.saturating_add(1);
        Ok(())
    }

    /// S-ACTIVITY-END request.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] without the tokens, and outside of an activity.
    pub fn activity_end(&mut self) -> Result<(), NotAllowed> {
        if self.state != State::Sta713 || !self.activity || !self.drives() {
            return Err(self.refuse_request("S-ACTIVITY-END request"));
        }
        self.send(&Spdu::ActivityEnd(self.vm));
        self.point_sent();
        self.state = State::Sta04B;
        Ok(())
    }

    /// S-ACTIVITY-END response.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] in another state than STA 10B.
    pub fn activity_end_response(&mut self) -> Result<(), NotAllowed> {
        if self.state != State::Sta10B {
            return Err(self.refuse_request("S-ACTIVITY-END response"));
        }
        self.send(&Spdu::ActivityEndAck(self.vm.saturating_sub(1)));
        self.end_of_activity();
        Ok(())
    }

    /// Special actions 14 and 22.
    fn end_of_activity(&mut self) {
        self.activity = false;
        (self.va, self.vr) = (self.vm, self.vm);
        self.state = State::Sta713;
    }

    fn may_break_off(&self) -> bool {
        let held = self.tokens.holds(Token::MajorActivity);
        match self.state {
            State::Sta713 | State::Sta04B => held && self.activity,
            State::Sta20 => held,
            _ => false,
        }
    }

    /// S-ACTIVITY-INTERRUPT request.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] without the tokens, and outside of an activity.
    pub fn activity_interrupt(&mut self, reason: Exception) -> Result<(), NotAllowed> {
        if !self.may_break_off() {
            return Err(self.refuse_request("S-ACTIVITY-INTERRUPT request"));
        }
        self.end_ssdu();
        self.send(&Spdu::ActivityInterrupt(reason));
        self.state = State::Sta05B;
        Ok(())
    }

    /// S-ACTIVITY-DISCARD request.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] without the tokens, and outside of an activity.
    pub fn activity_discard(&mut self, reason: Exception) -> Result<(), NotAllowed> {
        if !self.may_break_off() {
            return Err(self.refuse_request("S-ACTIVITY-DISCARD request"));
        }
        self.end_ssdu();
        self.send(&Spdu::ActivityDiscard(reason));
        self.state = State::Sta05C;
        Ok(())
    }

    /// S-ACTIVITY-INTERRUPT response.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] in another state than STA 11B.
    pub fn activity_interrupt_response(&mut self) -> Result<(), NotAllowed> {
        if self.state != State::Sta11B {
            return Err(self.refuse_request("S-ACTIVITY-INTERRUPT response"));
        }
        self.send(&Spdu::ActivityInterruptAck);
        self.broken_off(false);
        Ok(())
    }

    /// S-ACTIVITY-DISCARD response.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] in another state than STA 11C.
    pub fn activity_discard_response(&mut self) -> Result<(), NotAllowed> {
        if self.state != State::Sta11C {
            return Err(self.refuse_request("S-ACTIVITY-DISCARD response"));
        }
        self.send(&Spdu::ActivityDiscardAck);
        self.broken_off(false);
        Ok(())
    }

    /// Special actions 29 and 30: the tokens are where the activity was broken off.
    fn broken_off(&mut self, here: bool) {
        self.activity = false;
        self.tokens.owned = match here {
            true => self.tokens.available,
            false => super::Tokens::NONE,
        };
        self.state = State::Sta713;
    }

    /// S-U-EXCEPTION-REPORT request, by the side that receives.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] with the data token, and outside of an activity.
    pub fn exception_report(&mut self, reason: Exception, data: Bytes) -> Result<(), NotAllowed> {
        let here = matches!(self.state, State::Sta713 | State::Sta10B);
        let may = self.has_unit(requirement::EXCEPTIONS)
            && self.activity
            && self.tokens.peer_holds(Token::Data);
        if !here || !may || !self.fits(&data) {
            return Err(self.refuse_request("S-U-EXCEPTION-REPORT request"));
        }
        self.send(&Spdu::ExceptionData(reason, data));
        self.drop_ssdu();
        self.state = State::Sta19;
        Ok(())
    }

    /// The table of X.225 Annex A for SPDUs of an established connection.
    pub(super) fn connected_spdu(&mut self, spdu: Spdu) -> bool {
        match spdu {
            Spdu::GiveTokens(tokens) => self.given(tokens),
            Spdu::PleaseTokens(tokens, data) => self.pleased(tokens, data),
            Spdu::GiveTokensConfirm(_) => self.control_given(),
            Spdu::GiveTokensAck => self.control_taken(),
            Spdu::MinorSyncPoint(serial, explicit) => self.minor_point(serial, explicit),
            Spdu::MinorSyncAck(serial) => self.minor_ack(serial),
            Spdu::ActivityStart(activity) => {
                self.activity_begun(0, SessionEvent::ActivityStart(activity))
            }
            Spdu::ActivityResume(resume) => {
                let serial = resume.serial;
                self.activity_begun(serial, SessionEvent::ActivityResume(resume))
            }
            Spdu::ActivityEnd(serial) => self.activity_ended(serial),
            Spdu::ActivityEndAck(serial) => self.activity_end_confirmed(serial),
            Spdu::ActivityInterrupt(reason) => {
                self.break_off(State::Sta11B, SessionEvent::ActivityInterrupt(reason))
            }
            Spdu::ActivityDiscard(reason) => {
                self.break_off(State::Sta11C, SessionEvent::ActivityDiscard(reason))
            }
            Spdu::ActivityInterruptAck => {
                self.break_off_confirmed(State::Sta05B, SessionEvent::ActivityInterruptConfirm)
            }
            Spdu::ActivityDiscardAck => {
                self.break_off_confirmed(State::Sta05C, SessionEvent::ActivityDiscardConfirm)
            }
            Spdu::ExceptionData(reason, data) => {
                self.exception(SessionEvent::UserException(reason, data))
            }
            Spdu::ExceptionReport(_) => self.exception(SessionEvent::ProviderException),
            // NOT FINISHED needs negotiated release, ABORT ACCEPT the state STA 16.
            _ => false,
        }
    }

    fn activity_begun(&mut self, serial: u32, event: SessionEvent) -> bool {
        let may = self.has_unit(requirement::ACTIVITY_MANAGEMENT)
            && !self.activity
            && self.tokens.all_there();
        if self.state != State::Sta713 || !may {
            return false;
        }
        self.begin_activity(serial);
        self.tell(event);
        true
    }

    fn minor_point(&mut self, serial: u32, explicit: bool) -> bool {
        let may = self.activity
            && self.tokens.peer_may(Token::Data)
            && self.tokens.peer_holds(Token::SynchronizeMinor);
        match self.state {
            State::Sta05B | State::Sta05C => return may,
            State::Sta713 | State::Sta19 | State::Sta20 if may && serial == self.vm => {}
            _ => return false,
        }
        self.point_received();
        if self.state == State::Sta713 {
            self.tell(SessionEvent::SyncMinor(serial, explicit));
        }
        true
    }

    fn minor_ack(&mut self, serial: u32) -> bool {
        let may = self.activity && !self.vsc;
        let awaited = may && self.is_unconfirmed(serial);
        let of_end = serial == self.vm.saturating_sub(1);
        match self.state {
            State::Sta05B | State::Sta05C => may,
            State::Sta20 => awaited,
            State::Sta04B if of_end => false,
            State::Sta713 | State::Sta04B | State::Sta03 if awaited => {
                self.va = serial.saturating_add(1);
                self.tell(SessionEvent::SyncMinorConfirm(serial));
                true
            }
            State::Sta19 if awaited => {
                self.va = serial.saturating_add(1);
                true
            }
            _ => false,
        }
    }

    fn activity_ended(&mut self, serial: u32) -> bool {
        let may = self.activity && self.peer_drives() && serial == self.vm;
        match self.state {
            State::Sta713 if may => {
                self.end_received();
                self.state = State::Sta10B;
                self.tell(SessionEvent::ActivityEnd(serial));
                true
            }
            State::Sta19 | State::Sta20 if may => {
                self.end_received();
                true
            }
            _ => false,
        }
    }

    fn activity_end_confirmed(&mut self, serial: u32) -> bool {
        let of_end = serial == self.vm.saturating_sub(1);
        match self.state {
            State::Sta04B if of_end => {
                self.end_of_activity();
                self.tell(SessionEvent::ActivityEndConfirm);
                true
            }
            State::Sta20 => of_end,
            State::Sta05B | State::Sta05C => true,
            _ => false,
        }
    }

    /// ACTIVITY INTERRUPT and ACTIVITY DISCARD.
    fn break_off(&mut self, next: State, event: SessionEvent) -> bool {
        let here = matches!(
            self.state,
            State::Sta713 | State::Sta10B | State::Sta19 | State::Sta20
        );
        // Outside of an activity, they have crossed the confirmation of its end.
        if !here || !self.tokens.peer_holds(Token::MajorActivity) {
            return false;
        }
        self.drop_ssdu();
        self.state = next;
        self.tell(event);
        true
    }

    fn break_off_confirmed(&mut self, state: State, event: SessionEvent) -> bool {
        if self.state != state {
            return false;
        }
        self.broken_off(true);
        self.tell(event);
        true
    }

    /// EXCEPTION DATA and EXCEPTION REPORT.
    fn exception(&mut self, event: SessionEvent) -> bool {
        let may = self.has_unit(requirement::EXCEPTIONS) && self.activity;
        let here = self.tokens.holds(Token::Data);
        match self.state {
            State::Sta05B | State::Sta05C => return self.has_unit(requirement::EXCEPTIONS),
            State::Sta713 | State::Sta04B if may && here => self.state = State::Sta20,
            State::Sta713 | State::Sta19 if may => {}
            _ => return false,
        }
        self.tell(event);
        true
    }
}
