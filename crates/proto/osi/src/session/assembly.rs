//! The content of TSDUs: SPDUs, and user information that is passed on in pieces.

use bytes::Bytes;

use super::machine::{Assembly, Fault};
use super::parameters::SpduError;
use super::spdu::disconnect;
use super::{Abort, Enclosure, Incoming, Session, SessionEvent, Spdu, State};

impl Session {
    /// T-DATA indication: a piece of a TSDU. Pieces of user information become events as they come; the octets of other
    /// SPDUs are collected up to the limit.
    pub fn receive(&mut self, octets: Bytes, end: bool) {
        if self.state == State::Sta01 {
            return;
        }
        match self.assemble(octets, end) {
            Ok(()) if end => {
                self.assembly = Assembly {
                    open: self.assembly.open,
                    ..Assembly::default()
                }
            }
            Ok(()) => {}
            Err(fault) => self.fail(fault),
        }
    }

    fn assemble(&mut self, octets: Bytes, end: bool) -> Result<(), Fault> {
        if let Some(enclosure) = self.assembly.data {
            return self.user_information(enclosure, octets, end);
        }
        let mut rest = octets;
        if !self.assembly.held.is_empty() {
            self.assembly.held.extend_from_slice(&rest);
            if self.spdu_length(&self.assembly.held)?.is_none() && !end {
                return Ok(());
            }
            rest = self.assembly.held.split().freeze();
        }
        while let Some(spdu) = self.next_spdu(&mut rest)? {
            if let Spdu::DataTransfer(enclosure) = spdu {
                self.begin_data(enclosure)?;
                return self.user_information(enclosure, rest, end);
            }
            self.whole_spdu(spdu)?;
        }
        match end {
            true if rest.is_empty() => self.end_of_tsdu(),
            true => Err(Fault::Malformed(SpduError::Length)),
            false => {
                self.assembly.held.extend_from_slice(&rest);
                Ok(())
            }
        }
    }

    fn end_of_tsdu(&mut self) -> Result<(), Fault> {
        if let Some(spdu) = self.assembly.spdu.take() {
            self.spdu(spdu)?;
        }
        self.token_alone()
    }

    /// The length of the SPDU at the beginning of the octets, if it is there as a whole.
    fn spdu_length(&self, octets: &[u8]) -> Result<Option<usize>, Fault> {
        let limit = self.config.spdu_max;
        match Spdu::length(octets) {
            Some(length) if length > limit => Err(Fault::Malformed(SpduError::TooLong(limit))),
            length => Ok(length.filter(|length| *length <= octets.len())),
        }
    }

    /// Takes the next SPDU off the octets, if it is there.
    fn next_spdu(&mut self, octets: &mut Bytes) -> Result<Option<Spdu>, Fault> {
        let Some(length) = self.spdu_length(octets)? else {
            return Ok(None);
        };
        let spdu = octets.split_to(length);
        let second = self.assembly.token.is_some();
        Spdu::read(&spdu, second)
            .map(Some)
            .map_err(Fault::Malformed)
    }

    /// Takes an SPDU that has no user information. Only token SPDUs may have another behind them.
    fn whole_spdu(&mut self, spdu: Spdu) -> Result<(), Fault> {
        let first = self.assembly.token.is_none() && self.assembly.spdu.is_none();
        if first && spdu.kind().category() == 0 {
            self.assembly.token = Some(spdu);
            return Ok(());
        }
        match self.assembly.spdu.replace(spdu) {
            None => Ok(()),
            Some(_) => Err(Fault::Malformed(SpduError::Concatenation)),
        }
    }

    /// Takes the token SPDU, after the SPDU that stands behind it: tokens are given when their rights have been used.
    fn token_alone(&mut self) -> Result<(), Fault> {
        match self.assembly.token.take() {
            Some(Spdu::GiveTokens(tokens)) if tokens.is_none() => Ok(()),
            Some(Spdu::PleaseTokens(tokens, _)) if tokens.is_none() => Ok(()),
            Some(token) => self.spdu(token),
            None => Ok(()),
        }
    }

    fn begin_data(&mut self, enclosure: Enclosure) -> Result<(), Fault> {
        let here = Fault::Unexpected(Incoming::DT, self.state);
        self.assembly.discards = match self.state {
            State::Sta16 | State::Sta19 => true,
            State::Sta05B | State::Sta05C | State::Sta20 if self.peer_may_send() => true,
            State::Sta03 | State::Sta04B | State::Sta713 if self.peer_may_send() => false,
            _ => return Err(here),
        };
        if enclosure.begin == self.assembly.open {
            return Err(Fault::Malformed(SpduError::Concatenation));
        }
        self.assembly.open = !enclosure.end;
        self.assembly.data = Some(enclosure);
        Ok(())
    }

    const fn peer_may_send(&self) -> bool {
        self.tokens.peer_may(super::Token::Data)
    }

    fn user_information(
        &mut self,
        enclosure: Enclosure,
        octets: Bytes,
        end: bool,
    ) -> Result<(), Fault> {
        let ends = end && enclosure.end;
        if !self.assembly.discards && (ends || !octets.is_empty()) {
            self.tell(SessionEvent::Data(octets, ends));
        }
        match end {
            true => self.token_alone(),
            false => Ok(()),
        }
    }

    /// An SPDU has arrived: the table of X.225 Annex A, by kinds.
    fn spdu(&mut self, spdu: Spdu) -> Result<(), Fault> {
        let unexpected = Fault::Unexpected(spdu.kind(), self.state);
        let known = match self.state {
            State::Sta16 => self.ended_spdu(&spdu),
            _ => match spdu {
                Spdu::Abort(abort) => self.aborted(&abort),
                Spdu::Connect(connect) => self.requested(connect)?,
                Spdu::ConnectDataOverflow(data, last) => self.overflowed(data, last)?,
                Spdu::OverflowAccept(accept) => self.overflow_accepted(accept),
                Spdu::Accept(accept) => self.accepted(accept),
                Spdu::Refuse(refuse) => self.refused(refuse),
                Spdu::Finish(_, data) => self.finish(data),
                Spdu::Disconnect(data) => self.released(data),
                other => self.connected_spdu(other),
            },
        };
        if known { Ok(()) } else { Err(unexpected) }
    }

    /// STA 16: the peer ends the transport connection, or agrees with the end.
    fn ended_spdu(&mut self, spdu: &Spdu) -> bool {
        if matches!(spdu, Spdu::Abort(_) | Spdu::AbortAccept | Spdu::Connect(_)) {
            self.disconnect();
        }
        true
    }

    fn aborted(&mut self, abort: &Abort) -> bool {
        if !matches!(self.state, State::Sta01C | State::Sta01D) {
            self.tell(match abort.disconnect & disconnect::USER_ABORT {
                0 => SessionEvent::ProviderAbort(Fault::Peer(abort.disconnect)),
                _ => SessionEvent::UserAbort(abort.user_data.clone()),
            });
        }
        self.disconnect();
        true
    }
}
