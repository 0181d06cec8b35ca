//! Establishment of a session connection.

use bytes::Bytes;
use vere_ber::Pieces;

use super::machine::Fault;
use super::parameters::SpduError;
use super::spdu::{USER_DATA_MAX, disconnect, requirement, version};
use super::tokens::Position;
use super::{
    Accept, Accepting, Connect, Connecting, Item, NotAllowed, OverflowAccept, Refuse, RefuseReason,
    Session, SessionEvent, Spdu, State, Tokens,
};

/// User data of a connection above this travel in CONNECT DATA OVERFLOW SPDUs (X.225 clause 8.3.3).
const OVERFLOW: usize = 10_240;
/// User data of one CONNECT DATA OVERFLOW SPDU: its length fits 16 bits.
const OVERFLOW_PART: usize = 65_000;
/// TSDUs that a TSDU maximum size leaves room for headers in.
const TSDU_MIN: usize = 64;
/// Headers of a segment of user information: GIVE TOKENS, DATA TRANSFER with an enclosure item.
const SEGMENT_HEADER: usize = 7;

impl Session {
    /// S-CONNECT request. The CONNECT SPDU is sent when the transport connection is there. User data above 512 octets propose
    /// version 2 alone.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] in another state than STA 01, and for user data above the limit of the version.
    pub fn connect(&mut self, request: Connecting) -> Result<(), NotAllowed> {
        let length = request.user_data.len();
        let two = self.config.versions & version::TWO != 0;
        let fits = length <= USER_DATA_MAX || (two && length <= self.config.connect_user_data_max);
        if self.state != State::Sta01 || self.acceptor || !fits {
            return Err(self.refuse_request("S-CONNECT request"));
        }
        self.connecting = Some(request);
        self.state = State::Sta01B;
        Ok(())
    }

    /// T-CONNECT confirm.
    pub fn transport_connected(&mut self) {
        let (State::Sta01B, Some(request)) = (self.state, self.connecting.take()) else {
            return;
        };
        let mut user_data = Pieces::from(request.user_data);
        let overflow = user_data.len() > OVERFLOW;
        let versions = match user_data.len() > USER_DATA_MAX {
            true => version::TWO,
            false => self.config.versions,
        };
        let connect = Connect {
            identifier: request.identifier,
            item: Item {
                versions,
                token_setting: Some(if request.responder_has_tokens {
                    0x15
                } else {
                    0
                }),
                ..Item::default()
            },
            requirements: super::REQUIREMENTS,
            calling: request.calling,
            called: request.called,
            overflow,
            user_data: user_data.take(OVERFLOW).into_bytes(),
        };
        self.overflow = user_data;
        self.send(&Spdu::Connect(connect.clone()));
        self.request = Some(connect);
        self.state = if overflow {
            State::Sta02B
        } else {
            State::Sta02A
        };
    }

    /// S-CONNECT response, accepted.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] in another state than STA 08, and for user data above the limit of the version.
    pub fn accept(&mut self, response: Accepting) -> Result<(), NotAllowed> {
        let (State::Sta08, true) = (self.state, self.fits(&response.user_data)) else {
            return Err(self.refuse_request("S-CONNECT response"));
        };
        let request = self.request.take().unwrap_or_default();
        let accept = Accept {
            identifier: response.identifier,
            item: Item {
                options: 0,
                versions: self.version,
                // A choice that is left to the called user is taken as the initiator's.
                token_setting: request.item.token_setting.map(|setting| setting & 0x15),
                tsdu_maximum: request.item.tsdu_maximum,
                initial_serial: request.item.initial_serial,
            },
            please: Tokens::NONE,
            requirements: super::REQUIREMENTS & request.requirements,
            responding: response.responding,
            user_data: response.user_data,
        };
        self.send(&Spdu::Accept(accept.clone()));
        self.established(&accept, accept.item.tsdu_maximum.1);
        Ok(())
    }

    /// S-CONNECT response, refused. The user data must fit the version; those of version 1 are cut off at 512 octets.
    ///
    /// # Errors
    ///
    /// [`NotAllowed`] in another state than STA 08.
    pub fn refuse(&mut self, reason: RefuseReason, user_data: Bytes) -> Result<(), NotAllowed> {
        if self.state != State::Sta08 {
            return Err(self.refuse_request("S-CONNECT response"));
        }
        let fits = self.fits(&user_data);
        self.send_refuse(reason, if fits { user_data } else { Bytes::new() });
        Ok(())
    }

    fn send_refuse(&mut self, reason: RefuseReason, user_data: Bytes) {
        let versions = self.config.versions;
        let request = self.request.take().unwrap_or_default();
        self.send(&Spdu::Refuse(Refuse {
            identifier: request.identifier,
            disconnect: disconnect::RELEASED,
            requirements: Some(super::REQUIREMENTS),
            versions: Some(versions).filter(|_| reason == RefuseReason::Version),
            reason,
            user_data,
        }));
        self.state = State::Sta16;
    }

    pub(super) fn requested(&mut self, connect: Connect) -> Result<bool, Fault> {
        if self.state != State::Sta01C || !self.acceptor {
            return Ok(false);
        }
        let common = connect.item.versions & self.config.versions;
        self.version = if common & version::TWO != 0 {
            version::TWO
        } else {
            version::ONE
        };
        if common == 0 {
            self.send_refuse(RefuseReason::Version, Bytes::new());
            return Ok(true);
        }
        if connect.requirements & super::REQUIREMENTS != super::REQUIREMENTS {
            self.send_refuse(RefuseReason::Provider, Bytes::new());
            return Ok(true);
        }
        let limit = self.config.connect_user_data_max;
        if connect.user_data.len() > limit {
            return Err(Fault::Malformed(SpduError::TooLong(limit)));
        }
        if connect.overflow {
            self.overflowing.extend_from_slice(&connect.user_data);
            self.request = Some(connect);
            self.send(&Spdu::OverflowAccept(OverflowAccept {
                tsdu_maximum: (0, 0),
                versions: self.version,
            }));
            self.state = State::Sta01D;
        } else {
            self.indicate(connect);
        }
        Ok(true)
    }

    pub(super) fn overflowed(&mut self, data: Bytes, last: bool) -> Result<bool, Fault> {
        if self.state != State::Sta01D {
            return Ok(false);
        }
        let limit = self.config.connect_user_data_max;
        if self.overflowing.len().saturating_add(data.len()) > limit {
            return Err(Fault::Malformed(SpduError::TooLong(limit)));
        }
        self.overflowing.extend_from_slice(&data);
        if last {
            let mut connect = self.request.take().unwrap_or_default();
            connect.user_data = std::mem::take(&mut self.overflowing).into();
            self.indicate(connect);
        }
        Ok(true)
    }

    fn indicate(&mut self, connect: Connect) {
        self.state = State::Sta08;
        self.request = Some(connect.clone());
        self.tell(SessionEvent::ConnectIndication(connect));
    }

    pub(super) fn overflow_accepted(&mut self, accept: OverflowAccept) -> bool {
        if self.state != State::Sta02B || accept.versions & version::TWO == 0 {
            return false;
        }
        while !self.overflow.is_empty() {
            let part = self.overflow.take(OVERFLOW_PART).into_bytes();
            let last = self.overflow.is_empty();
            self.send(&Spdu::ConnectDataOverflow(part, last));
        }
        self.state = State::Sta02A;
        true
    }

    pub(super) fn accepted(&mut self, mut accept: Accept) -> bool {
        if self.state != State::Sta02A {
            return false;
        }
        let proposed = self.request.take().unwrap_or_default();
        // The tokens are where the initiator wants them, unless the responder says otherwise.
        let setting = accept.item.token_setting.or(proposed.item.token_setting);
        accept.item.token_setting = setting;
        let selected = accept.item.versions & proposed.item.versions;
        let all = super::REQUIREMENTS;
        if selected == 0 || accept.requirements & all != all {
            return false;
        }
        self.version = if selected & version::TWO != 0 {
            version::TWO
        } else {
            version::ONE
        };
        self.established(&accept, accept.item.tsdu_maximum.0);
        self.tell(SessionEvent::ConnectConfirm(accept));
        true
    }

    /// Special action 5 of X.225 Annex A.
    fn established(&mut self, accept: &Accept, tsdu_maximum: u16) {
        self.state = State::Sta713;
        self.requirements = accept.requirements;
        let mut available = Tokens::NONE;
        for (unit, token) in [
            (requirement::HALF_DUPLEX, 0x01),
            (requirement::MINOR_SYNCHRONIZE, 0x04),
            (requirement::ACTIVITY_MANAGEMENT, 0x10),
        ] {
            if self.requirements & unit != 0 {
                available = available.union(Tokens::from_item(token));
            }
        }
        let of_responder = Tokens::from_item(accept.item.token_setting.unwrap_or(0));
        let owned = match self.acceptor {
            true => of_responder,
            false => available.without(of_responder),
        };
        self.tokens = Position {
            available,
            owned: owned.intersection(available),
        };
        let serial = accept.item.initial_serial.unwrap_or(0);
        (self.va, self.vm, self.vr, self.vsc) = (serial, serial, 0, false);
        let maximum = usize::from(tsdu_maximum);
        self.segment = match maximum < TSDU_MIN {
            true => 0,
            false => maximum.saturating_sub(SEGMENT_HEADER),
        };
    }

    /// Pretends that a CONNECT SPDU with these versions was sent.
    #[cfg(test)]
    pub(super) fn propose(&mut self, versions: u8) {
        self.request = Some(Connect {
            item: Item {
                versions,
                ..Item::default()
            },
            ..Connect::default()
        });
    }

    pub(super) fn refused(&mut self, refuse: Refuse) -> bool {
        if !matches!(self.state, State::Sta02A | State::Sta02B) {
            return false;
        }
        self.tell(SessionEvent::Refused(refuse));
        self.disconnect();
        true
    }
}
