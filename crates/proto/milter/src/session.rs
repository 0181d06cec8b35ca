//! The SMTP session that a filter sees.

use std::net::IpAddr;

/// The facts of the session that brought the message. Texts are as they will be shown: without line ends, paths without
/// angle brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session<'a> {
    /// The client's address.
    pub client: IpAddr,
    /// The client's port; 0 if unknown.
    pub port: u16,
    /// The client's verified name; empty if there is none.
    pub client_name: &'a str,
    /// The argument of HELO or EHLO.
    pub helo: &'a str,
    /// The reverse-path; empty for `<>`.
    pub reverse_path: &'a str,
    /// The recipients.
    pub recipients: &'a [&'a str],
    /// The account that the client logged in to; empty without a login.
    pub account: &'a str,
    /// The id of the message in log and trace.
    pub id: &'a str,
    /// This system's name.
    pub host: &'a str,
    /// The version of TLS, such as `TLSv1.3`; empty without TLS.
    pub tls_version: &'a str,
    /// The cipher suite; empty without TLS.
    pub tls_cipher: &'a str,
}

impl Session<'_> {
    /// The value of a macro, by the name without braces; `None` without a value.
    pub(crate) fn symbol(&self, name: &str, recipient: &str) -> Option<String> {
        let host_of = |path: &str| path.rsplit_once('@').map(|(_, host)| host.to_owned());
        let value = match name {
            "j" | "daemon_name" | "if_name" => self.host.to_owned(),
            "v" => "Veredarius".to_owned(),
            "_" => format!("{} [{}]", self.name(), self.client),
            "client_addr" => self.client.to_string(),
            "client_name" | "client_ptr" => self.name(),
            "client_port" => self.port.to_string(),
            "client_resolve" if !self.client_name.is_empty() => "OK".to_owned(),
            "client_resolve" => "FAIL".to_owned(),
            "s" => self.helo.to_owned(),
            "i" => self.id.to_owned(),
            "tls_version" => self.tls_version.to_owned(),
            "cipher" => self.tls_cipher.to_owned(),
            "auth_authen" => self.account.to_owned(),
            // The mechanism is not kept. Filters such as OpenDKIM look only for a value, as a sign of a login.
            "auth_type" if !self.account.is_empty() => "SASL".to_owned(),
            "mail_addr" | "f" => self.reverse_path.to_owned(),
            "mail_host" => host_of(self.reverse_path)?,
            "mail_mailer" | "rcpt_mailer" => "smtp".to_owned(),
            "rcpt_addr" => recipient.to_owned(),
            "rcpt_host" => host_of(recipient)?,
            "nrcpts" => self.recipients.len().to_string(),
            _ => return None,
        };
        (!value.is_empty()).then_some(value)
    }

    /// The client's name, or its address in brackets.
    pub(crate) fn name(&self) -> String {
        match self.client_name {
            "" => format!("[{}]", self.client),
            name => name.to_owned(),
        }
    }
}

/// The commands that a filter sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A client connected.
    Connect,
    /// HELO or EHLO.
    Helo,
    /// MAIL.
    Mail,
    /// RCPT.
    Recipient,
    /// DATA.
    Data,
    /// A header field.
    Header,
    /// The empty line behind the header.
    EndOfHeader,
    /// A piece of the body.
    Body,
    /// The end of the message.
    EndOfMessage,
}

impl Event {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Connect => b'C',
            Self::Helo => b'H',
            Self::Mail => b'M',
            Self::Recipient => b'R',
            Self::Data => b'T',
            Self::Header => b'L',
            Self::EndOfHeader => b'N',
            Self::Body => b'B',
            Self::EndOfMessage => b'E',
        }
    }

    /// The flag by which a filter does not get the event.
    pub(crate) const fn unwanted_flag(self) -> Option<u32> {
        Some(match self {
            Self::Connect => 1,
            Self::Helo => 1 << 1,
            Self::Mail => 1 << 2,
            Self::Recipient => 1 << 3,
            Self::Body => 1 << 4,
            Self::Header => 1 << 5,
            Self::EndOfHeader => 1 << 6,
            Self::Data => 1 << 9,
            Self::EndOfMessage => return None,
        })
    }

    /// The flag by which a filter does not answer the event.
    pub(crate) const fn unanswered_flag(self) -> Option<u32> {
        Some(match self {
            Self::Header => 1 << 7,
            Self::Connect => 1 << 12,
            Self::Helo => 1 << 13,
            Self::Mail => 1 << 14,
            Self::Recipient => 1 << 15,
            Self::Data => 1 << 16,
            Self::EndOfHeader => 1 << 18,
            Self::Body => 1 << 19,
            Self::EndOfMessage => return None,
        })
    }

    /// The macros that a filter gets without naming macros.
    pub(crate) const fn symbols(self) -> &'static [&'static str] {
        match self {
            Self::Connect => &[
                "j",
                "_",
                "daemon_name",
                "if_name",
                "client_name",
                "client_addr",
                "client_port",
                "client_ptr",
                "client_resolve",
                "v",
            ],
            Self::Helo => &["tls_version", "cipher"],
            Self::Mail => &[
                "i",
                "auth_type",
                "auth_authen",
                "mail_mailer",
                "mail_host",
                "mail_addr",
            ],
            Self::Recipient => &["rcpt_mailer", "rcpt_host", "rcpt_addr"],
            Self::Data | Self::EndOfHeader | Self::EndOfMessage => &["i"],
            Self::Header | Self::Body => &[],
        }
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect => "CONNECT",
            Self::Helo => "HELO",
            Self::Mail => "MAIL",
            Self::Recipient => "RCPT",
            Self::Data => "DATA",
            Self::Header => "a header field",
            Self::EndOfHeader => "the end of the header",
            Self::Body => "a piece of the body",
            Self::EndOfMessage => "the end of the message",
        })
    }
}
