//! What a TSDU holds: SPDUs, and user information that is passed on as it comes.

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

    pub(super) fn assemble(&mut self, octets: Bytes, end: bool) -> Result<(), Fault> {
        if let Some(enclosure) = self.assembly.data {
            return self.user_information(enclosure, octets, end);
        }
        self.assembly.collected.push(octets);
        while let Some(spdu) = self.next_spdu()? {
            if let Spdu::DataTransfer(enclosure) = spdu {
                let rest = std::mem::take(&mut self.assembly.collected);
                self.begin_data(enclosure)?;
                return self.user_information(enclosure, rest.into_bytes(), end);
            }
            self.whole_spdu(spdu)?;
        }
        match end && !self.assembly.collected.is_empty() {
            true => Err(Fault::Malformed(SpduError::Length)),
            false if end => self.end_of_tsdu(),
            false => Ok(()),
        }
    }

    pub(super) fn end_of_tsdu(&mut self) -> Result<(), Fault> {
        if let Some(spdu) = self.assembly.spdu.take() {
            self.spdu(spdu)?;
        }
        self.token_alone()
    }

    /// Takes the next SPDU off the collected octets, if it is there.
    pub(super) fn next_spdu(&mut self) -> Result<Option<Spdu>, Fault> {
        let collected = &mut self.assembly.collected;
        let mut head = [0; 4];
        let found = collected.peek(&mut head);
        let Some(length) = Spdu::length(head.get(..found).unwrap_or(&head)) else {
            return Ok(None);
        };
        let limit = self.config.spdu_max;
        if length > limit {
            return Err(Fault::Malformed(SpduError::TooLong(limit)));
        }
        if collected.len() < length {
            return Ok(None);
        }
        let octets = collected.take(length).into_bytes();
        let second = self.assembly.token.is_some();
        Spdu::read(&octets, second)
            .map(Some)
            .map_err(Fault::Malformed)
    }

    /// Takes an SPDU that has no user information. Only token SPDUs may have another behind them.
    pub(super) fn whole_spdu(&mut self, spdu: Spdu) -> Result<(), Fault> {
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
    pub(super) fn token_alone(&mut self) -> Result<(), Fault> {
        match self.assembly.token.take() {
            Some(Spdu::GiveTokens(tokens)) if tokens.is_none() => Ok(()),
            Some(Spdu::PleaseTokens(tokens, _)) if tokens.is_none() => Ok(()),
            Some(token) => self.spdu(token),
            None => Ok(()),
        }
    }

    pub(super) fn begin_data(&mut self, enclosure: Enclosure) -> Result<(), Fault> {
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

    pub(super) const fn peer_may_send(&self) -> bool {
        self.tokens.peer_may(super::Token::Data)
    }

    pub(super) fn user_information(
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
    pub(super) fn spdu(&mut self, spdu: Spdu) -> Result<(), Fault> {
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
    pub(super) fn ended_spdu(&mut self, spdu: &Spdu) -> bool {
        if matches!(spdu, Spdu::Abort(_) | Spdu::AbortAccept | Spdu::Connect(_)) {
            self.disconnect();
        }
        true
    }

    pub(super) fn aborted(&mut self, abort: &Abort) -> bool {
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
