//! The client machine against servers written out line by line.

mod auth;
mod hostile;
mod messages;
mod opening;
mod pair;
mod random;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use vere_units::Timestamp;

use super::{
    Client, ClientConfig, ClientStep, CloseReason, OutgoingMessage, RecipientOutcome,
    TransactionOutcome,
};
use crate::address::{ForwardPath, ReversePath};
use crate::command::RcptTo;

const BODY: &str = "Subject: x\r\n\r\n.hello\r\n";
const STUFFED: &str = "Subject: x\r\n\r\n..hello\r\n.\r\n";
const ALL: &str = "250-mx\r\n250-PIPELINING\r\n250-SIZE 1000000\r\n250-8BITMIME\r\n250-CHUNKING\r\n\
    250-BINARYMIME\r\n250-SMTPUTF8\r\n250-DSN\r\n250 ENHANCEDSTATUSCODES\r\n";
const PIPELINING: &str = "250-mx\r\n250 PIPELINING\r\n";
const PLAIN: &str = "250 mx\r\n";
/// Recipients of most messages.
const ONE: &[&str] = &["a@b.example"];
const TWO: &[&str] = &["a@b.example", "c@b.example"];

fn config() -> ClientConfig {
    ClientConfig::new("me.example", [9; 32])
}

fn lmtp() -> ClientConfig {
    ClientConfig {
        lmtp: true,
        ..config()
    }
}

fn message(recipients: &[&str]) -> OutgoingMessage {
    let rcpt = |to: &&str| RcptTo::new(ForwardPath::parse(&format!("<{to}>")).unwrap());
    OutgoingMessage::new(
        ReversePath::parse("<s@a.example>").unwrap(),
        recipients.iter().map(rcpt).collect(),
        Bytes::from_static(BODY.as_bytes()),
    )
}

/// A client and the time.
struct Talk {
    client: Client,
    now: Timestamp,
}

impl Talk {
    fn new(config: ClientConfig) -> Self {
        let now = Timestamp::from_millis(1_000_000);
        Self {
            client: Client::new(Arc::new(config), now),
            now,
        }
    }

    /// A talk that has come to `Ready` with this reply to EHLO.
    fn ready(config: ClientConfig, hello: &str) -> Self {
        let mut talk = Self::new(config);
        talk.says("220 mx ready\r\n");
        let verb = talk.hears();
        assert!(
            verb == "EHLO me.example\r\n" || verb == "LHLO me.example\r\n",
            "{verb}"
        );
        talk.says(hello);
        assert!(
            matches!(talk.client.step(), ClientStep::Ready),
            "{:?}",
            talk.client.step()
        );
        talk
    }

    /// A talk whose client has greeted the server.
    fn greeted(config: ClientConfig) -> Self {
        let mut talk = Self::new(config);
        talk.says("220 mx\r\n");
        talk.hears();
        talk
    }

    fn says(&mut self, text: &str) {
        self.says_octets(text.as_bytes());
    }

    fn says_octets(&mut self, octets: &[u8]) {
        assert_eq!(self.client.input(octets, self.now), octets.len());
    }

    /// Everything the client has to send.
    fn hears(&mut self) -> String {
        let mut all = Vec::new();
        while !self.client.output().is_empty() {
            let octets = self.client.output().len();
            all.extend_from_slice(self.client.output());
            self.client.sent(octets);
        }
        String::from_utf8(all).unwrap()
    }

    fn begin(&mut self, message: OutgoingMessage) {
        self.client.begin(message, self.now);
    }

    /// The client sends exactly this, and gets this reply.
    #[track_caller]
    fn exchange(&mut self, heard: impl AsRef<str>, reply: &str) {
        assert_eq!(self.hears(), heard.as_ref());
        self.says(reply);
    }

    /// Begins a message to these recipients and gives each reply when the client has sent all it can.
    fn offers(&mut self, to: &[&str], replies: &[&str]) {
        self.begin(message(to));
        for reply in replies {
            self.hears();
            self.says(reply);
        }
    }

    /// A message to these recipients, with these replies, ends with this [`short`] outcome.
    #[track_caller]
    fn settles(&mut self, to: &[&str], replies: &[&str], expected: &str) -> TransactionOutcome {
        self.offers(to, replies);
        let outcome = self.done();
        assert_eq!(short(&outcome), expected);
        outcome
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn done(&mut self) -> TransactionOutcome {
        match self.client.step() {
            ClientStep::Done(outcome) => *outcome,
            other => panic!("not done: {other:?}"),
        }
    }

    fn closed(&mut self) -> CloseReason {
        match self.client.step() {
            ClientStep::Closed(reason) => {
                assert!(self.client.output().is_empty());
                assert_eq!(self.client.deadline(), Timestamp::MAX);
                reason
            }
            other => panic!("not closed: {other:?}"),
        }
    }

    fn is_ready(&mut self) {
        let step = self.client.step();
        assert!(matches!(step, ClientStep::Ready), "{step:?}");
    }

    /// Sends what waits, and must then be done for.
    fn leaves(&mut self) -> CloseReason {
        assert_eq!(self.hears(), "QUIT\r\n");
        self.closed()
    }
}

/// Outcomes in short: `+250`, `-550`, `~451`.
fn short(outcome: &TransactionOutcome) -> String {
    let one = |outcome: &RecipientOutcome| match outcome {
        RecipientOutcome::Delivered(reply) => format!("+{}", reply.code),
        RecipientOutcome::Failed(reply) => format!("-{}", reply.code),
        RecipientOutcome::Deferred(reply) => format!("~{}", reply.code),
    };
    outcome
        .recipients
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join(" ")
}
