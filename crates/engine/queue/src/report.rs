//! Delivery status notifications: messages that report to senders the fate of their mail (RFC 3461
//! section 6, RFC 3462, RFC 3464; for SMTPUTF8 mail RFC 6533).

use std::fmt::Write as _;

use vere_units::Timestamp;

use crate::envelope::{BodyType, Envelope, Ret};

/// Size limit in octets up to which a report returns the whole original without a RET parameter.
/// Larger originals are returned as header only. The figure is Postfix's `bounce_size_limit`.
pub const RETURN_FULL_MAX: usize = 50_000;

/// Host of an attempt for a local mailbox.
pub const LOCAL: &str = "local";

/// What happened to the recipients of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    /// Delivered to the mailbox.
    Delivered,
    /// Passed to a host that sends no reports itself.
    Relayed,
    /// The address stood for several, and the message goes on to each of them.
    Expanded,
    /// Not delivered yet; attempts go on.
    Delayed,
    /// Given up.
    Failed,
}

impl ReportKind {
    /// The Action field's word (RFC 3464 section 2.3.3).
    #[must_use]
    pub const fn action(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Relayed => "relayed",
            Self::Expanded => "expanded",
            Self::Delayed => "delayed",
            Self::Failed => "failed",
        }
    }

    const fn subject(self) -> &'static str {
        match self {
            Self::Delivered => "Delivered: your message arrived",
            Self::Relayed => "Relayed: your message was passed on",
            Self::Expanded => "Expanded: your message goes to several recipients",
            Self::Delayed => "Delayed: your message is still on its way",
            Self::Failed => "Undelivered mail returned to sender",
        }
    }

    const fn explanation(self) -> &'static str {
        match self {
            Self::Delivered => "Your message was delivered to these recipients.",
            Self::Relayed => {
                "Your message was passed on for these recipients. The next system sends no\r\n\
                 reports, so you may hear nothing more."
            }
            Self::Expanded => {
                "Your message was taken for these addresses, each of which stands for several\r\n\
                 recipients, and goes on to all of them. You hear of them only what fails."
            }
            Self::Delayed => {
                "Your message could not be delivered yet. You need not send it again:\r\n\
                 attempts go on, and you will be told if they are given up."
            }
            Self::Failed => {
                "Your message could not be delivered to the recipients below and will not be\r\n\
                 tried again."
            }
        }
    }
}

/// One recipient in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedRecipient {
    /// The address that was tried.
    pub address: String,
    /// The original recipient as the sender gave it (`type;xtext`).
    pub orcpt: Option<String>,
    /// Enhanced status code.
    pub status: String,
    /// The destination's reply in one line of at most
    /// [`REPLY_KEPT_MAX`](crate::settlement::REPLY_KEPT_MAX) octets.
    pub diagnostic: String,
    /// Whether `diagnostic` is an SMTP reply of the remote host.
    pub from_remote: bool,
    /// The host that was tried.
    pub remote: String,
}

/// A report to be composed and stored; its own reverse-path is null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What happened.
    pub kind: ReportKind,
    /// The original's sender, who gets the report.
    pub to: String,
    /// The recipients reported on.
    pub recipients: Vec<ReportedRecipient>,
    /// End of further attempts, if attempts continue.
    pub retry_until: Option<Timestamp>,
}

/// Who composes a report, when, and under which unique name.
#[derive(Debug, Clone, Copy)]
pub struct Composer<'a> {
    /// This system's host name.
    pub hostname: &'a str,
    /// The time of composing.
    pub now: Timestamp,
    /// Unique text for Message-ID and MIME boundary: letters and digits.
    pub unique: &'a str,
}

impl Composer<'_> {
    /// Composes the report as a message with CRLF lines. `original` is the reported message as
    /// stored.
    #[must_use]
    pub fn compose(&self, report: &Report, envelope: &Envelope, original: &[u8]) -> Vec<u8> {
        let mut text = String::with_capacity(2048);
        self.header(&mut text, report, envelope.mail.smtputf8);
        human_part(&mut text, report, self);
        self.status_part(&mut text, report, envelope);
        let mut message = text.into_bytes();
        self.returned_part(&mut message, envelope, original, report.kind);
        message
    }

    fn header(&self, out: &mut String, report: &Report, utf8: bool) {
        let Self {
            hostname,
            now,
            unique,
        } = self;
        let report_type = if utf8 {
            "global-delivery-status"
        } else {
            "delivery-status"
        };
        // A `String` never fails to take text.
        let _ = write!(
            out,
            "From: Mail Delivery System <MAILER-DAEMON@{hostname}>\r\n\
             To: <{to}>\r\n\
             Subject: {subject}\r\n\
             Date: {date}\r\n\
             Message-ID: <{unique}@{hostname}>\r\n\
             Auto-Submitted: auto-replied\r\n\
             MIME-Version: 1.0\r\n\
             Content-Type: multipart/report; report-type={report_type};\r\n\tboundary=\"{unique}\"\r\n\
             \r\n",
            to = report.to,
            subject = report.kind.subject(),
            date = now.rfc5322(),
        );
    }

    fn status_part(&self, out: &mut String, report: &Report, envelope: &Envelope) {
        let Self {
            hostname, unique, ..
        } = self;
        let media = if envelope.mail.smtputf8 {
            "message/global-delivery-status"
        } else {
            "message/delivery-status"
        };
        let address_type = address_type(envelope);
        let _ = write!(out, "--{unique}\r\nContent-Type: {media}\r\n\r\n");
        let _ = write!(out, "Reporting-MTA: dns; {hostname}\r\n");
        if let Some(envid) = &envelope.mail.envid {
            let _ = write!(out, "Original-Envelope-Id: {}\r\n", decode_xtext(envid));
        }
        let _ = write!(
            out,
            "Arrival-Date: {}\r\n",
            envelope.head.accepted.rfc5322()
        );
        // RFC 3464 section 2.4: names of extensions begin with X-.
        let _ = write!(out, "X-Veredarius-Queue-ID: {}\r\n", envelope.head.trace);
        if !report.to.is_empty() {
            let _ = write!(
                out,
                "X-Veredarius-Sender: {address_type}; {}\r\n",
                report.to
            );
        }
        for recipient in &report.recipients {
            out.push_str("\r\n");
            self.recipient_fields(out, report, recipient, envelope);
        }
        out.push_str("\r\n");
    }

    /// The fields of one recipient (RFC 3464 section 2.3), in the order of its grammar.
    fn recipient_fields(
        &self,
        out: &mut String,
        report: &Report,
        recipient: &ReportedRecipient,
        envelope: &Envelope,
    ) {
        let address_type = address_type(envelope);
        if let Some((kind, address)) = recipient.orcpt.as_deref().and_then(|o| o.split_once(';')) {
            let _ = write!(
                out,
                "Original-Recipient: {kind}; {}\r\n",
                decode_xtext(address)
            );
        }
        let _ = write!(
            out,
            "Final-Recipient: {address_type}; {}\r\n",
            recipient.address
        );
        let _ = write!(out, "Action: {}\r\n", report.kind.action());
        let _ = write!(out, "Status: {}\r\n", recipient.status);
        if recipient.from_remote {
            let _ = write!(out, "Remote-MTA: dns; {}\r\n", recipient.remote);
            let _ = write!(out, "Diagnostic-Code: smtp; {}\r\n", recipient.diagnostic);
        } else if !recipient.diagnostic.is_empty() {
            let _ = write!(
                out,
                "Diagnostic-Code: x-veredarius; {}\r\n",
                recipient.diagnostic
            );
        }
        // Without a remote host asked, no attempt was made.
        if recipient.remote != self.hostname {
            let _ = write!(out, "Last-Attempt-Date: {}\r\n", self.now.rfc5322());
        }
        // Queue ids of other systems are unknown here.
        if recipient.remote == LOCAL {
            let _ = write!(out, "Final-Log-ID: {}\r\n", envelope.head.trace);
        }
        if let Some(until) = report.retry_until {
            let _ = write!(out, "Will-Retry-Until: {}\r\n", until.rfc5322());
        }
    }

    fn returned_part(
        &self,
        out: &mut Vec<u8>,
        envelope: &Envelope,
        original: &[u8],
        kind: ReportKind,
    ) {
        let full = returns_full(envelope, original, kind);
        let media = match (full, envelope.mail.smtputf8) {
            (true, false) => "message/rfc822",
            (true, true) => "message/global",
            (false, false) => "text/rfc822-headers",
            (false, true) => "message/global-headers",
        };
        let content = if full {
            original
        } else {
            vere_mime::header(original)
        };
        let encoding = if content.is_ascii() { "7bit" } else { "8bit" };
        let unique = self.unique;
        out.extend_from_slice(
            format!("--{unique}\r\nContent-Type: {media}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n")
                .as_bytes(),
        );
        out.extend_from_slice(content);
        if !content.ends_with(b"\r\n") {
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(format!("\r\n--{unique}--\r\n").as_bytes());
    }
}

fn human_part(out: &mut String, report: &Report, composer: &Composer<'_>) {
    let Composer {
        hostname, unique, ..
    } = composer;
    let _ = write!(
        out,
        "--{unique}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\
         This is the mail system at {hostname}.\r\n\r\n{}\r\n\r\n",
        report.kind.explanation()
    );
    for recipient in &report.recipients {
        let _ = write!(out, "<{}>\r\n", recipient.address);
        if !recipient.diagnostic.is_empty() {
            let speaker = if recipient.from_remote {
                format!("{} said: ", recipient.remote)
            } else {
                String::new()
            };
            let _ = write!(out, "    {speaker}{}\r\n", recipient.diagnostic);
        }
    }
    out.push_str("\r\n");
}

/// The type of addresses in a report (RFC 6533 section 3).
const fn address_type(envelope: &Envelope) -> &'static str {
    if envelope.mail.smtputf8 {
        "utf-8"
    } else {
        "rfc822"
    }
}

/// RFC 3461 section 4.3: RET concerns failures only; binary content cannot be nested unencoded.
fn returns_full(envelope: &Envelope, original: &[u8], kind: ReportKind) -> bool {
    kind == ReportKind::Failed
        && envelope.mail.body_type != BodyType::BinaryMime
        && match envelope.mail.ret {
            Some(Ret::Full) => true,
            Some(Ret::Headers) => false,
            None => original.len() <= RETURN_FULL_MAX,
        }
}

/// Decodes xtext (RFC 3461 section 4). Characters that are not printable stay encoded.
fn decode_xtext(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = text
            .get(at + 1..at + 3)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex {
            Some(decoded) if byte == b'+' && (decoded.is_ascii_graphic() || decoded == b' ') => {
                out.push(char::from(decoded));
                at += 3;
            }
            _ => {
                let rest = text
                    .get(at..)
                    .and_then(|rest| rest.chars().next())
                    .unwrap_or(' ');
                out.push(rest);
                at += rest.len_utf8();
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Mail;
    use crate::envelope::tests::sample;

    fn report(kind: ReportKind) -> Report {
        Report {
            kind,
            to: "sender@example.org".to_owned(),
            recipients: vec![ReportedRecipient {
                address: "b@example.net".to_owned(),
                orcpt: Some("rfc822;b+2Balias@example.net".to_owned()),
                status: "5.1.1".to_owned(),
                diagnostic: "550 5.1.1 no such user".to_owned(),
                from_remote: true,
                remote: "mx.example.net".to_owned(),
            }],
            retry_until: (kind == ReportKind::Delayed).then(|| Timestamp::from_millis(86_400_000)),
        }
    }

    fn compose(kind: ReportKind, envelope: &Envelope) -> String {
        let composer = Composer {
            hostname: "mx.example.org",
            now: Timestamp::from_millis(1_000),
            unique: "u7",
        };
        let original = b"Subject: hello\r\nFrom: a\r\n\r\nbody text\r\n";
        String::from_utf8(composer.compose(&report(kind), envelope, original)).expect("UTF-8")
    }

    #[test]
    fn a_failure_report_has_the_three_parts_of_rfc_3462() {
        let envelope = Envelope {
            mail: Mail {
                smtputf8: false,
                ret: None,
                ..sample().mail
            },
            ..sample()
        };
        let text = compose(ReportKind::Failed, &envelope);
        for expected in [
            "Content-Type: multipart/report; report-type=delivery-status;\r\n\tboundary=\"u7\"\r\n",
            "Auto-Submitted: auto-replied\r\n",
            "Original-Envelope-Id: QQ314159\r\n",
            "Original-Recipient: rfc822; b+alias@example.net\r\n",
            "Final-Recipient: rfc822; b@example.net\r\nAction: failed\r\nStatus: 5.1.1\r\n",
            "Remote-MTA: dns; mx.example.net\r\n",
            "Diagnostic-Code: smtp; 550 5.1.1 no such user\r\n",
            "Content-Type: message/rfc822\r\n",
            "body text\r\n",
            "\r\n--u7--\r\n",
        ] {
            assert!(
                text.contains(expected),
                "{expected:?} is missing in:\n{text}"
            );
        }
        assert!(
            !text.replace("\r\n", "").contains('\n'),
            "every line ends in CRLF"
        );
    }

    #[test]
    fn ret_hdrs_and_success_return_the_header_only() {
        let headers = Envelope {
            mail: Mail {
                smtputf8: false,
                ret: Some(Ret::Headers),
                ..sample().mail
            },
            ..sample()
        };
        let full = Envelope {
            mail: Mail {
                ret: Some(Ret::Full),
                ..headers.mail.clone()
            },
            ..headers.clone()
        };
        for (kind, envelope) in [(ReportKind::Failed, headers), (ReportKind::Relayed, full)] {
            let text = compose(kind, &envelope);
            assert!(text.contains("Content-Type: text/rfc822-headers\r\n"));
            assert!(text.contains("Subject: hello\r\n") && !text.contains("body text"));
        }
    }

    /// In a message that came in chunks, lines may end with LF alone.
    #[test]
    fn a_header_ends_at_the_first_empty_line_whatever_ends_lines() {
        let envelope = Envelope {
            mail: Mail {
                ret: Some(Ret::Headers),
                ..sample().mail
            },
            ..sample()
        };
        let composer = Composer {
            hostname: "mx.example.org",
            now: Timestamp::from_millis(1_000),
            unique: "u7",
        };
        for original in [&b"A: b\n\nbody\r\n\r\n"[..], b"A: b\r\n\nbody", b"\r\nbody"] {
            let text = composer.compose(&report(ReportKind::Failed), &envelope, original);
            let text = String::from_utf8(text).expect("UTF-8");
            assert!(!text.contains("body\r\n"), "{text}");
        }
    }

    #[test]
    fn internationalised_mail_gets_the_types_of_rfc_6533() {
        let text = compose(
            ReportKind::Failed,
            &Envelope {
                mail: Mail {
                    ret: Some(Ret::Full),
                    ..sample().mail
                },
                ..sample()
            },
        );
        assert!(text.contains("report-type=global-delivery-status"));
        assert!(text.contains("Content-Type: message/global-delivery-status\r\n"));
        assert!(text.contains("Final-Recipient: utf-8; b@example.net\r\n"));
        assert!(text.contains("Content-Type: message/global\r\n"));
    }

    #[test]
    fn a_report_says_when_it_was_tried_and_until_when_it_will_be() {
        let envelope = Envelope {
            mail: Mail {
                smtputf8: false,
                ..sample().mail
            },
            ..sample()
        };
        let text = compose(ReportKind::Delayed, &envelope);
        for expected in [
            "X-Veredarius-Queue-ID: 0000000000007\r\nX-Veredarius-Sender: rfc822; sender@example.org\r\n",
            "Last-Attempt-Date: Thu, 01 Jan 1970 00:00:01 +0000\r\n\
             Will-Retry-Until: Fri, 02 Jan 1970 00:00:00 +0000\r\n",
        ] {
            assert!(
                text.contains(expected),
                "{expected:?} is missing in:\n{text}"
            );
        }
        assert!(!text.contains("Final-Log-ID"));
        let mut report = report(ReportKind::Delivered);
        let composer = Composer {
            hostname: "mx.example.org",
            now: Timestamp::from_millis(1_000),
            unique: "u7",
        };
        let mut fields = |remote: &str| {
            report.recipients[0].remote = remote.to_owned();
            let text = composer.compose(&report, &envelope, b"Subject: a\r\n\r\n");
            let text = String::from_utf8(text).expect("text");
            let has = |name: &str| text.contains(name);
            (
                has("Last-Attempt-Date"),
                has("Final-Log-ID: 0000000000007"),
                has("Will-Retry"),
            )
        };
        assert_eq!(fields(LOCAL), (true, true, false));
        // Nobody was asked.
        assert_eq!(fields("mx.example.org"), (false, false, false));
    }

    #[test]
    fn hostile_xtext_stays_harmless() {
        assert_eq!(decode_xtext("a+0D+0Ab+3D"), "a+0D+0Ab=");
        assert_eq!(decode_xtext("+"), "+");
        assert_eq!(decode_xtext("ö+4"), "ö+4");
    }
}
