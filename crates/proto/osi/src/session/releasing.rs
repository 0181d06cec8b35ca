//! Release and tokens of a session.

use bytes::Bytes;

use super::spdu::disconnect;
use super::{NotAllowed, Session, SessionEvent, Spdu, State, Tokens};

impl Session {
    /// S-RELEASE request.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] without all tokens, in an activity, and for user data above the limit of the version.
    pub fn release(&mut self, user_data: Bytes) -> Result<(), NotAllowed> {
        let may = self.tokens.all_here() && !self.activity && self.fits(&user_data);
        if self.state != State::Sta713 || !may {
            return Err(self.refuse_request("S-RELEASE request"));
        }
        self.send(&Spdu::Finish(disconnect::RELEASED, user_data));
        self.state = State::Sta03;
        Ok(())
    }

    /// S-RELEASE response. Without negotiated release there is no refusal.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] in another state than STA 09, and for user data above the limit of the version.
    pub fn release_response(&mut self, user_data: Bytes) -> Result<(), NotAllowed> {
        if self.state != State::Sta09 || !self.fits(&user_data) {
            return Err(self.refuse_request("S-RELEASE response"));
        }
        self.send(&Spdu::Disconnect(user_data));
        self.state = State::Sta16;
        Ok(())
    }

    /// FINISH.
    pub(super) fn finish(&mut self, user_data: Bytes) -> bool {
        let may = self.tokens.all_there() && !self.activity;
        match self.state {
            State::Sta713 if may => {
                self.tell(SessionEvent::Release(user_data));
                self.state = State::Sta09;
                true
            }
            State::Sta19 | State::Sta20 => may,
            _ => false,
        }
    }

    /// DISCONNECT.
    pub(super) fn released(&mut self, user_data: Bytes) -> bool {
        if self.state != State::Sta03 {
            return false;
        }
        self.tell(SessionEvent::ReleaseConfirm(user_data));
        self.disconnect();
        true
    }

    /// S-TOKEN-PLEASE request.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] for tokens that do not exist, in states without data transfer, and for user data above the limit of the
    /// version.
    pub fn token_please(&mut self, tokens: Tokens, user_data: Bytes) -> Result<(), NotAllowed> {
        let here = matches!(self.state, State::Sta713 | State::Sta10B | State::Sta09);
        if !here || !self.tokens.available.has_all(tokens) || !self.fits(&user_data) {
            return Err(self.refuse_request("S-TOKEN-PLEASE request"));
        }
        self.send(&Spdu::PleaseTokens(tokens, user_data));
        Ok(())
    }

    /// S-CONTROL-GIVE request: all tokens at once, outside of an activity.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] without all tokens, and in an activity.
    pub fn control_give(&mut self) -> Result<(), NotAllowed> {
        if self.state != State::Sta713 || self.activity || !self.tokens.all_here() {
            return Err(self.refuse_request("S-CONTROL-GIVE request"));
        }
        self.send(&Spdu::GiveTokensConfirm(Bytes::new()));
        self.tokens.owned = Tokens::NONE;
        self.state = State::Sta18;
        Ok(())
    }

    /// PLEASE TOKENS: it may come at any time, also before acknowledgements that the peer owes.
    pub(super) fn pleased(&mut self, tokens: Tokens, user_data: Bytes) -> bool {
        if !self.tokens.available.has_all(tokens) {
            return false;
        }
        match self.state {
            State::Sta713 | State::Sta03 | State::Sta04B | State::Sta18 => {
                self.tell(SessionEvent::TokenPlease(tokens, user_data));
                true
            }
            State::Sta05B | State::Sta05C | State::Sta19 | State::Sta20 => true,
            _ => false,
        }
    }

    /// GIVE TOKENS.
    pub(super) fn given(&mut self, tokens: Tokens) -> bool {
        let there = self.tokens.available.has_all(tokens) && !self.owns_any(tokens);
        match self.state {
            State::Sta713 | State::Sta04B | State::Sta10B if there => {}
            State::Sta19 | State::Sta20 if there => {
                if tokens.has(super::Token::Data) {
                    self.state = State::Sta713;
                }
            }
            State::Sta05B | State::Sta05C => return there,
            _ => return false,
        }
        self.tokens.owned = self.tokens.owned.union(tokens);
        self.tell(SessionEvent::TokenGive(tokens));
        true
    }

    fn owns_any(&self, tokens: Tokens) -> bool {
        self.tokens.owned.without(tokens) != self.tokens.owned
    }

    /// GIVE TOKENS CONFIRM.
    pub(super) fn control_given(&mut self) -> bool {
        if self.state != State::Sta713 || self.activity || !self.tokens.all_there() {
            return false;
        }
        self.send(&Spdu::GiveTokensAck);
        self.tokens.owned = self.tokens.available;
        self.tell(SessionEvent::ControlGive);
        true
    }

    /// GIVE TOKENS ACK.
    pub(super) fn control_taken(&mut self) -> bool {
        let known = self.state == State::Sta18;
        if known {
            self.state = State::Sta713;
        }
        known
    }
}
