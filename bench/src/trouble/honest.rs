//! Honest clients in sequence: a new connection, one message or one view of a mailbox, and good-bye.

use std::io;
use std::time::{Duration, Instant};

use super::system::{DOMAIN, HONEST, System, message};
use crate::process::guard;
use crate::store::ImapError;
use crate::store::imap::Imap;
use crate::store::systems::PASSWORD;
use crate::wire::Dialogue;

/// How long an honest client waits for a reply; mail programs give up about then.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of successive refusals after which no further client is tried: later clients would wait for nothing.
const REFUSED_MAX: usize = 20;

/// One client of this many also files a message, of this many octets: small messages are accepted whatever the load
/// of memory.
const FILING: usize = 10;
const FILED_OCTETS: usize = 128 << 10;

/// The results of honest clients; times from the shortest to the longest.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// From the greeting to the 250 of the message.
    pub(super) smtp: Vec<Duration>,
    /// From the greeting to the end of the FETCH.
    pub(super) imap: Vec<Duration>,
    /// The answers to refused clients.
    pub(super) refused: Vec<String>,
}

/// So many clients of each protocol.
pub(super) fn measure(system: &System, count: usize) -> Times {
    let mut times = Times::default();
    for number in 0..count {
        if times.refused.len() >= REFUSED_MAX || guard::is_stopped() {
            break;
        }
        match send(system) {
            Ok(took) => times.smtp.push(took),
            Err(error) => times.refused.push(format!("SMTP: {error}")),
        }
        match look(system) {
            Ok(took) => times.imap.push(took),
            Err(error) => times.refused.push(format!("IMAP: {error}")),
        }
        if number % FILING == 0
            && let Err(error) = file(system)
        {
            times.refused.push(format!("APPEND: {error}"));
        }
    }
    times.smtp.sort_unstable();
    times.imap.sort_unstable();
    times
}

/// Sends a message; returns the time from the greeting.
pub(super) fn send(system: &System) -> io::Result<Duration> {
    let mut client = Dialogue::connect(system.smtp, PATIENCE)?;
    let began = Instant::now();
    client.ask("EHLO honest.test\r\n", "250")?;
    client.ask("MAIL FROM:<ann@elsewhere.test>\r\n", "250")?;
    client.ask(&format!("RCPT TO:<{HONEST}@{DOMAIN}>\r\n"), "250")?;
    client.ask("DATA\r\n", "354")?;
    let text = "From: ann@elsewhere.test\r\nSubject: hello\r\n\r\nHow are you?\r\n.\r\n";
    client.ask(text, "250")?;
    let took = began.elapsed();
    client.ask("QUIT\r\n", "221")?;
    Ok(took)
}

/// Logs in and looks at the newest message.
fn look(system: &System) -> Result<Duration, ImapError> {
    let mut imap = Imap::connect(system.imap)?;
    let began = Instant::now();
    imap.ok(&format!("LOGIN {HONEST}@{DOMAIN} {PASSWORD}"))?;
    imap.ok("SELECT INBOX")?;
    imap.ok("FETCH * (FLAGS BODY.PEEK[])")?;
    let took = began.elapsed();
    imap.ok("LOGOUT")?;
    Ok(took)
}

/// Files a message of some size.
fn file(system: &System) -> Result<(), ImapError> {
    let message = message("filed", FILED_OCTETS / 78 * 78);
    let mut imap = Imap::connect(system.imap)?;
    imap.ok(&format!("LOGIN {HONEST}@{DOMAIN} {PASSWORD}"))?;
    imap.append("Filed", &message).or_else(|_| {
        imap.ok("CREATE Filed")
            .and_then(|_| imap.append("Filed", &message))
    })?;
    imap.ok("LOGOUT")?;
    Ok(())
}
