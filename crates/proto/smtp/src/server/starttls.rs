//! STARTTLS: the session begins anew, encrypted (RFC 3207).

use super::config::TlsInfo;
use super::session::Session;
use super::{Phase, Server, replies};

impl Server {
    /// Makes way for the handshake.
    ///
    /// Octets behind the command were sent in the clear and would be taken for encrypted octets
    /// (CVE-2011-0411 and its many descendants): such a client is not served.
    pub(super) fn starttls(&mut self, more: bool) {
        if self.peer.tls.is_some() {
            return self.fail(replies::TLS_ALREADY);
        }
        if !self.peer.tls_available {
            return self.fail(replies::NOT_OFFERED);
        }
        if !self.session.esmtp {
            return self.fail(replies::EHLO_FIRST);
        }
        if more {
            return self.close_with(replies::TLS_INJECTION);
        }
        self.output.fixed(replies::START_TLS);
        self.phase = Phase::StartTls;
    }

    /// Records the completed handshake: the state learned from the client before is dropped (RFC
    /// 3207 section 4.2). Outside of [`Step::StartTls`](super::Step::StartTls) the call does
    /// nothing.
    pub fn tls_started(&mut self, info: TlsInfo) {
        if matches!(self.phase, Phase::StartTls) && self.output.is_empty() {
            self.session = Session::default();
            self.lines.clear();
            self.peer.tls = Some(info);
            self.phase = Phase::Command;
            if self.shutting_down {
                self.shut_down();
            }
        }
    }
}
