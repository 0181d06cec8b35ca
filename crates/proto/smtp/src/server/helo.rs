//! HELO and EHLO: the client introduces itself and learns what we offer (RFC 5321 section 4.1.1.1).

use crate::address::DomainOrLiteral;
use crate::xclient::ATTRIBUTES;

use super::Server;

impl Server {
    /// Takes the introduction; an open transaction is given up, as by RSET.
    pub(super) fn helo_command(&mut self, helo: DomainOrLiteral, esmtp: bool) {
        let again = self.session.helo.is_some();
        self.session.transaction = None;
        self.session.helo = Some(helo);
        self.session.esmtp = esmtp;
        if esmtp {
            self.write_extensions();
        } else {
            self.output.line(250, &self.config.hostname, true);
        }
        if again {
            self.count_idle();
        }
    }

    /// ```text
    /// ehlo-ok-rsp = "250-" Domain [ SP ehlo-greet ] CRLF *( "250-" ehlo-line CRLF ) "250" SP ehlo-line CRLF
    /// ```
    fn write_extensions(&mut self) {
        let limits = &self.config.limits;
        let extensions = self.config.extensions;
        let out = &mut self.output;
        out.line(250, &self.config.hostname, false);
        out.line(250, "PIPELINING", false);
        out.line(
            250,
            &format!("SIZE {}", limits.message_size_max.as_u64()),
            false,
        );
        out.line(250, "8BITMIME", false);
        if extensions.chunking {
            out.line(250, "CHUNKING", false);
            out.line(250, "BINARYMIME", false);
        }
        if extensions.smtputf8 {
            out.line(250, "SMTPUTF8", false);
        }
        if extensions.dsn {
            out.line(250, "DSN", false);
        }
        // RFC 8689 section 3: offered within TLS only.
        if extensions.require_tls && self.peer.tls.is_some() {
            out.line(250, "REQUIRETLS", false);
        }
        if let Some(policy) = self.config.mt_priority() {
            let line = format!("MT-PRIORITY {policy}");
            out.line(250, line.trim_end(), false);
        }
        if self.peer.tls_available && self.peer.tls.is_none() {
            out.line(250, "STARTTLS", false);
        }
        if let Some(mechanisms) = self.mechanisms_offered() {
            self.output.line(250, &mechanisms, false);
        }
        if self.peer.may_xclient {
            self.output
                .line(250, &format!("XCLIENT {ATTRIBUTES}"), false);
        }
        // The values have at most six digits (RFC 9422 section 4).
        let limits = &self.config.limits;
        let announced = |limit: usize| limit.clamp(1, 999_999);
        let (mails, recipients) = (
            announced(limits.transactions_max),
            announced(limits.recipients_max),
        );
        self.output.line(
            250,
            &format!("LIMITS MAILMAX={mails} RCPTMAX={recipients}"),
            false,
        );
        self.output.line(250, "ENHANCEDSTATUSCODES", true);
    }

    /// The line that offers AUTH, if AUTH may be used now.
    fn mechanisms_offered(&self) -> Option<String> {
        let auth = self.config.auth.as_ref()?;
        if !self.may_auth() || self.account().is_some() {
            return None;
        }
        let mut line = String::from("AUTH");
        for mechanism in &auth.mechanisms {
            line.push(' ');
            line.push_str(mechanism.name());
        }
        Some(line)
    }
}
