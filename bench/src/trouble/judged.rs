//! Trouble of judged mail: silent name servers, content filters that fail, and a quarantine that strangers fill.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::crowd::Counts;
use super::filter::Manner;
use super::kinds::{MARK, Script};
use super::names::SILENT;
use super::system::{HONEST, System, user};
use super::{DOMAIN, POLL, RETURN_MAX, honest};
use crate::process::guard;

/// Interval between two messages of a client: longer than the longest judgement.
const EVERY: Duration = Duration::from_secs(25);

/// Octets of a message's text.
const TEXT_OCTETS: usize = 4 << 10;

/// The time of a filter for its answer.
pub(super) const FILTER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the filter may take to be asked again: it is left alone for 10 s, and a message has to come.
pub(super) const BACK_MAX: Duration = Duration::from_secs(12);

/// The domain whose mail is kept aside.
const UNWANTED: &str = "unwanted.test";

/// The account of the crowd's mail.
const RECIPIENT: usize = 1;

/// What is wrong with judged mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// The name servers of the crowd's senders are silent at every question.
    SilentNames,
    /// The filter answers in this manner.
    Filter(Manner),
    /// The crowd's mail goes to the quarantine.
    Quarantine,
}

impl Judged {
    /// The reply to an honest message meanwhile, by `when_unavailable`.
    pub(super) const fn expected(self) -> &'static str {
        match self {
            Self::Filter(Manner::Drips) => "450 4.7.1",
            _ => "250",
        }
    }

    /// The settings, with the filter's address.
    pub(super) fn settings(self, filter: Option<SocketAddr>) -> String {
        match (self, filter) {
            (Self::Filter(manner), Some(address)) => {
                let unavailable = match manner {
                    Manner::Drips => "defer",
                    _ => "accept",
                };
                format!(
                    "[judging]\n[[filter]]\nname = \"trouble\"\nkind = \"rspamd\"\naddress = \"{address}\"\n\
                     timeout = \"{}s\"\nwhen_unavailable = \"{unavailable}\"\n",
                    FILTER_TIMEOUT.as_secs()
                )
            }
            (Self::Quarantine, _) => {
                format!("[judging]\nquarantine_at = 5\nblock_senders = [\"{UNWANTED}\"]\n")
            }
            _ => "[judging]\n".to_owned(),
        }
    }

    /// Each client sends a message, and another one after a while.
    pub(super) fn script(self, address: SocketAddr) -> Script {
        let domain = match self {
            Self::Quarantine => UNWANTED.to_owned(),
            _ => format!("d{MARK}.{SILENT}"),
        };
        let signature = format!(
            "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d={domain}; s=s;\r\n h=from:subject; \
             bh=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=; b=AAAA\r\n"
        );
        let line = [&b"x".repeat(76)[..], b"\r\n"].concat();
        let mut message = format!(
            "{signature}From: crowd@{domain}\r\nSubject: number {MARK}\r\n\
             Message-ID: <{MARK}@{domain}>\r\n\r\n"
        )
        .into_bytes();
        message.extend(
            line.iter()
                .cycle()
                .take(TEXT_OCTETS / line.len() * line.len()),
        );
        let mut text = format!(
            "MAIL FROM:<crowd@{domain}>\r\nRCPT TO:<{}>\r\nBDAT {} LAST\r\n",
            user(RECIPIENT),
            message.len()
        )
        .into_bytes();
        text.extend(message);
        let hello = format!("EHLO crowd.{SILENT}\r\n");
        let talk = vec![("220 ", hello.into_bytes()), ("250 ", text.clone())];
        Script {
            trickle: Some((text, EVERY)),
            counted: true,
            ..Script::of(address, talk)
        }
    }
}

/// What became of judged mail.
#[derive(Debug)]
pub(super) struct Account {
    /// Messages of the crowd and of honest clients with 250.
    pub(super) acknowledged: u64,
    /// Messages in mailboxes and in the quarantine.
    pub(super) found: u64,
    /// Messages in the quarantine.
    pub(super) quarantined: u64,
    /// Until the filter was asked again; `None` without filter.
    pub(super) back: Option<Duration>,
}

/// Waits until mail that was acknowledged is found, and looks for it. The crowd has ended, the filter answers well again.
pub(super) fn account(system: &System, counts: &Counts, back: Option<Duration>) -> Account {
    let crowd = counts.replies.get("250 2.0.0").copied();
    let acknowledged = system.acknowledged.get() + crowd.unwrap_or_default();
    let until = Instant::now() + RETURN_MAX;
    loop {
        let quarantined = system.quarantined();
        let inbox = |account: &str| system.stored(account).unwrap_or_default();
        let found = inbox(&format!("{HONEST}@{DOMAIN}")) + inbox(&user(RECIPIENT)) + quarantined;
        if found >= acknowledged || Instant::now() > until || guard::is_stopped() {
            return Account {
                acknowledged,
                found,
                quarantined,
                back,
            };
        }
        sleep(POLL);
    }
}

/// Lets the filter answer well, and measures the time until a message is shown to it again.
pub(super) fn await_filter(system: &System) -> Option<Duration> {
    let filter = system.filter.as_ref()?;
    filter.behave(Manner::Good);
    let (began, asked) = (Instant::now(), filter.asked());
    while filter.asked() == asked && began.elapsed() < RETURN_MAX && !guard::is_stopped() {
        // While the filter is left alone, its messages are treated by the settings, whatever those are.
        let _ = honest::send(system, "250");
        sleep(POLL);
    }
    Some(began.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_crowd_are_as_long_as_announced() {
        let script = Judged::SilentNames.script(([127, 0, 0, 1], 25).into());
        let (text, _) = script.trickle.as_ref().unwrap();
        let text = String::from_utf8(script.filled(text, 3, 2).into_owned()).unwrap();
        let (commands, message) = text.split_once(" LAST\r\n").unwrap();
        let announced = commands.rsplit(' ').next().unwrap();
        assert_eq!(announced, message.len().to_string());
        assert!(commands.starts_with("MAIL FROM:<crowd@d02000003.silent.test>\r\n"));
        assert!(message.contains("Message-ID: <02000003@d02000003.silent.test>\r\n"));
        assert!(message.ends_with("x\r\n"));
    }
}
