//! MAIL FROM: who sends, and how the message travels (RFC 5321 section 4.1.1.2), with SIZE (1870), BODY
//! (6152, 3030), SMTPUTF8 (6531), RET and ENVID (3461), AUTH (4954 section 5), REQUIRETLS (8689) and MT-PRIORITY
//! (6710).

use super::parameter::{parameters, set_once, split_path};
use super::{CommandError, Workarounds, Xtext, xtext};
use crate::address::{AddrSpec, ReversePath};

/// Octets of the longest ENVID, as xtext (RFC 3461 section 4.4).
pub const ENVID_OCTETS_MAX: usize = 100;

/// The kinds of octets allowed in the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BodyType {
    /// `BODY=7BIT`, and without BODY: lines of ASCII.
    #[default]
    SevenBit,
    /// `BODY=8BITMIME`: lines of any octets but NUL, CR and LF (RFC 6152).
    EightBitMime,
    /// `BODY=BINARYMIME`: any octets, by BDAT only (RFC 3030 section 3).
    BinaryMime,
}

/// How much of the message a report of failure returns (RFC 3461 section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ret {
    /// `RET=FULL`
    Full,
    /// `RET=HDRS`
    Headers,
}

/// The arguments of MAIL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailFrom {
    /// Where reports go.
    pub reverse_path: ReversePath,
    /// `SIZE=`: the octets that the client intends to send.
    pub size: Option<u64>,
    /// `BODY=`
    pub body: BodyType,
    /// `SMTPUTF8`: addresses and header may hold UTF-8.
    pub smtputf8: bool,
    /// `RET=`
    pub ret: Option<Ret>,
    /// `ENVID=`, as xtext of printable ASCII.
    pub envid: Option<Xtext>,
    /// `AUTH=`: who gave the message to the mail system, as a trusted client says; null for unknown.
    pub auth: Option<ReversePath>,
    /// `REQUIRETLS`: the message travels encrypted to verified hosts only.
    pub require_tls: bool,
    /// `MT-PRIORITY=`: from -9 to 9, higher priorities first (RFC 6710).
    pub priority: Option<i8>,
}

impl MailFrom {
    /// The command without parameters.
    #[must_use]
    pub fn new(reverse_path: ReversePath) -> Self {
        Self {
            reverse_path,
            size: None,
            body: BodyType::SevenBit,
            smtputf8: false,
            ret: None,
            envid: None,
            auth: None,
            require_tls: false,
            priority: None,
        }
    }

    /// Parses the text behind `MAIL` and a space.
    ///
    /// ```text
    /// mail        = "MAIL FROM:" Reverse-path [SP Mail-parameters] CRLF
    /// size-value  = 1*20DIGIT
    /// body-value  = "7BIT" / "8BITMIME" / "BINARYMIME"
    /// ret-value   = "FULL" / "HDRS"
    /// envid-value = xtext        ; of printable characters
    /// auth-value  = xtext        ; of a mailbox or "<>"
    /// priority-value = (["-"] NZDIGIT) / "0"
    /// ```
    ///
    /// # Errors
    ///
    /// The error in the path or a parameter.
    pub fn parse(argument: &str, workarounds: Workarounds) -> Result<Self, CommandError> {
        let (path, rest) = split_path(argument, "FROM:", workarounds)
            .ok_or(CommandError::Usage("MAIL FROM:<address>"))?;
        let reverse_path = ReversePath::parse(&path).map_err(CommandError::ReversePath)?;
        let mut mail = Self::new(reverse_path);
        let mut body = None;
        let (mut smtputf8, mut require_tls) = (None, None);
        for (keyword, value) in parameters(rest) {
            if keyword.eq_ignore_ascii_case("SIZE") {
                set_once(&mut mail.size, "SIZE", value.and_then(size))?;
            } else if keyword.eq_ignore_ascii_case("BODY") {
                set_once(&mut body, "BODY", value.and_then(BodyType::from_keyword))?;
            } else if keyword.eq_ignore_ascii_case("SMTPUTF8") {
                set_once(&mut smtputf8, "SMTPUTF8", value.is_none().then_some(()))?;
            } else if keyword.eq_ignore_ascii_case("RET") {
                set_once(&mut mail.ret, "RET", value.and_then(Ret::from_keyword))?;
            } else if keyword.eq_ignore_ascii_case("ENVID") {
                set_once(&mut mail.envid, "ENVID", value.and_then(envid))?;
            } else if keyword.eq_ignore_ascii_case("AUTH") {
                set_once(&mut mail.auth, "AUTH", value.and_then(auth))?;
            } else if keyword.eq_ignore_ascii_case("REQUIRETLS") {
                let bare = value.is_none().then_some(());
                set_once(&mut require_tls, "REQUIRETLS", bare)?;
            } else if keyword.eq_ignore_ascii_case("MT-PRIORITY") {
                let value = value.and_then(priority);
                set_once(&mut mail.priority, "MT-PRIORITY", value)?;
            } else {
                return Err(CommandError::UnknownParameter);
            }
        }
        mail.body = body.unwrap_or_default();
        mail.smtputf8 = smtputf8.is_some();
        mail.require_tls = require_tls.is_some();
        Ok(mail)
    }

    /// Whether the command has any parameter, which only EHLO sessions may use.
    #[must_use]
    pub fn has_parameters(&self) -> bool {
        self.size.is_some()
            || self.body != BodyType::SevenBit
            || self.smtputf8
            || self.ret.is_some()
            || self.envid.is_some()
            || self.auth.is_some()
            || self.require_tls
            || self.priority.is_some()
    }

    /// Appends the command with CRLF.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut push = |text: &str| out.extend_from_slice(text.as_bytes());
        push("MAIL FROM:<");
        push(self.reverse_path.as_str());
        push(">");
        if let Some(size) = self.size {
            push(" SIZE=");
            push(&size.to_string());
        }
        match self.body {
            BodyType::SevenBit => {}
            body => {
                push(" BODY=");
                push(body.keyword());
            }
        }
        if self.smtputf8 {
            push(" SMTPUTF8");
        }
        if let Some(ret) = self.ret {
            push(" RET=");
            push(ret.keyword());
        }
        if let Some(envid) = &self.envid {
            push(" ENVID=");
            push(envid.as_str());
        }
        if let Some(auth) = &self.auth {
            push(" AUTH=");
            match auth.address() {
                Some(address) => push(Xtext::encode(address.as_str().as_bytes()).as_str()),
                None => push("<>"),
            }
        }
        if self.require_tls {
            push(" REQUIRETLS");
        }
        if let Some(priority) = self.priority {
            push(" MT-PRIORITY=");
            push(&priority.to_string());
        }
        push("\r\n");
    }
}

impl BodyType {
    /// The value of `BODY=`.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::SevenBit => "7BIT",
            Self::EightBitMime => "8BITMIME",
            Self::BinaryMime => "BINARYMIME",
        }
    }

    fn from_keyword(text: &str) -> Option<Self> {
        [Self::SevenBit, Self::EightBitMime, Self::BinaryMime]
            .into_iter()
            .find(|body| text.eq_ignore_ascii_case(body.keyword()))
    }
}

impl Ret {
    /// The value of `RET=`.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Headers => "HDRS",
        }
    }

    fn from_keyword(text: &str) -> Option<Self> {
        [Self::Full, Self::Headers]
            .into_iter()
            .find(|ret| text.eq_ignore_ascii_case(ret.keyword()))
    }
}

/// Parses a number of up to 20 digits; a number out of range exceeds every limit all the same.
fn size(text: &str) -> Option<u64> {
    let digits = (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

fn envid(text: &str) -> Option<Xtext> {
    let xtext = Xtext::parse(text)?;
    let printable = xtext
        .decode()
        .iter()
        .all(|octet| matches!(octet, b' '..=b'~'));
    (!text.is_empty() && text.len() <= ENVID_OCTETS_MAX && printable).then_some(xtext)
}

fn auth(text: &str) -> Option<ReversePath> {
    if text == "<>" {
        return Some(ReversePath::Null);
    }
    let mailbox = String::from_utf8(xtext::decode(text)?).ok()?;
    AddrSpec::parse(&mailbox).ok().map(ReversePath::Address)
}

/// Parses a digit, with a minus for negative numbers; `-0` and `+1` are invalid.
fn priority(text: &str) -> Option<i8> {
    let (digit, below) = match text.strip_prefix('-') {
        Some(digit) => (digit, true),
        None => (text, false),
    };
    let value = match digit.as_bytes() {
        [octet @ b'0'..=b'9'] => i8::try_from(octet.wrapping_sub(b'0')).ok()?,
        _ => return None,
    };
    match (value, below) {
        (0, true) => None,
        (value, true) => value.checked_neg(),
        (value, false) => Some(value),
    }
}
